"""The values that the packages exchange; the documentation's first page explains the terms."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from http import HTTPStatus
from typing import NamedTuple

from msgspec import Struct

from crawlspace.asked import Asked
from crawlspace.decision import Reason
from crawlspace.exchange import Exchange


class Labelled(IntEnum):
    """Numbers that are stored, with the names that users see."""

    @property
    def label(self) -> str:
        return self.name.lower()


class Source(Labelled):
    """The queue family of a URL, in order of precedence; the frontier chooses among them by weight. The numbers are stored."""

    USER = 0
    REDIR = 1
    INDEX = 2
    INDEX_FOLLOW = 3
    FOLLOW = 4
    REFRESH = 5


SHIFTS = 5
QUEUES = len(Source) * SHIFTS
"""The number of queues of a site: one for each source and shift."""


class Queue(NamedTuple):
    """The queue of a URL within its site: by source, then by shift, -2 first."""

    source: Source
    shift: int = 0

    @property
    def queue_index(self) -> int:
        """The queue as one number below QUEUES, in the order in which queues are emptied."""
        return self.source * SHIFTS + max(-2, min(2, self.shift)) + 2

    @classmethod
    def of_index(cls, queue_index: int) -> Queue:
        source, shift = divmod(queue_index, SHIFTS)
        return cls(Source(source), shift - 2)


def source_of(*, index: bool, follow: bool) -> Source:
    """Return the source of a link, by the `index` and `follow` that the rules set."""
    if index:
        return Source.INDEX_FOLLOW if follow else Source.INDEX
    return Source.FOLLOW


PRIORITY_BASE = {source: 10 * (len(Source) - 1 - source) for source in Source}


def priority(source: Source, shift: int) -> int:
    """Return Scrapy's `request.priority` for a URL: higher goes first. A shift never changes the order of sources."""
    return PRIORITY_BASE[source] - shift


class State(Labelled):
    """The state of an admitted URL."""

    PENDING = 0
    """Admitted and not yet crawled."""
    DONE = 1
    REDIRECTED = 2
    GONE = 3
    """The last fetch ended in a permanent error."""
    FAILED = 4
    """The last fetch ended in a temporary error."""
    EXCLUDED = 5
    """Not indexed because of robots.txt, noindex, its type, or the rules."""


class Held(Labelled):
    """Why a deletion is held: it waits for approval, or for another fetch of the page."""

    HOST = 1
    """The failure may be the host's, not the page's."""
    MANY = 2
    """The run has reached its deletion limit."""
    RULES = 3
    """A change of the rules would exceed the deletion limit."""
    FOLDED = 4
    """The URL options fold the URL into another one that has no document yet."""

    @property
    def sentence(self) -> str:
        return _HELD_SENTENCES[self]


_HELD_SENTENCES = {
    Held.HOST: "the site may be at fault: it is deleted once other pages are there again and this one still fails or redirects",
    Held.MANY: "the run has deleted as many documents as it may",
    Held.RULES: "a change of the rules would delete too many documents at once",
    Held.FOLDED: "the URL is folded into another one, which has no document yet",
}


class Status(IntEnum):
    """The crawler's own status codes, beside those of HTTP."""

    READ_ERROR = 611
    CONNECT_ERROR = 612
    TIMEOUT = 613
    TLS_FAILED = 614
    CUT_SHORT = 615
    LOGGED_OUT = 616
    NOT_RENDERED = 617
    PROXY_FAILED = 618
    NO_SUCH_HOST = 680
    NO_DNS_ANSWER = 681
    REDIRECT_MALFORMED = 690
    REDIRECT_LOOP = 691
    UNEXPECTED = 699
    ROBOTS_FORBIDDEN = 740
    ROBOTS_UNAVAILABLE = 741
    EXCLUDED = 760
    EXCLUDED_HERE = 761
    PORT_OR_SCHEME = 770
    WRONG_TYPE = 780
    UNREADABLE_FILE = 782
    MALFORMED_URL = 786
    NOINDEX = 2004
    SOFT_REDIRECT = 3020

    @property
    def sentence(self) -> str:
        """The meaning of the code, for users."""
        return _STATUS_SENTENCES[self]


