"""Has pages rendered in a browser, where CRAWLSPACE_RENDER, a site's "render" or rules.xml say so."""

from __future__ import annotations

from crawlspace.runtime.middlewares.rendering import BaseRendering


class Rendering(BaseRendering):
    """Next to the download, so that all other components see the page as the browser shows it."""
