"""`scrapy urls`: list the state of each URL."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace

from crawlspace.admin.report import STATE_LABELS, UrlReport, known_urls, label_of
from crawlspace.printable import quoted
from crawlspace.runtime.command import CollectionCommand, exactly_one
from crawlspace.runtime.lost_from_index import lost_documents


class Command(CollectionCommand):
    """List the URLs counted by `scrapy status`."""

    def syntax(self) -> str:
        return "[options] <collection>"

    def short_desc(self) -> str:
        return "List the known URLs"

    def long_desc(self) -> str:
        return (
            "List the known URLs in the order of discovery, all of them or those selected: state, status code, links from a start "
            "URL, URL. With --format jsonl one JSON object a line, with all stored values. Works on any number of URLs. "
            "Exit status: 0 listed, 1 the store has a fault, 2 wrong use."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--state", choices=STATE_LABELS, help=f"only URLs in this state: {', '.join(STATE_LABELS)}", metavar="STATE"
        )
        parser.add_argument(
            "--status", type=status_codes, metavar="CODE", help="only URLs with this status code, as in 404 or 4xx"
        )
        parser.add_argument(
            "--host", type=str.lower, help="only URLs of this host, as in www.example.com or www.example.com:8080"
        )
        parser.add_argument(
            "--held", action="store_true", help="only URLs whose document is in the index and whose deletion is held"
        )
        parser.add_argument("--orphaned", action="store_true", help="only URLs to which no way leads any more from a start URL")
        parser.add_argument("--format", choices=("text", "jsonl"), default="text", help="how to print them (default: text)")
        parser.add_argument("--json", dest="format", action="store_const", const="jsonl", help="the same as --format jsonl")

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        place = self.place(exactly_one(args, example="scrapy urls demo --status 404"))
        if opts.format == "text" and sys.stdout.isatty():
            print(f"{'STATE':<10} {'STATUS':>6} {'DEPTH':>5}  URL")
        with place.store.reading() as opened:
            if opened is None:
                print(f"{place.name} has never been crawled: `scrapy crawl {place.name}` does", file=sys.stderr)
                return 0
            line = _json if opts.format == "jsonl" else _text
            filters = {
                "label": opts.state,
                "statuses": opts.status,
                "host": opts.host,
                "held": opts.held,
                "orphaned": opts.orphaned,
            }
            with lost_documents(place, opened) as lost:
                for known in known_urls(opened.store, **filters, sites=place.unreachable(opened.store)):
                    print(line(replace(known, lost=True) if known.state.indexed and lost.is_lost(known.state.url) else known))
        return 0


def _text(known: UrlReport) -> str:
    state = known.state
    return f"{label_of(state):<10} {known.status or '-':>6} {state.depth:>5}  {state.url}"


def _json(known: UrlReport) -> str:
    return json.dumps(known.as_json(), ensure_ascii=False)


def status_codes(text: str) -> range:
    """Parse a status code, or a class such as 4xx."""
    if text[-2:].lower() == "xx" and text[:-2].isdigit():
        first = int(text[:-2]) * 100
        return range(first, first + 100)
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{quoted(text)} is no status code; write one like 404, or a class like 4xx")
    return range(int(text), int(text) + 1)
