"""Downloader middlewares of Scrapy's, as a collection needs them: headers, credentials, conditional requests, decompression, proxies."""

from __future__ import annotations

import logging
import zlib
from collections.abc import Mapping
from typing import Self
from urllib.parse import urlsplit

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.defaultheaders import DefaultHeadersMiddleware
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.downloadermiddlewares.httpproxy import HttpProxyMiddleware
from scrapy.exceptions import NotConfigured
from scrapy.http import Headers, Response
from scrapy.utils.python import without_none_values

from crawlspace.config.access import HEADERS, CredentialHosts, is_credential
from crawlspace.config.proxies import Proxies
from crawlspace.config.sites import SiteTable
from crawlspace.content.headers import kept_validator
from crawlspace.runtime.components.requests import CONDITIONAL, CUT, RESOURCE, STATE, drop_proxy, set_proxy, site_of, site_text
from crawlspace.runtime.components.scrapy_internals import DecompressionHook, is_too_large
from crawlspace.runtime.http.errors import UndecodableBody
from crawlspace.text import printable

PROXY_AUTHORIZATION = "proxy-authorization"


class DefaultHeaders:
    """Sets DEFAULT_REQUEST_HEADERS as Scrapy does, but keeps credentials from hosts that they are not for, and the user agents of sites.

    For pages and robots.txt of a collection. A redirect makes a request of its own, so that its target's host counts.
    """

    def __init__(
        self,
        headers: Mapping[str | bytes, object],
        hosts: CredentialHosts,
        *,
        through_proxies: bool,
        agents: SiteAgents | None = None,
    ) -> None:
        """`through_proxies`: Scrapy removes Proxy-Authorization from requests without a proxy. `agents`: None if no site has its own."""
        self._agents = agents
        named = [(name.decode("latin-1") if isinstance(name, bytes) else name, value) for name, value in headers.items()]
        secret = {
            name for name, _ in named if is_credential(name) and not (through_proxies and name.lower() == PROXY_AUTHORIZATION)
        }
        self._for_all = Headers({name: value for name, value in named if name not in secret})
        self._for_some = [(name, value) for name, value in named if name in secret]
        self._hosts = hosts

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self | DefaultHeadersMiddleware:
        session = getattr(crawler.spider, "session", None)
        if session is None:
            return DefaultHeadersMiddleware.from_crawler(crawler)
        headers = without_none_values(crawler.settings.getdict(HEADERS))
        through_proxies = crawler.settings.getbool("HTTPPROXY_ENABLED")
        collection = session.collection
        agents = SiteAgents(collection.sites, collection.user_agent) if collection.sites.user_agents else None
        return cls(headers, collection.credential_hosts, through_proxies=through_proxies, agents=agents)

    def process_request(self, request: Request) -> None:
        if self._agents is not None:
            self._agents.set(request)
        for name, values in dict.items(self._for_all):  # by the mapping itself, names and values would be encoded for each page
            dict.setdefault(request.headers, name, list(values))
        of_page = request.meta.get(RESOURCE)
        if (
            self._for_some
            and self._hosts.allow(request.url)
            and (of_page is None or (of_page.is_own and has_host_of(request.url, of_page.url)))
        ):
            for name, value in self._for_some:
                request.headers.setdefault(name, value)


class SiteAgents:
    """The user agents of sites. A request that has been given another one, as by a spider, keeps it."""

    def __init__(self, sites: SiteTable, usual: str) -> None:
        """`usual` is the user agent of all other sites."""
        self._sites = sites
        self._of_settings = frozenset(map(str.encode, (usual, *sites.user_agents)))

    def set(self, request: Request) -> None:
        """Set the user agent of a request's site, also in place of that of another site, which a redirect has brought along."""
        given = request.headers.get("User-Agent")
        if given is not None and given not in self._of_settings:
            return
        request.headers.pop("User-Agent", None)  # Scrapy sets that of all other sites
        site = site_text(request)
        if site and (own := self._sites.at(site).user_agent):
            request.headers["User-Agent"] = own


