"""What is made of an archived page anew: the outcome of its response without what only a fetch shows."""

from __future__ import annotations

from typing import Self

from msgspec import Struct

from crawlspace.archive.records import Location
from crawlspace.decision import Reason
from crawlspace.model import LINKS_ONLY, Document, Outcome, OutcomeKind, UrlState


class Remade(Struct):
    """The outcome of one page; `kept` says why nothing was made of it, and its stored document stays."""

    id: int
    kept: str = ""
    is_missing: bool = False
    """The archive does not have its response."""
    kind: OutcomeKind = OutcomeKind.DOCUMENT
    status: int = 200
    reason: Reason | None = None
    detail: str = ""
    checksum: bytes | None = None
    canonical: int | None = None
    """The key of the canonical page that it names."""
    document: Document | None = None
    added: dict[str, str] = {}
    etag: str | None = None
    last_modified: str | None = None
    declared_type: str | None = None
    record: bytes = b""
    """The record of its document for the archive; empty where that has the same one."""
    response: Location | None = None
    """Where the response is that it was made of."""

    @classmethod
    def of(cls, outcome: Outcome, canonical: int | None) -> Self:
        """Return what is to be recorded of an outcome."""
        if not _may_be_recorded(outcome):
            return cls(outcome.id, kept=outcome.detail or f"it became {outcome.kind.value}, {outcome.status}")
        return cls(
            outcome.id,
            kind=outcome.kind,
            status=outcome.status,
            reason=outcome.reason,
            detail=outcome.detail,
            checksum=outcome.checksum,
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
            added=self.added,
            etag=self.etag,
            last_modified=self.last_modified,
            declared_type=self.declared_type,
        )


def _may_be_recorded(outcome: Outcome) -> bool:
    """Return whether an outcome is of the page itself: a document, or that there is to be none. Errors are left to the next fetch."""
    if outcome.kind is OutcomeKind.DOCUMENT:
        return outcome.checksum is not None
    return outcome.kind is OutcomeKind.EXCLUDED and outcome.status in LINKS_ONLY