OUT_OF_SPACE = frozenset({int(Status.EXCLUDED), int(Status.EXCLUDED_HERE)})
"""URLs excluded by the rules; they are crawled again when the rules admit them."""
LINKS_ONLY = frozenset({int(HTTPStatus.OK), int(Status.NOINDEX)})
"""Excluded pages that were read: only their links count. 200: an item pipeline dropped the document."""
NO_CONTENT = frozenset({int(HTTPStatus.NO_CONTENT), int(HTTPStatus.RESET_CONTENT)})
"""Answers without a body, which therefore have no type, and no document."""
UNCOUNTED = OUT_OF_SPACE | {404, 410}
"""URLs that don't count towards a limit of URLs: outside the crawl space, or missing."""

_STATUS_SENTENCES = {
    Status.READ_ERROR: "the answer could not be read",
    Status.CONNECT_ERROR: "connection refused or lost",
    Status.TIMEOUT: "no answer in time",
    Status.TLS_FAILED: "the TLS handshake failed, as with a certificate that is not valid",
    Status.CUT_SHORT: "the answer was cut short or is too large",
    Status.LOGGED_OUT: "shown only to who is logged in, and the log-in was refused or is not for this page",
    Status.NOT_RENDERED: "the page could not be rendered in the browser",
    Status.PROXY_FAILED: "the proxy cannot be reached, refuses, or has cut the connection",
    Status.NO_SUCH_HOST: "the host name does not exist",
    Status.NO_DNS_ANSWER: "looking up the host name gave no answer",
    Status.REDIRECT_MALFORMED: "a redirect whose target is malformed or not named",
    Status.REDIRECT_LOOP: "redirects that lead back to themselves",
    Status.UNEXPECTED: "an unexpected error",
    Status.ROBOTS_FORBIDDEN: "forbidden by robots.txt",
    Status.ROBOTS_UNAVAILABLE: "robots.txt cannot be read at present",
    Status.EXCLUDED: "outside the crawl space",
    Status.EXCLUDED_HERE: "outside this crawl space, inside the global one",
    Status.PORT_OR_SCHEME: "the scheme or port is not allowed",
    Status.WRONG_TYPE: "the extension or document type is not taken",
    Status.UNREADABLE_FILE: "a file without readable text, found by its title, name and URL",
    Status.MALFORMED_URL: "the URL is malformed",
    Status.NOINDEX: "the page or a rule asks not to be indexed, or the spider gave no item",
    Status.SOFT_REDIRECT: "200 with a Location, or an empty page with an immediate refresh, taken as a redirect",
}


class Candidate(Struct, frozen=True, gc=False):
    """A discovered URL before any check. `href` is absolute or relative to `base`; the last two are as in NewUrl."""

    href: str
    source: Source
    base: str = ""
    base_host_as_written: str | None = None
    depth: int = 0
    redirects: int = 0
    shift: int = 0
    inherited: str | None = None
    depth_from: int = 0


class NewUrl(Struct, frozen=True, gc=False):
    """An admitted URL to be stored; `site` is `host:port`."""

    key: int
    url: str
    site: str
    source: Source
    shift: int
    depth: int
    redirects: int
    rank: int
    """Its place among equal documents, see `rank_of`."""
    host_as_written: str | None = None
    """Set only if it differs from the host in normal form."""
    inherited: str | None = None
    """Metadata inherited from the source page, as a JSON object."""
    depth_from: int = 0
    """Id of the page that leads to it; 0: a start URL, or from elsewhere."""

    @property
    def queue(self) -> Queue:
        return Queue(self.source, self.shift)


