"""What becomes of a URL, as a table: what was known, what came of the fetch, what is known now, what the index is told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from crawlspace.document import Op
from crawlspace.model import Held, State, UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.state.due_times import NOT_DUE_BY_AGE
from crawlspace.state.error_policy import read_error_rules
from crawlspace.state.fetch_history import DocumentChange, fetches
from crawlspace.state.lifecycle import advance, approved, discarded, rebuilt, withhold
from crawlspace.state.recrawl import RecrawlPolicy, RefreshBounds, error_wait, next_fetch, next_interval, retry_wait
from crawlspace.state.site_health import Health
from crawlspace.status import Status

NOW = 1_000_000
DAY = 86_400
POLICY = RecrawlPolicy(refresh_min_s=DAY, refresh_max_s=30 * DAY, retry_times=2, retry_wait_s=5, max_temporary_errors=5)

NEW = UrlState(1, 7, "http://a/", "a:80")
PAGE = structs.replace(NEW, state=State.DONE, status=200, checksum=b"old", interval_s=4 * DAY, indexed=True, etag='"1"')
SCAN = structs.replace(PAGE, status=782)
NOINDEX = structs.replace(NEW, state=State.EXCLUDED, status=2004, interval_s=4 * DAY)
MOVED = structs.replace(NEW, state=State.REDIRECTED, status=301, interval_s=4 * DAY)
ABSENT = structs.replace(NEW, state=State.GONE, status=404, interval_s=4 * DAY, errors=1)
NEW_TO_THE_END = structs.replace(NEW, state=State.FAILED, status=613, retries=2)
PAGE_TO_THE_END = structs.replace(PAGE, state=State.FAILED, status=500, retries=2, held=Held.HOST, held_mark=7)
MOVED_TO_THE_END = structs.replace(MOVED, state=State.FAILED, status=500, retries=2, held=Held.HOST, held_mark=7)
FIFTH_TIME = structs.replace(PAGE, state=State.FAILED, status=613, retries=2, errors=4, held=Held.HOST, held_mark=7)
HELD = structs.replace(PAGE, state=State.FAILED, status=500, errors=1, held=Held.HOST, held_mark=7)
REFUSED = structs.replace(PAGE, state=State.FAILED, status=403, retries=1, held=Held.HOST, held_mark=7)
MISSED = structs.replace(PAGE, state=State.FAILED, status=404, errors=1, held=Held.HOST, held_mark=7)
TOO_MANY = structs.replace(PAGE, state=State.GONE, status=404, held=Held.MANY)

DOWN = Health(answers=7, recent=0b1_1111_1111)
"""The site has not answered since the page failed."""
WELL = Health(answers=9, recent=0b1_0000_0001)
"""It has, and hardly anything else fails."""
HALF = Health(answers=9, recent=0b1_0111_0011)
"""It has, and half of the fetches fail, the page's own left out."""
BARE = Health(answers=9, recent=1 << 20, missing=0b11_1111_1111)
"""Half of the last fetches were answered with 404."""


def outcome(kind: OutcomeKind, status: int, **more: object) -> Outcome:
    return replace(Outcome(1, "http://a/", kind, status), **more)  # type: ignore[arg-type]


def document(checksum: bytes = b"new", *, index: bool = True) -> Outcome:
    return outcome(OutcomeKind.DOCUMENT, 200, checksum=checksum, index=index)


GONE, FAILED, EXCLUDED = OutcomeKind.GONE, OutcomeKind.FAILED, OutcomeKind.EXCLUDED
MOVES = outcome(OutcomeKind.REDIRECTED, 301, redirect_to="http://b/")
BROKEN = outcome(GONE, 500, host_failure=True)
NO_HOST = outcome(GONE, Status.NO_SUCH_HOST, host_failure=True)
LATE = outcome(FAILED, Status.TIMEOUT, host_failure=True)
NO_PROXY = outcome(FAILED, Status.PROXY_FAILED, host_failure=True)
UNCHANGED = outcome(OutcomeKind.UNCHANGED, 304, conditional=True)
FORGOTTEN = "forgotten"
Row = tuple[str, UrlState, Outcome, Health, tuple[State, int] | str, float | None, Op | None, Held | None]

