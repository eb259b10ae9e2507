"""`scrapy add`: add URLs to the crawl by hand."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import closing
from typing import NamedTuple

from crawlspace.admin.links import LinkedUrl, cell_of, choice_label, links_to_choose
from crawlspace.admin.named_urls import NamedUrls
from crawlspace.admin.url_changes import UrlChanges, find_url, read_url
from crawlspace.clock import iso
from crawlspace.config.collection import Collection, load_collection
from crawlspace.crawl.run import Refused, describe_refusal
from crawlspace.crawl.startup import build_space
from crawlspace.decision import Reason
from crawlspace.errors import StoreError, UsageError
from crawlspace.model import UrlState
from crawlspace.runtime.components.archived_responses import archived_page
from crawlspace.runtime.components.command import CollectionCommand, print_json, url_changes
from crawlspace.runtime.session.paths import CollectionPaths, OpenStore, archive_reader
from crawlspace.runtime.session.url_requests import Recrawled, enter
from crawlspace.state.depths import leads_on
from crawlspace.state.store import Store
from crawlspace.text import MESSAGE, counted, printable, quoted
from crawlspace.urls import Url

_READ_AT_ONCE = 1_000
_BY_HAND = (Reason.ADMITTED, Reason.LINK_DEPTH)
"""A URL entered by hand counts as a start URL."""
_DECISION = 32
"""Width of the column for a decision."""


class Command(CollectionCommand):
    usage = "[options] <collection> <url> [<url> ...]"
    summary = "Enter URLs by hand"
    explanation = (
        "Enter URLs in source user, if the rules admit them; those that are known are due now, also after an error. A running crawl fetches them, "
        "or else the next one. With --links the URLs that these pages lead to, as they were last fetched, instead of the pages; with --site also "
        "the known URLs in the folders of these URLs and below. With --list nothing is entered: the links of a page are listed, each with a number, "
        "its state (indexed, error, waiting, new, refused), its status code and the decision for it; --take enters those with the numbers given. "
        "Makes no network requests. Works while the collection is crawled, and before its first crawl. "
        "Exit status: 0 entered or listed; 1 a URL was refused, the links of a page are not known, or the collection or the store has a fault; 2 wrong use."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--links", action="store_true", help="the links of each page, and not the page")
        parser.add_argument("--site", action="store_true", help="each URL, and all known ones in its folder and below")
        parser.add_argument("--list", action="store_true", help="list the links of a page, to choose from; nothing is entered")
        parser.add_argument(
            "--take",
            type=numbers,
            metavar="NUMBERS",
            help="the links with these numbers in the list, as in 1,3-5, and not the page",
        )
        parser.add_argument("--json", action="store_true", help="with --list: print the list for a program")

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        if len(args) < 2:
            raise UsageError(
                f"name a collection and URLs, as in: scrapy add {args[0] if args else 'demo'} http://www.example.com/"
            )
        chosen = [f"--{name}" for name in ("links", "site", "list", "take") if getattr(opts, name)]
        if len(chosen) > 1:
            raise UsageError(f"choose {chosen[0]} or {chosen[1]}, not both")
        if (opts.list or opts.take) and len(args) > 2:
            raise UsageError(f"{chosen[0]} is for the links of one page: name one URL")
        if opts.json and not opts.list:
            raise UsageError("--json is for --list: leave it out")
        paths = self.paths(args[0])
        collection = load_collection(paths.name, paths.settings)
        urls = list(dict.fromkeys(map(read_url, args[1:])))
        if opts.list or opts.take:
            with paths.store.reading() as opened:
                listed = _listed(urls[0], paths, opened, collection)
            if opts.list:
                listed.write(paths.name, as_json=opts.json)
                return 0
            urls = listed.taken(opts.take)
        with paths.store.filling() as opened:
            changes = url_changes(opened)
            if opts.links:
                done = _enter_linked(opened, changes, urls, collection)
            else:
                done = enter(paths, opened, changes, urls, with_folders=opts.site)
        if opts.take:
            print("\n".join(f"taken: {printable(url.text, most=MESSAGE)}" for url in urls))
        print(done.sentence)
        for note in done.notes:
            print(note, file=sys.stderr)
        return 1 if done.refused else 0


class _Listed(NamedTuple):
    """The links of a page, to choose from."""

    page: UrlState
    links: list[LinkedUrl]
    others: int
    """Number of other links that are not known any more."""

    def write(self, collection: str, *, as_json: bool) -> None:
        fetched = None if self.page.fetched_at is None else iso(self.page.fetched_at)
        url = printable(self.page.url, most=MESSAGE)
        if as_json:
            links = [{"number": n, "choice": choice_label(one), **one.as_json()} for n, one in enumerate(self.links, 1)]
            print_json({"url": url, "last_fetch": fetched, "links": links, "others": self.others})
            return
        print(f"{url}: {counted(len(self.links), 'link')}, as fetched at {fetched}")
        for number, one in enumerate(self.links, 1):
            status = "-" if one.state is None else one.state.status or "-"
            print(f"{number:>5}  {choice_label(one):<10} {status:>6}  {cell_of(one.decision):<{_DECISION}} {one.printable}")
        if self.others:
            print(
                f"  and {self.others:,} more that were refused, or are forgotten; with CRAWLSPACE_ARCHIVE each of them is listed"
            )
        if any(one.decision.reason in _BY_HAND for one in self.links):
            print(f"to enter some of them: scrapy add {collection} {url} --take NUMBERS, as in --take 1,3-5")

    def taken(self, wanted: Sequence[range]) -> list[Url]:
        """Return the URLs with some numbers. Raises UsageError."""
        most = len(self.links)
        outside = next((n for some in wanted for n in (some[0], some[-1]) if n > most), None)
        if outside is not None:
            raise UsageError(f"--take has {outside}, and the page has {counted(most, 'link')}: --list shows them")
        return list(dict.fromkeys(read_url(self.links[n - 1].text) for some in wanted for n in some))


def numbers(text: str) -> list[range]:
    """Parse numbers from 1, such as 1,3-5."""
    found = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        last = last if dash else first
        if not (first.isdecimal() and last.isdecimal() and len(first + last) < 16 and 0 < int(first) <= int(last)):
            raise argparse.ArgumentTypeError(f"{quoted(part)} is no number of a link; write them as in 1,3-5")
        found.append(range(int(first), int(last) + 1))
    return found


def _listed(url: Url, paths: CollectionPaths, opened: OpenStore | None, collection: Collection) -> _Listed:
    """Return the links of a page: those in the archive, or else those in the store. Raises StoreError if they are not known."""
    state = None if opened is None else find_url(opened.store, url, collection.url_folding)
    space = build_space(collection)
    if opened is None or state is None or state.fetched_at is None:
        decision = space.decide_url(url)
        refusal = "" if decision.admitted else describe_refusal(Refused("", url.text, decision))
        raise StoreError(refusal or _not_fetched(url, paths.name))
    with closing(archive_reader(paths, opened)) as archive:
        page = archived_page(state, archive, collection.content) if leads_on(state.state, state.status) else None
    return _Listed(
        state,
        *links_to_choose(
            state,
            None if page is None else page.hrefs,
            base=state.url if page is None else page.base,
            space=space,
            store=opened.store,
        ),
    )


def _not_fetched(url: Url, collection: str) -> str:
    shown = printable(url.text, most=MESSAGE)
    return (
        f"the links of {shown} are not known, because it has not been fetched: `scrapy add {collection} {shown}`, then"
        f" `scrapy crawl {collection}`, and then this again"
    )


def _enter_linked(opened: OpenStore, changes: UrlChanges, urls: Sequence[Url], collection: Collection) -> Recrawled:
    """Make the known URLs due that some pages lead to."""
    named, refused = NamedUrls(collection, opened.store, changes), list[str]()
    ids = [id for url in urls for id in _linked(opened.store, named, url, collection.name, refused)]
    return Recrawled(changes.recrawl(list(dict.fromkeys(ids))), 0, refused, changes.crawled)


def _linked(store: Store, named: NamedUrls, url: Url, collection: str, refused: list[str]) -> list[int]:
    """Return the ids of the known URLs that a page leads to; add a sentence where there are none."""
    state = named.find(url)
    if state is None or state.fetched_at is None:
        refused.append(_not_fetched(url, collection))
        return []
    keys = list(dict.fromkeys(store.links_of([state.id]).get(state.id, ())))
    ids = [one.id for first in range(0, len(keys), _READ_AT_ONCE) for one in store.depths_of(keys[first : first + _READ_AT_ONCE])]
    if not ids:
        shown = printable(url.text, most=MESSAGE)
        refused.append(
            f"{shown} leads to no known URL, as it was last fetched: `scrapy add {collection} {shown} --list` shows its links"
        )
    return ids
