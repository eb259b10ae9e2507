"""Outcomes and their sites: whether a site failed or answered, and sites that refuse every request, or answer each with 404."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from crawlspace.clock import FakeClock
from crawlspace.config.sinks import EMBEDDED
from crawlspace.crawl.outcomes import OutcomePolicy, site_failed
from crawlspace.model import Held, State, UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.state.error_policy import DeletionLimit
from crawlspace.state.recrawl import RecrawlPolicy
from crawlspace.state.site_health import Health
from crawlspace.status import Status
from tests.contract.memory.store import MemoryStore
from tests.quick import some
from tests.unit.crawl.test_engine import HOME, Web

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


# --- sites that refuse every request, or answer each with 404 -------------------------------------------------------


PAGES = 1_169
FEW = 150
AT_ONCE = 10
"""So many documents may leave before it is seen that most of a site answers with 404."""


def site(folder: Path, pages: int, **settings: object) -> Web:
    """A site of so many documents, crawled once; each run comes when all of it is due."""
    web = Web(folder, MemoryStore(sinks=(EMBEDDED,)), **settings)
    names = [f"{HOME}{number:04}" for number in range(pages - 1)]
    web.pages = {HOME: "home", **{name: name[-4:] for name in names}}
    web.links = {HOME: names}
    web.crawl()
    assert len(web.indexed) == pages
    return web


def lost(web: Web, pages: int) -> int:
    return pages - len(web.indexed)


def answer(web: Web, status: int, names: list[str] | None = None) -> None:
    web.pages.update(dict.fromkeys(web.pages if names is None else names, status))


WHOLE_SITE = [
    # what every page answers, whether the home page still answers well, documents lost at most
    ("401", 401, False, 0),
    ("403", 403, False, 0),
    ("404", 404, False, AT_ONCE),
    ("407", 407, False, 0),
    ("451", 451, False, 0),
    ("410", 410, False, AT_ONCE),
    ("403 behind a home page for all", 403, True, 0),
    ("404 behind a home page of the server's own", 404, True, AT_ONCE),
]


@pytest.mark.parametrize("pages", some([FEW, PAGES], 1))
@pytest.mark.parametrize(("title", "status", "has_home", "most"), some(WHOLE_SITE, 3), ids=[row[0] for row in WHOLE_SITE])
def test_a_site_that_answers_so_to_everything(
    tmp_path: Path, title: str, status: int, has_home: bool, most: int, pages: int
) -> None:
    web = site(tmp_path, pages, CRAWLSPACE_MAX_DELETIONS=pages)
    well = dict(web.pages)
    answer(web, status)
    for number in range(15 if has_home else 3):
        if has_home:
            web.pages[HOME] = f"welcome {number}"
        web.crawl(after=31)
        assert len(web.asked) <= pages + 2 * 20, "only a few are tried again in the same run"
    assert lost(web, pages) <= most
    assert set(web.held().values()) == {Held.HOST}
    assert len(web.held()) == pages - lost(web, pages) - has_home
    web.pages = well
    for _ in range(3):
        web.crawl(after=31)
    assert (web.held(), lost(web, pages)) == ({}, 0), "its answers drop what was held, and what had left comes back"


SECTION = [(first, share) for first in (0, 400, 908) for share in ("in a row", "here and there")]


@pytest.mark.parametrize(("first", "share"), some(SECTION, 1))
def test_a_section_that_is_really_gone_leaves_within_two_runs(tmp_path: Path, first: int, share: str) -> None:
    web = site(tmp_path, 1_000)
    names = sorted(web.pages)[1:]
    gone = names[first : first + 90] if share == "in a row" else names[first % 11 :: 11][:90]
    answer(web, 404, gone)
    web.crawl(after=31)
    web.crawl(after=31)
    assert lost(web, 1_000) == 90
    assert web.held() == {}


@pytest.mark.full
def test_of_a_large_section_the_rest_is_held_as_too_many(tmp_path: Path) -> None:
    web = site(tmp_path, 1_000)
    answer(web, 404, sorted(web.pages)[301:601])
    web.crawl(after=31)
    assert (lost(web, 1_000), set(web.held().values())) == (AT_ONCE, {Held.HOST})
    web.crawl(after=31)
    assert (lost(web, 1_000), set(web.held().values())) == (AT_ONCE + 100, {Held.MANY})
    web.crawl(after=31)
    assert (lost(web, 1_000), len(web.held())) == (AT_ONCE + 100, 190), "until it is approved"


def test_a_page_that_is_refused_leaves_when_its_site_is_well(tmp_path: Path) -> None:
    web = site(tmp_path, 100)
    answer(web, 403, [f"{HOME}0050"])
    web.crawl(after=31)
    assert lost(web, 100) == 1, "the retry in the same run is refused too, and other pages have answered in between"
    assert web.asked_for(f"{HOME}0050") == 2


SMALL = [
    # pages of a site, documents lost when it answers 404 to everything
    (20, 20),
    (21, AT_ONCE),
]


@pytest.mark.parametrize(("pages", "expected"), SMALL)
def test_a_small_site_may_be_gone_completely(tmp_path: Path, pages: int, expected: int) -> None:
    web = site(tmp_path, pages)
    answer(web, 404)
    for _ in range(3):
        web.crawl(after=31)
    assert lost(web, pages) == expected


def test_what_was_never_indexed_is_not_held(tmp_path: Path) -> None:
    web = Web(tmp_path, MemoryStore(sinks=(EMBEDDED,)))
    names = [f"{HOME}{number}" for number in range(50)]
    web.pages = {HOME: "home", **dict.fromkeys(names[:25], 403)}
    web.links = {HOME: names}
    web.crawl()
    assert len(web.asked) == 51, "nothing is tried again"
    states = [state for state in web.store.urls() if state.url != HOME]
    assert {(state.status, state.held) for state in states} == {(403, None), (404, None)}
    web.crawl(after=31)
    assert [state.url for state in web.store.urls() if state.held is not None] == []


def test_a_request_to_wait_is_no_refusal(tmp_path: Path) -> None:
    web = site(tmp_path, 30)
    answer(web, 429)
    for _ in range(4):
        web.crawl(after=31)
    assert (lost(web, 30), web.held()) == (0, {})


OVERRIDES = [
    # CRAWLSPACE_HTTP_ERRORS, what all pages answer, documents lost after three runs
    ({"403": "KEEP"}, 403, 0),
    ({"404": "DELETE:2"}, 404, 0),
    ({"404": "KEEP"}, 404, 0),
    ({"4xx": "DELETE, RETRY:1"}, 403, 0),
]


@pytest.mark.parametrize(("rules", "status", "expected"), OVERRIDES)
def test_rules_for_errors_do_not_lift_the_hold(tmp_path: Path, rules: dict[str, str], status: int, expected: int) -> None:
    web = site(tmp_path, 100, CRAWLSPACE_HTTP_ERRORS=rules)
    answer(web, status)
    for _ in range(3):
        web.crawl(after=31)
    assert lost(web, 100) == expected


def test_what_is_unreachable_after_it_was_missing_stays_held(tmp_path: Path) -> None:
    web = site(tmp_path, 100)
    answer(web, 404)
    web.crawl(after=31)
    answer(web, int(Status.CONNECT_ERROR))
    web.crawl(after=31)
    assert lost(web, 100) == AT_ONCE
