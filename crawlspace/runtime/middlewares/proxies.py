"""Has each request go through the proxy that CRAWLSPACE_PROXY, CRAWLSPACE_SITES or the environment has for its URL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from scrapy.downloadermiddlewares.httpproxy import HttpProxyMiddleware
from scrapy.exceptions import NotConfigured

from crawlspace.runtime.requests import drop_proxy, set_proxy, site_of

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler

    from crawlspace.config.proxies import Proxies


class BaseProxies(HttpProxyMiddleware):
    """As Scrapy's, which does the rest: `meta["proxy"]` of a request goes first, also where it is None."""

    of_collection: Proxies | None = None
    """None where it has none, and where no collection is crawled, as in `scrapy shell`: then they are those of the environment."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        if not crawler.settings.getbool("HTTPPROXY_ENABLED"):
            raise NotConfigured
        made = cls(crawler.settings.get("HTTPPROXY_AUTH_ENCODING"))
        session = getattr(crawler.spider, "session", None)
        if session is not None:
            made.of_collection = session.collection.proxies if session.collection.proxies.sentence else None
            made.proxies = {}  # those of the environment are among them
        return made

    def process_request(self, request: Request, spider: Spider | None = None) -> None:
        if self.of_collection is not None:
            drop_proxy(request)
            self._set(request, self.of_collection)
        super().process_request(request)

    def _set(self, request: Request, proxies: Proxies) -> None:
        found = site_of(request) if "proxy" not in request.meta else None
        if found is not None:
            host, _, port = found[0].rpartition(":")
            proxy = proxies.of(found[1], host, int(port))
            if proxy is not None:
                address = proxies.address(proxy)
                set_proxy(request, address.url, address.authorization, where=proxy.where)
