"""Scrapy's download handler over libcurl: applies a request's settings and `meta`, and returns Scrapy's response."""

from __future__ import annotations

import logging
from time import monotonic
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response
from scrapy.responsetypes import responsetypes
from scrapy.utils.asyncio import is_asyncio_available

from crawlspace.runtime.components.logformat import make_libraries_printable
from crawlspace.runtime.components.requests import CONTENTS, CUT, DOWNLOADED, EXCHANGE, FILE, SITEMAP, STATE, request_id
from crawlspace.runtime.components.scrapy_internals import STOPPED
from crawlspace.runtime.http.archived import exchange_of
from crawlspace.runtime.http.client import Download, HttpClient
from crawlspace.runtime.http.errors import ProxyFailed
from crawlspace.runtime.http.file_body import IN_MEMORY, FileBody, file_body_for
from crawlspace.runtime.http.proxies import answered_by_proxy
from crawlspace.runtime.http.resolver import GuardedResolver, resolver_of_process
from crawlspace.runtime.http.response_body import ResponseBody
from crawlspace.runtime.http.tls import TlsOptions
from crawlspace.runtime.http.transfer import AnswerHead, Permission

if TYPE_CHECKING:
    from crawlspace.runtime.session.session import Session

logger = logging.getLogger(__name__)

MOST_REPORTED = 50
"""Failures of proxies, mostly at different sites, that are logged."""


class CurlDownloadHandler(BaseDownloadHandler):
    """Downloads by libcurl. In the crawl of a collection, its session decides which connections may be made, and when requests are sent."""

    lazy = False

    def __init__(self, crawler: Crawler) -> None:
        if not is_asyncio_available():
            raise NotConfigured(f"{type(self).__name__} needs asyncio, as Scrapy's default of TWISTED_REACTOR has it")
        super().__init__(crawler)
        make_libraries_printable()
        settings = crawler.settings
        session: Session | None = getattr(crawler.spider, "session", None)
        self._session = session
        self._most, self._warned_of = settings.getint("DOWNLOAD_MAXSIZE"), settings.getint("DOWNLOAD_WARNSIZE")
        self._timeout_s = settings.getfloat("DOWNLOAD_TIMEOUT")
        self._fails_on_dataloss = settings.getbool("DOWNLOAD_FAIL_ON_DATALOSS")
        self._truncates = session is not None and session.collection.content.truncates
        self._archives = session is not None and session.collection.archive.is_on
        self._resolver: GuardedResolver | None = None
        self._reported: set[str] = set()
        tls, bind_address = TlsOptions.from_settings(settings), settings.get("DOWNLOAD_BIND_ADDRESS")
        if session is None:
            self._client = HttpClient(tls, bind_address=bind_address)
            return
        sites = session.collection.sites
        for one in sites.settings:
            if one.tls is not None:
                one.tls.context()  # raises SettingError for files that cannot be used
        self._client = HttpClient(
            tls,
            tls_of=lambda host, port: sites.of(host, port).tls,
            permission=Permission(session.sending.sent, session.owned_for_s, session.incarnation),
            bind_address=bind_address,
        )

    async def close(self) -> None:
        self._client.close()

    def resolver(self) -> GuardedResolver:
        """Return what looks names up, with the address rules of this crawl; without a session, with those of all crawls of the process."""
        own = None if self._session is None else self._session.resolver()
        if own is not None:
            return own
        if self._resolver is None:
            self._resolver = resolver_of_process(self.crawler.settings)
        return self._resolver

    async def download_request(self, request: Request) -> Response:
        """Return the response to a request. Raises ProxyFailed where a proxy has kept the answer away, or has answered for the site."""
        session, meta = self._session, request.meta
        for of_an_earlier_response in (FILE, CONTENTS, SITEMAP, EXCHANGE):
            meta.pop(of_an_earlier_response, None)
        is_page = session is not None and STATE in meta
        body = ResponseBody(
            request,
            self.crawler,
            most=meta.get("download_maxsize", self._most),
            warned_of=meta.get("download_warnsize", self._warned_of),
            file_for=self._file_for if is_page else None,
            truncates=is_page and self._truncates,
        )
        began = monotonic()
        try:
            done = await self._client.fetch(
                request,
                body,
                self.resolver(),
                timeout_s=float(meta.get("download_timeout") or self._timeout_s),
                needs_new=session is not None and session.second_attempts.begins(request_id(request)),
            )
            meta["download_latency"] = done.latency_s
            meta[DOWNLOADED] = monotonic() - began, body.received
            response = self._response(request, done, body)
        except BaseException as error:
            meta[DOWNLOADED] = monotonic() - began, body.received
            body.drop()
            if isinstance(error, ProxyFailed):
                self._report(error)
            raise
        if self._archives and is_page and (body.is_cut or not response.flags):  # a flag: it is not complete
            meta[EXCHANGE] = exchange_of(request, response)
        return response

    def _file_for(self, request: Request, head: AnswerHead) -> FileBody | None:
        """Return what takes the body of a response that may be a file."""
        assert self._session is not None
        limit = request.meta.get("download_maxsize", self._most)
        collection, site = self._session.collection, request.meta[STATE].site
        own = collection.sites.at(site).max_file_bytes
        body = file_body_for(collection, head.headers, length=head.length, limits=(limit, own or collection.files.max_bytes))
        if body is not None:
            request.meta[FILE] = body
            if head.length is None or head.length > IN_MEMORY:
                request.meta["dont_cache"] = True  # Scrapy's cache would keep it without its body
        return body

    def _response(self, request: Request, done: Download, body: ResponseBody) -> Response:
        flags = [CUT if body.is_cut else STOPPED] * done.is_stopped + ["partial"] * done.is_partial
        if done.error is not None:
            if request.meta.get("download_fail_on_dataloss", self._fails_on_dataloss):
                raise done.error
            flags.append("dataloss")
        head, content = done.head, body.content()
        kind = responsetypes.from_args(headers=head.headers, url=request.url, body=content)
        response: Response = kind(
            url=request.url,
            status=head.status,
            body=content,
            flags=flags,
            certificate=done.certificate,
            ip_address=done.address,
            protocol=head.protocol,
        )
        response.headers = head.headers  # as they are: the class would make all of them again
        if body.stop is not None and body.stop.fail:
            body.stop.response = response
            raise body.stop
        if request.meta.get("proxy"):
            failed = answered_by_proxy(request, response)
            if failed is not None:
                raise failed
        return response

    def _report(self, failed: ProxyFailed) -> None:
        """Log what a proxy has done, once, and for some sites: it is mostly the same for all of them."""
        sentence = str(failed)
        if sentence not in self._reported and len(self._reported) < MOST_REPORTED:
            self._reported.add(sentence)
            logger.warning("%s; the pages wait (618), and none is deleted for it", sentence)
