"""Sets DEFAULT_REQUEST_HEADERS as Scrapy does, but keeps credentials from hosts that they are not for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from scrapy.downloadermiddlewares.defaultheaders import DefaultHeadersMiddleware
from scrapy.utils.python import without_none_values

from crawlspace.config.access import HEADERS, CredentialHosts, is_credential
from crawlspace.runtime.requests import RESOURCE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy import Request
    from scrapy.crawler import Crawler

PROXY_AUTHORIZATION = "proxy-authorization"


class BaseDefaultHeaders:
    """For pages and robots.txt of a collection. A redirect makes a request of its own, so that its target's host counts."""

    def __init__(self, headers: Mapping[str | bytes, object], hosts: CredentialHosts, *, through_proxies: bool) -> None:
        """`through_proxies`: Scrapy takes Proxy-Authorization out of what goes through none."""
        named = [(name.decode("latin-1") if isinstance(name, bytes) else name, value) for name, value in headers.items()]
        secret = {
            name for name, _ in named if is_credential(name) and not (through_proxies and name.lower() == PROXY_AUTHORIZATION)
        }
        self._for_all = [(name, value) for name, value in named if name not in secret]
        self._for_some = [(name, value) for name, value in named if name in secret]
        self._hosts = hosts

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self | DefaultHeadersMiddleware:
        session = getattr(crawler.spider, "session", None)
        if session is None:
            return DefaultHeadersMiddleware.from_crawler(crawler)
        headers = without_none_values(crawler.settings.getdict(HEADERS))
        through_proxies = crawler.settings.getbool("HTTPPROXY_ENABLED")
        return cls(headers, session.collection.credential_hosts, through_proxies=through_proxies)

    def process_request(self, request: Request) -> None:
        for name, value in self._for_all:
            request.headers.setdefault(name, value)
        of_page = request.meta.get(RESOURCE)
        if (
            self._for_some
            and self._hosts.allow(request.url)
            and (of_page is None or (of_page.is_own and has_host_of(request.url, of_page.url)))
        ):
            for name, value in self._for_some:
                request.headers.setdefault(name, value)


def has_host_of(url: str, page: str) -> bool:
    """Return whether two URLs have one host: another site's page must not ask for something with our credentials."""
    return urlsplit(url).hostname == urlsplit(page).hostname