TABLE: list[Row] = [
    # what                                       before   outcome                                site  state, status           next after  order      held
    ("a new document",                           NEW,     document(),                            WELL, (State.DONE, 200),       15.5 * DAY, Op.PUSH,   None),
    ("a changed document",                       PAGE,    document(b"new"),                      WELL, (State.DONE, 200),       2 * DAY,    Op.PUSH,   None),
    ("an equal document",                        PAGE,    document(b"old"),                      WELL, (State.DONE, 200),       6 * DAY,    None,      None),
    ("a file without readable text",             NEW,     replace(document(), status=782),       WELL, (State.DONE, 782),       15.5 * DAY, Op.PUSH,   None),
    ("304 of a file without readable text",      SCAN,    UNCHANGED,                             WELL, (State.DONE, 782),       6 * DAY,    None,      None),
    ("a file that was readable, and is not now", PAGE,    outcome(FAILED, 782),                  WELL, (State.FAILED, 782),     5,          None,      None),
    ("304 to a conditional request",             PAGE,    UNCHANGED,                             WELL, (State.DONE, 200),       6 * DAY,    None,      None),
    ("304 of a page that asks not to be indexed", NOINDEX, UNCHANGED,                            WELL, (State.EXCLUDED, 2004),  6 * DAY,    None,      None),
    ("304 whose headers need the whole page",    PAGE,    replace(UNCHANGED, needs_body=True),   WELL, (State.DONE, 200),       0,          None,      None),
    ("304 to an unconditional request, of a new URL", NEW, outcome(OutcomeKind.UNCHANGED, 304),  WELL, (State.GONE, 304),       15.5 * DAY, None,      None),
    ("304 to an unconditional request, of a page", PAGE,  outcome(OutcomeKind.UNCHANGED, 304),   WELL, FORGOTTEN,               None,       Op.DELETE, None),
    ("a redirect of a new URL",                  NEW,     MOVES,                                 WELL, (State.REDIRECTED, 301), 15.5 * DAY, None,      None),
    ("a redirect of a page",                     PAGE,    MOVES,                                 WELL, (State.REDIRECTED, 301), 2 * DAY,    Op.DELETE, None),
    ("a redirect of a page that is not believed yet", PAGE, replace(MOVES, kind=GONE, doubted=9), WELL, (State.FAILED, 301), 5,      None,      Held.HOST),
    ("the same to the end",                      structs.replace(REFUSED, status=301, retries=2), replace(MOVES, kind=GONE, doubted=9), WELL, (State.FAILED, 301), DAY, None, Held.HOST),
    ("a redirect of a page that leads back to it", PAGE,  outcome(FAILED, 691),                  WELL, (State.FAILED, 691),     DAY,        None,      None),
    ("a redirect of a page that leads back to it and sets a cookie", PAGE, replace(outcome(FAILED, 691), sets_cookie=True), WELL, (State.FAILED, 691), 5, None, None),
    ("a redirect that is a page again",          MOVED,   document(),                            WELL, (State.DONE, 200),       2 * DAY,    Op.PUSH,   None),
    ("a redirect of a page to a malformed URL",  PAGE,    outcome(GONE, Status.REDIRECT_MALFORMED), WELL, FORGOTTEN,            None,       Op.DELETE, None),
    ("404 of a new URL",                         NEW,     outcome(GONE, 404),                    WELL, (State.GONE, 404),       15.5 * DAY, None,      None),
    ("404 of a page",                            PAGE,    outcome(GONE, 404),                    WELL, FORGOTTEN,               None,       Op.DELETE, None),
    ("404 of a page while the site is down",     PAGE,    outcome(GONE, 404),                    DOWN, FORGOTTEN,               None,       Op.DELETE, None),
    ("404 of a URL that was gone before",        ABSENT,  outcome(GONE, 404),                    WELL, FORGOTTEN,               None,       None,      None),
    ("410 of a redirect",                        MOVED,   outcome(GONE, 410),                    WELL, FORGOTTEN,               None,       None,      None),
    ("404 of a page and of most of its site",    PAGE,    outcome(GONE, 404),                    BARE, (State.FAILED, 404),     6 * DAY,    None,      Held.HOST),
    ("404 of a new URL and of most of its site", NEW,     outcome(GONE, 404),                    BARE, (State.GONE, 404),       15.5 * DAY, None,      None),
    ("404 again of a page held for that, the site is down", MISSED, outcome(GONE, 404),          DOWN, (State.FAILED, 404),     6 * DAY,    None,      Held.HOST),
    ("404 again of a page held for that, the site is well", MISSED, outcome(GONE, 404),          WELL, FORGOTTEN,               None,       Op.DELETE, None),
    ("403 of a new URL",                         NEW,     outcome(GONE, 403),                    WELL, (State.GONE, 403),       15.5 * DAY, None,      None),
    ("403 of a page",                            PAGE,    outcome(GONE, 403),                    WELL, (State.FAILED, 403),     5,          None,      Held.HOST),
    ("403 of a page, the site is down",          PAGE,    outcome(GONE, 403),                    DOWN, (State.FAILED, 403),     DAY,        None,      Held.HOST),
    ("403 again of a page, the site is well",    structs.replace(REFUSED, retries=2), outcome(GONE, 403), WELL, FORGOTTEN,          None,       Op.DELETE, None),
    ("403 again of a page, the site is down",    REFUSED, outcome(GONE, 403),                    DOWN, (State.FAILED, 403),     DAY,        None,      Held.HOST),
    ("403 of a redirect",                        MOVED,   outcome(GONE, 403),                    WELL, FORGOTTEN,               None,       None,      None),
    ("a page turned noindex",                    PAGE,    document(index=False),                 WELL, (State.EXCLUDED, 2004),  2 * DAY,    Op.DELETE, None),
    ("a page whose document an item pipeline drops", PAGE, outcome(EXCLUDED, 200),               WELL, (State.EXCLUDED, 200),   2 * DAY,    Op.DELETE, None),
    ("a page now barred by robots.txt",          PAGE,    outcome(EXCLUDED, Status.ROBOTS_FORBIDDEN), WELL, (State.EXCLUDED, 740), 2 * DAY, Op.DELETE, None),
    ("a page of another type",                   PAGE,    outcome(EXCLUDED, Status.WRONG_TYPE),  WELL, (State.EXCLUDED, 780),   2 * DAY,    Op.DELETE, None),
    ("a page outside the space",                 PAGE,    outcome(EXCLUDED, Status.EXCLUDED),    WELL, (State.EXCLUDED, 760),   None,       Op.DELETE, None),
    ("a page that another crawler has",          PAGE,    outcome(EXCLUDED, Status.EXCLUDED_HERE), WELL, (State.EXCLUDED, 761), None,       None,      None),
    ("500 of a new URL",                         NEW,     BROKEN,                                WELL, (State.FAILED, 500),     5,          None,      None),
    ("500 of a new URL to the end",              NEW_TO_THE_END, BROKEN,                         WELL, (State.GONE, 500),       15.5 * DAY, None,      None),
    ("500 of a page",                            PAGE,    BROKEN,                                WELL, (State.FAILED, 500),     5,          None,      Held.HOST),
    ("500 of a page to the end, the site is well", PAGE_TO_THE_END, BROKEN,                      WELL, FORGOTTEN,               None,       Op.DELETE, None),
    ("500 of a page to the end, the site is down", PAGE_TO_THE_END, BROKEN,                      DOWN, (State.FAILED, 500),     DAY,        None,      Held.HOST),
    ("500 of a page to the end, half the site fails", PAGE_TO_THE_END, BROKEN,                   HALF, (State.FAILED, 500),     DAY,        None,      Held.HOST),
    ("500 of a redirect to the end, the site is down", MOVED_TO_THE_END, BROKEN,                 DOWN, (State.FAILED, 500),     DAY,        None,      Held.HOST),
    ("500 of a redirect to the end, the site is well", MOVED_TO_THE_END, BROKEN,                 WELL, FORGOTTEN,               None,       None,      None),
    ("the host of a page does not exist, to the end", PAGE_TO_THE_END, NO_HOST,                  DOWN, (State.FAILED, 680),     DAY,        None,      Held.HOST),
    ("a time-out of a page",                     PAGE,    LATE,                                  DOWN, (State.FAILED, 613),     5,          None,      None),
    ("a time-out of a page to the end",          structs.replace(PAGE, retries=2), LATE,                 DOWN, (State.FAILED, 613),     DAY,        None,      None),
    ("a time-out of a page for the third time",  structs.replace(PAGE, retries=2, errors=2), LATE,       DOWN, (State.FAILED, 613),     4 * DAY,    None,      None),
    ("a time-out of a page for the fifth time, the site is down", FIFTH_TIME, LATE,              DOWN, (State.FAILED, 613),     4 * DAY,    None,      Held.HOST),
    ("a time-out of a page for the fifth time, the site is well", FIFTH_TIME, LATE,              WELL, FORGOTTEN,               None,       Op.DELETE, None),
    ("a time-out of a new URL to the end",       NEW_TO_THE_END, LATE,                           DOWN, (State.FAILED, 613),     DAY,        None,      None),
    ("the proxy fails for a page",               PAGE,    NO_PROXY,                              WELL, (State.FAILED, 618),     5,          None,      None),
    ("the proxy fails for a page for the fifth time, the site is well", FIFTH_TIME, NO_PROXY,    WELL, (State.FAILED, 618),     4 * DAY,    None,      Held.HOST),
    ("the proxy fails for a page after five errors, the site is well", structs.replace(FIFTH_TIME, errors=5), NO_PROXY, WELL, (State.FAILED, 618), 4 * DAY, None, Held.HOST),
    ("the proxy fails for a held page to the end, the site is well", structs.replace(REFUSED, retries=2), NO_PROXY, WELL, (State.FAILED, 618), DAY, None,   Held.HOST),
    ("503 with Retry-After, or 429",             PAGE,    outcome(FAILED, 503, retry_after_s=90.0), DOWN, (State.FAILED, 503),  90,         None,      None),
    ("a held page that answers again, unchanged", HELD,   UNCHANGED,                             DOWN, (State.DONE, 200),       6 * DAY,    None,      None),
    ("a held page that answers again, equal",    HELD,    document(b"old"),                      DOWN, (State.DONE, 200),       6 * DAY,    None,      None),
    ("a held page that answers 404",             HELD,    outcome(GONE, 404),                    DOWN, FORGOTTEN,               None,       Op.DELETE, None),
    ("a page held with too many, which answers again", TOO_MANY, document(b"old"),               WELL, (State.DONE, 200),       6 * DAY,    None,      None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("what", "before", "came", "site", "after", "wait", "order", "held"), TABLE, ids=[row[0] for row in TABLE]
)
def test_outcomes(
    what: str,
    before: UrlState,
    came: Outcome,
    site: Health,
    after: tuple[State, int] | str,
    wait: float | None,
    order: Op | None,
    held: Held | None,
) -> None:
    untouched = structs.replace(before)
    transition = advance(before, came, policy=POLICY, now=NOW, site=site)
    new = transition.state
    assert transition.forget is (after == FORGOTTEN)
    if not transition.forget:
        assert (new.state, new.status) == after
        assert (None if new.next_fetch is None else new.next_fetch - NOW) == wait
        assert (new.checksum is not None) is (
            order is Op.PUSH or (order is None and before.checksum is not None and new.status != 761)
        )
    assert transition.order == order
    assert new.held == held
    assert before == untouched
    assert new.lease_until is None


WHY = "connection refused"
DETAILS = [
    # what                                    before                                     outcome                                           detail after
    ("a retry of a new URL",                  NEW,                                       replace(LATE, detail=WHY),                        WHY),
    ("an error of a page to the end",         structs.replace(PAGE, retries=2),          replace(LATE, detail=WHY),                        WHY),
    ("a permanent error of a new URL",        NEW_TO_THE_END,                            replace(BROKEN, detail=WHY),                      WHY),
    ("an error without a detail",             structs.replace(HELD, detail="old"),       LATE,                                             None),
    ("another error",                         structs.replace(HELD, detail="old"),       replace(LATE, detail=WHY),                        WHY),
    ("a page that is one again",              structs.replace(HELD, detail="old"),       document(),                                       None),
    ("a page that is as it was",              structs.replace(HELD, detail="old"),       UNCHANGED,                                        None),
    ("304 that needs the whole page",         structs.replace(HELD, detail="old"),       replace(UNCHANGED, needs_body=True),              None),
    ("a redirect",                            structs.replace(HELD, detail="old"),       replace(MOVES, detail="http://b/"),               None),
    ("a page of another type",                structs.replace(HELD, detail="old"),       outcome(EXCLUDED, 780, detail="image/png"),       None),
    ("a page outside the space",              structs.replace(HELD, detail="old"),       outcome(EXCLUDED, Status.EXCLUDED, detail="x"),   None),
    ("user information and passwords",        NEW,                                       replace(LATE, detail="http://u:secret@a/?password=hidden&b=1"), "http://…@a/?password=…&b=1"),
    ("control characters",                    NEW,                                       replace(LATE, detail="a\x1b[2Jb\nc"),             "a\\x1b[2Jb\\nc"),
    ("more than is kept",                     NEW,                                       replace(LATE, detail="x" * 5_000),                f"{'x' * 299}…"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "before", "came", "detail"), DETAILS, ids=[row[0] for row in DETAILS])
def test_the_detail_is_that_of_the_last_error(what: str, before: UrlState, came: Outcome, detail: str | None) -> None:
    after = advance(before, came, policy=POLICY, now=NOW, site=WELL).state
    assert after.detail == detail
    assert after.detail is None or after.state in (State.FAILED, State.GONE)


def _own_bounds(site: str) -> RefreshBounds | None:
    return RefreshBounds(60, 120) if site == "a:80" else None


OWN = replace(POLICY, bounds_of=_own_bounds)
OWN_IN_CYCLES = replace(OWN, next_cycle=NOW + DAY, cycle_s=DAY)
OF_SITES: list[tuple[RecrawlPolicy, str, float]] = [
    # the policy, a site, seconds until its page is due again
    (OWN, "a:80", 90),
    (OWN, "b:80", 15.5 * DAY),
    (OWN_IN_CYCLES, "a:80", 90),  # between the beginnings of two cycles, too
    (OWN_IN_CYCLES, "b:80", 2 * DAY),
    (replace(OWN, due_by_age=False), "a:80", 90 + NOT_DUE_BY_AGE),
]


@pytest.mark.parametrize(("policy", "site", "after_s"), OF_SITES)
def test_a_site_may_have_intervals_of_its_own(policy: RecrawlPolicy, site: str, after_s: float) -> None:
    new = structs.replace(NEW, site=site)
    assert advance(new, document(), policy=policy, now=NOW).state.next_fetch == NOW + after_s


def test_start_urls_and_sitemaps_of_a_site_keep_to_its_intervals() -> None:
    policy = replace(OWN, start_refresh_s=DAY, sitemap_refresh_s=5)
    own, other = policy.of("a:80"), policy.of("b:80")
    assert (own.start_refresh_s, own.sitemap_refresh_s, other.start_refresh_s, other.sitemap_refresh_s) == (120, 60, DAY, 5)


def test_retries_are_counted_and_a_success_ends_them() -> None:
    first = advance(NEW, LATE, policy=POLICY, now=NOW)
    second = advance(first.state, LATE, policy=POLICY, now=NOW)
    last = advance(second.state, LATE, policy=POLICY, now=NOW)
    assert [t.state.retries for t in (first, second, last)] == [1, 2, 0]
    assert [t.retry for t in (first, second, last)] == [True, True, False]
    assert last.state.errors == 1
    well = advance(last.state, document(), policy=POLICY, now=NOW)
    assert (well.state.retries, well.state.errors, well.order) == (0, 0, Op.PUSH)


def test_a_failure_without_retries_is_held_and_the_next_one_decides() -> None:
    policy = replace(POLICY, retry_times=0)
    held = advance(PAGE, BROKEN, policy=policy, now=NOW, site=WELL)
    assert (held.state.held, held.state.held_mark, held.order, held.forget) == (Held.HOST, WELL.answers, None, False)
    at_once = advance(held.state, BROKEN, policy=policy, now=NOW, site=WELL)
    assert (at_once.order, at_once.state.held) == (None, Held.HOST), "the site has not answered in between"
    later = advance(held.state, BROKEN, policy=policy, now=NOW, site=replace(WELL, answers=WELL.answers + 1))
    assert (later.order, later.forget) == (Op.DELETE, True)


def test_errors_without_a_document_lead_to_an_unconditional_get() -> None:
    known = structs.replace(NOINDEX, etag='"1"', last_modified="Mon")
    after = advance(known, BROKEN, policy=POLICY, now=NOW).state
    assert (after.etag, after.last_modified) == (None, None)
    assert advance(PAGE, BROKEN, policy=POLICY, now=NOW).state.etag == PAGE.etag, "a document may still be unchanged"


ERRORS = {"404": "DELETE:3", "4xx": "KEEP", "5xx": "DELETE:2, RETRY:1", "ttl": "DELETE, RETRY"}
POLICIES = [
    # what                             before                                            outcome             site  forgotten, tried again, held
    ("404 for the first time",         PAGE,                                             outcome(GONE, 404), WELL, (False, False, None)),
    ("404 for the third time",         structs.replace(PAGE, errors=2),                          outcome(GONE, 404), WELL, (True, False, None)),
    ("403 is kept",                    structs.replace(PAGE, errors=9),                          outcome(GONE, 403), WELL, (False, False, None)),
    ("500 is tried again once",        PAGE,                                             BROKEN,             WELL, (False, True, None)),
    ("500 once is borne",              structs.replace(PAGE, retries=1),                         BROKEN,             WELL, (False, False, None)),
    ("500 twice is held",              structs.replace(PAGE, retries=1, errors=1),               BROKEN,             WELL, (False, False, Held.HOST)),
    ("a time-out is not tried again",  PAGE,                                             LATE,               WELL, (False, False, Held.HOST)),
    ("a time-out again",               structs.replace(PAGE, held=Held.HOST, held_mark=8),       LATE,               WELL, (True, False, None)),
]  # fmt: skip


@pytest.mark.parametrize(("what", "before", "came", "site", "expected"), POLICIES, ids=[row[0] for row in POLICIES])
def test_errors_follow_their_rules(
    what: str, before: UrlState, came: Outcome, site: Health, expected: tuple[bool, bool, Held | None]
) -> None:
    policy = replace(POLICY, error_rules=read_error_rules(ERRORS))
    transition = advance(before, came, policy=policy, now=NOW, site=site)
    assert (transition.forget, transition.retry, transition.state.held) == expected


RETRIES = [
    # status, Scrapy's RETRY_HTTP_CODES; whether it is tried again
    (503, None, True), (429, None, True), (404, None, False), (Status.TIMEOUT, None, True),
    (503, {404}, False), (429, {404}, False), (404, {404}, True), (Status.TIMEOUT, {404}, True), (Status.CONNECT_ERROR, set(), True),
]  # fmt: skip


@pytest.mark.parametrize(("status", "codes", "retried"), RETRIES)
def test_the_codes_that_are_retried(status: int, codes: set[int] | None, retried: bool) -> None:
    policy = replace(POLICY, retry_codes=None if codes is None else frozenset(codes))
    came = Outcome(
        1,
        "http://a/",
        FAILED if status in (429, Status.TIMEOUT, Status.CONNECT_ERROR) else GONE,
        status,
        host_failure=status == 503,
    )
    assert advance(NEW, came, policy=policy, now=NOW).retry is retried


@pytest.mark.parametrize(
    ("came", "state", "status", "held"),
    [
        (outcome(GONE, 404), State.GONE, 404, Held.MANY),
        (MOVES, State.REDIRECTED, 301, Held.MANY),
        (document(index=False), State.EXCLUDED, 2004, Held.MANY),
        (outcome(EXCLUDED, Status.EXCLUDED), State.DONE, 200, Held.RULES),
    ],
)
def test_what_comes_with_too_many_others_stays_and_leaves_when_approved(
    came: Outcome, state: State, status: int, held: Held
) -> None:
    withheld = withhold(PAGE, advance(PAGE, came, policy=POLICY, now=NOW))
    after = withheld.state
    assert (withheld.order, withheld.forget) == (None, False)
    assert (after.state, after.status, after.held, after.checksum) == (state, status, held, PAGE.checksum)
    assert (after.next_fetch is None) is (held is Held.RULES), "what the rules exclude is not fetched"
    sent = approved(after, now=NOW)
    assert (sent.order, sent.state.checksum, sent.state.held) == (Op.DELETE, None, None)
    assert sent.forget is (status == 404)
    dropped = discarded(after, next_run=7)
    assert (dropped.order, dropped.state.checksum, dropped.state.held) == (None, PAGE.checksum, None)


@pytest.mark.parametrize(("orphaned", "then"), [(None, None), (3, 7)])
def test_an_orphan_whose_deletion_is_discarded_is_one_as_if_since_the_next_run(orphaned: int | None, then: int | None) -> None:
    held = structs.replace(PAGE, held=Held.MANY, orphaned=orphaned)
    assert discarded(held, next_run=7).state.orphaned == then


def test_a_page_whose_document_was_deleted_by_approval_is_fetched_unconditionally() -> None:
    """A 304 would leave it without its document for ever."""
    now = approved(structs.replace(PAGE, held=Held.MANY), now=NOW).state
    assert (PAGE.etag is None, now.etag, now.last_modified) == (False, None, None)


def test_what_is_held_for_the_hosts_sake_is_forgotten_when_approved() -> None:
    assert approved(HELD, now=NOW).forget


WAITS = [(1, None, 5), (2, None, 10), (3, None, 20), (1, 60.0, 60), (2, 3.0, 10), (1, 10**9, 3600)]


@pytest.mark.parametrize(("retries", "asked", "wait"), WAITS)
def test_waits_grow_and_heed_the_host(retries: int, asked: float | None, wait: int) -> None:
    assert retry_wait(retries, retry_after_s=asked, policy=POLICY) == wait


INTERVALS = [(None, True, 15.5), (4, True, 2), (4, False, 6), (1, True, 1), (30, False, 30), (25, False, 30)]


@pytest.mark.parametrize(("days", "changed", "then"), INTERVALS)
def test_intervals_follow_the_page_within_their_bounds(days: int | None, changed: bool, then: float) -> None:
    seconds = None if days is None else days * DAY
    assert next_interval(seconds, changed=changed, policy=POLICY) == then * DAY


@pytest.mark.parametrize(("errors", "interval", "wait"), [(1, 4, 1), (2, 4, 2), (3, 4, 4), (4, 4, 4), (60, 30, 30), (2, 1, 1)])
def test_failing_pages_are_looked_at_again_before_long_and_then_less_often(errors: int, interval: float, wait: float) -> None:
    assert error_wait(errors, interval_s=round(interval * DAY), policy=POLICY) == wait * DAY


def test_with_cycles_nothing_is_due_before_the_next_one_has_begun() -> None:
    policy = replace(POLICY, next_cycle=NOW + 500, cycle_s=1000)
    assert advance(PAGE, document(b"new"), policy=policy, now=NOW).state.next_fetch == NOW + 1500
    assert next_fetch(NOW + 600, 3, policy) == NOW + 1600


def test_after_an_error_a_file_without_text_is_fetched_unconditionally() -> None:
    """Its status is that of the error then, and a 304 could not tell that it has no text."""
    for known, etag in ((PAGE, '"1"'), (SCAN, None)):
        assert advance(known, LATE, policy=POLICY, now=NOW).state.etag == etag


LATER = structs.replace(PAGE, fetched_at=5, next_fetch=NOW + DAY, last_modified="then", errors=0)
FAILS_NOW = structs.replace(LATER, state=State.FAILED, status=613, errors=2)
NOT_NOW = outcome(EXCLUDED, 200)
ANEW = [
    # known, what is made of its stored response, state and status after, its checksum, the validators it is requested with
    (LATER, replace(document(), etag='"0"', last_modified="x"), (State.DONE, 200), b"new", ('"1"', "then")),
    (LATER, document(), (State.DONE, 200), b"new", (None, None)),
    (LATER, replace(document(), status=782), (State.DONE, 782), b"new", (None, None)),
    (LATER, NOT_NOW, (State.EXCLUDED, 200), None, (None, None)),
    (FAILS_NOW, document(), (State.FAILED, 613), b"new", (None, None)),
    (FAILS_NOW, NOT_NOW, (State.EXCLUDED, 200), None, (None, None)),
]


@pytest.mark.parametrize(("known", "made", "after", "checksum", "validators"), ANEW)
def test_what_is_made_again_changes_nothing_that_only_a_fetch_shows(
    known: UrlState, made: Outcome, after: tuple[State, int], checksum: bytes | None, validators: tuple[str | None, str | None]
) -> None:
    new = rebuilt(known, advance(known, made, policy=POLICY, now=NOW)).state
    assert (new.state, new.status, new.checksum, (new.etag, new.last_modified)) == (*after, checksum, validators)
    kept = ("fetched_at", "next_fetch", "interval_s", "errors", "retries", "rules", "requested_by")
    assert [getattr(new, name) for name in kept] == [getattr(known, name) for name in kept]

    assert new.history == known.history


NEW_, CHANGED, SAME, NO_DOCUMENT = DocumentChange.NEW, DocumentChange.CHANGED, DocumentChange.UNCHANGED, DocumentChange.NONE
HISTORIES = [
    # before, outcome, the fetch that is noted
    (NEW, document(), (200, NEW_)),
    (PAGE, document(b"new"), (200, CHANGED)),
    (PAGE, document(b"old"), (200, SAME)),
    (PAGE, UNCHANGED, (304, SAME)),
    (NOINDEX, UNCHANGED, (304, NO_DOCUMENT)),
    (NEW, document(index=False), (200, NO_DOCUMENT)),
    (MOVED, document(), (200, NEW_)),
    (PAGE, MOVES, (301, NO_DOCUMENT)),
    (NEW, LATE, (613, NO_DOCUMENT)),
    (PAGE, LATE, (613, NO_DOCUMENT)),
    (PAGE_TO_THE_END, LATE, (613, NO_DOCUMENT)),
    (PAGE, outcome(EXCLUDED, 740), (740, NO_DOCUMENT)),
    (PAGE, outcome(EXCLUDED, 760), None),
    (PAGE, outcome(EXCLUDED, 761), None),
    (PAGE, replace(UNCHANGED, needs_body=True), None),
]


@pytest.mark.parametrize(("before", "came", "noted"), HISTORIES)
def test_each_fetch_is_noted(before: UrlState, came: Outcome, noted: tuple[int, DocumentChange] | None) -> None:
    known = structs.replace(before, fetched_at=NOW - 5, history=b"\0\0")
    new = advance(known, replace(came, took_s=0.1), policy=POLICY, now=NOW, site=WELL).state
    if noted is None:
        assert (new.history, new.fetched_at) == (known.history, known.fetched_at)
        return
    newest, older = fetches(new)
    assert ((newest.status, newest.change), newest.at, older.at) == (noted, NOW, NOW - 5)
    assert newest.took_s is not None


def test_failures_of_a_proxy_do_not_count_as_errors_of_the_page() -> None:
    """Else the first time-out of the page itself would delete it."""
    before = structs.replace(PAGE, errors=3, retries=2)
    assert advance(before, NO_PROXY, policy=POLICY, now=NOW, site=WELL).state.errors == 3
    assert advance(before, LATE, policy=POLICY, now=NOW, site=WELL).state.errors == 4
