"""Errors of a download that Scrapy has no class for. Scrapy's downloader is not imported here: that takes a tenth of a second."""

from __future__ import annotations

from scrapy.exceptions import DownloadFailedError

from crawlspace.runtime.download.causes import Cause, Certificate, sentence


class NotAsked(Exception):
    """A request was not sent, through no fault of its site: its URL is as before it was leased."""

    def __init__(self) -> None:
        super().__init__("others may have the site")


class LoggedOutError(Exception):
    """A page is shown only to who is logged in, and nobody is, or it is that of the log-in.

    `may_be_shown`: that is to be found out soon, when other pages of its site have been requested.
    """

    def __init__(self, why: str, *, may_be_shown: bool = False) -> None:
        super().__init__(why)
        self.may_be_shown = may_be_shown


class NotRenderedError(Exception):
    """A page could not be rendered in the browser, or there is none at present."""


class BrowserCrashedError(NotRenderedError):
    """The browser, or the process of the tab, has ended while a page was rendered."""

    def __init__(self) -> None:
        super().__init__("the browser has crashed on it")


class KeptConnectionClosed(DownloadFailedError):
    """A connection that was kept from an earlier request was closed before a byte of the answer came."""

    def __init__(self) -> None:
        super().__init__("the server closed a kept connection without an answer")


class ClosedInHandshake(DownloadFailedError):
    """A connection was closed before the server had answered the TLS handshake."""

    def __init__(self) -> None:
        super().__init__("the server closed the connection without answering the TLS handshake")


class UndecodableBody(Exception):
    """A body is not compressed as its headers say."""


class ProxyFailed(DownloadFailedError):
    """A request got no answer of its site, because the proxy that it went through cannot be reached, refuses it, or has cut it."""


class NotConnected(Exception):
    """No connection to a proxy was made; the cause says why."""


class TunnelRefused(Exception):
    """A proxy has not connected to a site. `status`: of its answer to CONNECT; 0 where that is no HTTP."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the proxy answers {status} to CONNECT")
        self.status = status


class CertificateRefused(Exception):
    """The certificate of a server is not accepted."""

    def __init__(self, cause: Cause, *, host: str, certificate: Certificate, why: str = "") -> None:
        super().__init__(sentence(cause, host=host, certificate=certificate, why=why))


class HeadersTooLarge(Exception):
    """The headers of an answer are over the bounds."""

    def __init__(self) -> None:
        super().__init__("more than 1,000 header lines, or 256 KiB of headers")
