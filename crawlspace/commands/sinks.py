"""`scrapy sinks`: show the sinks of a collection, fill or forget one."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from crawlspace.admin.sink_report import as_json, lines_of, sink_reports
from crawlspace.config.sinks import EMBEDDED
from crawlspace.crawl.sinks.deliveries import known_sinks, note_backfilled, note_sinks, request_backfill
from crawlspace.errors import StoreError, UsageError
from crawlspace.index.marks import forget_mark
from crawlspace.index.notes import server_meta, standstill_meta
from crawlspace.runtime.components.command import CollectionCommand, exactly_one, print_json
from crawlspace.runtime.session.paths import CollectionPaths, OpenStore
from crawlspace.text import printable, quoted


class Command(CollectionCommand):
    usage = "[options] <collection>"
    summary = "Show the sinks of a collection, fill one, or forget one"
    explanation = (
        "Show the sinks of CRAWLSPACE_SINKS: how many orders wait for each, and how many documents it refuses. A sink that the settings "
        "do not name any more keeps its place until it is forgotten. "
        "Exit status: 0 done; 1 the collection was never crawled, is being crawled (--forget), or the store has a fault; 2 wrong use."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--fill", metavar="SINK", help="have the crawl send all documents to this sink, from the archive")
        what.add_argument("--forget", metavar="SINK", help="drop the orders of a sink that the settings do not name any more")
        what.add_argument("--parked", metavar="SINK", help="list the documents that this sink refuses, with the reason")
        what.add_argument("--json", action="store_true", help="print the numbers for a program")

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        paths = self.paths(exactly_one(args, example="scrapy sinks demo"))
        changes = opts.fill is not None or opts.forget is not None
        with paths.crawled(paths.store.changing() if changes else paths.store.reading()) as opened:
            if opts.fill is not None:
                print(_fill(paths, opened, opts.fill))
            elif opts.forget is not None:
                print(_forget(paths, opened, opts.forget))
            elif opts.parked is not None:
                _refuse_unknown(paths, opened, opts.parked)
                for op, url, reason in opened.store.parked(opts.parked):
                    print(f"{op.value} {printable(url)}: {printable(reason)}")
            else:
                reports = sink_reports(opened.store, paths.sinks)
                if opts.json:
                    print_json(as_json(reports))
                else:
                    print("\n".join(lines_of(reports, paths.name)))
        return 0


def _fill(paths: CollectionPaths, opened: OpenStore, name: str) -> str:
    if name == EMBEDDED:
        raise UsageError(f"the embedded index is filled by `scrapy reindex {paths.name}`")
    if name not in paths.sinks.names:
        raise UsageError(f"CRAWLSPACE_SINKS has no sink {quoted(name)}: it has {', '.join(paths.sinks.names)}")
    if not opened.crawlers():  # else the crawl would not notice it; if the index is gone, the next one rebuilds it
        forget_mark(opened.store, name)
    request_backfill(opened.store, name)
    who = "the running crawl sends" if opened.crawlers() else "the next crawl sends"
    return f"{who} all documents of {paths.name} to {name}"


def _forget(paths: CollectionPaths, opened: OpenStore, name: str) -> str:
    _refuse_unknown(paths, opened, name)
    if name in paths.sinks.names:
        raise UsageError(f"CRAWLSPACE_SINKS names the sink {name}: take it out there first")
    if opened.crawlers():
        raise StoreError(f"{paths.name} is being crawled, and gives the sink orders: stop the crawl first, or wait for its end")
    store = opened.store
    note_sinks(store, {other: kind for other, kind in known_sinks(store).items() if other != name})
    store.withdraw(name, deletes=True)
    note_backfilled(store, name)
    store.set_meta(server_meta(name), "")
    store.set_meta(standstill_meta(name), "")
    return f"the sink {name} is forgotten; what it has of {paths.name} stays there"


def _refuse_unknown(paths: CollectionPaths, opened: OpenStore, name: str) -> None:
    names = {*paths.sinks.names, *known_sinks(opened.store)}
    if name not in names:
        raise UsageError(f"{paths.name} has no sink {quoted(name)}: it has {', '.join(sorted(names))}")
