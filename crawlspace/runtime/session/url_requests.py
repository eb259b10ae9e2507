"""What a person asks of URLs: to fetch them again, or to forget them, by name and by selection."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from crawlspace.admin.named_urls import NamedUrls
from crawlspace.admin.url_changes import ChangeCounts, Selection, UrlChanges, find_url
from crawlspace.clock import SystemClock
from crawlspace.config.collection import load_collection
from crawlspace.config.sites import read_url_folding
from crawlspace.runtime.session.paths import CollectionPaths, OpenStore
from crawlspace.text import counted, printable
from crawlspace.urls import Url


@dataclass(frozen=True, slots=True)
class Recrawled:
    """The result of `recrawl`. `entered` URLs were unknown; `refused` has a sentence for each that was refused."""

    made: ChangeCounts
    entered: int
    refused: Sequence[str]
    crawled: bool
    """A crawl is running."""

    @property
    def sentence(self) -> str:
        number = self.made.changed + self.entered
        new = f", {self.entered:,} of them new" if self.entered else ""
        return f"{counted(number, 'URL is', 'URLs are')} due now{new}{fetched_later(number, crawled=self.crawled)}"

    @property
    def notes(self) -> list[str]:
        """Sentences about the URLs that are not due now."""
        return [*self.made.of_the_rest(), *self.refused]


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The result of `forget`. `unknown` URLs were named; `delivery`: a sentence about deletions that still wait."""

    made: ChangeCounts
    unknown: Sequence[Url]
    delivery: str

    @property
    def sentence(self) -> str:
        number = counted(self.made.changed, "URL is", "URLs are")
        return f"{number} forgotten; a link or start URL that leads to one brings it back"

    @property
    def notes(self) -> list[str]:
        return [*filter(None, [self.delivery]), *(f"{printable(url.text)} is not known" for url in self.unknown)]


def recrawl(
    paths: CollectionPaths, opened: OpenStore, changes: UrlChanges, urls: Iterable[Url], selection: Selection | None
) -> Recrawled:
    """Make URLs due now: those named, which are entered if they are new and the rules admit them, and the known ones selected.

    Raises ConfigError and StoreError.
    """
    wanted = dict.fromkeys(urls)
    named = NamedUrls(load_collection(paths.name, paths.settings), opened.store, changes) if wanted else None
    refused = list(named.refusals(wanted)) if named is not None else []
    ids = [*(named.ids if named is not None else ()), *(changes.select(selection) if selection else ())]
    made = changes.recrawl(list(dict.fromkeys(ids)))
    return Recrawled(made, named.entered if named is not None else 0, refused, changes.crawled)


def enter(
    paths: CollectionPaths, opened: OpenStore, changes: UrlChanges, urls: Iterable[Url], *, with_folders: bool = False
) -> Recrawled:
    """Enter URLs in source user if the rules admit them, or make them due now; with all that are known in their folders and below.

    Raises ConfigError and StoreError.
    """
    wanted = dict.fromkeys(urls)
    # those that are known before the others are entered
    in_folders = [id for url in wanted if with_folders for id in changes.select(Selection(prefix=folder_of(url)))]
    named = NamedUrls(load_collection(paths.name, paths.settings), opened.store, changes)
    refused = list(named.refusals(wanted))
    made = changes.recrawl(list(dict.fromkeys([*in_folders, *named.ids])))
    return Recrawled(made, named.entered, refused, changes.crawled)


def folder_of(url: Url) -> str:
    """Return the beginning of all URLs in the folder of a URL and below."""
    without_query = url.page.text.partition("?")[0]
    return without_query[: without_query.rfind("/") + 1]


def forget(
    paths: CollectionPaths, opened: OpenStore, changes: UrlChanges, urls: Iterable[Url], selection: Selection | None
) -> Forgotten:
    """Remove URLs, those named and the known ones selected, and have their documents deleted. Raises ConfigError and StoreError."""
    wanted = dict.fromkeys(urls)
    folding = read_url_folding(paths.settings) if wanted else None
    named = {url: find_url(opened.store, url, folding) for url in wanted}
    ids = [state.id for state in named.values() if state is not None]
    made = changes.forget(list(dict.fromkeys([*ids, *(changes.select(selection) if selection else ())])))
    delivery = opened.deliver(paths.sinks, SystemClock()) if made.changed else ""
    return Forgotten(made, [url for url, state in named.items() if state is None], delivery)


def fetched_later(number: int, *, crawled: bool) -> str:
    """Return the end of a sentence about URLs that are due now; empty where a crawl is running."""
    return "" if crawled or not number else f": the next crawl fetches {'it' if number == 1 else 'them'}"
