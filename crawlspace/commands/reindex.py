"""`scrapy reindex`: send all documents to the index again."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial

from scrapy.utils.conf import arglist_to_dict

from crawlspace import private_files
from crawlspace.admin.delivery import CRAWL_UPDATES_INDEX
from crawlspace.admin.reindex import IndexState, Reindexed, Reindexing
from crawlspace.admin.sending import MOST_AT_ONCE, Sending
from crawlspace.clock import SystemClock
from crawlspace.config.sinks import EMBEDDED
from crawlspace.crawl.sinks.index_repair import Resending
from crawlspace.errors import IndexUnavailable, StoreError, UsageError
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.outbox import Drain
from crawlspace.index.places import index_place
from crawlspace.plural import counted
from crawlspace.printable import escaped
from crawlspace.runtime.command import CollectionCommand, Place, exactly_one, reduce_garbage_collection, refuse_index_elsewhere
from crawlspace.runtime.progress_display import ProgressDisplay
from crawlspace.runtime.reindexing.rebuilding import discard, rebuild
from crawlspace.runtime.replay.extracting import MOST_PROCESSES, extracting
from crawlspace.runtime.stores.archive import archive_reader
from crawlspace.runtime.stores.places import OpenStore

SHOWN = 20
"""Pages that are named of which no document was made."""


class Command(CollectionCommand):
    """Send all documents to the index again."""

    def syntax(self) -> str:
        return "[options] <collection>"

    def short_desc(self) -> str:
        return "Send all documents to the index again, without fetching"

    def long_desc(self) -> str:
        return (
            "Send all documents of a collection to its index again, as the archive has them; also to an index that was lost, or is new. "
            "Nothing is fetched. A document that the archive does not have stays in the index, and the next crawl fetches and sends it. "
            "--extract makes the documents anew from the archived pages first, with the spider, item pipelines, rules and settings as they are "
            "now; a page without a document by now leaves the index. "
            "When it is stopped or killed, the next call continues. Works while the collection is crawled, except with --extract. "
            "--rebuild makes a new index on a search server beside the one that is searched, compares it with the stored state, and switches to "
            "it; all that is ordered meanwhile goes to both. "
            "Exit status: 0 all were sent; 1 a document has no record or could not be made anew, there was no switch, the collection was never "
            "crawled, or store or index have a fault; 2 wrong use; 130 stopped by Ctrl-C."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--extract", action="store_true", help="make the documents anew from the archived pages")
        parser.add_argument(
            "--processes", type=int, metavar="N", help="make them in N processes; without it, in as many as there are processors"
        )
        parser.add_argument("--sink", metavar="SINK", help="the sink whose index is built anew")
        what = parser.add_mutually_exclusive_group()
        what.add_argument(
            "--rebuild", action="store_true", help="build a new index beside the one that is searched, and switch to it"
        )
        what.add_argument(
            "--rollback", action="store_true", help="bring the index of before the last switch up to date, and switch to it"
        )
        what.add_argument("--discard", action="store_true", help="give up an index that is being built")
        parser.add_argument(
            "--approve", action="store_true", help="switch although the new index is much smaller, or refuses documents"
        )

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        place = self.place(exactly_one(args, example="scrapy reindex demo"))
        if opts.rebuild or opts.rollback or opts.discard:
            return _rebuild(place, opts)
        processes = _processes(opts)
        if not place.sinks.has_embedded:
            raise UsageError(
                f"{place.name} has no embedded index: `scrapy sinks {place.name} --fill {place.sinks.names[0]}` has all documents sent"
            )
        clock = SystemClock()
        with place.store.changing() as opened:
            if opened is None:
                print(f"{place.name} has never been crawled: `scrapy crawl {place.name}` does", file=sys.stderr)
                return 1
            refuse_index_elsewhere(place, opened)
            if opts.extract and opened.crawlers():
                raise StoreError(
                    f"{place.name} is being crawled, with the code and settings of when that began: stop the crawl first, or wait for its end"
                )
            _make_index(place, opened)
            reduce_garbage_collection()
            with (
                closing(archive_reader(place, opened)) as archive,
                closing(ProgressDisplay(sys.stderr, clock)) as display,
                _sending(place, opened) as sending,
            ):
                reindexing = Reindexing(
                    opened.store,
                    archive,
                    _index_state(place),
                    int(clock.now()),
                    deliver=partial(_unless_unavailable, place.name, sending.until),
                    settle=partial(_unless_unavailable, place.name, sending.settle),
                    progress=lambda seen, total: display("sending", seen, total),
                )
                if opts.extract:
                    kept = _Kept(display)
                    with extracting(
                        reindexing, place, opened, archive, processes=processes, options=_options(opts), report=kept.add
                    ) as extraction:
                        done = extraction.run()
                    kept.close()
                else:
                    done = reindexing.run()
            if not opened.crawlers():
                all_taken = not (done.fetched or done.left or opened.store.counts().parked)
                with closing(EmbeddedIndex(place.index_file, owner=place.name)) as index:
                    Resending(opened.store, index, owner=place.name, now=int(clock.now())).sent_again(all_taken=all_taken)
        print(_sentence(place.name, done))
        return 1 if done.fetched or done.left or done.kept else 0


def _rebuild(place: Place, opts: argparse.Namespace) -> int:
    if opts.extract or opts.processes is not None:
        raise UsageError("documents are made anew first: `scrapy reindex --extract`, then --rebuild")
    if opts.discard:
        print(discard(place, opts.sink))
        return 0
    with place.store.changing() as opened:
        if opened is None:
            print(f"{place.name} has never been crawled: `scrapy crawl {place.name}` does", file=sys.stderr)
            return 1
        reduce_garbage_collection()
        opened.deliver(place.sinks, SystemClock())
        has_switched, said = rebuild(place, opened, opts.sink, on_previous=opts.rollback, approved=opts.approve)
    print(said)
    return 0 if has_switched else 1


class _Kept:
    """Prints of which pages no document was made, and why: the first of them."""

    def __init__(self, display: ProgressDisplay) -> None:
        self._display = display
        self._number = 0

    def add(self, url: str, why: str) -> None:
        self._number += 1
        if self._number <= SHOWN:
            self._display.close()
            sys.stderr.write(f"{escaped(url)} was not made anew: {escaped(why)}\n")

    def close(self) -> None:
        if self._number > SHOWN:
            sys.stderr.write(f"and {self._number - SHOWN:,} more\n")


def _processes(opts: argparse.Namespace) -> int:
    """Return the number of processes that make documents anew. Raises UsageError."""
    if opts.processes is not None and not opts.extract:
        raise UsageError("--processes is for documents that are made anew: add --extract")
    if opts.processes is not None and not 1 <= opts.processes <= MOST_PROCESSES:
        raise UsageError(f"--processes is {opts.processes}; write a number from 1 to {MOST_PROCESSES}")
    return opts.processes or min(
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, MOST_PROCESSES
    )


def _options(opts: argparse.Namespace) -> dict[str, str]:
    """Return the settings of the command line."""
    options = arglist_to_dict(opts.set)
    if opts.loglevel:
        options["LOG_LEVEL"] = opts.loglevel
    if opts.logfile:
        options["LOG_FILE"] = opts.logfile
    if opts.nolog:
        options["LOG_ENABLED"] = "False"
    return options


def _make_index(place: Place, opened: OpenStore) -> None:
    """Make the index file if it is missing. Raises StoreError while the collection is crawled: the crawl writes to the lost one."""
    if place.index_file.exists():
        return
    if opened.crawlers():
        raise StoreError(
            f"there is no index at {place.index_file} any more, and {place.name} is being crawled: stop the crawl first"
        )
    try:
        private_files.make_folder(place.index_file.parent)
    except OSError as error:
        raise StoreError(f"{place.index_file.parent} cannot be made: {error.strerror}") from error
    private_files.make_file(place.index_file)


def _index_state(place: Place) -> IndexState:
    with closing(EmbeddedIndex(place.index_file, owner=place.name)) as index:
        mark = index.mark()
        return IndexState(0 if mark is None else mark.batch, index.count(of=place.name))


@contextmanager
def _sending(place: Place, opened: OpenStore) -> Iterator[Sending]:
    """Yield what sends to the index, once that has what waited already. Raises StoreError."""
    waiting = opened.store.backlog(EMBEDDED)
    said = opened.deliver(place.sinks, SystemClock())
    if said != CRAWL_UPDATES_INDEX and opened.store.backlog(EMBEDDED) >= waiting > 0:
        raise StoreError(_goes_on(said, place.name))
    with closing(EmbeddedIndex(place.index_file, owner=place.name)) as index:
        drain = Drain(opened.store, index, SystemClock(), batch=MOST_AT_ONCE)
        with closing(Sending(drain, lambda: opened.alone(EMBEDDED, index_place(place.index_file)))) as sending:
            yield sending


def _unless_unavailable(collection: str, send: Callable[..., None], *args: int) -> None:
    """Raises StoreError where the index does not take what is sent."""
    try:
        send(*args)
    except IndexUnavailable as error:
        raise StoreError(_goes_on(str(error), collection)) from error


def _goes_on(why: str, collection: str) -> str:
    return f"{why}; `scrapy reindex {collection}` goes on where it was"


def _sentence(name: str, done: Reindexed) -> str:
    sentence = f"{name}: {counted(done.sent, 'document was', 'documents were')} sent again"
    if done.removed:
        sentence += f"; {counted(done.removed, 'page has', 'pages have')} no document any more, and left the index"
    if done.withheld:
        sentence += (
            f"; {counted(done.withheld, 'document is', 'documents are')} held in the index, because to delete so much needs approval"
            f" (`scrapy deletions {name}`)"
        )
    if done.kept:
        sentence += f"; {counted(done.kept, 'document', 'documents')} could not be made anew, and stayed as before"
    if done.fetched:
        sentence += f"; {counted(done.fetched, 'has', 'have')} no record in the archive: the next crawl fetches and sends"
        sentence += f" {'it' if done.fetched == 1 else 'them'} (`scrapy urls {name} --not-archived`)"
    if done.left:
        sentence += f"; {counted(done.left, 'has', 'have')} no record and a held deletion, and is in the index as before"
    return sentence
