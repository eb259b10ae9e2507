"""The values that the packages exchange; the documentation's first page explains the terms."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from msgspec import Struct


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


SITEMAP_QUEUE = Queue(Source.INDEX, -2)
"""That of sitemaps which robots.txt, a setting or an index file names: before other pages of their site, for they say what has changed."""


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


class Requester(IntEnum):
    """The requester of a fetch of a known URL before it is due, until that fetch is complete. The numbers are stored."""

    NOBODY = 0
    PERSON = 1
    """The URL waits in source user."""
    SCHEDULE = 2
    """A scheduled refresh: the URL waits in source index."""


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
    """Number of redirects it was found behind."""
    rank: int = 1
    """Its place among equal documents, see `rank_of`."""
    host_as_written: str | None = None
    discovered_at: int = 0
    fetched_at: int | None = None
    next_fetch: int | None = None
    """Time when it is due again. None for a pending URL, which is due at once, and for an excluded one that is never due again."""
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
    simhash: bytes | None = None
    """Signature of the text with that checksum (`simhash.py`); None: it has no near duplicates."""
    indexed: bool = False
    """The index has the document, or will have it once the outbox is drained."""
    duplicate_of: int | None = None
    """Id of the URL that represents the group of equal documents, if it is another one."""
    held: Held | None = None
    """Why the deletion of its document, or of the URL itself, is held; the stored state is kept meanwhile."""
    held_mark: int = 0
    """HOST: the site's count of normal responses then. RULES, 1: they take out the document, not its URL. MANY, 1: as an orphan."""
    requested_by: Requester = Requester.NOBODY
    inherited: str | None = None
    """Metadata for its document, inherited from the source page, as a JSON object."""
    fields_mark: int = 0
    """Hash of the metadata that the document was stored with (`crawl/conditional.py`); 0 = none."""
    refused: str | None = None
    """Number of its links refused at the last fetch, by reason (`refused_links`); None = none."""
    depth_from: int = 0
    """Id of the page that gave it its depth, by a link or a redirect; 0: a start URL, or from elsewhere."""
    orphaned: int | None = None
    """Number of the run since which no way leads to it from a start URL; None: one does."""
    archived: int | None = None
    """The location of its records in the archive (`archive.files`): of its document while it has one, else of its last response."""
    ordered: int = 0
    """Number of the last order to push its document to all sinks; 0: none. Set by the store."""
    detail: str | None = None
    """Details of an error in addition to its status; None unless its state is GONE or FAILED, see `lifecycle.kept_detail`."""
    history: bytes | None = None
    """Its last fetches (`fetch_history.py`), the newest of which was at `fetched_at`; None: it was not fetched, or by a version that kept none."""

    @property
    def queue(self) -> Queue:
        """The queue it waits in, or will wait in once it is due.

        The stores that change many URLs in one statement repeat this; `tests/contract/test_which_queue.py` holds them to it."""
        if self.state is State.PENDING:
            return Queue(self.source, self.shift)
        if self.requested_by:
            return Queue(Source.USER if self.requested_by == Requester.PERSON else Source.INDEX, self.shift)
        return Queue(self.source if self.retries > 0 else Source.REFRESH, self.shift)