def has_host_of(url: str, page: str) -> bool:
    """Return whether two URLs have one host: another site's page must not cause requests with our credentials."""
    return urlsplit(url).hostname == urlsplit(page).hostname


# --- conditional get -----------------------------------------------------------------------------------------------


class ConditionalGet:
    """Sets If-None-Match and If-Modified-Since. A header that a request has already stays."""

    def process_request(self, request: Request) -> None:
        if not request.meta.get(CONDITIONAL):
            return
        state = request.meta[STATE]
        for name, value in ((b"If-None-Match", state.etag), (b"If-Modified-Since", state.last_modified)):
            if value and (validator := kept_validator(value)):  # those of older versions had no bounds
                request.headers.setdefault(name, validator.encode("latin-1", "replace"))


# --- decompression -------------------------------------------------------------------------------------------------


logger = logging.getLogger(__name__)

MOST_ENCODINGS = 5
"""Encodings of one body, one around the other. Each costs a decompression, and one header can name fifty thousand."""


class Decompression(DecompressionHook, HttpCompressionMiddleware):
    """Raises UndecodableBody where a body is not encoded as its headers say, so that it is an error of the response (611)."""

    _truncates = False
    _is_cut = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        made = super().from_crawler(crawler)
        session = getattr(crawler.spider, "session", None)
        made._truncates = session is not None and session.collection.content.truncates
        return made

    def process_request(self, request: Request, spider: Spider | None = None) -> Request | Response | None:
        if self._truncates:  # what can be decompressed in part
            request.headers.setdefault("Accept-Encoding", "gzip, deflate")
        return super().process_request(request)

    def process_response(self, request: Request, response: Response, spider: Spider | None = None) -> Request | Response:
        self._is_cut = CUT in response.flags
        decompressed = super().process_response(request, response)
        if self._is_cut and isinstance(decompressed, Response) and CUT not in decompressed.flags:
            return decompressed.replace(flags=[*decompressed.flags, CUT])
        return decompressed

    def decompress(self, body: bytes, encodings: list[bytes], max_size: int) -> tuple[bytes, list[bytes]]:
        if sum(value.count(b",") + 1 for value in encodings) > MOST_ENCODINGS:
            raise UndecodableBody(f"it has more than {MOST_ENCODINGS} encodings")
        try:
            if self._is_cut and (beginning := beginning_of(body, encodings, max_size)) is not None:
                return beginning, []
            return super().decompress(body, encodings, max_size)
        except Exception as error:  # each library has its own, and some raise EOFError or struct.error
            if is_too_large(error) and self._truncates and (beginning := beginning_of(body, encodings, max_size)) is not None:
                self._is_cut = True
                return beginning, []
            if is_too_large(error):
                raise
            raise UndecodableBody(f"{type(error).__name__}: {error}") from error

    def unknown_encoding(self, response: Response, encodings: list[bytes]) -> None:
        named = printable(b", ".join(encodings).decode("latin-1"))
        logger.info("%s is read as it came, because its encoding is not known: %s", response.url, named)


def beginning_of(body: bytes, encodings: list[bytes], most: int) -> bytes | None:
    """Return the first bytes of a body that is decompressed no further; None where its encoding is another, or there are several."""
    encoding = b",".join(encodings).strip().lower()
    if encoding in (b"gzip", b"x-gzip", b"deflate"):
        try:
            return zlib.decompressobj(wbits=_GZIP_OR_ZLIB).decompress(body, most)
        except zlib.error:
            return zlib.decompressobj(wbits=-zlib.MAX_WBITS).decompress(body, most)
    return None


_GZIP_OR_ZLIB = zlib.MAX_WBITS | 32

# --- proxies -------------------------------------------------------------------------------------------------------


class SiteProxies(HttpProxyMiddleware):
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
