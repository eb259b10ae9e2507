"""What becomes of a URL, as a table: what was known, what came of the fetch, what is known now, what the index is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crawlspace.model import Op, Outcome, OutcomeKind, State, Status, UrlState
from crawlspace.state.lifecycle import advance
from crawlspace.state.recrawl import RecrawlPolicy, next_interval, retry_wait

NOW = 1_000_000
DAY = 86_400
POLICY = RecrawlPolicy(refresh_min_s=DAY, refresh_max_s=30 * DAY, retry_times=2, retry_wait_s=5, max_temporary_errors=5)

NEW = UrlState(1, 7, "http://a/", "a:80")
PAGE = replace(NEW, state=State.DONE, status=200, checksum=b"old", interval_s=4 * DAY, indexed=True, etag='"1"')
NOINDEX = replace(NEW, state=State.EXCLUDED, status=2004, interval_s=4 * DAY)
TRIED_OUT = replace(NEW, state=State.FAILED, status=613, retries=2)
PAGE_TRIED_OUT = replace(PAGE, state=State.FAILED, status=500, retries=2)


def outcome(kind: OutcomeKind, status: int, **more: object) -> Outcome:
    return replace(Outcome(1, "http://a/", kind, status), **more)  # type: ignore[arg-type]


def document(checksum: bytes = b"new", *, index: bool = True) -> Outcome:
    return outcome(OutcomeKind.DOCUMENT, 200, checksum=checksum, index=index)


GONE, FAILED, EXCLUDED = OutcomeKind.GONE, OutcomeKind.FAILED, OutcomeKind.EXCLUDED

TABLE = [
    # what                                     before   outcome                                          state, status            next fetch after  order
    ("a new document",                         NEW,     document(),                                      (State.DONE, 200),       15.5 * DAY, Op.PUSH),
    ("a changed document",                     PAGE,    document(b"new"),                                (State.DONE, 200),       2 * DAY,    Op.PUSH),
    ("an equal document",                      PAGE,    document(b"old"),                                (State.DONE, 200),       6 * DAY,    None),
    ("304 to a conditional request",           PAGE,    outcome(OutcomeKind.UNCHANGED, 304, conditional=True), (State.DONE, 200), 6 * DAY,   None),
    ("304 of a page that asks not to be indexed", NOINDEX, outcome(OutcomeKind.UNCHANGED, 304, conditional=True), (State.EXCLUDED, 2004), 6 * DAY, None),
    ("304 to an unconditional request",        NEW,     outcome(OutcomeKind.UNCHANGED, 304),             (State.GONE, 304),       15.5 * DAY, None),
    ("a redirect of a page",                   PAGE,    outcome(OutcomeKind.REDIRECTED, 301, redirect_to="http://b/"), (State.REDIRECTED, 301), 2 * DAY, Op.DELETE),
    ("a redirect of a new URL",                NEW,     outcome(OutcomeKind.REDIRECTED, 302, redirect_to="http://b/"), (State.REDIRECTED, 302), 15.5 * DAY, None),
    ("404 of a new URL is remembered",         NEW,     outcome(GONE, 404),                              (State.GONE, 404),       15.5 * DAY, None),
    ("a page turned noindex",                  PAGE,    document(index=False),                           (State.EXCLUDED, 2004),  2 * DAY,    Op.DELETE),
    ("a page now barred by robots.txt",        PAGE,    outcome(EXCLUDED, Status.ROBOTS_FORBIDDEN),      (State.EXCLUDED, 740),   2 * DAY,    Op.DELETE),
    ("a page of another type",                 PAGE,    outcome(EXCLUDED, Status.WRONG_TYPE),            (State.EXCLUDED, 780),   2 * DAY,    Op.DELETE),
    ("a page outside the space",               PAGE,    outcome(EXCLUDED, Status.EXCLUDED),              (State.EXCLUDED, 760),   None,       Op.DELETE),
    ("500 of a new URL is tried again",        NEW,     outcome(GONE, 500, host_failure=True),           (State.FAILED, 500),     5,          None),
    ("500 of a page is tried again",           PAGE,    outcome(GONE, 500, host_failure=True),           (State.FAILED, 500),     5,          None),
    ("a time-out is tried again",              NEW,     outcome(FAILED, 613),                            (State.FAILED, 613),     5,          None),
    ("503 with Retry-After waits that long",   NEW,     outcome(FAILED, 503, retry_after_s=90.0),        (State.FAILED, 503),     90,         None),
    ("500 of a new URL to the end",            TRIED_OUT, outcome(GONE, 500, host_failure=True),         (State.GONE, 500),       15.5 * DAY, None),
    ("a time-out to the end",                  TRIED_OUT, outcome(FAILED, 613),                          (State.FAILED, 613),     15.5 * DAY, None),
    ("500 of a page to the end keeps it",      PAGE_TRIED_OUT, outcome(GONE, 500, host_failure=True),    (State.FAILED, 500),     6 * DAY,    None),
    ("a page that answers again, unchanged",   PAGE_TRIED_OUT, outcome(OutcomeKind.UNCHANGED, 304, conditional=True), (State.DONE, 200), 6 * DAY, None),
    ("a page that answers again, equal",       PAGE_TRIED_OUT, document(b"old"),                         (State.DONE, 200),       6 * DAY,    None),
]  # fmt: skip


@pytest.mark.parametrize(("what", "before", "came", "after", "wait", "order"), TABLE, ids=[row[0] for row in TABLE])
def test_outcomes(
    what: str, before: UrlState, came: Outcome, after: tuple[State, int], wait: float | None, order: Op | None
) -> None:
    untouched = replace(before)
    transition = advance(before, came, policy=POLICY, now=NOW)
    new = transition.state
    assert (new.state, new.status) == after
    assert (None if new.next_fetch is None else new.next_fetch - NOW) == wait
    assert transition.order == order
    assert before == untouched
    assert new.lease_until is None


def test_a_page_that_is_gone_at_a_refresh_is_forgotten_and_deleted() -> None:
    transition = advance(PAGE, outcome(GONE, 404), policy=POLICY, now=NOW)
    assert (transition.forget, transition.order) == (True, Op.DELETE)


def test_retries_are_counted_and_a_success_ends_them() -> None:
    first = advance(NEW, outcome(FAILED, 613), policy=POLICY, now=NOW)
    second = advance(first.state, outcome(FAILED, 613), policy=POLICY, now=NOW)
    last = advance(second.state, outcome(FAILED, 613), policy=POLICY, now=NOW)
    assert [t.state.retries for t in (first, second, last)] == [1, 2, 0]
    assert [t.retry for t in (first, second, last)] == [True, True, False]
    assert last.state.errors == 1
    well = advance(last.state, document(), policy=POLICY, now=NOW)
    assert (well.state.retries, well.state.errors, well.order) == (0, 0, Op.PUSH)


WAITS = [(1, None, 5), (2, None, 10), (3, None, 20), (1, 60.0, 60), (2, 3.0, 10), (1, 10**9, 3600)]


@pytest.mark.parametrize(("retries", "asked", "wait"), WAITS)
def test_waits_grow_and_heed_the_host(retries: int, asked: float | None, wait: int) -> None:
    assert retry_wait(retries, retry_after_s=asked, policy=POLICY) == wait


INTERVALS = [(None, True, 15.5), (4, True, 2), (4, False, 6), (1, True, 1), (30, False, 30), (25, False, 30)]


@pytest.mark.parametrize(("days", "changed", "then"), INTERVALS)
def test_intervals_follow_the_page_within_their_bounds(days: int | None, changed: bool, then: float) -> None:
    seconds = None if days is None else days * DAY
    assert next_interval(seconds, changed=changed, policy=POLICY) == then * DAY
