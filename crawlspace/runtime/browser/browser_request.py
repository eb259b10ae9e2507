"""A request as the browser sends it to its proxy, and what its headers tell: which document it is for, and what it is to be used for.

The browser sets `Sec-Fetch-*`, `Origin`, `Referer` and `Cookie` by itself; no script can change them (Fetch standard, "forbidden request-
header"). `Sec-Fetch-*` (W3C Fetch Metadata) go to https and to the loopback only; for other hosts over http, `Origin` and `Referer` decide.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import urlsplit

from crawlspace.document import essence
from crawlspace.rules.named_hosts import public_suffix

_NOT_SHOWN = frozenset({"image", "audio", "video", "track", "font", "manifest", "report", "serviceworker", "document"})
"""Destinations of what shows nothing to read. The document of the tab is given to the browser without a request, so another one is a
pop-up's."""
_NOT_SHOWN_TYPES = ("image/", "text/event-stream")
"""The same by the header Accept, where there is no destination."""
_REPORTS = frozenset({"application/csp-report", "application/reports+json"})
_READ = frozenset({"GET", "HEAD"})
_SIMPLE_POST = frozenset({"", "application/x-www-form-urlencoded", "multipart/form-data", "text/plain"})
"""Types that a form may send (Fetch standard, "CORS-safelisted request-header")."""
_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}


class Initiator(Enum):
    """The document that a request is made for, as seen from the host that is asked."""

    OWN = "same-origin"
    """One of the same origin."""
    SAME_SITE = "same-site"
    """One of another origin of the same registrable domain."""
    OTHER = "cross-site"
    """One of another site, or one that is not known."""


@dataclass(frozen=True, slots=True)
class BrowserRequest:
    """One request. Header names are in small letters."""

    method: str
    url: str
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)

    def header(self, name: str) -> str:
        """Return the value of a header, or ""."""
        return self.headers.get(name, "")

    @property
    def initiator(self) -> Initiator:
        named = self.header("sec-fetch-site")
        if named:
            return next((one for one in Initiator if one.value == named), Initiator.OTHER)
        asking, asked = _origin(self.header("origin") or self.header("referer")), _origin(self.url)
        if asking is None or asked is None:
            return Initiator.OTHER
        if asking == asked:
            return Initiator.OWN
        return Initiator.SAME_SITE if (asking[0], _site(asking[1])) == (asked[0], _site(asked[1])) else Initiator.OTHER

    @property
    def may_be_read_elsewhere(self) -> bool:
        """Whether a script of another origin could read the answer, where the server allows it: a request with CORS, or its preflight."""
        return self.initiator is not Initiator.OWN and "origin" in self.headers

    @property
    def is_document(self) -> bool:
        """Whether the answer is the document of a frame."""
        return self.header("sec-fetch-mode") == "navigate" or self.header("accept").startswith("text/html")

    @property
    def is_needed(self) -> bool:
        """Whether a page may have lost text where this fails."""
        return self.header("sec-fetch-dest") != "style" and not self.header("accept").startswith("text/css")

    @property
    def is_superfluous(self) -> bool:
        """Whether the answer shows nothing to read, or may never be shown; or the browser asks by itself, as what to fill forms with."""
        if (
            self.header("sec-fetch-site") == "none"
        ):  # a person would have asked: the document of the tab is given without a request
            return True
        if "prefetch" in self.header("sec-purpose") or "service-worker" in self.headers:
            return True
        if essence(self.header("content-type")) in _REPORTS or self.header("accept").startswith(_NOT_SHOWN_TYPES):
            return True
        return self.header("sec-fetch-dest") in _NOT_SHOWN

    @property
    def is_refused_across_sites(self) -> bool:
        """Whether the request would change something on another site: only GET, HEAD and what a form may post go there.

        A preflight is judged by the request that is to follow it; a POST that needs one is none that a form may send.
        """
        if self.initiator is not Initiator.OTHER:
            return False
        wanted = self.header("access-control-request-method")
        if self.method == "OPTIONS" and wanted:
            return wanted not in _READ
        return self.method not in _READ and not (self.method == "POST" and essence(self.header("content-type")) in _SIMPLE_POST)


def _origin(url: str) -> tuple[str, str, int] | None:
    """Return scheme, host and port of a URL or an origin; of a WebSocket those of its page's kind. None where it has none."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    if parts.hostname is None or port is None:
        return None
    return {"ws": "http", "wss": "https"}.get(parts.scheme, parts.scheme), parts.hostname, port


def _site(host: str) -> str:
    """Return the registrable domain of a host; the host itself where it has none, as an address."""
    suffix = public_suffix(host)
    if not suffix or suffix == host:
        return host
    return f"{host.removesuffix(suffix).rstrip('.').rpartition('.')[2]}.{suffix}"
