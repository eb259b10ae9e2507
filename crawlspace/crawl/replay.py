"""Replay archived pages: an engine without a store, and the outcomes of stored responses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Self

from msgspec import Struct

from crawlspace.archive.records import Location
from crawlspace.clock import SystemClock
from crawlspace.config.collection import Collection
from crawlspace.config.sinks import EMBEDDED
from crawlspace.crawl.engine import Engine
from crawlspace.crawl.startup import build_space
from crawlspace.decision import Reason
from crawlspace.document import Document, IndexOrder
from crawlspace.index.marks import BatchMark
from crawlspace.index.sink import ALL_DONE, Sent
from crawlspace.model import UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.state.sqlite.file import IN_MEMORY
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.status import LINKS_ONLY


class RebuiltDocument(Struct):
    """The outcome of one page; `kept` is the reason why its stored document stays, if it does."""

    id: int
    kept: str = ""
    is_missing: bool = False
    """Whether the archive lacks its response."""
    kind: OutcomeKind = OutcomeKind.DOCUMENT
    status: int = 200
    reason: Reason | None = None
    detail: str = ""
    checksum: bytes | None = None
    simhash: bytes | None = None
    canonical: int | None = None
    """The key of the canonical page that it names."""
    document: Document | None = None
    added: dict[str, str] = {}
    etag: str | None = None
    last_modified: str | None = None
    declared_type: str | None = None
    record: bytes = b""
    """The record of its document for the archive; empty if that has the same one."""
    response: Location | None = None
    """The location of the response that it was rebuilt from."""

    @classmethod
    def of(cls, outcome: Outcome, canonical: int | None) -> Self:
        """Return the part of an outcome to be recorded."""
        if not _may_be_recorded(outcome):
            return cls(outcome.id, kept=outcome.detail or f"it became {outcome.kind.value}, {outcome.status}")
        return cls(
            outcome.id,
            kind=outcome.kind,
            status=outcome.status,
            reason=outcome.reason,
            detail=outcome.detail,
            checksum=outcome.checksum,
            simhash=outcome.simhash,
            canonical=canonical,
            document=outcome.document,
            added=outcome.added,
            etag=outcome.etag,
            last_modified=outcome.last_modified,
            declared_type=outcome.declared_type,
        )

    def outcome_of(self, state: UrlState) -> Outcome:
        """Return the outcome for the present state of its URL. The links of the last fetch remain."""
        return Outcome(
            state.id,
            state.url,
            self.kind,
            self.status,
            reason=self.reason,
            detail=self.detail,
            document=self.document,
            index=self.kind is OutcomeKind.DOCUMENT,
            checksum=self.checksum,
            simhash=self.simhash,
            added=self.added,
            etag=self.etag,
            last_modified=self.last_modified,
            declared_type=self.declared_type,
        )


class NoIndex:
    """A sink that gets no orders."""

    name = EMBEDDED

    def mark(self) -> BatchMark | None:
        return None

    def send(self, orders: Sequence[IndexOrder], mark: BatchMark | None = None) -> Sent:
        return ALL_DONE

    def close(self) -> None:
        pass


class ReplayEngine(Engine):
    """Calls `take` with the result of each page."""

    def __init__(self, collection: Collection) -> None:
        self.memory = SqliteStore(IN_MEMORY, sinks=(EMBEDDED,))
        once = replace(collection, continuous=False)
        super().__init__(once, build_space(collection), store=self.memory, sinks=[NoIndex()], clock=SystemClock())
        self.rendering = None  # the archive has a rendered page as the browser returned it
        self._begun: dict[int, UrlState] = {}
        """Not among the URLs in flight: they occupy no slot of their site."""
        self.take: Callable[[UrlState, RebuiltDocument], None] = lambda _state, _rebuilt: None

    def begin(self, state: UrlState) -> None:
        """Note that a page is about to be extracted again."""
        self._begun[state.id] = state

    def is_awaited(self, id: int) -> bool:
        return id in self._begun

    def fetched(self, outcome: Outcome) -> bool:
        """Process the outcome of a page. Return False when it is not awaited any more."""
        if (state := self._begun.pop(outcome.id, None)) is None:
            return False
        self.take(state, RebuiltDocument.of(outcome, self.canonical_key(state, outcome)))
        return True

    def keep(self, state: UrlState, why: str, *, is_missing: bool = False) -> None:
        """Keep the document of a page, unless it has an outcome already; `why` is the reason."""
        if self._begun.pop(state.id, None) is not None:
            self.take(state, RebuiltDocument(state.id, kept=why, is_missing=is_missing))


def _may_be_recorded(outcome: Outcome) -> bool:
    """Return whether an outcome is about the page itself: a document, or none by its directives. Errors are left to the next fetch."""
    if outcome.kind is OutcomeKind.DOCUMENT:
        return outcome.checksum is not None
    return outcome.kind is OutcomeKind.EXCLUDED and outcome.status in LINKS_ONLY
