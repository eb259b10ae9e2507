"""`scrapy reindex`: send all documents again, to one sink after the other, or rebuilt to each of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial

from crawlspace import private_files
from crawlspace.admin.delivery import open_sink
from crawlspace.admin.parked import SentAgain, send_again
from crawlspace.admin.reindex import UNKNOWN, IndexState, Reindexed, Reindexing, meta_of
from crawlspace.admin.sending import MOST_AT_ONCE, Sending
from crawlspace.clock import SystemClock
from crawlspace.config.sinks import EMBEDDED, SINKS
from crawlspace.crawl.sinks.deliveries import end_backfill, take_over_backfill
from crawlspace.crawl.sinks.repair import Resending
from crawlspace.errors import IndexUnavailable, StoreError, UsageError
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.marks import Agreement, BatchMark, MarkedStore, MarkKeeper, agreement, forget_mark
from crawlspace.index.outbox import Drain
from crawlspace.index.sink import Sink, place_of
from crawlspace.runtime.session.paths import (
    CollectionPaths,
    OpenStore,
    archive_reader,
    refuse_index_elsewhere,
    refuse_missing_index,
)
from crawlspace.runtime.session.progress import ProgressDisplay
from crawlspace.runtime.session.replay import extracting
from crawlspace.runtime.session.sinks import note_new_sinks
from crawlspace.text import quoted


@dataclass(frozen=True, slots=True)
class DocumentsAgain:
    """Sends the documents of a collection again. Raises StoreError."""

    paths: CollectionPaths
    opened: OpenStore

    def to(self, sink: str) -> Reindexed:
        """Send all to one sink. Raises IndexUnavailable if it does not take them."""
        clock = SystemClock()
        now = int(clock.now())
        state = prepare_index(self.paths, self.opened) if sink == EMBEDDED else self._prepare_server(sink)
        with (
            closing(archive_reader(self.paths, self.opened)) as archive,
            closing(ProgressDisplay(sys.stderr, clock)) as display,
            sending_to(sink, self.paths, self.opened) as sending,
        ):
            sending.until(0)
            doing = "sending" if len(self.paths.sinks.names) == 1 else f"sending to {sink}"
            done = Reindexing(
                self.opened.store,
                archive,
                state,
                now,
                deliver=sending.until,
                progress=lambda seen, total: display(doing, seen, total),
                sink=sink,
            ).run()
        if sink == EMBEDDED:
            note_sent_again(self.paths, self.opened, done, now=now)
        elif not self.opened.crawlers():
            end_backfill(self.opened.store, sink)
        return done

    def rebuilt(
        self, *, processes: int, options: dict[str, str], report: Callable[[ProgressDisplay, str, str], None]
    ) -> tuple[Reindexed, Mapping[str, str]]:
        """Rebuild all documents, and send them to each sink. Return also which servers did not take them, and why.

        Raises IndexUnavailable if the embedded index does not take them.
        """
        if self.opened.crawlers():
            raise StoreError(
                f"{self.paths.name} is being crawled, with the code and settings of when that began: stop the crawl first, or wait for its end"
            )
        clock = SystemClock()
        now = int(clock.now())
        has_embedded = self.paths.sinks.has_embedded
        state = prepare_index(self.paths, self.opened) if has_embedded else UNKNOWN
        with ExitStack() as stack:
            archive = stack.enter_context(closing(archive_reader(self.paths, self.opened)))
            display = stack.enter_context(closing(ProgressDisplay(sys.stderr, clock)))
            sendings = {name: stack.enter_context(sending_to(name, self.paths, self.opened)) for name in self.paths.sinks.names}
            each = SendingToEach(sendings)
            each.until(0)
            reindexing = Reindexing(
                self.opened.store,
                archive,
                state,
                now,
                deliver=each.until,
                settle=each.settle,
                progress=lambda seen, total: display("sending", seen, total),
            )
            making = extracting(
                reindexing,
                self.paths,
                self.opened,
                archive,
                processes=processes,
                options=options,
                report=lambda url, why: report(display, url, why),
            )
            done = stack.enter_context(making).run()
        if has_embedded:
            note_sent_again(self.paths, self.opened, done, now=now)
        return done, each.unavailable

    def _prepare_server(self, sink: str) -> IndexState:
        """Start over with a server, if no reindex is to be continued: an index that is not there any more is made again."""
        store, meta = self.opened.store, meta_of(sink)
        with opened_sink(sink, self.paths) as server:
            found = server.mark()
            if store.get_meta(meta) and _is_another(store, server, found):
                store.set_meta(meta, "")
        if not self.opened.crawlers():  # else the crawl would not know of it
            note_new_sinks(store, self.paths.sinks)
            if not store.get_meta(meta):
                take_over_backfill(store, sink)
                if found is None:
                    forget_mark(store, sink)
        return UNKNOWN


def _is_another(store: MarkedStore, server: Sink, found: BatchMark | None) -> bool:
    """Return whether the index of a sink is not the one that it was sent its orders, as far as that can be known."""
    if found is None:
        return isinstance(server, MarkKeeper) and server.lacks_mark()
    return agreement(store, server.name, found, now=int(SystemClock().now())) is not Agreement.SAME


# --- index file ----------------------------------------------------------------------------------------------------


def prepare_index(paths: CollectionPaths, opened: OpenStore) -> IndexState:
    """Make the file of the index if it is missing, and return what is in it.

    Raises StoreError for an index on another machine, and where the file is missing while the collection is crawled: the crawl writes to
    the lost one.
    """
    refuse_index_elsewhere(paths, opened)
    _make_file(paths, opened)
    with closing(EmbeddedIndex(paths.index_file, owner=paths.name)) as index:
        mark = index.mark()
        return IndexState(0 if mark is None else mark.batch, index.count_pushed())


def note_sent_again(paths: CollectionPaths, opened: OpenStore, done: Reindexed, *, now: int) -> None:
    """Note that the index was sent all documents, unless a crawl is sending them."""
    if opened.crawlers():
        return
    all_taken = not (done.fetched or done.left or opened.store.backlog(EMBEDDED, parked=True))
    with closing(EmbeddedIndex(paths.index_file, owner=paths.name)) as index:
        Resending(opened.store, index, owner=paths.name, now=now).sent_again(all_taken=all_taken)


def _make_file(paths: CollectionPaths, opened: OpenStore) -> None:
    if paths.index_file.exists():
        return
    if opened.crawlers():
        raise StoreError(
            f"there is no index at {paths.index_file} any more, and {paths.name} is being crawled: stop the crawl first"
        )
    try:
        private_files.make_folder(paths.index_file.parent)
    except OSError as error:
        raise StoreError(f"{paths.index_file.parent} cannot be made: {error.strerror}") from error
    private_files.make_file(paths.index_file)


# --- parked --------------------------------------------------------------------------------------------------------


def send_parked(paths: CollectionPaths, opened: OpenStore, sinks: Sequence[str]) -> Iterator[SentAgain]:
    """Send each of these sinks its refused orders again, if any; yield the results. Raises StoreError."""
    for name in sinks:
        if not opened.store.backlog(name, parked=True):
            continue
        if name == EMBEDDED:
            refuse_index_elsewhere(paths, opened)
            refuse_missing_index(paths)
        with sending_to(name, paths, opened) as sending:
            yield send_again(opened.store, name, partial(sending.until, 0))


# --- sending -------------------------------------------------------------------------------------------------------


def sinks_of(paths: CollectionPaths, name: str | None) -> tuple[str, ...]:
    """Return the sink of that name, or without one all of the settings. Raises UsageError."""
    if name is not None and name not in paths.sinks.names:
        raise UsageError(f"{SINKS} has no sink {quoted(name)}: it has {', '.join(paths.sinks.names)}")
    return paths.sinks.names if name is None else (name,)


@contextmanager
def opened_sink(name: str, paths: CollectionPaths) -> Iterator[Sink]:
    """Open a sink, which is not connected yet. The file of the embedded index is there. Raises SettingError, StoreError."""
    options = next(one for one in paths.sinks.options if one.name == name)
    with closing(open_sink(options, paths.sinks, owner=paths.name)) as sink:
        yield sink


@contextmanager
def sending_to(name: str, paths: CollectionPaths, opened: OpenStore) -> Iterator[Sending]:
    """Yield a function that sends a sink its waiting orders. Raises as `opened_sink`."""
    with opened_sink(name, paths) as sink:
        exclusion = paths.sinks.exclusion_of(name)
        drain = Drain(opened.store, sink, SystemClock(), batch=MOST_AT_ONCE, exclusion=exclusion)
        with closing(Sending(drain, partial(opened.alone, name, place_of(sink)))) as sending:
            yield sending


class SendingToEach:
    """Sends several sinks their waiting orders, one after the other. A server that does not accept them is skipped from then on."""

    def __init__(self, sendings: Mapping[str, Sending]) -> None:
        self._sendings = dict(sendings)
        self.unavailable: dict[str, str] = {}
        """By name: why a server has not accepted its orders."""

    def until(self, most: int) -> None:
        """As that of Sending, for each of them. Raises IndexUnavailable if the embedded index does not accept its orders."""
        for name, sending in list(self._sendings.items()):
            try:
                sending.until(most)
                if len(self._sendings) > 1:
                    sending.settle()  # while one sends, another might not
            except IndexUnavailable as error:
                if name == EMBEDDED:
                    raise
                self.unavailable[name] = str(error)
                del self._sendings[name]

    def settle(self) -> None:
        """As that of Sending: where there are several, all are settled at any time."""
        for sending in self._sendings.values():
            sending.settle()
