"""What an outcome tells of its site: whether the site failed, or answered, or nothing at all."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from crawlspace.clock import FakeClock
from crawlspace.crawl.outcomes import OutcomePolicy, site_failed
from crawlspace.model import Held, State, UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.state.error_policy import DeletionLimit
from crawlspace.state.recrawl import RecrawlPolicy
from crawlspace.state.site_health import Health
from crawlspace.status import Status
from tests.contract.memory.store import MemoryStore

NEW = UrlState(1, 7, "http://a.example/", "a.example:80")
DAY = 86_400
POLICY = RecrawlPolicy(refresh_min_s=DAY, refresh_max_s=30 * DAY, retry_times=0, retry_wait_s=5, max_temporary_errors=5)
DOCUMENT, UNCHANGED, GONE, FAILED, EXCLUDED = (
    OutcomeKind.DOCUMENT,
    OutcomeKind.UNCHANGED,
    OutcomeKind.GONE,
    OutcomeKind.FAILED,
    OutcomeKind.EXCLUDED,
)
ANSWERED, ILL, NOTHING = False, True, None

TABLE: list[tuple[OutcomeKind, int, bool, bool | None]] = [
    # kind, status,                 may be the host's, what it tells of the site
    (DOCUMENT,  200,                      False, ANSWERED),
    (UNCHANGED, 304,                      False, ANSWERED),
    (GONE,      404,                      False, ANSWERED),
    (GONE,      403,                      False, ANSWERED),
    (EXCLUDED,  Status.NOINDEX,           False, ANSWERED),
    (EXCLUDED,  Status.WRONG_TYPE,        False, ANSWERED),
    (GONE,      500,                      True,  ILL),
    (GONE,      503,                      True,  ILL),
    (FAILED,    429,                      False, ILL),
    (FAILED,    Status.TIMEOUT,           True,  ILL),
    (FAILED,    Status.CONNECT_ERROR,     True,  ILL),
    (GONE,      Status.NO_SUCH_HOST,      True,  ILL),
    # never asked
    (EXCLUDED,  Status.ROBOTS_FORBIDDEN,  False, NOTHING),
    (EXCLUDED,  Status.EXCLUDED,          False, NOTHING),
    (EXCLUDED,  Status.EXCLUDED_HERE,     False, NOTHING),
    (EXCLUDED,  Status.PORT_OR_SCHEME,    False, NOTHING),
    # a spider's own parsing, a pipeline or we are to blame
    (FAILED,    Status.UNEXPECTED,        True,  NOTHING),
    (EXCLUDED,  Status.UNEXPECTED,        False, NOTHING),
    # numbers of ours that a site has answered with
    (GONE,      Status.UNEXPECTED,        True,  ILL),
    (GONE,      Status.ROBOTS_FORBIDDEN,  True,  ILL),
]  # fmt: skip


def policy_of_a_run() -> OutcomePolicy:
    store = MemoryStore()
    return OutcomePolicy(store, read_health=store.health, clock=FakeClock(), deletion_limit=DeletionLimit(100, 100))


@pytest.mark.parametrize(("kind", "status", "host_failure", "failed"), TABLE)
def test_whether_an_outcome_counts_as_a_failure_of_its_site(
    kind: OutcomeKind, status: int, failed: bool | None, *, host_failure: bool
) -> None:
    outcome = Outcome(NEW.id, NEW.url, kind, status, host_failure=host_failure)
    assert site_failed(outcome) is failed
    outcome_policy = policy_of_a_run()
    outcome_policy.follow(NEW, outcome, policy=POLICY)
    expected = Health().after(failed=bool(failed) or status == 403, missing=status == 404, window=POLICY.host_fetches)
    assert outcome_policy.take_changed() == ({} if failed is None else {NEW.site: expected})


def test_a_parsing_that_breaks_on_all_pages_deletes_none() -> None:
    """The one must not be taken for the answer of a healthy site that confirms the deletion of the other."""
    outcome_policy = policy_of_a_run()
    page = structs.replace(NEW, state=State.DONE, status=200, interval_s=DAY, checksum=b"1" * 16, indexed=True)
    pages = [structs.replace(page, id=number) for number in range(3)]
    for _ in range(3 * POLICY.max_temporary_errors):
        for number, state in enumerate(pages):
            broken = Outcome(state.id, state.url, FAILED, Status.UNEXPECTED, host_failure=True)
            transition = outcome_policy.follow(state, broken, policy=POLICY)
            assert (transition.order, transition.forget) == (None, False)
            pages[number] = transition.state


def test_a_304_that_needs_the_body_confirms_no_deletion_of_its_own() -> None:
    """The only page of a site fails, then is as it was but for a header, and fails again: nothing else has answered in between."""
    outcome_policy = policy_of_a_run()
    policy = replace(POLICY, retry_times=2)
    state = structs.replace(NEW, state=State.DONE, status=200, interval_s=DAY, checksum=b"1" * 16, indexed=True, etag="1")
    broken = Outcome(state.id, state.url, GONE, 500, host_failure=True)
    for _ in range(3):
        state = outcome_policy.follow(state, broken, policy=policy).state
    assert state.held is Held.HOST
    unchanged = Outcome(state.id, state.url, UNCHANGED, 304, conditional=True, needs_body=True)
    forgotten = []
    for outcome in (unchanged, broken, broken):
        transition = outcome_policy.follow(state, outcome, policy=policy)
        state = transition.state
        forgotten.append(transition.forget)
    assert (forgotten, state.held) == ([False] * 3, Held.HOST)


def test_an_unconditional_get_after_a_304_counts_for_its_site_if_it_fails() -> None:
    outcome_policy = policy_of_a_run()
    policy = replace(POLICY, retry_times=2)
    state = structs.replace(NEW, state=State.DONE, status=200, interval_s=DAY, checksum=b"1" * 16, indexed=True, etag="1")
    unchanged = Outcome(state.id, state.url, UNCHANGED, 304, conditional=True, needs_body=True)
    broken = Outcome(state.id, state.url, GONE, 500, host_failure=True)
    for outcome in (unchanged, broken, broken):
        state = outcome_policy.follow(state, outcome, policy=policy).state
    expected = Health().after(window=policy.host_fetches).after(failed=True, window=policy.host_fetches)
    assert outcome_policy.take_changed() == {NEW.site: expected}, "the second failure is that of a retry"


def test_pages_whose_own_texts_have_changed_are_normal_answers() -> None:
    """As after another setting for checksums: a page that fails for good leaves the index though all others have a new checksum."""
    outcome_policy = policy_of_a_run()
    page = structs.replace(NEW, state=State.DONE, status=200, interval_s=DAY, checksum=b"1" * 16, indexed=True)
    others = [structs.replace(page, id=number, url=f"http://a.example/{number}") for number in range(20, 26)]
    for number, other in enumerate(others):
        shown = Outcome(other.id, other.url, DOCUMENT, 200, checksum=bytes([number]) * 16)
        others[number] = outcome_policy.follow(other, shown, policy=POLICY).state
    orders = []
    for _ in range(POLICY.max_temporary_errors + 1):
        transition = outcome_policy.follow(page, Outcome(page.id, page.url, GONE, 500, host_failure=True), policy=POLICY)
        page = transition.state
        orders.append(transition.forget)
        for other in others:
            outcome_policy.follow(other, Outcome(other.id, other.url, UNCHANGED, 304, conditional=True), policy=POLICY)
    assert orders[-1]
