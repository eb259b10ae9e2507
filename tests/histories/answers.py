"""What a simulated answer counts as where there is no page to be read."""

from __future__ import annotations

from crawlspace.crawl.engine import Engine
from crawlspace.decision import Reason
from crawlspace.model import UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.status import Status
from tests.histories.web import Answer


def without_document(engine: Engine, state: UrlState, answer: Answer, *, conditional: bool) -> Outcome | None:
    """Return the outcome of an answer that is no page to be read; None where it is one."""
    status = status_of(answer)

    def outcome(kind: OutcomeKind, status: int = status, reason: Reason | None = None) -> Outcome:
        return Outcome(state.id, state.url, kind, status, reason=reason)

    if answer.failure or status == 429 or (status == 503 and answer.retry_after_s is not None):
        failed = outcome(OutcomeKind.GONE if status == Status.NO_SUCH_HOST else OutcomeKind.FAILED)
        failed.host_failure = bool(answer.failure)
        failed.retry_after_s = answer.retry_after_s
        return failed
    if 300 <= status < 400:
        answered = outcome(OutcomeKind.UNCHANGED if status == 304 else OutcomeKind.REDIRECTED)
        answered.conditional, answered.redirect_to = conditional, answer.location or None
        answered.sets_cookie = bool(answer.sets_cookie)
        return answered
    if status == 200 and not engine.space.at_headers(answer.type, conclusive=True).admitted:
        return outcome(OutcomeKind.EXCLUDED, Status.WRONG_TYPE, Reason.MIME_TYPE)
    soft = engine.collection.soft_errors.status_of(state.url, title=answer.title, text=answer.text) if status == 200 else None
    if status != 200 or soft is not None:
        gone = outcome(OutcomeKind.GONE, soft or status)
        gone.host_failure = gone.status >= 500
        return gone
    return None


def status_of(answer: Answer) -> int:
    failures = {"refused": Status.CONNECT_ERROR, "timeout": Status.TIMEOUT, "no host": Status.NO_SUCH_HOST}
    return int(failures[answer.failure]) if answer.failure else answer.status