class UrlState(Struct, gc=False):
    """A copy of the stored state of one URL. Times are whole seconds since 1970, UTC; None means never or unknown."""

    id: int
    key: int
    url: str
    site: str
    state: State = State.PENDING
    status: int | None = None
    source: Source = Source.INDEX_FOLLOW
    shift: int = 0
    depth: int = 0
    redirects: int = 0
    """How many redirects it was found behind."""
    rank: int = 1
    """Its place among equal documents, see `rank_of`."""
    host_as_written: str | None = None
    discovered_at: int = 0
    fetched_at: int | None = None
    next_fetch: int | None = None
    """When it is due again. None for a pending URL, which is due at once, and for an excluded one that is never due again."""
    interval_s: int | None = None
    retries: int = 0
    """Failed attempts in a row within one run; 0 when no retry of this run is outstanding."""
    errors: int = 0
    """Temporary errors in a row, one for each run or refresh that ended in one."""
    lease_until: int | None = None
    etag: str | None = None
    last_modified: str | None = None
    rules: int = 0
    """Generation of the rules at the last fetch; 0 = the next fetch is unconditional."""
    checksum: bytes | None = None
    """16 bytes over the normalised text; not None if and only if the document belongs in the index."""
    canonical: int | None = None
    """Key of the canonical URL named by the page, if that is another page."""
    indexed: bool = False
    """The index has the document, or will have it once the outbox is drained."""
    duplicate_of: int | None = None
    """Id of the URL that represents the group of equal documents, if it is another one."""
    held: Held | None = None
    """Why the deletion of its document, or of the URL itself, is held; the stored state is kept meanwhile."""
    held_mark: int = 0
    """HOST: the site's count of normal responses then. RULES, 1: they take out the document, not its URL. MANY, 1: as an orphan."""
    asked: Asked = Asked.NO
    inherited: str | None = None
    """Metadata for its document, inherited from the source page, as a JSON object."""
    fields_mark: int = 0
    """Hash of the metadata that the document was stored with (`crawl/conditional.py`); 0 = none."""
    refused: str | None = None
    """How many of its links were refused at the last fetch, by reason (`refused_links`); None = none."""
    depth_from: int = 0
    """Id of the page that gave it its depth, by a link or a redirect; 0: a start URL, or from elsewhere."""
    orphaned: int | None = None
    """Number of the run since which no way leads to it from a start URL; None: one does."""
    archived: int | None = None
    """The place of its records in the archive (`archive.places`): of its document while it has one, else of its last response."""
    ordered: int = 0
    """Number of the last order to push its document that all sinks were given; 0: none was. Given by the store."""
    detail: str | None = None
    """What is known of an error beside its status; None unless its state is GONE or FAILED, see `lifecycle.kept_detail`."""

    @property
    def queue(self) -> Queue:
        """The queue it waits in, or will wait in once it is due.

        The stores that change many URLs in one statement repeat this; `tests/contract/test_which_queue.py` holds them to it."""
        if self.state is State.PENDING:
            return Queue(self.source, self.shift)
        if self.asked:
            return Queue(Source.USER if self.asked == Asked.BY_PERSON else Source.INDEX, self.shift)
        return Queue(self.source if self.retries > 0 else Source.REFRESH, self.shift)


@dataclass(slots=True)
class Document:
    """The document sent to the index for one page. `fields` holds metadata from rules or from a spider's own parsing."""

    url: str
    title: str = ""
    description: str = ""
    language: str = ""
    text: str = ""
    headings: list[str] = field(default_factory=list)
    content_type: str = ""
    modified: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    duplicates: list[str] = field(default_factory=list)


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
    """What is known of an error beside its status, as a sentence."""
    document: Document | None = None
    index: bool = True
    """Whether rules and robots directives allow the document in the index."""
    links: list[str] | None = None
    """Links to follow, absolute or relative to `base`; None if those of the last fetch remain valid (304)."""
    base: str = ""
    """Base of relative links, if it isn't the URL."""
    left_out: dict[Reason, int] = field(default_factory=dict)
    """Links, or the rest of the text, beyond a limit of one page."""
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
    """What was sent, for the archive; None where there is none, or the response is not complete."""
    sent_ago_s: float = 0.0
    """Seconds since the request was sent, if known."""
    latency_s: float | None = None
    """Seconds between sending the request and the headers of the response, if known."""
    fetched_at: int = 0


class Op(StrEnum):
    PUSH = "push"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class IndexOrder:
    """One change of the index. `sequence` grows with every change; `document` is None for a delete."""

    sequence: int
    op: Op
    url: str
    document: Document | None = None
    version: int = 0
    """Grows with `sequence`, and is above every version that the index is known to have; 0 until it is sent."""
    archived: int | None = None
    """The place of the document in the archive, as its URL has it."""
    content_place: str = ""
    """The same as file and offset, as in `name.warc.gz:4711`; empty where it is not archived."""
    content_url: str = ""
    """Where the whole document can be had; empty without CRAWLSPACE_CONTENT_URL."""
    is_by_reference: bool = False
    """The document is without its text."""
