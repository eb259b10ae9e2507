"""`scrapy add`: have URLs crawled that a person names."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from crawlspace.admin.named_urls import NamedUrls
from crawlspace.admin.url_changes import Made, Selection, UrlChanges, read_url
from crawlspace.clock import SystemClock
from crawlspace.config.collection import load_collection
from crawlspace.errors import UsageError
from crawlspace.model import State
from crawlspace.plural import counted
from crawlspace.printable import MESSAGE, printable
from crawlspace.runtime.command import CollectionCommand
from crawlspace.runtime.progress_display import ProgressDisplay
from crawlspace.state.store import Store
from crawlspace.urls import Url

_READ_AT_ONCE = 1_000


class Command(CollectionCommand):
    """Enter URLs by hand, before everything else that waits."""

    def syntax(self) -> str:
        return "[options] <collection> <url> [<url> ...]"

    def short_desc(self) -> str:
        return "Enter URLs by hand"

    def long_desc(self) -> str:
        return (
            "Enter URLs in source user, if the rules admit them; those that are known are due now, also after an error. A running crawl fetches them, "
            "or else the next one. With --links the URLs that these pages lead to, as they were last fetched, instead of the pages; with --site also "
            "the known URLs in the folders of these URLs and below. `scrapy links` lists what a page leads to. Works while the collection is crawled, "
            "and before its first crawl. "
            "Exit status: 0 entered; 1 a URL was refused, the links of a page are not known, or the collection or the store has a fault; 2 wrong use."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--links", action="store_true", help="the links of each page, and not the page")
        parser.add_argument("--site", action="store_true", help="each URL, and all known ones in its folder and below")

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        if len(args) < 2:
            raise UsageError(
                f"name a collection and URLs, as in: scrapy add {args[0] if args else 'demo'} http://www.example.com/"
            )
        if opts.links and opts.site:
            raise UsageError("choose --links or --site, not both")
        place = self.place(args[0])
        collection = load_collection(place.name, place.settings)
        urls = list(dict.fromkeys(map(read_url, args[1:])))
        clock = SystemClock()
        with place.store.filling() as opened:
            crawled = bool(opened.crawlers())
            changes = UrlChanges(opened.store, clock=clock, crawled=crawled, progress=ProgressDisplay(sys.stderr, clock))
            named = NamedUrls(collection, opened.store, changes)
            refused: list[str] = []
            ids: list[int] = []
            if opts.links:
                for url in urls:
                    ids += _linked(opened.store, named, url, refused)
            else:
                refused += named.refusals(urls)
                ids += named.ids
            if opts.site:
                for url in urls:
                    ids += changes.select(Selection(prefix=folder_of(url)))
            made = changes.recrawl(list(dict.fromkeys(ids))) if ids else Made()
        new = f", {named.entered:,} of them new" if named.entered else ""
        number = made.changed + named.entered
        later = "" if crawled or not number else f": the next crawl fetches {'it' if number == 1 else 'them'}"
        print(f"{counted(number, 'URL is', 'URLs are')} due now{new}{later}")
        for note in [*made.of_the_rest(), *refused]:
            print(note, file=sys.stderr)
        return 1 if refused else 0


def folder_of(url: Url) -> str:
    """Return the beginning of all URLs in the folder of a URL and below."""
    without_query = url.text.partition("?")[0]
    return without_query[: without_query.rfind("/") + 1]


def _linked(store: Store, named: NamedUrls, url: Url, refused: list[str]) -> Iterator[int]:
    """Yield the ids of the known URLs that a page leads to; add a sentence where its links are not known."""
    state = named.find(url)
    shown = printable(url.text, most=MESSAGE)
    if state is None or state.state is State.PENDING:
        refused.append(
            f"the links of {shown} are not known, because it has not been fetched: add it, and its links once it is crawled"
        )
        return
    keys = list(dict.fromkeys(store.links_of([state.id]).get(state.id, ())))
    for first in range(0, len(keys), _READ_AT_ONCE):
        for one in store.depths_of(keys[first : first + _READ_AT_ONCE]):
            yield one.id
