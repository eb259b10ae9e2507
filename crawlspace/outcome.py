"""The result of one fetch, with its request and response."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from crawlspace.decision import Reason
from crawlspace.document import Document
from crawlspace.status import Status


class OutcomeKind(StrEnum):
    DOCUMENT = "document"
    UNCHANGED = "unchanged"
    REDIRECTED = "redirected"
    GONE = "gone"
    """A permanent error."""
    FAILED = "failed"
    """A temporary error, or one that may be the host's."""
    EXCLUDED = "excluded"


@dataclass(slots=True)
class Link:
    """A link of a page: absolute URL, and whether its `rel` has nofollow."""

    href: str
    nofollow: bool = False
    tag: str = "a"


@dataclass(slots=True)
class NamedPages:
    """What a sitemap says about the pages that it names, with times as in `crawl/timed/lastmod.py`."""

    of_links: Sequence[int]
    """Of each link of the outcome."""
    hosts: frozenset[str]
    is_whole: bool
    """Read to its end, without a fault, and of a kind that names all pages."""
    times: dict[int, int] = field(default_factory=dict)
    """By key, of the URLs that the rules admit; set when the links are checked."""


@dataclass(slots=True)
class Outcome:
    """The result of one fetch."""

    id: int
    url: str
    kind: OutcomeKind
    status: int
    host_failure: bool = False
    """The failure may be the host's, not the page's: 5xx, connection error, unknown host."""
    code_failed: bool = False
    """Code of the project failed, which would fail again at once."""
    retry_after_s: float | None = None
    reason: Reason | None = None
    detail: str = ""
    """Details of an error in addition to its status, as a sentence."""
    document: Document | None = None
    index: bool = True
    """Whether rules and robots directives allow the document in the index."""
    links: list[str] | None = None
    """Links to follow, absolute or relative to `base`; None if those of the last fetch remain valid (304)."""
    base: str = ""
    """Base of relative links, if it isn't the URL."""
    left_out: dict[Reason, int] = field(default_factory=dict)
    """Links, or the rest of the text, beyond a limit of one page."""
    named: NamedPages | None = None
    """Of a sitemap or feed that was read."""
    redirect_to: str | None = None
    sets_cookie: bool = False
    """A redirect sets a cookie that the next request of the site carries."""
    doubted: int = 0
    """Signature of the page or text that is shown instead of the document, which is held until that is confirmed; 0: it is believed."""
    is_doubted_again: bool = False
    """The URL was doubted for the same thing when it was fetched last."""
    canonical: str | None = None
    """The canonical URL named by the page, absolute or relative to `base`."""
    checksum: bytes | None = None
    simhash: bytes | None = None
    """The signature of the text with that checksum (`simhash.py`)."""
    added: dict[str, str] = field(default_factory=dict)
    """The metadata added to the document by rules."""
    link_metadata: tuple[tuple[str, str], ...] = ()
    """Metadata that linked pages inherit."""
    etag: str | None = None
    last_modified: str | None = None
    declared_type: str | None = None
    """The Content-Type header as received."""
    conditional: bool = False
    needs_body: bool = False
    """A 304 whose headers contradict the stored state: the page is fetched again in this run, with an unconditional GET."""
    restricts_others: bool = False
    """A 304 has robots directives that are not obeyed, or name another crawler (`crawl/commits.py`)."""
    exchange: Exchange | None = None
    """The exchange for the archive; None without an archive, or if the response is incomplete."""
    sent_ago_s: float = 0.0
    """Seconds since the request was sent, if known."""
    latency_s: float | None = None
    """Seconds between sending the request and the headers of the response, if known."""
    took_s: float | None = None
    """Seconds that the download took, from the beginning of its connection to the end of the body, if known."""
    body_bytes: int = 0
    """Received bytes of the body, before it is decoded."""
    fetched_at: int = 0

    @property
    def names_sitemaps(self) -> bool:
        """Whether its links are sitemaps that an index file names."""
        return self.status == Status.SITEMAP_INDEX


# --- outcome -------------------------------------------------------------------------------------------------------


HeaderLines = Sequence[tuple[bytes, Sequence[bytes]]]
"""Names, each with its values in the order they came."""


_READ_AT_ONCE = 256 * 1024


class BodyFile:
    """A large body, in a file of its own that is removed with this object."""

    def __init__(self, path: Path, size: int) -> None:
        self.path, self.size = path, size
        weakref.finalize(self, path.unlink, missing_ok=True)

    def parts(self) -> Iterator[bytes]:
        """Yield its bytes. Raises OSError."""
        with self.path.open("rb") as file:
            while part := file.read(_READ_AT_ONCE):
                yield part


@dataclass(frozen=True, slots=True)
class Exchange:
    """`body` is that of the response before it is decoded; times are seconds since 1970."""

    url: str
    method: str
    request_headers: HeaderLines
    status: int
    response_headers: HeaderLines
    body: bytes | BodyFile
    sent_at: float
    protocol: str = "HTTP/1.1"
    address: str | None = None
    """The IP address that answered."""
    dom: bytes | None = None
    """The HTML, in UTF-8, of the DOM of a page that was rendered."""
    is_cut: bool = False
    """Of the body only the beginning was taken."""
