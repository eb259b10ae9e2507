"""The sites of a collection: what is known of each, and why it waits; hosts are paused and resumed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from crawlspace.admin.sites import (
    SiteList,
    SiteOrder,
    pause_host,
    read_pattern,
    resume_host,
    sentence_of_pause,
    sentence_of_resumption,
    sitemap_lines,
)
from crawlspace.console.routes import Asked, Done, NoSuchThing, Routes, View, action, page
from crawlspace.console.templates import link, path_part
from crawlspace.errors import UsageError
from crawlspace.state.site_pauses import MOST_REASON, NO_PAUSES, SitePause, patterns_of
from crawlspace.text import quoted

ROWS = 100
"""Sites of a page."""
ONLY: Mapping[str, str] = {
    "unreachable": "unreachable",
    "paused": "paused",
    "waiting": "kept from being fetched",
    "errors": "with errors",
}
"""By value of `only`, what the sites are."""
_LONGEST_HOST = 300


def show(asked: Asked) -> View:
    """Show a page of the list of sites."""
    only, order = asked.query.get("only", ""), asked.query.get("sort") or SiteOrder.URLS.value
    if only not in ("", *ONLY):
        raise UsageError(f"only is one of {', '.join(ONLY)}")
    if order not in tuple(SiteOrder):
        raise UsageError(f"sites are not sorted by {quoted(order)}, but by one of {', '.join(SiteOrder)}")
    text = asked.query.get("host", "").strip().lower()[:_LONGEST_HOST]
    number = asked.page_number()
    shown: dict[str, object] = {
        "only": only,
        "kinds": ONLY,
        "order": order,
        "host": text,
        "number": number,
        "most_reason": MOST_REASON,
        "was_crawled": False,
        "rows": (),
        "total": 0,
        "all": 0,
        "has_more": False,
        "pauses": NO_PAUSES,
    }
    paths = asked.console.paths(asked.name)
    with paths.store.reading() as opened:
        if opened is None:
            return View("sites.html", shown)
        sites = SiteList(opened.store, asked.console.collection(paths), asked.console.clock)
        found = sites.select(
            host=read_pattern(text) if text.startswith("*.") else None,
            containing="" if text.startswith("*.") else text,
            errors=only == "errors",
            paused=only == "paused",
            waiting=only == "waiting",
            unreachable=only == "unreachable",
            order=SiteOrder(order),
        )
        first = (number - 1) * ROWS
        shown.update(
            was_crawled=True,
            rows=sites.details(found[first : first + ROWS]),
            total=len(found),
            all=len(sites.states),
            has_more=len(found) > first + ROWS,
            pauses=sites.pauses,
        )
    return View("sites.html", shown)


def show_site(asked: Asked) -> View:
    """Show all that is known of a site."""
    name = asked.match["site"].lower()
    paths = asked.console.paths(asked.name)
    with paths.crawled(paths.store.reading()) as opened:
        sites = SiteList(opened.store, asked.console.collection(paths), asked.console.clock)
        found = [one for one in sites.states if one.site == name]
        if not found:
            raise NoSuchThing(f"{paths.name} knows no site {quoted(name)}")
        (details,) = sites.details(found)
        schemes = opened.store.schemes(name)
    return View(
        "site.html",
        {
            "site": details,
            "state": details.state,
            "sitemaps": list(sitemap_lines(details)),
            "patterns": list(_patterns(name)),
            "home": f"{'https' if 'https' in schemes else 'http'}://{_netloc(name)}/",
            "most_reason": MOST_REASON,
        },
    )


def _patterns(site: str) -> Iterator[str]:
    """Yield what a pause of a site may name: itself, its host, and the domains above, but for a top-level domain or parts of an address."""
    for pattern in patterns_of(site):
        domain = pattern.removeprefix("*.")
        if domain == pattern or ("." in domain and any(map(str.isalpha, domain))):
            yield pattern


def _netloc(site: str) -> str:
    host, _, port = site.rpartition(":")
    return host if port in ("80", "443") else site


# --- actions -------------------------------------------------------------------------------------------------------


def pause(asked: Asked) -> Done:
    """Have nothing of a host requested any more."""
    pattern = read_pattern(asked.form.get("host", "").strip()[:_LONGEST_HOST])
    paths = asked.console.paths(asked.name)
    by = "" if asked.user is None else asked.user.name
    made = SitePause(by, int(asked.console.clock.now()), asked.form.get("reason", "").strip())
    with paths.crawled(paths.store.changing()) as opened:
        before = pause_host(opened.store, pattern, made, collection=paths.name)
        sentence = sentence_of_pause(pattern, before, is_crawled=bool(opened.crawlers()))
    return Done(f"{sentence}.", _back(asked))


def resume(asked: Asked) -> Done:
    """End a pause."""
    pattern = read_pattern(asked.form.get("host", "").strip()[:_LONGEST_HOST])
    paths = asked.console.paths(asked.name)
    with paths.crawled(paths.store.changing()) as opened:
        ended = resume_host(opened.store, pattern, collection=paths.name)
        sentence = sentence_of_resumption(pattern, ended, is_crawled=bool(opened.crawlers()))
    return Done(f"{sentence}.", _back(asked))


def _back(asked: Asked) -> str:
    """Return the page that the form was on: that of a site, or the list."""
    site = asked.form.get("site", "")
    return link(f"/c/{path_part(asked.name)}/sites" + (f"/{path_part(site)}" if site else ""))


ROUTES: Routes = (
    page("/c/{name}/sites", show),
    page("/c/{name}/sites/{site}", show_site),
    action("/c/{name}/sites/pause", pause),
    action("/c/{name}/sites/resume", resume),
)
