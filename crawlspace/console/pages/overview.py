"""The overview of a collection."""

from __future__ import annotations

from crawlspace.console import crawls
from crawlspace.console.pages.collections import looked_up
from crawlspace.console.routes import Asked, Routes, View, page


def show(asked: Asked) -> View:
    """Show a collection in numbers."""
    found = looked_up(asked.console, asked.name)
    return View(
        "overview.html",
        {
            "status": found.status,
            "numbers": found.status.numbers,
            "notices": found.notices,
            "log": crawls.last_log(asked.console, asked.name),
        },
    )


ROUTES: Routes = (page("/c/{name}/", show),)
