"""`scrapy audit`: compare a sink with the stored state, and repair it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import closing

from crawlspace.clock import SystemClock
from crawlspace.runtime.components.command import CollectionCommand, exactly_one, print_json, reduce_garbage_collection
from crawlspace.runtime.session.progress import ProgressDisplay
from crawlspace.runtime.session.sink_audit import audit_sinks, sinks_to_audit

SHOWN = 20
"""Differences of a sink that are listed, unless all are requested."""


class Command(CollectionCommand):
    usage = "[options] <collection>"
    summary = "Compare an index with the collection, and repair it"
    explanation = (
        "Compare each sink with the stored state of the collection, document by document: what is missing there, what is there and should "
        "not be, and what is outdated. --repair orders what is needed, and sends it unless a crawl does: documents from the archive, without "
        "fetching, and deletions. Works while the collection is crawled; what waits for a sink is no difference. "
        "Exit status: 0 they are equal, or were repaired; 1 they differ, the collection was never crawled, or store or index have a fault; "
        "2 wrong use."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--sink", metavar="SINK", help="only this sink (default: all that can be compared)")
        parser.add_argument("--repair", action="store_true", help="send what is missing or outdated, delete what is extra")
        parser.add_argument("--all", action="store_true", help=f"name all differences (default: the first {SHOWN})")
        parser.add_argument(
            "--json", action="store_true", help="print the numbers, and the differences that are named, for a program"
        )

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        paths = self.paths(exactly_one(args, example="scrapy audit demo"))
        chosen = sinks_to_audit(paths, opts.sink)
        reduce_garbage_collection()
        clock = SystemClock()
        with paths.crawled(paths.store.changing() if opts.repair else paths.store.reading()) as opened:
            with closing(ProgressDisplay(sys.stderr, clock)) as display:
                reports = audit_sinks(
                    paths,
                    opened,
                    chosen,
                    clock=clock,
                    most=None if opts.all else SHOWN,
                    repairs=opts.repair,
                    progress=lambda done, total: display("comparing", done, total),
                )
            delivered = opened.deliver(paths.sinks, clock) if opts.repair else ""
        if opts.json:
            print_json([report.as_json() for report in reports])
        else:
            for report in reports:
                print("\n".join(report.lines(paths.name, repaired=opts.repair)))
            if delivered:
                print(delivered)
        return 1 if any(report.is_wrong(repaired=opts.repair) for report in reports) else 0
