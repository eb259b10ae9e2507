"""The values that travel between the parts, in the words of the documentation's first page."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import NamedTuple

from msgspec import Struct

from crawlspace.decision import Reason


class Source(IntEnum):
    """What a URL waits as; the frontier picks among them by weight."""

    USER = 0
    REDIR = 1
    INDEX = 2
    INDEX_FOLLOW = 3
    FOLLOW = 4
    REFRESH = 5

    @property
    def label(self) -> str:
        return self.name.lower()


SHIFTS = 5
LANES = len(Source) * SHIFTS
"""A lane is the number of a Queue: by source, and in it by shift."""


class Queue(NamedTuple):
    """Where a URL waits within its site: by source, and in it by shift, -2 first."""

    source: Source
    shift: int = 0

    @property
    def queue_index(self) -> int:
        """The queue as one number below LANES, in the order of queues."""
        return self.source * SHIFTS + max(-2, min(2, self.shift)) + 2

    @classmethod
    def of_index(cls, queue_index: int) -> Queue:
        source, shift = divmod(queue_index, SHIFTS)
        return cls(Source(source), shift - 2)


def source_of(*, index: bool, follow: bool) -> Source:
    """Return the source that a link waits in, by what the rules say of it."""
    if index:
        return Source.INDEX_FOLLOW if follow else Source.INDEX
    return Source.FOLLOW


PRIORITY_BASE = {
    Source.USER: 50,
    Source.REDIR: 40,
    Source.INDEX: 30,
    Source.INDEX_FOLLOW: 20,
    Source.FOLLOW: 10,
    Source.REFRESH: 0,
}


def priority(source: Source, shift: int) -> int:
    """Return Scrapy's `request.priority` for a URL: higher goes first, and a shift never crosses sources."""
    return PRIORITY_BASE[source] - shift


class State(IntEnum):
    """What is known of an admitted URL."""

    PENDING = 0
    """Admitted and not yet crawled."""
    DONE = 1
    REDIRECTED = 2
    GONE = 3
    """Answered with a permanent error."""
    FAILED = 4
    """Answered with a temporary error."""
    EXCLUDED = 5
    """Fetched or known, and kept out: by robots.txt, noindex, its type, or the rules."""

    @property
    def label(self) -> str:
        return self.name.lower()


class Held(IntEnum):
    """Why the deletion of a document is held back until a person approves it or the page speaks for itself."""

    HOST = 1
    """The failure may be the host's and not the page's."""
    MANY = 2
    """The run has deleted as many as it may."""
    RULES = 3
    """A change of the rules would delete more at once than it may."""

    @property
    def label(self) -> str:
        return self.name.lower()

    @property
    def sentence(self) -> str:
        """What it means, for a person."""
        return _HELD_SENTENCES[self]


_HELD_SENTENCES = {
    Held.HOST: "the failure may be the host's: it is deleted once the host answers and the page still fails",
    Held.MANY: "the run has deleted as many documents as it may",
    Held.RULES: "a change of the rules would delete too many documents at once",
}


class Status(IntEnum):
    """The crawler's own status codes; HTTP codes stand for themselves."""

    READ_ERROR = 611
    CONNECT_ERROR = 612
    TIMEOUT = 613
    TLS_FAILED = 614
    CUT_SHORT = 615
    NO_SUCH_HOST = 680
    NO_DNS_ANSWER = 681
    REDIRECT_MALFORMED = 690
    UNEXPECTED = 699
    ROBOTS_FORBIDDEN = 740
    ROBOTS_UNAVAILABLE = 741
    EXCLUDED = 760
    EXCLUDED_HERE = 761
    PORT_OR_SCHEME = 770
    WRONG_TYPE = 780
    MALFORMED_URL = 786
    NOINDEX = 2004
    SOFT_REDIRECT = 3020

    @property
    def sentence(self) -> str:
        """What the code means, for a person."""
        return _STATUS_SENTENCES[self]


OUT_OF_SPACE = frozenset({int(Status.EXCLUDED), int(Status.EXCLUDED_HERE)})
UNCOUNTED = OUT_OF_SPACE | {404, 410}
"""What does not count towards a limit of URLs: what is out of the crawl space or missing."""
"""What the rules keep out: it comes back when they do."""

_STATUS_SENTENCES = {
    Status.READ_ERROR: "the answer could not be read",
    Status.CONNECT_ERROR: "no connection: refused or reset",
    Status.TIMEOUT: "no answer in time",
    Status.TLS_FAILED: "the TLS handshake failed, as with a certificate that is not valid",
    Status.CUT_SHORT: "the answer was cut short or is too large",
    Status.NO_SUCH_HOST: "the host name does not exist",
    Status.NO_DNS_ANSWER: "looking up the host name gave no answer",
    Status.REDIRECT_MALFORMED: "redirected to a malformed URL",
    Status.UNEXPECTED: "an unexpected error",
    Status.ROBOTS_FORBIDDEN: "forbidden by robots.txt",
    Status.ROBOTS_UNAVAILABLE: "robots.txt cannot be read at present",
    Status.EXCLUDED: "outside the crawl space",
    Status.EXCLUDED_HERE: "outside this crawl space, inside the global one",
    Status.PORT_OR_SCHEME: "the scheme or port is not allowed",
    Status.WRONG_TYPE: "the extension or document type is not taken",
    Status.MALFORMED_URL: "the URL is malformed",
    Status.NOINDEX: "the page, or a rule, asks not to be indexed",
    Status.SOFT_REDIRECT: "200 with a Location, taken as a redirect",
}


