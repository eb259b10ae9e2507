"""Whole sites that move, page by page: to another host, to another scheme and port, or to other paths.

Spec 10: a redirect whose target is indexed, or becomes so in this run, with the same path or with a target of its own, is a move. The document is
replaced in the transaction that pushes the new one, and does not count towards the limit of deletions.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from tests.histories.web import FILE, Page, Site, Web, host_of, path_of

_MOST_SITES = 8
_CODES = (301, 308, 302, 307)


def relocate(web: Web, chance: random.Random, words: Callable[[Site], tuple[str, str]]) -> str:
    """Have the pages of a site move, all of them or some; its home page too, where they all go to another host."""
    still = [one for one in web.sites.values() if not one.moved and one.wall is None and one.login is None]
    site = chance.choice(still or [web.first])
    pages = [one for one in web.pages_of(site) if path_of(one.url)[1] in "pq" and one.status == 200 and not one.failure]
    if not pages or not still:
        return "nothing has moved"
    to, place = _place(web, site, chance)
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


def _place(web: Web, site: Site, chance: random.Random) -> tuple[Site, Callable[[str], str]]:
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
