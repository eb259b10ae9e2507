"""`scrapy reindex`: send all documents to the sinks again, or those that they refused."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from scrapy.utils.conf import arglist_to_dict

from crawlspace.clock import SystemClock
from crawlspace.errors import IndexUnavailable, StoreError, UsageError
from crawlspace.runtime.components.command import CollectionCommand, exactly_one, reduce_garbage_collection
from crawlspace.runtime.session.paths import CollectionPaths, OpenStore
from crawlspace.runtime.session.progress import ProgressDisplay
from crawlspace.runtime.session.rebuilding import discard, rebuild
from crawlspace.runtime.session.reindexing import DocumentsAgain, send_parked, sinks_of
from crawlspace.runtime.session.replay import MOST_PROCESSES
from crawlspace.text import escaped

SHOWN = 20
"""Pages listed whose document was not rebuilt."""


class Command(CollectionCommand):
    usage = "[options] <collection>"
    summary = "Send all documents to the index again, or to other sinks, without fetching"
    explanation = (
        "Send all documents of a collection to each of its sinks again, or to one of them, as the archive has them; also to an index that was "
        "lost, or is new. Nothing is fetched. A document that the archive does not have stays in the index, and the next crawl fetches and "
        "sends it. "
        "--extract rebuilds the documents from the archived pages first, with the spider, item pipelines, rules and settings as they are "
        "now; a page without a document by now leaves the index. "
        "When it is stopped or killed, the next call continues. Works while the collection is crawled, except with --extract. "
        "--parked sends only what sinks have refused. "
        "--rebuild makes a new index on a search server in addition to the one that is searched, compares it with the stored state, and switches to "
        "it; all that is ordered meanwhile goes to both. "
        "Exit status: 0 all were sent; 1 a document has no record, could not be rebuilt or is refused again, there was no switch, the "
        "collection was never crawled, or store or index have a fault; 2 wrong use; 130 stopped by Ctrl-C."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--extract", action="store_true", help="rebuild the documents from the archived pages")
        parser.add_argument("--sink", metavar="S", help="send to this sink alone, or rebuild its index; without it send to all")
        parser.add_argument(
            "--processes", type=int, metavar="N", help="make them in N processes; without it, in as many as there are processors"
        )
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--parked", action="store_true", help="send only what sinks have refused")
        what.add_argument(
            "--rebuild", action="store_true", help="build a new index while the old one is searched, and switch to it"
        )
        what.add_argument(
            "--rollback", action="store_true", help="bring the index of before the last switch up to date, and switch to it"
        )
        what.add_argument("--discard", action="store_true", help="give up an index that is being built")
        parser.add_argument(
            "--approve", action="store_true", help="switch although the new index is much smaller, or refuses documents"
        )

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        paths = self.paths(exactly_one(args, example="scrapy reindex demo"))
        if opts.rebuild or opts.rollback or opts.discard:
            return _rebuild(paths, opts)
        processes = _processes(opts)
        sinks = sinks_of(paths, opts.sink)
        if opts.extract and (opts.parked or opts.sink is not None):
            raise UsageError(
                "--parked sends documents as they are: leave out --extract, or --parked"
                if opts.parked
                else "--extract changes the documents, which all sinks have to get then: leave out --sink"
            )
        with paths.crawled(paths.store.changing()) as opened:
            if opts.parked:
                return _parked(paths, opened, sinks)
            reduce_garbage_collection()
            again = DocumentsAgain(paths, opened)
            return _extract(again, processes, _options(opts)) if opts.extract else _send(again, sinks)


def _send(again: DocumentsAgain, sinks: Sequence[str]) -> int:
    """Send all documents to these sinks; one that does not accept them does not affect the others."""
    name, is_done = again.paths.name, True
    for sink in sinks:
        try:
            done = again.to(sink)
        except IndexUnavailable as error:
            is_done = False
            option = f" --sink {sink}" if len(again.paths.sinks.names) > 1 else ""
            sys.stderr.write(f"{error}; `scrapy reindex {name}{option}` continues it\n")
            continue
        print(done.sentence(name, to=sink if len(again.paths.sinks.names) > 1 else ""))
        is_done = is_done and done.is_whole
    return 0 if is_done else 1


def _extract(again: DocumentsAgain, processes: int, options: dict[str, str]) -> int:
    """Rebuild all documents, and send them to all sinks."""
    name, kept = again.paths.name, _Kept()
    try:
        done, unavailable = again.rebuilt(processes=processes, options=options, report=kept.add)
    except IndexUnavailable as error:
        raise StoreError(f"{error}; `scrapy reindex {name} --extract` continues it") from error
    kept.close()
    for sink, why in unavailable.items():
        sys.stderr.write(f"{why}; the next crawl sends the orders waiting for the sink {sink}\n")
    print(done.sentence(name))
    return 0 if done.is_whole and not unavailable else 1


def _parked(paths: CollectionPaths, opened: OpenStore, sinks: Sequence[str]) -> int:
    """Send orders again that these sinks refused."""
    found = []
    for sent in send_parked(paths, opened, sinks):
        print(sent.sentence(paths.name))
        found.append(sent)
    if not found:
        print(f"{paths.name}: {' and '.join(sinks)} refused nothing")
    return 0 if all(sent.is_done for sent in found) else 1


def _rebuild(paths: CollectionPaths, opts: argparse.Namespace) -> int:
    if opts.extract and not opts.rebuild:
        raise UsageError("--extract goes with --rebuild: --rollback and --discard make no document")
    processes = _processes(opts)
    if opts.discard:
        print(discard(paths, opts.sink))
        return 0
    with paths.crawled(paths.store.changing()) as opened:
        reduce_garbage_collection()
        if opts.extract:
            status = _extract(DocumentsAgain(paths, opened), processes, _options(opts))
            if status:
                return status
        opened.deliver(paths.sinks, SystemClock())
        has_switched, said = rebuild(paths, opened, opts.sink, on_previous=opts.rollback, approved=opts.approve)
        print(said)
        if has_switched and not opts.rollback:  # orders that the former index has refused
            rebuilt = [
                one.name for one in paths.sinks.servers if opts.sink in (None, one.name) and one.type not in ("file", "http")
            ]
            for sent in send_parked(paths, opened, rebuilt):
                print(sent.sentence(paths.name))
    return 0 if has_switched else 1


class _Kept:
    """Prints the first pages whose document was not rebuilt, and why."""

    def __init__(self) -> None:
        self._number = 0

    def add(self, display: ProgressDisplay, url: str, why: str) -> None:
        self._number += 1
        if self._number <= SHOWN:
            display.close()
            sys.stderr.write(f"{escaped(url)} was not rebuilt: {escaped(why)}\n")

    def close(self) -> None:
        if self._number > SHOWN:
            sys.stderr.write(f"and {self._number - SHOWN:,} more\n")


def _processes(opts: argparse.Namespace) -> int:
    """Return the number of processes that rebuild documents. Raises UsageError."""
    if opts.processes is not None and not opts.extract:
        raise UsageError("--processes is for documents that are rebuilt: add --extract")
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
