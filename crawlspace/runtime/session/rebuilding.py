"""`scrapy reindex --rebuild`, `--rollback` and `--discard`: an index on a server is built while the present one is searched."""

from __future__ import annotations

import sys
from contextlib import ExitStack, closing
from threading import Event
from typing import NamedTuple

from crawlspace.admin.delivery import open_sink
from crawlspace.admin.rebuild import Rebuild, Rebuilt
from crawlspace.admin.sending import PAUSE_S
from crawlspace.clock import SystemClock
from crawlspace.config.sinks import SinkOptions, is_rebuildable
from crawlspace.errors import IndexUnavailable, StoreError, StoreLocked, UsageError
from crawlspace.index.marks import stored_mark
from crawlspace.index.sink import Copies, Rebuildable, Sink, place_of
from crawlspace.index.versions import Versions
from crawlspace.parsing import integer
from crawlspace.runtime.session.paths import CollectionPaths, OpenStore, archive_reader
from crawlspace.runtime.session.progress import ProgressDisplay
from crawlspace.state.error_policy import DeletionLimit
from crawlspace.text import counted, printable, quoted

SHOWN = 20
"""Number of documents refused by the new index that are listed."""


def rebuild(
    paths: CollectionPaths, opened: OpenStore, sink: str | None, *, on_previous: bool, approved: bool
) -> tuple[bool, str]:
    """Rebuild an index and switch to it, or switch back to the previous one; return whether it was switched, and a sentence."""
    clock = SystemClock()
    options = _chosen(paths, sink)
    with ExitStack() as stack:
        index = stack.enter_context(closing(open_sink(options, paths.sinks, owner=paths.name)))
        assert isinstance(index, Rebuildable), options.type
        display = stack.enter_context(closing(ProgressDisplay(sys.stderr, clock)))
        archive = stack.enter_context(closing(archive_reader(paths, opened)))
        work = Rebuild(
            opened.store,
            archive,
            options.name,
            index,
            Versions(opened.store, options.name, clock),
            paths.name,
            _deletion_limit(paths),
            lambda: _wait_for_batch(opened, index, display),
            display,
            paths.sinks.exclusion_of(options.name),
        )
        try:
            done = work.run(on_previous=on_previous, approved=approved)
            name = index.copies().present
        except IndexUnavailable as error:
            again = f"`scrapy reindex {paths.name} --sink {options.name} --{'rollback' if on_previous else 'rebuild'}`"
            raise StoreError(f"{error}; {again} continues it") from error
    return done.has_switched, _sentence(paths.name, options.name, name, done, on_previous=on_previous)


def discard(paths: CollectionPaths, sink: str | None) -> str:
    """Discard an index that is being built; return a sentence."""
    options = _chosen(paths, sink)
    with closing(open_sink(options, paths.sinks, owner=paths.name)) as index:
        assert isinstance(index, Rebuildable), options.type
        try:
            name = index.copies().next
            index.give_up_next()
        except IndexUnavailable as error:
            raise StoreError(str(error)) from error
    return f"{name} is given up" if name else f"no index is being built for the sink {options.name}"


class SinkIndexes(NamedTuple):
    """The indexes of a sink on its server."""

    copies: Copies
    documents: int
    """Documents of the collection in the searched index."""
    others: int
    """Documents of other collections there."""


def indexes_of(paths: CollectionPaths, sink: str) -> SinkIndexes:
    """Ask the server of a sink for its indexes. Raises UsageError where it has none of its own, and StoreError if it does not answer."""
    options = _chosen(paths, sink)
    with closing(open_sink(options, paths.sinks, owner=paths.name)) as index:
        assert isinstance(index, Rebuildable), options.type
        try:
            copies = index.copies()
            own, all_documents = (index.count(owner=owner) if copies.present else 0 for owner in (paths.name, None))
        except IndexUnavailable as error:
            raise StoreError(str(error)) from error
    return SinkIndexes(copies, own, all_documents - own)


def _chosen(paths: CollectionPaths, name: str | None) -> SinkOptions:
    """Return the named sink, or the only server. Raises UsageError."""
    able = [one for one in paths.sinks.options if is_rebuildable(one)]
    chosen = [one for one in able if name in (None, one.name)]
    known = ", ".join(one.name for one in able) or "none"
    if name is not None and not chosen:
        raise UsageError(f"CRAWLSPACE_SINKS has no server {quoted(name)} whose index could be rebuilt: it has {known}")
    if len(chosen) != 1:
        raise UsageError(f"name the sink whose index is to be rebuilt, with --sink; {paths.name} has {known}")
    return chosen[0]


def _deletion_limit(paths: CollectionPaths) -> DeletionLimit:
    percent, most = "CRAWLSPACE_MAX_DELETIONS_PERCENT", "CRAWLSPACE_MAX_DELETIONS"
    return DeletionLimit(integer(percent, paths.settings[percent], low=0, high=100), integer(most, paths.settings[most], low=0))


def _wait_for_batch(opened: OpenStore, index: Sink, display: ProgressDisplay) -> None:
    """Wait until no earlier batch is in flight."""
    before = stored_mark(opened.store, index.name)
    while opened.store.backlog(index.name) and stored_mark(opened.store, index.name) == before:
        try:
            with opened.alone(index.name, place_of(index)):
                return  # no process sends, and the next sender knows the new index
        except StoreLocked:
            display("waiting for the crawl to send")
            Event().wait(PAUSE_S)


def _sentence(collection: str, sink: str, name: str, done: Rebuilt, *, on_previous: bool) -> str:
    lines = [f"{printable(one.order.url)} is refused by the new index: {printable(one.reason)}" for one in done.refused[:SHOWN]]
    if len(done.refused) > SHOWN:
        lines.append(f"and {len(done.refused) - SHOWN:,} more")
    option = "--rollback" if on_previous else "--rebuild"
    command = f"scrapy reindex {collection} --sink {sink} {option}"
    documents = counted(done.documents, "document")
    if done.has_switched:
        others = f", and {done.others:,} of other collections" if done.others else ""
        way = "" if on_previous else f"; `scrapy reindex {collection} --sink {sink} --rollback` goes back"
        lines.append(f"{collection}: the sink {sink} is searched in {name} now, with {documents}{others}{way}")
    elif done.differ:
        lines.append(
            f"{collection}: there was no switch, because {counted(done.differ, 'document')} could not be had: `scrapy audit {collection}"
            f" --sink {sink} --repair` has them sent or fetched, and then `{command}` goes on"
        )
    else:
        why = (
            f"the new index has {documents}, and the present one {done.before:,}"
            if done.is_too_small
            else f"the new index refuses {counted(len(done.refused), 'document')}"
        )
        lines.append(
            f"{collection}: there was no switch, because {why}: `{command} --approve` switches all the same, `scrapy reindex {collection}"
            f" --sink {sink} --discard` gives the new one up"
        )
    return "\n".join(lines)
