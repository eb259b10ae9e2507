"""Sitemaps of simulated sites: they come, go and move, name pages and each other, and lie about when pages were changed.

They name only pages that the home page of their site links too, at a site whose home page is a start URL: what must be in the index is as without
them. What they change is when pages are fetched. Before a settled state they tell the truth.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from io import BytesIO

from crawlspace.clock import iso
from crawlspace.content.sitemaps import SitemapLimits, read_sitemap
from crawlspace.crawl.engine import Engine
from crawlspace.crawl.timed import lastmod
from crawlspace.model import UrlState
from crawlspace.outcome import Outcome
from tests.histories.configuration import DAY
from tests.histories.web import Answer, Page, Site, Web, host_of

_NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
_XML = "application/xml"
_LIES = ("", "", "", "never", "always", "random", "no times", "days")


@dataclass(slots=True)
class SimulatedSitemap:
    url: str
    others: list[str] = field(default_factory=list)
    """Of an index file: the sitemaps that it names."""
    is_named: bool = True
    """In the robots.txt of its site."""
    is_there: bool = True
    is_broken: bool = False
    moved_to: str = ""
    lie: str = ""
    """What its times are: "never" anew, "always" new, "random", or missing; "days" are right."""
    left_out: int = 0
    """Of so many pages it names one not."""


class Sitemaps:
    """Those of a web; `clock` tells when something changes."""

    def __init__(self, web: Web, chance: random.Random, clock: Callable[[], float]) -> None:
        self._web = web
        self._chance = chance
        self._clock = clock
        self._changed: dict[str, tuple[str, float]] = {}
        self._latest = clock()
        """The latest time so far. That of a change is never earlier: where the clock of the crawler is set back while it does not run, it cannot
        know that a change came after its last fetch, which has a later time."""
        self.by_url: dict[str, SimulatedSitemap] = {}
        for site in list(web.sites.values()):
            if chance.random() < 0.7:
                for number in range(chance.choice((1, 1, 2, 3))):
                    self._put(SimulatedSitemap(f"{site.home}sitemap-{number}.xml"))
        self.note_changes()

    def _put(self, sitemap: SimulatedSitemap) -> None:
        self.by_url[sitemap.url] = sitemap

    def note_changes(self) -> None:
        """Note the time for pages that have changed since the last call."""
        self._latest = max(self._latest, self._clock())
        for page in self._web.pages.values():
            version = _version_of(page)
            if self._changed.get(page.url, ("", 0))[0] != version:
                self._changed[page.url] = version, self._latest

    def change(self) -> str:
        """Change one, and say how."""
        chance, all_of_them = self._chance, list(self.by_url.values())
        if not all_of_them or chance.random() < 0.15:
            site = chance.choice(list(self._web.sites.values()))
            self._put(SimulatedSitemap(f"{site.home}sitemap-{len(self.by_url)}.xml"))
            return f"{site.host} has one more sitemap"
        one, what = chance.choice(all_of_them), chance.random()
        if what < 0.4:
            one.lie = chance.choice(_LIES)
            return f"the times of {one.url} are {one.lie or 'right'}"
        if what < 0.5:
            one.is_there = not one.is_there
            return f"{one.url} is {'' if one.is_there else 'not '}there"
        if what < 0.6:
            one.is_named = not one.is_named
            return f"robots.txt names {one.url}{'' if one.is_named else ' no more'}"
        if what < 0.7:
            beside = [other.url for other in all_of_them if host_of(other.url) == host_of(one.url)]
            one.others = chance.sample(beside, min(len(beside), 2)) if not one.others else []
            return f"{one.url} names {one.others or 'pages'}"
        if what < 0.8:
            one.moved_to = "" if one.moved_to else f"{one.url.removesuffix('.xml')}-moved.xml"
            if one.moved_to:
                self._put(SimulatedSitemap(one.moved_to, is_named=False, lie=one.lie))
            return f"{one.url} {'has moved' if one.moved_to else 'is back'}"
        if what < 0.9:
            one.left_out = chance.choice((0, 2, 3))
            return f"{one.url} leaves out one of {one.left_out} pages"
        one.is_broken = not one.is_broken
        return f"{one.url} is {'broken' if one.is_broken else 'in order'}"

    def tell_the_truth(self) -> None:
        """End all lies."""
        for one in self.by_url.values():
            one.lie, one.is_broken = "" if one.lie != "days" else "days", False

    def may_call_changed(self, url: str, *, since: int) -> bool:
        """Whether one may say that a page has changed since then, where that is known by days perhaps."""
        at, of_site = (
            self._changed.get(url, ("", 0.0))[1],
            [one for one in self.by_url.values() if host_of(one.url) == host_of(url)],
        )
        return bool(of_site) and (at >= since or (at // DAY == since // DAY and any(one.lie == "days" for one in of_site)))

    def robots_lines(self, site: Site) -> str:
        return "".join(f"Sitemap: {one.url}\n" for one in self.by_url.values() if one.is_named and host_of(one.url) == site.host)

    def answer(self, url: str, etag: str | None) -> Answer:
        """Answer a request for one, which its site lets through."""
        one = self.by_url[url]
        if not one.is_there:
            return Answer(404)
        if one.moved_to:
            return Answer(301, location=one.moved_to)
        body = self._body(one)
        version = f'"{blake2b(body.encode(), digest_size=6).hexdigest()}"'
        return Answer(304, type="") if etag == version else Answer(200, type=_XML, body=body, etag=version)

    def _body(self, one: SimulatedSitemap) -> str:
        if one.others:
            named = "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in one.others)
            return f"<sitemapindex {_NS}>{named}</sitemapindex>"
        self.note_changes()
        site = self._web.site_of(one.url)
        pages = [page for page in self._web.pages_of(site) if page.linked] if site.start and not site.moved else []
        if one.left_out:
            pages = [page for page in pages if _number_of(page.url) % one.left_out]
        urls = "".join(f"<url><loc>{page.url}</loc>{self._time(page, one)}</url>" for page in pages)
        return f"<urlset {_NS}>{urls[: len(urls) // 2]}" if one.is_broken else f"<urlset {_NS}>{urls}</urlset>"

    def _time(self, page: Page, one: SimulatedSitemap) -> str:
        at = self._changed[page.url][1]
        if one.lie == "no times":
            return ""
        if one.lie == "always":
            at = self._clock()
        elif one.lie == "never":
            at = 1_000_000_000
        elif one.lie == "random":
            at = self._clock() - _number_of(f"{page.url} {self._clock() // 3600}") % 10_000_000
        written = iso(at)
        return f"<lastmod>{written[:10] if one.lie == 'days' else written}</lastmod>"


def outcome_of(engine: Engine, state: UrlState, answer: Answer) -> Outcome:
    """Return the outcome of a sitemap, as the spider makes it."""
    contents = read_sitemap(BytesIO(answer.body.encode()), SitemapLimits())
    outcome = engine.sitemaps.outcome(state, contents)
    outcome.etag = answer.etag if not contents.fault and outcome.links is not None else None
    return outcome


@contextmanager
def few_are_enough() -> Iterator[None]:
    """Have sitemaps trusted, or not, after so few pages as small sites have."""
    names = ("SAMPLED", "_ENOUGH_CALLED", "_ENOUGH_OTHERS")
    before = {name: getattr(lastmod, name) for name in names}
    for name, value in zip(names, (4, 4, 6), strict=True):
        setattr(lastmod, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(lastmod, name, value)


def _number_of(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest())


def _version_of(page: Page) -> str:
    return repr(
        (
            *(
                page.title,
                page.text,
                page.links,
                page.status,
                page.location,
                page.type,
                page.locked,
                page.is_forbidden,
                page.is_public,
            ),
            *(page.noindex, page.canonical, page.header_noindex, page.link_canonical, page.failure, page.stamp),
        )
    )
