"""What happens to whole sites of a simulated web: they fail, move, or require a cookie.

Spec 9: a redirect that leads back to its own URL, directly or over others, is requested once more with a cookie that was set on the way, where
cookies are kept. Else it is a temporary error (691), for which nothing is deleted as long as the whole site answers so (10).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace

from crawlspace.crawl.engine import Engine
from crawlspace.crawl.run import FetchPage
from tests.histories.configuration import Configuration
from tests.histories.drawn import Drawn
from tests.histories.web import DEATHS, FILE, OUTAGES, REFUSALS, Answer, CookieWall, Page, Site, Web, host_of, path_of

_DOORS = ("", "", "door?to=/", "door/")


class CookieJar:
    """The cookies of one process: they are gone with it."""

    def __init__(self) -> None:
        self._cookies: set[str] = set()
        self._sent: dict[int, frozenset[str]] = {}

    def send(self, fetch: FetchPage) -> None:
        """Note what a request carries that is sent now."""
        self._sent[fetch.state.id] = frozenset(self._cookies)

    def sent(self, fetch: FetchPage) -> frozenset[str]:
        """Return what a request has carried."""
        return self._sent.pop(fetch.state.id, frozenset())

    def take(self, answer: Answer, engine: Engine) -> None:
        if answer.sets_cookie and engine.collection.keeps_cookies:
            self._cookies.add(answer.sets_cookie)


def change_wall(web: Web, chance: random.Random) -> str:
    """Make a site require a cookie, or none; not the first, which links all others."""
    site = chance.choice([one for one in list(web.sites.values())[1:] if one.login is None] or [web.first])
    if site is web.first:
        return "all is as before"
    if site.wall is not None and chance.random() < 0.5:
        site.wall = None
        return f"{site.host} wants no cookie"
    door = chance.choice(_DOORS)
    site.door = door if site.door is None else site.door
    site.wall = CookieWall(
        door=site.door,
        is_of_page=chance.random() < 0.3,
        is_set_at_door=chance.random() < 0.7,
        is_broken=chance.random() < 0.15,
    )
    return f"{site.host} wants a cookie: {site.wall}"


def is_walled(site: Site, configuration: Configuration) -> bool:
    """Whether a crawler does not get past the wall of a site."""
    return site.wall is not None and (site.wall.is_broken or not configuration.cookies)


def walled_web(web: Web, configuration: Configuration) -> Web:
    """Return the web as a crawler sees it. The second URLs of walls are pages that nothing links."""
    if not any(site.wall for site in web.sites.values()):
        return web
    seen = copy(web)
    seen.sites = {host: replace(site, is_walled=is_walled(site, configuration)) for host, site in web.sites.items()}
    seen.pages = {}
    for page in [*map(web.home, web.homed()), *web.pages.values()]:
        site = seen.site_of(page.url)
        wall, shown = site.wall, page
        if wall is not None and site.is_walled:
            to = wall.leads(page.url, site)
            shown = Page(page.url, status=302, location=to, redirects=page.redirects, linked=page.linked)
        if path_of(page.url) != "/":
            seen.pages[page.url] = shown
        if wall is not None and wall.door and not wall.is_door(page.url, site):
            door = wall.leads(page.url, site)
            redirects = 1 if page.status == 200 else page.redirects + 1  # with a page that has a document a new chain begins
            seen.pages[door] = Page(door, status=302, location=page.url, redirects=redirects, linked=False)
    return seen


# --- relocated -----------------------------------------------------------------------------------------------------


_MOST_SITES = 8
_CODES = (301, 308, 302, 307)


def relocate(web: Web, chance: random.Random, words: Callable[[Site], tuple[str, str]]) -> str:
    """Move the pages of a site, all of them or some; its home page too, where all go to another host."""
    still = [one for one in web.sites.values() if not one.moved and one.wall is None and one.login is None]
    site = chance.choice(still or [web.first])
    pages = [one for one in web.pages_of(site) if path_of(one.url)[1] in "pq" and one.status == 200 and not one.failure]
    if not pages or not still:
        return "nothing has moved"
    to, place = _new_place(web, site, chance)
    is_whole, goes_on = chance.random() < 0.7, chance.random() < 0.5
    moved = {
        page.url: place(page.url)
        for page in pages
        if (is_whole or chance.random() < 0.5) and place(page.url) not in web.pages and place(page.url) not in site.dead
    }
    for old, new in moved.items():
        page = web.pages[old]
        links = [moved.get(link, link) for link in page.links]
        there = replace(page, url=new, links=links, canonical=moved.get(page.canonical, page.canonical), linked=True)
        if page.type != FILE and chance.random() < 0.1:
            there.title, there.text = words(to)
        if there.locked:
            there.title = new.rpartition("/")[2]
        web.put(there)
        web.put(Page(old, status=chance.choice(_CODES), location=new, linked=page.linked and goes_on, redirects=page.redirects))
        web.led_to.add(new)
    at_home = is_whole and to is not site and site is not web.first and site.host != web.lasting and chance.random() < 0.5
    if at_home:
        site.moved = to.home
    web.note_nearest()
    return f"{len(moved)} pages of {site.host} have moved to {to.host}{', its home page too' if at_home else ''}: {moved}"


def _new_place(web: Web, site: Site, chance: random.Random) -> tuple[Site, Callable[[str], str]]:
    """Return the site to which one moves, and what returns the new URL of a page."""
    what, number = chance.random(), len(web.sites)
    secure = f"{site.host.partition(':')[0]}:8443"
    if what < 0.35 and number < _MOST_SITES:
        to = web.sites.setdefault(f"moved{number}.example", Site(f"moved{number}.example", start=False))
    elif what < 0.6 and number < _MOST_SITES and secure not in web.sites:
        to = web.sites.setdefault(secure, Site(secure, scheme="https", start=False))
    else:
        site.number += 1
        folder = f"{chance.choice('pq')}/to{site.number}"
        return site, lambda url: f"{site.home}{folder}{path_of(url)[2:]}"
    return to, lambda url: f"{to.home}{path_of(url)[1:]}"


def target_of(url: str, web: Web, *, most: int = 10) -> str:
    """Return where the redirects of a page end; empty where that is nowhere, or it has none."""
    page, seen = web.page(url), {url}
    if page is None or not page.location:
        return ""
    while page is not None and page.location and len(seen) <= most:
        if page.location in seen or host_of(page.location) not in web.sites:
            return ""
        seen.add(page.location)
        page = web.page(page.location)
    return "" if page is None or page.location else page.url


# --- outages -------------------------------------------------------------------------------------------------------


class Outages:
    def __init__(self, web: Web, chance: random.Random, drawn: Drawn) -> None:
        self._web = web
        self._chance = chance
        self._drawn = drawn

    def outage(self, kinds: Sequence[str] = OUTAGES) -> str:
        """Make a whole site fail, or recover."""
        down = [site for site in self._web.sites.values() if site.outage]
        if down and self._chance.random() < 0.4:
            site = self._chance.choice(down)
            site.outage, site.is_dead = "", False
            return f"{site.host} has recovered"
        site = self._chance.choice(list(self._web.sites.values()))
        if self._drawn.refusals and self._chance.random() < 0.2:
            kinds = REFUSALS
        site.outage, site.is_dead = self._chance.choice(kinds), False
        site.robots_answers = self._chance.random() < 0.5
        return f"{site.host} fails: {site.outage}{', but for its robots.txt' if site.robots_answers else ''}"

    def death(self) -> str:
        """Make a host dead for good, or alive again; not the first, which links all others."""
        site = self._chance.choice(list(self._web.sites.values())[1:])
        if site.is_dead and self._chance.random() < 0.5:
            site.outage, site.is_dead = "", False
            return f"{site.host} is alive again"
        site.outage, site.is_dead, site.robots_answers = self._chance.choice(DEATHS), True, False
        return f"{site.host} is dead for good: {site.outage}"
