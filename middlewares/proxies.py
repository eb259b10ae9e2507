"""Has requests go through the proxies of the collection and its sites."""

from __future__ import annotations

from crawlspace.runtime.middlewares.proxies import BaseProxies


class Proxies(BaseProxies):
    """In the place of Scrapy's HttpProxyMiddleware."""