class Candidate(Struct, frozen=True, gc=False):
    """A URL just discovered, before any check. `href` is absolute or relative to `base`."""

    href: str
    source: Source
    base: str = ""
    base_host_as_written: str | None = None
    depth: int = 0
    redirects: int = 0
    shift: int = 0
    inherited: str | None = None
    """See NewUrl."""


class NewUrl(Struct, frozen=True, gc=False):
    """An admitted candidate on its way into the store; `site` is `host:port`."""

    key: int
    url: str
    site: str
    source: Source
    shift: int
    depth: int
    redirects: int
    path_length: int
    host_as_written: str | None = None
    """Only where it differs from the host in the normal form."""
    inherited: str | None = None
    """Fields for documents that the page hands over which leads to it, as a JSON object."""

    @property
    def queue(self) -> Queue:
        """Where it is to wait."""
        return Queue(self.source, self.shift)


class UrlState(Struct, gc=False):
    """What is remembered of one URL. Times are whole seconds since 1970, UTC; None means never or unknown.

    The store hands out copies: changing one changes nothing until it is recorded.
    """

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
    path_length: int = 1
    host_as_written: str | None = None
    discovered_at: int = 0
    fetched_at: int | None = None
    next_fetch: int | None = None
    """When it is due again. A pending URL is due at once and has None; an excluded one that is never crawled again, too."""
    interval_s: int | None = None
    retries: int = 0
    """Tries in a row within one run that failed for a while; 0 when no retry of this run is outstanding."""
    errors: int = 0
    """Temporary errors in a row, one for each run or refresh that ended in one."""
    lease_until: int | None = None
    etag: str | None = None
    last_modified: str | None = None
    rules: int = 0
    """Generation of the rule set at the last fetch; 0 = fetch unconditionally."""
    checksum: bytes | None = None
    """16 bytes over the normalised text; not None exactly when the document is wanted in the index."""
    canonical: int | None = None
    """Key of the canonical URL that the page names, when that is another page."""
    indexed: bool = False
    """The index has the document, or will have it once the outbox is drained."""
    duplicate_of: int | None = None
    """Id of the URL that stands for the group of equal documents, when it isn't this one."""
    held: Held | None = None
    """Its deletion from the index is held, or its being forgotten; what is known of it stays meanwhile."""
    held_mark: int = 0
    """How often its site had answered normally when a deletion was held for the host's sake; 1 for a document that the rules
    want out of the index although its URL stays in the crawl space."""
    asked: bool = False
    """A person asks for it: until its next round is over, it waits in source user."""
    inherited: str | None = None
    """Fields for its document that the page hands over which is heard there, as a JSON object."""
    fields_mark: int = 0
    """What its document came with beside its text when it was stored, see `document_hash`; 0: nothing."""

    @property
    def queue(self) -> Queue:
        """Where it waits, or would wait if it were due."""
        if self.state is State.PENDING:
            return Queue(self.source, self.shift)
        if self.asked:
            return Queue(Source.USER, self.shift)
        return Queue(self.source if self.retries > 0 else Source.REFRESH, self.shift)


@dataclass(slots=True)
class Document:
    """What is pushed to the index for one page. `fields` holds what rules or a spider's own parsing add."""

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
    """A link as found in a page: absolute URL text, `nofollow` from its `rel`."""

    href: str
    nofollow: bool = False
    tag: str = "a"


@dataclass(slots=True)
class Outcome:
    """The single result of one fetch."""

    id: int
    url: str
    kind: OutcomeKind
    status: int
    host_failure: bool = False
    """The failure may be the host's and not the page's: 5xx, connection errors, no such host."""
    retry_after_s: float | None = None
    reason: Reason | None = None
    """Why it was excluded."""
    detail: str = ""
    document: Document | None = None
    index: bool = True
    """Rules and robots directives want the document in the index."""
    links: list[str] | None = None
    """Links to follow, absolute or relative to `base`; None where the links of the last fetch stay alive (304)."""
    base: str = ""
    """What the links are relative to, where that isn't the URL."""
    redirect_to: str | None = None
    canonical: str | None = None
    """As the page names it, absolute or relative to `base`."""
    checksum: bytes | None = None
    added: dict[str, str] = field(default_factory=dict)
    """The fields of the document that rules have added."""
    link_metadata: tuple[tuple[str, str], ...] = ()
    """Fields that the page hands to those it leads to."""
    etag: str | None = None
    last_modified: str | None = None
    declared_type: str | None = None
    """The Content-Type header of the document, as sent."""
    conditional: bool = False
    needs_body: bool = False
    """A 304 whose headers say what only the whole page can answer: it is fetched unconditionally, in the same run."""
    sent_ago_s: float = 0.0
    """How long ago the request was sent, as far as known."""
    fetched_at: int = 0


class Op(StrEnum):
    PUSH = "push"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class IndexOrder:
    """One order to the index. `sequence` grows with every order given; `document` is None for a delete."""

    sequence: int
    op: Op
    url: str
    document: Document | None = None
    attempts: int = 0
