"""The outcome of a file without readable text: found by its title, name and URL, unless a version with text is in the index."""

from __future__ import annotations

from crawlspace.content.fingerprint import has_text
from crawlspace.model import Outcome, OutcomeKind, Status, UrlState


def unreadable(state: UrlState, outcome: Outcome, *, why: str) -> Outcome:
    """Return the outcome of a file without readable text: a document that has none.

    Where a version with text is indexed, it is a temporary error, and that stays.
    """
    if state.checksum is not None and has_text(state.checksum):
        return Outcome(state.id, state.url, OutcomeKind.FAILED, Status.UNREADABLE_FILE, detail=why)
    outcome.status, outcome.detail = Status.UNREADABLE_FILE, why
    return outcome
