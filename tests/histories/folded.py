"""URL options: the addresses that are folded into one, and the web at the addresses that remain.

Of several pages whose addresses are folded into one, the one counts that is there under the folded address.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from crawlspace.model import Held, State, UrlState
from tests.histories.configuration import Configuration
from tests.histories.documents import Indexed
from tests.histories.oracle import Oracle
from tests.histories.web import REFUSALS, Page, Site, Web, host_of, path_of

_SPELLINGS = ("?v=1", "?utm_a=1", "?utm_a=1&v=2", "?b=1&a=2", "?a=2&b=1", "?a=2&b=1&v=3", "/")
_OPTIONS: Mapping[str, tuple[object, ...]] = {
    "sort_query": (False, True),
    "dropped": ((), ("v",), ("utm_*",), ("utm_*", "v")),
    "slash": ("keep", "remove", "add"),
    "site_slash": ({}, {"a.example": "remove"}, {"b.example": "add"}, {"a.example": "keep", "b.example": "remove"}),
    "www": ("keep", "remove"),
    "site_www": ({}, {"www.a.example": "remove"}, {"www.b.example": "keep"}),
}


def fitting(configuration: Configuration) -> Configuration:
    """Return a configuration without what depends on the past, which differs between folded addresses: depths, and other crawlers."""
    return replace(configuration, max_depth=0, global_rules=None)


def changed(configuration: Configuration, chance: random.Random) -> Configuration:
    """Return other URL options, or none."""
    if chance.random() < 0.2:
        return replace(configuration, sort_query=False, dropped=(), slash="keep", site_slash={}, www="keep", site_www={})
    name = chance.choice(sorted(_OPTIONS))
    return replace(configuration, **{name: chance.choice(_OPTIONS[name])})  # type: ignore[arg-type]


def have_folded(web: Web, configuration: Configuration, chance: random.Random) -> None:
    """Make most pages answer at their addresses with a slash, before these are the only ones: else most of a site is missing."""
    if "add" not in (configuration.slash, *configuration.site_slash.values()):
        return
    for page in list(web.pages.values()):
        url = configuration.folded(page.url)
        if page.status == 200 and url not in web.pages and chance.random() < 0.9:
            web.put(replace(page, url=url, links=list(page.links), canonical="", link_canonical="", linked=False))
    web.note_nearest()


def spell(web: Web, chance: random.Random) -> str:
    """Make a page answer at one more address, or redirect that to it; or at its plain one too, which nothing links."""
    pages = [page for page in web.pages.values() if path_of(page.url)[1] in "pq" and page.status == 200]
    alone = [page for page in pages if page.url.partition("?")[0].rstrip("/") not in web.pages]
    page = chance.choice(alone if alone and chance.random() < 0.7 else pages)
    plain = page.url.partition("?")[0].rstrip("/")
    if plain not in web.pages and chance.random() < 0.8:
        web.put(replace(page, url=plain, links=list(page.links), canonical="", link_canonical="", linked=False))
        web.note_nearest()
        return f"{plain} is the same page as {page.url}, and nothing links it"
    url = plain + chance.choice(_SPELLINGS)
    if chance.random() < 0.3:
        url = _with_www(web, chance.choice((url, page.url)))
    if url in web.pages:
        return "all is as before"
    other = replace(page, url=url, links=list(page.links), canonical=chance.choice(("", "", page.url)), link_canonical="")
    step = f"{url} is the same page as {page.url}{', which it names' if other.canonical else ''}"
    if chance.random() < 0.2:
        other = Page(url, status=301, location=page.url)
        web.led_to.add(page.url)
        step = f"{url} leads to {page.url}"
    web.put(other)
    web.note_nearest()
    return step


def _with_www(web: Web, url: str) -> str:
    """Return the same address at the host with `www.`, which is made if it is missing."""
    host = host_of(url)
    if host.startswith("www."):
        return url
    web.sites.setdefault(f"www.{host}", Site(f"www.{host}", start=False))
    return url.replace(host, f"www.{host}", 1)


def folded_web(web: Web, configuration: Configuration) -> Web:
    """Return the web as a crawler sees it that folds addresses."""
    fold = configuration.folded
    if not configuration.folds:
        return web
    seen = Web([], flakiness=random.Random(0))
    seen.pages = {url: _folded_page(page, fold) for url, page in web.pages.items() if fold(url) == url}
    for host, site in web.sites.items():
        if fold(site.home) != site.home:
            seen.sites[host] = replace(site, start=False, dead=[], is_folded=True)
            continue
        linked = [fold(page.url) for page in web.pages_of(site) if page.linked]
        for url in linked:
            if url in seen.pages:
                seen.pages[url].linked = True
        nothing = dict.fromkeys(url for url in (*linked, *map(fold, site.dead)) if url not in seen.pages)
        seen.sites[host] = replace(site, dead=list(nothing))
    homes = [fold(site.home) for site in web.sites.values() if site.start and fold(site.home) != site.home]
    seen.starts = list(dict.fromkeys((*homes, *map(fold, web.starts))))
    seen.gone = list(dict.fromkeys(url for url in map(fold, web.gone) if url not in seen.pages))
    seen.waited_for = {fold(url) for url in (*web.pages, *web.gone) if fold(url) != url} - seen.pages.keys()
    seen.led_to, seen.linked = set(map(fold, web.led_to)), set(map(fold, web.linked))
    seen.lasting, seen.most_redirects = web.lasting, web.most_redirects
    seen.nearest, seen.farthest = _most(web.nearest, fold, min), _most(web.farthest, fold, max)
    return seen


def lost(
    before: Mapping[str, Indexed], index: Mapping[str, Indexed], oracle: Oracle, configuration: Configuration
) -> Iterator[str]:
    """Yield documents that left the index because their address is folded, though the page at the folded one is not indexed."""
    there = {configuration.content_key(one.title, one.text) for one in index.values()}
    there_or_noted = index.keys() | {url for one in index.values() for url in one.duplicates}
    found = dict[str, str]()
    for url in before.keys() - index.keys():
        into = configuration.folded(url)
        if into == url or into in there_or_noted:
            continue
        page = oracle.document_at(into)
        if page is None or oracle.names_canonical(page) or oracle.outage(into) in REFUSALS:
            continue
        if configuration.content_key(page.title, page.text) not in there:
            found[url] = f"LOST    {url}: folded into {into}, which is there and not in the index"
    yield from _too_many(found, oracle, configuration)


def needlessly_held(states: Mapping[str, UrlState], configuration: Configuration) -> Iterator[str]:
    """Yield documents that wait for a folded address, though that has one, after a crawl that finished."""
    for url, state in states.items():
        into = states.get(configuration.folded(url))
        if state.held is Held.FOLDED and into is not None and (into is state or into.state is State.DONE):
            yield f"HELD    {url}: for {into.url}, which is {into.state.label}"


def forgotten(
    before: Mapping[str, UrlState], after: Mapping[str, UrlState], oracle: Oracle, configuration: Configuration
) -> Iterator[str]:
    """Yield addresses that were forgotten with their documents before the folded one had its own."""
    found = dict[str, str]()
    for url in before.keys() - after.keys():
        into = configuration.folded(url)
        if into == url or not before[url].indexed or (into in after and after[into].checksum is not None):
            continue
        if oracle.document_at(into) is not None and oracle.outage(into) not in REFUSALS:
            found[url] = f"LOST    {url}: forgotten, and {into} has no document yet"
    yield from _too_many(found, oracle, configuration)


def _too_many(found: Mapping[str, str], oracle: Oracle, configuration: Configuration) -> Iterator[str]:
    """Yield what is said of addresses, without the few that a site may lose that mostly fails, or each time anew: as without folding (`checks.py`)."""
    few: defaultdict[str, list[str]] = defaultdict(list)
    for url, said in found.items():
        into = configuration.folded(url)
        if oracle.outage(into) in ("mostly", "flaky"):
            few[host_of(into)].append(said)
        else:
            yield said
    for of_host in few.values():
        if len(of_host) > configuration.host_fetches // 2 + 1:
            yield from of_host


def _folded_page(page: Page, fold: Callable[[str], str]) -> Page:
    return replace(
        page,
        links=[fold(link) for link in page.links],
        canonical=page.canonical and fold(page.canonical),
        link_canonical=page.link_canonical and fold(page.link_canonical),
        location=page.location and fold(page.location),
    )


def _most(distances: Mapping[str, int], fold: Callable[[str], str], which: Callable[[int, int], int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for url, distance in distances.items():
        found[fold(url)] = which(distance, found.get(fold(url), distance))
    return found
