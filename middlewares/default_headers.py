"""Sets DEFAULT_REQUEST_HEADERS as Scrapy does, but keeps credentials from hosts that they are not for."""

from __future__ import annotations

from crawlspace.runtime.middlewares.default_headers import BaseDefaultHeaders


class DefaultHeaders(BaseDefaultHeaders):
    """For pages and robots.txt of a collection; each redirect is a request of its own."""
