"""The routes of all pages."""

from __future__ import annotations

from crawlspace.console.pages import collections, deletions, explorer, overview, rules, runs, search, sinks, sites, url
from crawlspace.console.routes import Route

PAGES: tuple[Route, ...] = (
    *collections.ROUTES,
    *overview.ROUTES,
    *explorer.ROUTES,
    *url.ROUTES,
    *rules.ROUTES,
    *deletions.ROUTES,
    *sites.ROUTES,
    *runs.ROUTES,
    *sinks.ROUTES,
    *search.ROUTES,
)
