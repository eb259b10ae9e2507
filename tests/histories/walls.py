"""Walls of sites that want a cookie: how they are drawn, what a process has of their cookies, and the web as one sees it that has none.

Spec 9: a redirect that leads back to its own URL, directly or over others, is asked for once more with a cookie that was set on the way, where
cookies are kept. Else it is a temporary error (691), for which nothing is deleted as long as the whole site answers so (10).
"""

from __future__ import annotations

import random
from copy import copy
from dataclasses import replace

from crawlspace.crawl.engine import Engine
from crawlspace.crawl.run import FetchPage
from tests.histories.configuration import Configuration
from tests.histories.web import Answer, CookieWall, Page, Site, Web, path_of

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
    """Have a site want a cookie, or none any more; not the first, which leads to all others."""
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
    """The web as a crawler sees it. The second URLs of walls are pages that nothing links."""
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
            seen.pages[door] = Page(door, status=302, location=page.url, redirects=page.redirects + 1, linked=False)
    return seen
