"""Errors of a download that Scrapy has no class for. Scrapy's downloader is not imported here: that takes a tenth of a second.

DownloadFailedError                  Scrapy's
    AnswerFailed                     its `cause` has the details
        KeptConnectionClosed
        HeadersTooLarge
    ProxyFailed
DownloadTimeoutError                 Scrapy's
    NoConnectionInTime
DownloadCancelledError               Scrapy's
    AnswerTooLarge
"""

from __future__ import annotations

from scrapy.exceptions import DownloadCancelledError, DownloadFailedError, DownloadTimeoutError

from crawlspace.runtime.http.causes import NO_CERTIFICATE, Cause, Certificate, sentence


class NotSent(Exception):
    """A request was not sent, through no fault of its site: its URL is as before it was leased."""

    def __init__(self) -> None:
        super().__init__("others may have the site")


class LoggedOutError(Exception):
    """A page is shown only to who is logged in, and nobody is, or it is that of the log-in.

    `may_be_shown`: that is to be found out soon, when other pages of its site have been requested. `is_passing`: the log-in failed and was
    not refused, so that it may work later.
    """

    def __init__(self, why: str, *, may_be_shown: bool = False, is_passing: bool = False) -> None:
        super().__init__(why)
        self.may_be_shown = may_be_shown
        self.is_passing = is_passing


class NotRenderedError(Exception):
    """A page could not be rendered in the browser, or there is none at present."""


class BrowserCrashedError(NotRenderedError):
    """The browser, or the process of the tab, has ended while a page was rendered."""

    def __init__(self) -> None:
        super().__init__("the browser has crashed on it")


class UndecodableBody(Exception):
    """A body is not compressed as its headers say."""


class AnswerFailed(DownloadFailedError):
    """There is no answer, or none that can be read. `cause` says why; the message is its sentence."""

    def __init__(self, cause: Cause, *, why: str = "", host: str = "", certificate: Certificate = NO_CERTIFICATE) -> None:
        """`why`: what the client reports. `host` and `certificate`: of a TLS connection whose certificate is not accepted."""
        super().__init__(sentence(cause, host=host, certificate=certificate, why=why))
        self.cause = cause


class KeptConnectionClosed(AnswerFailed):
    """A connection that was kept from an earlier request was closed before a line of the answer came."""

    def __init__(self) -> None:
        super().__init__(Cause.CLOSED)


class HeadersTooLarge(AnswerFailed):
    """The headers of an answer are over the bounds."""

    def __init__(self) -> None:
        super().__init__(Cause.HEADERS_TOO_LARGE)


class ProxyFailed(DownloadFailedError):
    """A request got no answer of its site, because the proxy that it went through cannot be reached, refuses it, or has cut it."""


class NoConnectionInTime(DownloadTimeoutError):
    """The time of a request was over before there was a connection."""


class AnswerTooLarge(DownloadCancelledError):
    """A body is larger than it may be. `expected`: its bytes by its headers; None: they did not say so."""

    def __init__(self, *, expected: int | None, limit: int) -> None:
        super().__init__(sentence(Cause.TOO_LARGE, expected=expected, limit=limit if expected else None))
