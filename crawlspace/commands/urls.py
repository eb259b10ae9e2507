"""`scrapy urls`: list the state of each URL."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence

from crawlspace.admin.links import Referring, with_referrers
from crawlspace.admin.pending.export import pending_lines
from crawlspace.admin.report import STATE_LABELS, label_of
from crawlspace.admin.url_lines import Rows, csv_lines, json_lines, status_range
from crawlspace.errors import UsageError
from crawlspace.runtime.components.command import CollectionCommand, exactly_one
from crawlspace.runtime.lookups.url_listing import UrlFilter, listed_urls
from crawlspace.text import MESSAGE, printable, quoted

REFERRERS_SHOWN = 10
_INDENT = " " * 25


class Command(CollectionCommand):
    usage = "[options] <collection>"
    summary = "List the known URLs"
    explanation = (
        "List the known URLs in alphabetical order, all of them or those selected: state, status code, links from a start "
        "URL, URL. With --format jsonl or csv each line has all stored values. Works on any number of URLs: many are sorted in "
        "temporary files. "
        "--with-referrers searches the links of all pages for those that lead to the URLs listed. "
        "Exit status: 0 listed, 1 the store has a fault, 2 wrong use."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
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
        parser.add_argument("--orphaned", action="store_true", help="only URLs that cannot be reached from a start URL any more")
        parser.add_argument(
            "--not-archived", action="store_true", help="only URLs whose document has no record in the archive on this machine"
        )
        parser.add_argument(
            "--with-referrers",
            action="store_true",
            help=f"with the pages that link or redirect to each URL: the first {REFERRERS_SHOWN}, and how many there are",
        )
        parser.add_argument("--unsorted", action="store_true", help="in the order of discovery, each URL as soon as it is read")
        parser.add_argument("--format", choices=(*_FORMATS, _PENDING), default="text", help="how to print them (default: text)")
        parser.add_argument("--json", dest="format", action="store_const", const="jsonl", help="the same as --format jsonl")

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        paths = self.paths(exactly_one(args, example="scrapy urls demo --status 404"))
        if opts.format == _PENDING and opts.with_referrers:
            raise UsageError(
                "a line of --format pending has no place for the pages that link to a URL: leave out --with-referrers"
            )
        if opts.format == "text" and sys.stdout.isatty():
            print(f"{'STATE':<10} {'STATUS':>6} {'DEPTH':>5}  URL")
        with paths.crawled(paths.store.reading(), exit_status=0) as opened:
            selected = UrlFilter(
                opts.state,
                opts.status,
                opts.host,
                held=opts.held,
                orphaned=opts.orphaned,
                not_archived=opts.not_archived,
            )
            by_url = not opts.unsorted and opts.format != _PENDING  # which sorts its own lines
            found = listed_urls(paths, opened, selected, by_url=by_url)
            if opts.format == _PENDING:
                for line in pending_lines((known.state for known in found), opened.store, collection=paths.name):
                    print(line)
                return 0
            with_pages = with_referrers(found, opened.store, most=REFERRERS_SHOWN)
            for text in _FORMATS[opts.format](with_pages if opts.with_referrers else ((one, None) for one in found)):
                sys.stdout.write(text)
        return 0


def _text(rows: Rows) -> Iterator[str]:
    for known, referring in rows:
        state = known.state
        yield f"{label_of(state):<10} {known.status or '-':>6} {state.depth:>5}  {state.url}\n"
        if referring is not None:
            yield from (f"{line}\n" for line in _referrers(referring))


def _referrers(referring: Referring) -> Iterator[str]:
    """Yield a line for each page that links to a URL, below that of the URL."""
    if not referring.total:
        yield f"{_INDENT}linked from no page"
    for url in referring.urls:
        yield f"{_INDENT}linked from {printable(url, most=MESSAGE)}"
    if referring.total > len(referring.urls):
        yield f"{_INDENT}and from {referring.total - len(referring.urls):,} more"


_FORMATS: Mapping[str, Callable[[Rows], Iterator[str]]] = {"text": _text, "jsonl": json_lines, "csv": csv_lines}


_PENDING = "pending"
"""This format is always sorted."""


def status_codes(text: str) -> range:
    """Parse a status code, or a class such as 4xx."""
    found = status_range(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{quoted(text)} is no status code; write one like 404, or a class like 4xx")
    return found
