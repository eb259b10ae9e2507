"""What becomes of a URL: one pure function from its state and the outcome of a fetch to its new state and an index order.

Every store and every kind of fetch goes through `advance`, so there is one idea of what an error means.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from crawlspace.model import Op, Outcome, OutcomeKind, State, Status, UrlState
from crawlspace.state.recrawl import RecrawlPolicy, next_interval, retry_wait


@dataclass(frozen=True, slots=True)
class Transition:
    """The new state and what the index is to do; `forget` drops the URL once the order is given."""

    state: UrlState
    order: Op | None = None
    forget: bool = False
    retry: bool = False
    """The URL is tried again within this run."""


_NEVER_AGAIN = frozenset({Status.EXCLUDED, Status.EXCLUDED_HERE})


def advance(state: UrlState, outcome: Outcome, *, policy: RecrawlPolicy, now: int) -> Transition:
    """Return what follows from an outcome. `state` is as it was when the URL was leased, and is not changed."""
    kind = outcome.kind
    if kind is OutcomeKind.UNCHANGED and not outcome.conditional:
        kind = OutcomeKind.GONE  # 304 to a question that was not asked
    match kind:
        case OutcomeKind.DOCUMENT:
            return _document(state, outcome, policy, now)
        case OutcomeKind.UNCHANGED:
            return _unchanged(state, policy, now)
        case OutcomeKind.REDIRECTED:
            return _left(state, outcome, State.REDIRECTED, policy, now)
        case OutcomeKind.EXCLUDED:
            return _left(state, outcome, State.EXCLUDED, policy, now)
        case OutcomeKind.GONE:
            return _permanent(state, outcome, policy, now)
        case OutcomeKind.FAILED:
            return _temporary(state, outcome, policy, now)


def _document(state: UrlState, outcome: Outcome, policy: RecrawlPolicy, now: int) -> Transition:
    if not outcome.index or outcome.checksum is None:
        return _left(state, replace(outcome, status=Status.NOINDEX), State.EXCLUDED, policy, now)
    changed = outcome.checksum != state.checksum
    new = _finished(state, State.DONE, outcome.status, policy, now, changed=changed)
    new.checksum = outcome.checksum
    new.etag, new.last_modified = outcome.etag, outcome.last_modified
    return Transition(new, Op.PUSH if changed else None)


def _unchanged(state: UrlState, policy: RecrawlPolicy, now: int) -> Transition:
    """As it was; a document that could not be reached for a while is a document again."""
    if state.checksum is None:
        return Transition(_finished(state, state.state, state.status, policy, now, changed=False))
    return Transition(_finished(state, State.DONE, 200, policy, now, changed=False))


def _left(state: UrlState, outcome: Outcome, into: State, policy: RecrawlPolicy, now: int) -> Transition:
    """The page was answered and is no document of the index: what it had there leaves at once."""
    same = state.state is into and state.status == outcome.status
    new = _finished(state, into, int(outcome.status), policy, now, changed=not same)
    new.checksum = None
    new.canonical = None
    new.etag, new.last_modified = outcome.etag, outcome.last_modified
    if outcome.status in _NEVER_AGAIN:
        new.next_fetch = None
    return Transition(new, _delete_of(state))


def _permanent(state: UrlState, outcome: Outcome, policy: RecrawlPolicy, now: int) -> Transition:
    if outcome.host_failure:
        if state.retries < policy.retry_times:
            return _retry(state, outcome, policy, now)
        # It may be the host's failure: a document stays until the page itself is known to be gone.
        if state.checksum is not None:
            kept = _finished(state, State.FAILED, int(outcome.status), policy, now, changed=False)
            kept.errors = state.errors + 1
            return Transition(kept)
    gone = _left(state, outcome, State.GONE, policy, now)
    return replace(gone, forget=_crawled_before(state) and not outcome.host_failure)


def _temporary(state: UrlState, outcome: Outcome, policy: RecrawlPolicy, now: int) -> Transition:
    if state.retries < policy.retry_times:
        return _retry(state, outcome, policy, now)
    new = _finished(state, State.FAILED, int(outcome.status), policy, now, changed=False)
    new.errors = state.errors + 1
    return Transition(new)


def _retry(state: UrlState, outcome: Outcome, policy: RecrawlPolicy, now: int) -> Transition:
    """Wait and try again in this run. What is known of the document stays as it is."""
    retries = state.retries + 1
    wait = retry_wait(retries, retry_after_s=outcome.retry_after_s, policy=policy)
    new = replace(
        state,
        state=State.FAILED,
        status=int(outcome.status),
        fetched_at=now,
        next_fetch=now + wait,
        retries=retries,
        lease_until=None,
    )
    return Transition(new, retry=True)


def _finished(state: UrlState, into: State, status: int | None, policy: RecrawlPolicy, now: int, *, changed: bool) -> UrlState:
    """The state after a round that is over, due again after the next interval."""
    interval = next_interval(state.interval_s, changed=changed, policy=policy)
    return replace(
        state,
        state=into,
        status=status,
        fetched_at=now,
        interval_s=interval,
        next_fetch=now + interval,
        retries=0,
        errors=0,
        lease_until=None,
    )


def _crawled_before(state: UrlState) -> bool:
    """A round was finished before this one, so this fetch is a refresh."""
    return state.interval_s is not None


def _delete_of(state: UrlState) -> Op | None:
    return Op.DELETE if state.checksum is not None else None
