"""A download that failed, as the one outcome of its fetch."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from crawlspace.crawl.outcomes import excluded_status
from crawlspace.model import Outcome, Status, UrlState
from crawlspace.printable import printable
from crawlspace.runtime.http.errors import LoggedOutError, NotAsked
from crawlspace.runtime.http.failures import Meaning, detail_of, meaning_of
from crawlspace.runtime.items import Fetched, unexpected
from crawlspace.runtime.requests import STATE, request_id
from crawlspace.state.lifecycle import MOST_DETAIL

if TYPE_CHECKING:
    from logging import LoggerAdapter

    from twisted.python.failure import Failure

    from crawlspace.runtime.session import Session


logger = logging.getLogger(__name__)


def fetched_of_failure(failure: Failure, session: Session, *, logger: LoggerAdapter[Any]) -> Fetched | None:
    """Return the outcome of a page that could not be downloaded; None where its URL has another turn instead."""
    state: UrlState = failure.request.meta[STATE]  # type: ignore[attr-defined]
    if has_another_turn(failure, session):
        session.engine.not_sent(state.id)
        return None
    meaning = meaning_of_failure(failure, session, url=state.url)
    status = meaning.status
    if meaning.refused is not None:
        status = excluded_status(meaning.refused, state, space=session.space, global_space=session.engine.global_space)
    assert failure.value is not None
    detail = printable(detail_of(failure.value, meaning.status), most=MOST_DETAIL)
    if meaning.status is Status.UNEXPECTED:
        logger.warning("%s ended unexpectedly (699): %s", state.url, detail)
    return Fetched(
        Outcome(
            state.id,
            state.url,
            meaning.kind,
            status,
            host_failure=meaning.host_failure,
            retry_after_s=0.0 if isinstance(failure.value, LoggedOutError) and failure.value.may_be_shown else None,
            reason=meaning.reason,
            detail=detail,
        )
    )


def lost(state: UrlState, detail: str) -> Outcome:
    """Log that a page ended without an outcome, because of a component that is not ours, and return the one it gets."""
    logger.error("%s has no outcome (699): %s", state.url, detail)
    return unexpected(state.id, state.url, why=detail)


def has_another_turn(failure: Failure, session: Session) -> bool:
    """Return whether a request was not sent, or only to a kept connection that was being closed."""
    request = failure.request  # type: ignore[attr-defined]
    return isinstance(failure.value, NotAsked) or session.second_attempts.may_retry(request_id(request), failure.value)


def meaning_of_failure(failure: Failure, session: Session, *, url: str) -> Meaning:
    """Return what a failed download means for its URL."""
    assert failure.value is not None
    return meaning_of(failure.value, url=url, resolver=session.resolver())
