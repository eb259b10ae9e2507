"""Scrapy's cookies, within the limits that browsers have."""

from __future__ import annotations

from crawlspace.runtime.middlewares.cookies import BaseCookies


class Cookies(BaseCookies):
    """Keeps at most `most_cookies` cookies of a domain, of at most `most_characters` characters each."""
