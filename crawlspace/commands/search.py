"""`scrapy search`: search the embedded index."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Sequence
from contextlib import closing

from crawlspace.errors import UsageError
from crawlspace.index.embedded import EmbeddedIndex, Hit, SearchResult
from crawlspace.printable import escaped
from crawlspace.runtime.command import (
    WIDTH,
    CollectionCommand,
    EscapingOutput,
    Place,
    print_json,
    refuse_missing_index,
    shortened,
)

# Marks around matching words: private-use characters, so that a page's control characters can be removed before bold is added.
_OPEN, _CLOSE = "\ue000", "\ue001"
_BOLD, _NORMAL = "\x1b[1m", "\x1b[0m"


class Command(CollectionCommand):
    """Search the documents of a collection."""

    def syntax(self) -> str:
        return "[options] <collection> <words>"

    def short_desc(self) -> str:
        return "Search in a collection's index"

    def long_desc(self) -> str:
        return (
            "Search in the collection's full-text index, best matches first. All words must occur. More is possible in one quoted argument: "
            "'\"annual leave\"' for adjacent words, 'holi*' for prefixes, 'holiday -public' for a word that must not occur. "
            "Exit status: 0 searched, also without a hit; 1 the index has a fault; 2 wrong use."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--limit", type=int, default=10, metavar="N", help="hits to show at most (default: 10)")
        parser.add_argument("--json", action="store_true", help="print the hits for a program")

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        if len(args) < 2:
            raise UsageError("give a collection and search words, as in: scrapy search demo holiday request")
        if opts.limit < 1:
            raise UsageError(f"--limit is {opts.limit}; it must be at least 1")
        place = self.place(args[0])
        words = " ".join(args[1:])
        refuse_missing_index(place)
        result = _search(place, words, opts.limit)
        if opts.json:
            print_json({"total": result.total, "hits": [_as_json(hit) for hit in result.hits]})
            return 0
        if not result.hits:
            never = f": {place.name} has never been crawled, `scrapy crawl {place.name}` does"
            print(f"no hits{'' if place.index_file.exists() else never}")
            return 0
        for number, hit in enumerate(result.hits, 1):
            _print(_text(number, hit, bold=sys.stdout.isatty()))
        shown = f", the best {len(result.hits)} shown" if len(result.hits) < result.total else ""
        print(f"{result.total:,} {'hit' if result.total == 1 else 'hits'}{shown}")
        return 0


def _search(place: Place, words: str, limit: int) -> SearchResult:
    if not place.index_file.exists():
        return SearchResult(0, ())
    with closing(EmbeddedIndex(place.index_file, read_only=True)) as index:
        return index.search(words, limit=limit, marks=(_OPEN, _CLOSE))


def _as_json(hit: Hit) -> dict[str, object]:
    return {
        "url": hit.url,
        "title": hit.title,
        "snippet": hit.snippet.replace(_OPEN, "").replace(_CLOSE, ""),
        "score": round(hit.score, 3),
        "language": hit.language,
        "fields": dict(hit.fields),
        "duplicates": list(hit.duplicates),
    }


def _text(number: int, hit: Hit, *, bold: bool) -> str:
    indent = "    "
    title = shortened(_in_one_line(hit.title) or "(no title)", WIDTH - len(indent))
    snippet = textwrap.fill(_in_one_line(hit.snippet), WIDTH, initial_indent=indent, subsequent_indent=indent)
    for mark, code in ((_OPEN, _BOLD), (_CLOSE, _NORMAL)):
        snippet = snippet.replace(mark, code if bold else "")
    fields = _in_one_line(", ".join(f"{name}: {value}" for name, value in hit.fields.items()))
    lines = [f"{number}.".ljust(len(indent)) + title, f"{indent}{escaped(hit.url)}"]
    if fields:
        lines.append(indent + shortened(fields, WIDTH - len(indent)))
    if snippet.strip():
        lines.append(snippet)
    return "\n".join(lines)


def _in_one_line(text: str) -> str:
    """Return text of a page on one line."""
    return escaped(" ".join(text.split()))


def _print(text: str) -> None:
    out = sys.stdout.unescaped if isinstance(sys.stdout, EscapingOutput) else sys.stdout
    out.write(f"{text}\n\n")
