"""`scrapy extract`: show what the extraction rules of a collection take from a page."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from crawlspace.admin.extraction_preview import SHOWN, ExtractionPreview, FieldPreview, TextPreview, preview
from crawlspace.admin.url_changes import find_url, read_url
from crawlspace.config.collection import Collection, load_collection
from crawlspace.config.files import read_bytes
from crawlspace.content.boilerplate import NO_BLOCKS, SiteBlocks
from crawlspace.content.extraction import MAX_VALUES
from crawlspace.content.extraction_rules import EXTRACT_TOML
from crawlspace.crawl.startup import learned_blocks
from crawlspace.document import Values, values_of
from crawlspace.errors import StoreError, UsageError
from crawlspace.runtime.components.archived_responses import FetchedHtml, archived_html, html_of_file
from crawlspace.runtime.components.command import CollectionCommand, print_json, print_lines
from crawlspace.runtime.session.paths import CollectionPaths, archive_reader
from crawlspace.text import counted, printable, quoted
from crawlspace.urls import Url

_PARTS = 20
"""Parts that are shown."""
_VALUE = 80
"""Characters of a value that are shown."""


class Command(CollectionCommand):
    usage = "[options] <collection> <url>"
    summary = "Show what the extraction rules take from a page"
    explanation = (
        f"Show what the rules of {EXTRACT_TOML} take from a page as it was fetched last, from the archive, or from a file: for each rule whether it "
        "applies to the URL, what it finds, which values are not of its type, and which rule decides each field; then the fields that the page "
        "has by itself, the words of its text before and after, and its parts. The rules are read from disk, so that a change can be tried before the "
        "next start. Makes no network requests and changes nothing. "
        "Exit status: 0 shown, whatever was found; 1 the page is not in the archive or is no HTML, the rules have mistakes, or the store has a "
        "fault; 2 wrong use."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--file", metavar="PATH", help="take the page from this file of HTML, as if the URL had it")
        parser.add_argument(
            "--blocks", action="store_true", help="show the blocks that are left out because most pages of the site have them"
        )
        parser.add_argument("--json", action="store_true", help="print the answer for a program")

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        if len(args) != 2:
            raise UsageError("name a collection and a URL, as in: scrapy extract demo http://www.example.com/page.html")
        name, url = args[0], read_url(args[1])
        paths = self.paths(name)
        collection = load_collection(name, paths.settings)
        if opts.file is not None:
            page = collection.url_folding.fold(url)
            text, site = page.text, page.site
            fetched = html_of_file(read_bytes(Path(opts.file)), collection.content, text)
        else:
            text, site, fetched = _archived(paths, collection, url)
        learned = _learned(paths, site) if collection.content.boilerplate else NO_BLOCKS
        shown = preview(
            collection.extraction_rules,
            fetched.html,
            fetched.page,
            url=text,
            headers=fetched.headers,
            content=collection.content,
            learned=learned,
        )
        if opts.json:
            print_json(shown.as_json())
        else:
            print_lines(list(_lines(shown, blocks=opts.blocks)))
        return 0


def _learned(paths: CollectionPaths, site: str) -> SiteBlocks:
    with paths.store.reading() as opened:
        return NO_BLOCKS if opened is None else learned_blocks(opened.store).get(site, NO_BLOCKS)


def _archived(paths: CollectionPaths, collection: Collection, url: Url) -> tuple[str, str, FetchedHtml]:
    """Return the URL as it is known, its site, and its page in the archive. Raises StoreError."""
    with paths.store.reading() as opened:
        state = None if opened is None else find_url(opened.store, url, collection.url_folding)
        if opened is not None and state is not None:
            with closing(archive_reader(paths, opened)) as archive:
                fetched = archived_html(state, archive, collection.content)
            if fetched is not None:
                return state.url, state.site, fetched
    what = "is not known" if state is None else "has no HTML page in the archive on this machine"
    raise StoreError(
        f"{url.text} {what}: crawl it (`scrapy add {paths.name} {url.text}`, then `scrapy crawl {paths.name}`), or give its page with"
        " --file PATH"
    )


def _lines(shown: ExtractionPreview, *, blocks: bool) -> Iterator[str]:
    yield shown.url
    if not (shown.fields or shown.texts or shown.parts):
        yield f"\nthere are no rules: {EXTRACT_TOML} in the folder of the collection would have them (docs/extraction.md)"
    for one in shown.fields:
        rule = one.rule
        yield f"\nfield {one.number} ({rule.name})  {EXTRACT_TOML}:{rule.line}"
        yield f"  {rule.by} = {quoted(rule.expression)}, take {rule.take}, type {rule.type}"
        yield from _findings(one) if one.applies else _elsewhere(rule.where)
    for text in shown.texts:
        yield f"\ntext {text.number}  {EXTRACT_TOML}:{text.rule.line}"
        yield from _text(text) if text.applies else _elsewhere(text.rule.where)
    for part in shown.parts:
        yield f"\npart {part.number}  {EXTRACT_TOML}:{part.rule.line}"
        yield f"  css = {quoted(part.rule.css)}, key = {quoted(part.rule.key)}"
        found = f"finds {counted(len(part.keys), 'part')}: {_some(part.keys)}" if part.keys else "finds nothing"
        yield from (f"  {found}",) if part.applies else _elsewhere(part.rule.where)
    yield "\nfields by these rules"
    yield from _fields(shown.document)
    yield "\nfields of the page itself"
    yield from _fields(shown.standard)
    yield f"\ntext         {counted(shown.words_before, 'word')} of the page, {shown.words_after:,} by these rules"
    if blocks:
        yield f"\nblocks left out of the text, and how many of {counted(shown.pages_read, 'page')} of the site have each"
        yield from (f"  {pages:>5,}  {printable(text, most=_VALUE)}" for text, pages in shown.blocks)
        if not shown.blocks:
            yield "  none"
    if shown.made:
        yield f"\nparts        {len(shown.made):,}"
    for made in shown.made[:_PARTS]:
        yield f"  {printable(made.key, most=_VALUE)}: {printable(' > '.join(made.headings), most=_VALUE)} ({len(made.text):,} characters)"
    if len(shown.made) > _PARTS:
        yield f"  and {len(shown.made) - _PARTS:,} more (--json has all)"


def _findings(one: FieldPreview) -> Iterator[str]:
    found, kind = one.found, one.rule.type
    if not found.finds:
        yield "  finds nothing"
        return
    at_least = "at least " if found.number >= MAX_VALUES else ""
    yield f"  finds {at_least}{counted(found.number, 'value')}{'' if one.decides else ', but a rule before it decides this field'}"
    if found.values:
        yield f"  takes {_some(found.values)}"
    if found.misfits:
        yield f"  {counted(len(found.misfits), 'value')} left out, not of type {kind}: {_some(found.misfits)}"
    if one.decides:
        yield "  decides this field" if found.values else "  decides this field, which is left out"


def _text(text: TextPreview) -> Iterator[str]:
    if text.words is None:
        yield "  finds nothing, or leaves no word"
    else:
        yield f"  leaves {counted(text.words, 'word')}{', and decides the text' if text.decides else ', but a rule before it decides the text'}"


def _elsewhere(where: Iterable[str]) -> Iterator[str]:
    yield f"  does not apply to this URL: where is {', '.join(f'{pattern}*' for pattern in where)}"


def _fields(fields: Mapping[str, str]) -> Iterator[str]:
    if not fields:
        yield "  none"
    for name, value in fields.items():
        yield f"  {name}: {_shown(values_of(value))}"


def _shown(values: Values) -> str:
    return printable(values, most=_VALUE) if isinstance(values, str) else _some(values)


def _some(values: Sequence[str]) -> str:
    more = f" and {len(values) - SHOWN:,} more" if len(values) > SHOWN else ""
    return " | ".join(printable(value, most=_VALUE) for value in values[:SHOWN]) + more
