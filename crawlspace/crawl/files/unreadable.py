"""The outcome of a file without readable text: found by its title, name and URL, unless a version with text is in the index."""

from __future__ import annotations

from crawlspace.content.fingerprint import has_text
from crawlspace.model import Outcome, OutcomeKind, Status, UrlState
from crawlspace.state.recrawl import RecrawlPolicy


def unreadable(state: UrlState, outcome: Outcome, *, why: str, policy: RecrawlPolicy) -> Outcome:
    """Return the outcome of a file without readable text: a document that has none.

    Where a version with text is indexed, it is a temporary error, and that stays; but the file is there, and so the last such error
    that is allowed does not delete it: what has no text takes its place.
    """
    most = policy.most_errors(Status.UNREADABLE_FILE)
    is_passing = most is None or state.errors + 1 < most
    if is_passing and state.checksum is not None and has_text(state.checksum):
        return Outcome(state.id, state.url, OutcomeKind.FAILED, Status.UNREADABLE_FILE, detail=why)
    outcome.status, outcome.detail = Status.UNREADABLE_FILE, why
    return outcome
