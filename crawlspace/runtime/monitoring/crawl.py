"""The metrics of a running crawl, and whether it is alive, over HTTP.

Numbers are read from the crawl at each scrape, on its event loop: they cost nothing while pages are fetched, and agree with each other.
"""

from __future__ import annotations

import ipaddress
import logging
import os
from collections.abc import Iterator
from hmac import compare_digest
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from crawlspace.crawl.fetch_times import BOUNDS_S

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric as Family
    from twisted.web.server import Request

    from crawlspace.runtime.session.session import Session

logger = logging.getLogger(__name__)

_PATIENCE_S = 10
"""Seconds after which a connection on which nothing happens is closed."""


class CrawlMonitoring:
    """Extension that serves `/metrics`, `/live` and `/ready` while the crawl runs."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> CrawlMonitoring:
        session: Session | None = getattr(crawler.spider, "session", None)
        if session is None or session.run_log is None or not session.collection.monitoring.port:
            raise NotConfigured
        extension = cls(session)
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        return extension

    def spider_opened(self, spider: Spider) -> None:
        from twisted.internet import reactor as installed  # noqa: PLC0415 - importing it installs it
        from twisted.internet.error import CannotListenError  # noqa: PLC0415
        from twisted.web.resource import Resource  # noqa: PLC0415 - only those pay who serve metrics
        from twisted.web.server import Site  # noqa: PLC0415

        from crawlspace.runtime.monitoring import metrics  # noqa: F401, PLC0415 - takes a tenth of a second, which the first scrape would wait for

        session, settings = self._session, self._session.collection.monitoring

        class MetricsResource(Resource):
            isLeaf = True  # noqa: N815 - Twisted's name

            def render_GET(self, request: Request) -> bytes:  # noqa: N802 - Twisted's name
                return answer(session, request)

        class QuietSite(Site):
            def log(self, request: object) -> None:
                """Log no request."""

        site = QuietSite(MetricsResource(), timeout=_PATIENCE_S)
        site.noisy = False
        reactor = cast("Any", installed)
        try:
            port = reactor.listenTCP(settings.port, site, interface=settings.bind)
        except CannotListenError as error:
            why = os.strerror(error.socketError.errno) if getattr(error.socketError, "errno", None) else str(error.socketError)
            logger.error(  # noqa: TRY400 - a sentence, without traceback
                "the metrics cannot be served at %s, port %d: %s; the crawl goes on without them. CRAWLSPACE_METRICS_PORT has to be another"
                " one for each crawl of a machine",
                settings.bind,
                settings.port,
                why,
            )
            return
        session.at_close(port.stopListening)
        host = f"[{settings.bind}]" if ":" in settings.bind else settings.bind
        logger.info("metrics are at http://%s:%d/metrics", host, settings.port)


def answer(session: Session, request: Request) -> bytes:
    """Return the body of a response, and set its status and headers."""
    request.setHeader("Server", "crawlspace")
    request.setHeader("Content-Type", "text/plain; charset=utf-8")
    request.setHeader("X-Content-Type-Options", "nosniff")
    match request.path:
        case b"/live":
            return b"alive\n"
        case b"/ready":
            if session.error is None:
                return b"ready\n"
            return _refused(request, HTTPStatus.SERVICE_UNAVAILABLE, "an error ends the crawl; its log has it")
        case b"/metrics":
            return _metrics(session, request)
    return _refused(request, HTTPStatus.NOT_FOUND, "there are /metrics, /live and /ready")


def _metrics(session: Session, request: Request) -> bytes:
    token = session.collection.monitoring.token
    if not token and not _is_address(request.getRequestHostname().decode("latin-1")):
        # a page elsewhere may have its own name lead here (DNS rebinding)
        return _refused(request, HTTPStatus.MISDIRECTED_REQUEST, "ask by address, or by localhost")
    if token and not _has_token(request.getHeader("authorization") or "", token):
        request.setHeader("WWW-Authenticate", "Bearer")
        return _refused(
            request, HTTPStatus.UNAUTHORIZED, "send the token of CRAWLSPACE_METRICS_TOKEN, as Authorization: Bearer TOKEN"
        )
    from crawlspace.runtime.monitoring.metrics import exposition  # noqa: PLC0415 - only those pay who serve metrics

    shown = exposition(list(families(session)), request.getHeader("accept") or "")
    request.setHeader("Content-Type", shown.content_type)
    return shown.body


def _refused(request: Request, status: HTTPStatus, why: str) -> bytes:
    request.setResponseCode(status)
    return f"{why}\n".encode()


def families(session: Session) -> Iterator[Family]:
    """Yield the metrics of a crawl, those of this process since its start."""
    from crawlspace.runtime.monitoring import metrics  # noqa: PLC0415 - as above

    progress, name = session.progress, session.collection.name
    fetches = metrics.FETCHES.family()
    for status, count in sorted(progress.by_status.items()):
        fetches.add_metric([name, str(int(status))], count)
    yield fetches
    times = progress.times.all
    yield metrics.histogram(metrics.FETCH_SECONDS, name, bounds=BOUNDS_S, counts=times.counts, total=times.sum_s)
    received = metrics.BYTES.family()
    received.add_metric([name], progress.body_bytes)
    yield received
    refused = metrics.REFUSED.family()
    for reason, count in sorted(progress.refused.items()):
        refused.add_metric([name, str(reason)], count)
    yield refused
    failures = metrics.LOGIN_FAILURES.family()
    failures.add_metric([name], session.logins.failures)
    yield failures


def _has_token(header: str, token: str) -> bool:
    scheme, _, given = header.partition(" ")
    return scheme.lower() == "bearer" and compare_digest(given.strip().encode(), token.encode())


def _is_address(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
