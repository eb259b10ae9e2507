"""`scrapy search`: search the embedded index, or that of a search server."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Sequence

from crawlspace.document import FOR_PROGRAMS, with_values
from crawlspace.errors import UsageError
from crawlspace.index.search import FACETS, Hit, SearchResult, read_facets, read_filter, shown_name
from crawlspace.runtime.components.command import WIDTH, CollectionCommand, EscapingOutput, print_json, shortened
from crawlspace.runtime.session.searching import MARKS, as_json, search
from crawlspace.text import counted, escaped

_BOLD, _NORMAL = "\x1b[1m", "\x1b[0m"
_BRACKETS = ("[", "]")


class Command(CollectionCommand):
    usage = "[options] <collection> <words>"
    summary = "Search in a collection's index"
    explanation = (
        "Search in the collection's full-text index, best matches first: that of the first sink of CRAWLSPACE_SINKS that can be "
        "searched, or of --sink. All words must occur; where fewer than three pages have "
        "all of them, pages with some of them follow. More is possible in one quoted argument: "
        "'\"annual leave\"' for adjacent words, 'holi*' for prefixes, 'holiday -public' for a word that must not occur. "
        "Words found are bold on a terminal, and in [brackets] elsewhere. "
        "Exit status: 0 searched, also without a hit; 1 the index has a fault or does not answer; 2 wrong use."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--limit", type=int, default=10, metavar="N", help="hits to show at most (default: 10)")
        parser.add_argument(
            "--offset", type=int, default=0, metavar="N", help="hits to leave out before the first one shown (default: 0)"
        )
        parser.add_argument(
            "--filter",
            action="append",
            default=[],
            metavar="FIELD=VALUE",
            help="only documents with this value: language=de, host=www.example.com, type=application/pdf or type=pdf, "
            "modified=2026-01-01..2026-01-31 with one of the days or both, published likewise, author=, keywords=, site_name=, "
            "fields.NAME= for any further field of documents; several values of a field are alternatives",
        )
        parser.add_argument(
            "--facet",
            action="append",
            default=[],
            metavar="FIELD",
            help=f"also print how many of the documents have which value of a field: {', '.join(FACETS)} or fields.NAME",
        )
        parser.add_argument("--sink", metavar="SINK", help="the sink to search, by its name in CRAWLSPACE_SINKS")
        parser.add_argument("--json", action="store_true", help="print the hits for a program")

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        if len(args) < 2:
            raise UsageError("give a collection and search words, as in: scrapy search demo holiday request")
        if opts.limit < 1:
            raise UsageError(f"--limit is {opts.limit}; it must be at least 1")
        if opts.offset < 0:
            raise UsageError(f"--offset is {opts.offset}; it must be at least 0")
        paths = self.paths(args[0])
        words = " ".join(args[1:])
        filters, facets = [read_filter(written) for written in opts.filter], read_facets(opts.facet)
        found = search(paths, words, sink=opts.sink, limit=opts.limit, offset=opts.offset, filters=filters, facets=facets)
        result = found.result
        if opts.json:
            print_json(as_json(result))
            return 0
        if not result.hits and not result.total:
            never = f": {paths.name} has never been crawled, `scrapy crawl {paths.name}` does"
            print(f"no hits{never if not found.has_index else ''}")
            return 0
        _print_hits(result, opts.offset)
        return 0


def _print_hits(result: SearchResult, offset: int) -> None:
    complete = sum(hit.has_all_words for hit in result.hits)
    for number, hit in enumerate(result.hits):
        if number == complete:
            _print("With some of the words:")
        _print(_text(offset + number + 1, hit, bold=sys.stdout.isatty()))
    if complete == result.total:
        shown = ""
    elif not complete:
        shown = f", none after {offset:,}"
    else:
        shown = f", {offset + 1:,} to {offset + complete:,} shown" if offset else f", the best {complete:,} shown"
    print(f"{counted(result.total, 'hit')}{' with all words' if complete < len(result.hits) else ''}{shown}")
    for name, values in result.facets.items():
        if values:
            print(f"\n{shown_name(name)}")
        for value, number in values:
            print(f"{number:>9,}  {shortened(_in_one_line(value), WIDTH)}")


def _text(number: int, hit: Hit, *, bold: bool) -> str:
    indent = "    "
    title = shortened(_in_one_line(hit.title) or "(no title)", WIDTH - len(indent))
    snippet = _snippet(hit.snippet, indent, bold=bold)
    shown = {name: value if isinstance(value, str) else "; ".join(value) for name, value in with_values(hit.fields).items()}
    fields = _in_one_line(", ".join(f"{name}: {value}" for name, value in shown.items() if name not in FOR_PROGRAMS))
    lines = [f"{number}. ".ljust(len(indent)) + title, f"{indent}{escaped(hit.url)}"]
    if fields:
        lines.append(indent + shortened(fields, WIDTH - len(indent)))
    if snippet.strip():
        lines.append(snippet)
    for part in hit.parts:
        path = shortened(_in_one_line(" > ".join(part.headings)) or "(no heading)", WIDTH - 2 * len(indent))
        lines.append(f"{indent}- {path}")
        if part.url != hit.url:
            lines.append(f"{indent}  {escaped(part.url)}")
        lines.append(_snippet(part.snippet, f"{indent}  ", bold=bold))
    return "\n".join(lines)


def _snippet(text: str, indent: str, *, bold: bool) -> str:
    """Return a snippet on lines, with the words found bold or in brackets."""
    filled = textwrap.fill(_in_one_line(text), WIDTH, initial_indent=indent, subsequent_indent=indent)
    for mark, code in zip(MARKS, (_BOLD, _NORMAL) if bold else _BRACKETS, strict=True):
        filled = filled.replace(mark, code)
    return filled


def _in_one_line(text: str) -> str:
    """Return text of a page on one line."""
    return escaped(" ".join(text.split()))


def _print(text: str) -> None:
    out = sys.stdout.unescaped if isinstance(sys.stdout, EscapingOutput) else sys.stdout
    out.write(f"{text}\n\n")
