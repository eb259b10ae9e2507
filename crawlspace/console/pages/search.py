"""Search in a collection, for its administrators; and the pages that users of the public search page miss."""

from __future__ import annotations

from crawlspace.console.missing_pages import MissingPages
from crawlspace.console.routes import Asked, Done, Routes, View, action, page
from crawlspace.console.search import search_page
from crawlspace.console.templates import path_part


def show(asked: Asked) -> View:
    """Search, and show what was reported as missing."""
    paths = asked.console.paths(asked.name)
    found = search_page(paths, asked.path, asked.query)
    missing = MissingPages(paths.state_file.parent).all()
    return View("search.html", {"found": found, "missing": missing, "is_url": "://" in found.words})


def dismiss(asked: Asked) -> Done:
    """Remove a report about a missing page."""
    paths = asked.console.paths(asked.name)
    url = asked.form.get("url", "")
    MissingPages(paths.state_file.parent).remove(url)
    return Done("The report is removed.", f"/c/{path_part(asked.name)}/search")


ROUTES: Routes = (page("/c/{name}/search", show), action("/c/{name}/search/dismiss", dismiss))
