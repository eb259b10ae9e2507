"""A run: its exit status and the first lines of its summary, and that it fetches each URL once, and a dead link once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from crawlspace.crawl.run import FetchPage, Run, RunCounters, faults_of
from crawlspace.model import State
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.state.store import Store
from crawlspace.status import Status
from tests.unit.crawl.test_engine import DAY, HOME, Web
from tests.unit.crawl.test_redirects import MONTH, To, make_due, site
from tests.unit.crawl.timed.test_cycles import work

A, B = "a.example:80", "b.example:80"
REFUSED = "connection refused"
ROWS = [
    # by status, documents, errors, sites without an answer, those with documents    what the summary says first
    ("all is well", {200: 3, 404: 1}, 3, 1, {}, (), []),
    ("nothing was due", {}, 0, 0, {}, (), []),
    ("unchanged pages", {304: 2}, 0, 0, {}, (), []),
    ("redirects only", {301: 2}, 0, 0, {}, (), []),
    ("another site is down", {200: 1}, 1, 0, {B: REFUSED}, (B,), []),
    ("the start site is down", {}, 0, 0, {A: REFUSED}, (A,), [f"no start site could be reached: {A} ({REFUSED})"]),
    ("it has failed page by page", {612: 4}, 0, 4, {A: REFUSED}, (), [f"no start site could be reached: {A} ({REFUSED})"]),
    ("only another site was due", {}, 0, 0, {B: REFUSED}, (B,), [f"nothing could be fetched: {B} ({REFUSED})"]),
    ("a dead link was due", {}, 0, 0, {B: REFUSED}, (), []),
    ("robots.txt keeps out of what is indexed", {740: 2}, 0, 0, {}, (), []),
    ("only dead links were due", {404: 2, 410: 1, 680: 1}, 0, 4, {}, (), []),
    ("only pages that fail on a site that answers others were due", {500: 1, 403: 1}, 0, 2, {}, (), []),
    (
        "a site with documents fails page by page",
        {612: 2, 404: 1},
        0,
        3,
        {B: REFUSED},
        (B,),
        [f"nothing could be fetched: {B} ({REFUSED})"],
    ),
    ("dead links to a site without any", {612: 2, 404: 1}, 0, 3, {B: REFUSED}, (), []),
    ("own code", {699: 4}, 0, 4, {}, (), ["every page that was parsed ended in an unexpected error (699), see the log"]),
    (
        "own code, and a dead link",
        {699: 4, 404: 1},
        0,
        5,
        {},
        (),
        ["every page that was parsed ended in an unexpected error (699), see the log"],
    ),
    ("own code fails on one page", {699: 1, 200: 5}, 5, 1, {}, (), []),
    ("own code keeps all others out", {699: 1, 2004: 5}, 0, 1, {}, (), []),
]


@pytest.mark.parametrize(
    ("by_status", "documents", "errors", "unreachable", "with_documents", "faults"),
    [row[1:] for row in ROWS],
    ids=[row[0] for row in ROWS],
)
def test_faults(
    by_status: dict[int, int],
    documents: int,
    errors: int,
    unreachable: dict[str, str],
    with_documents: tuple[str, ...],
    faults: list[str],
) -> None:
    fetched = sum(count for code, count in by_status.items() if code != 740)
    progress = RunCounters(fetched=fetched, documents=documents, errors=errors, by_status=Counter(by_status))
    assert (
        faults_of(Run(progress, start_sites={A}, unreachable=unreachable, with_documents=with_documents, has_documents=True))
        == faults
    )


FAILED = [
    # by status, sites that fail as a whole, whether anything is in the index, what the summary says first
    ({500: 2, 404: 1}, (A,), True, ["every page of the run failed: 1 × 404, 2 × 500"]),
    ({403: 20}, (A,), True, ["every page of the run failed: 20 × 403"]),
    ({404: 1}, (), False, ["every page of the run failed: 1 × 404"]),
    ({691: 2}, (), False, ["no page could be read, because of redirect loops: 2 × 691"]),
    ({302: 1, 691: 1}, (A,), True, ["no page could be read, because of redirect loops: 1 × 302, 1 × 691"]),
    ({302: 1, 691: 1}, (), True, []),
    ({200: 1, 302: 1, 691: 1}, (A,), False, []),
    ({302: 1, 404: 1}, (), False, []),
    ({500: 2, 404: 1}, (), True, []),
    ({500: 2, 200: 1}, (A,), True, []),
]


@pytest.mark.parametrize(("by_status", "failing", "has_documents", "faults"), FAILED)
def test_a_run_whose_pages_all_failed(
    by_status: dict[int, int], failing: tuple[str, ...], has_documents: bool, faults: list[str]
) -> None:
    progress = RunCounters(fetched=sum(by_status.values()), by_status=Counter(by_status))
    progress.errors = sum(count for code, count in by_status.items() if code >= 400)
    progress.by_kind[OutcomeKind.REDIRECTED] = by_status.get(302, 0)
    run = Run(progress, start_sites={A}, unreachable={}, with_documents=(), has_documents=has_documents, failing=failing)
    assert faults_of(run) == faults


WHY = "CRAWLSPACE_SITES['a.example'] was refused by a.example:80 (401)"
LOGINS = [
    # fetched, of it shown, sites whose log-in is refused, sites that wait for another reason, what the summary says first
    (0, 0, {A: WHY}, {}, [f"{A} waits for its log-in: {WHY}"]),
    (5, 5, {A: WHY}, {}, [f"{A} waits for its log-in: {WHY}"]),
    (0, 0, {}, {A: "nobody can log in"}, [f"{A} waits for its log-in: nobody can log in"]),
    (2, 0, {}, {A: "nobody can log in"}, [f"{A} waits for its log-in: nobody can log in"]),
    (5, 5, {}, {A: "nobody can log in"}, []),
]


@pytest.mark.parametrize(("fetched", "shown", "refused", "without", "faults"), LOGINS)
def test_sites_that_wait_for_a_log_in(
    fetched: int, shown: int, refused: dict[str, str], without: dict[str, str], faults: list[str]
) -> None:
    progress = RunCounters(fetched=fetched, documents=shown)
    progress.by_kind.update({OutcomeKind.DOCUMENT: shown, OutcomeKind.FAILED: fetched - shown})
    run = Run(
        progress,
        start_sites=(),
        unreachable={},
        with_documents=(),
        has_documents=True,
        refused_logins=refused,
        without_login=without,
    )
    assert faults_of(run) == faults


def test_a_first_crawl_that_robots_txt_keeps_out_of_everything() -> None:
    run = Run(RunCounters(by_status=Counter({740: 1})), start_sites={A}, unreachable={}, with_documents=(), has_documents=False)
    assert faults_of(run) == ["nothing could be fetched: robots.txt forbids every URL"]


def test_of_many_sites_three_are_named() -> None:
    sites = {f"{n}.example:80": REFUSED for n in range(5)}
    (fault,) = faults_of(Run(RunCounters(), start_sites=set(sites), unreachable=sites, with_documents=(), has_documents=False))
    assert fault == (
        f"no start site could be reached: 0.example:80 ({REFUSED}), 1.example:80 ({REFUSED}), 2.example:80 ({REFUSED}) and 2 more"
    )


LOST = (
    "no page gave an item, not even 3 pages that were indexed: look at parse() or document() of the spider, and at ITEM_PIPELINES"
)


@pytest.mark.parametrize(
    ("by_status", "documents", "without_item", "faults"),
    [
        ({2004: 5}, 0, 3, [LOST]),
        ({2004: 5}, 0, 0, []),  # lists of links, which never had an item
        ({2004: 5, 200: 1}, 1, 3, []),
        ({2004: 5, 304: 1}, 0, 3, []),
    ],
)
def test_own_code_that_gives_no_item(by_status: dict[int, int], documents: int, without_item: int, faults: list[str]) -> None:
    progress = RunCounters(fetched=6, documents=documents, by_status=Counter(by_status), without_item=without_item)
    progress.by_kind[OutcomeKind.UNCHANGED] = by_status.get(304, 0)
    assert faults_of(Run(progress, start_sites={A}, unreachable={}, with_documents=(), has_documents=True)) == faults


# --- a run that ends fetches each URL once --------------------------------------------------------------------------


PAGES = [f"{HOME}{n}" for n in range(6)]
OLD, NEW = f"{HOME}old", f"{HOME}new"


class SlowWeb(Web):
    """Each answer takes longer than the refresh interval."""

    def _answer(self, fetch: FetchPage) -> Outcome:
        self.clock.advance(3)
        state = fetch.state
        if state.url == OLD:
            return Outcome(state.id, state.url, OutcomeKind.REDIRECTED, 302, redirect_to=NEW)
        return super()._answer(fetch)


@pytest.fixture
def slow_web(tmp_path: Path, store: Store) -> SlowWeb:
    made = SlowWeb(tmp_path, store, CRAWLSPACE_REFRESH_MIN=1, CRAWLSPACE_REFRESH_MAX=2)
    made.pages = {HOME: "home", NEW: "new", **{url: url[-1] for url in PAGES}}
    made.links = {HOME: [*PAGES, OLD], PAGES[0]: PAGES, PAGES[1]: [HOME, OLD]}
    return made


EVERYTHING = dict.fromkeys([HOME, *PAGES, OLD, NEW], 1)


def asked(web: SlowWeb) -> dict[str, int]:
    return dict(Counter(url for url, _ in web.asked))


def test_each_url_is_fetched_once_in_each_run(slow_web: SlowWeb) -> None:
    for _ in range(3):
        slow_web.crawl(after=1)
        assert asked(slow_web) == EVERYTHING


def test_retries_are_of_this_run(slow_web: SlowWeb) -> None:
    slow_web.pages[PAGES[2]] = Status.TIMEOUT
    for _ in range(2):
        slow_web.crawl(after=1)
        assert asked(slow_web) == {**EVERYTHING, PAGES[2]: 2}


@pytest.mark.parametrize("step", [-100_000, -2, 100_000])
def test_a_clock_that_is_set_in_a_run(slow_web: SlowWeb, step: int) -> None:
    engine = slow_web.open().engine
    for _ in range(4):
        fetch = engine.next_fetch() or (engine.commit() and engine.next_fetch())
        assert isinstance(fetch, FetchPage)
        slow_web.asked.append((fetch.state.url, False))
        engine.fetched(slow_web._answer(fetch))
    slow_web.clock.set(slow_web.clock.now() + step)
    slow_web.work(engine)
    engine.close()
    assert asked(slow_web) == EVERYTHING


def test_what_came_nearer_is_fetched_again(slow_web: SlowWeb) -> None:
    """Its links were too far away before; that they are not any more is found in the same run."""
    slow_web.settings["DEPTH_LIMIT"] = 2
    far, child = f"{HOME}far", f"{HOME}child"
    slow_web.pages |= {far: "far", child: "child"}
    slow_web.links = {HOME: [PAGES[0], PAGES[1]], PAGES[0]: [far], far: [child]}
    slow_web.crawl()
    assert child not in asked(slow_web)
    slow_web.links[HOME] = [*PAGES[:2], far]
    slow_web.pages[HOME] = "home again"
    slow_web.crawl()
    assert asked(slow_web)[child] == 1
    assert asked(slow_web)[HOME] == 1


def test_a_crawl_that_goes_on_fetches_again_and_again(slow_web: SlowWeb) -> None:
    slow_web.settings["CRAWLSPACE_CONTINUOUS"] = True
    engine = slow_web.open().engine
    while len(slow_web.asked) < 40:
        fetch = engine.next_fetch()
        if fetch is None:
            engine.commit()
            slow_web.clock.advance(1)
            continue
        assert isinstance(fetch, FetchPage)
        slow_web.asked.append((fetch.state.url, False))
        engine.fetched(slow_web._answer(fetch))
    engine.close()
    assert min(asked(slow_web).values()) >= 3


# --- a dead link costs one request in a run -------------------------------------------------------------------------


DEAD, LAST = f"{HOME}dead", f"{HOME}last"


@pytest.fixture
def dead_link(local_store: Store, tmp_path: Path) -> Web:
    made = Web(tmp_path, local_store)
    made.pages = {HOME: "home", DEAD: "alive", LAST: "last"}
    made.links = {HOME: [DEAD, LAST], LAST: [DEAD]}
    made.crawl()
    made.pages |= {HOME: "home 2", LAST: "last 2", DEAD: 404}
    return made


def test_a_url_that_ended_in_a_run_is_not_entered_again_in_it(dead_link: Web) -> None:
    dead_link.crawl(after=40)
    assert sorted(url for url, _ in dead_link.asked) == [HOME, DEAD, LAST]
    assert dead_link.store.get(DEAD) is None
    assert dead_link.indexed == {"", "last"}


def test_it_is_found_again_later(dead_link: Web) -> None:
    dead_link.crawl(after=40)
    dead_link.pages[DEAD] = "alive again"
    for _ in range(3):  # pages that have not changed are fetched whole, because a link of theirs is lost
        dead_link.crawl(after=40)
    assert dead_link.indexed == {"", "last", "dead"}


@pytest.mark.parametrize(("cycle", "days"), [("0", 1), ("30d", 30)])
def test_a_start_url_that_is_gone_is_fetched_again_in_a_continuous_crawl(dead_link: Web, cycle: str, days: int) -> None:
    """Once an interval, or in each cycle; its document leaves the index, and comes back with the page."""
    dead_link.settings |= {"CRAWLSPACE_CONTINUOUS": True, "CRAWLSPACE_REFRESH_CYCLE": cycle}
    dead_link.pages[HOME] = 404
    dead_link.clock.advance(40 * DAY)
    engine = dead_link.open().engine
    for _ in range(3):
        dead_link.asked = []
        work(dead_link, engine)
        assert "" not in dead_link.indexed
        dead_link.clock.advance(days * DAY - 7_200)
        work(dead_link, engine)
        assert dead_link.asked_for(HOME) == 1
        dead_link.clock.advance(7_300)
    dead_link.pages[HOME] = "home again"
    work(dead_link, engine)
    engine.close()
    assert "" in dead_link.indexed


def test_a_crawl_that_goes_on_enters_it_again(dead_link: Web) -> None:
    dead_link.settings["CRAWLSPACE_CONTINUOUS"] = True
    dead_link.clock.advance(40 * 86_400)
    engine = dead_link.open().engine
    dead_link.asked = []
    dead_link.work(engine)
    engine.close()
    assert dead_link.asked_for(DEAD) == 2
    state = dead_link.of(DEAD)
    assert state.state is State.GONE


@pytest.mark.parametrize("continuous", [False, True])
def test_a_target_that_ended_is_found_again_by_the_page_that_waited_for_it(
    tmp_path: Path, local_store: Store, continuous: bool
) -> None:
    web, target = site(tmp_path, local_store, 5), f"{HOME}new"
    web.pages[HOME], web.links[HOME] = "home again", [*web.links[HOME], target]
    web.pages[target] = Status.TIMEOUT
    web.crawl(after=MONTH)
    assert web.states()[target].state is State.FAILED
    web.pages[target] = 404
    web.shows = lambda url: To(target) if url == f"{HOME}001" else None
    make_due(web, first=f"{HOME}001")
    web.settings["CRAWLSPACE_CONTINUOUS"] = continuous
    engine = web.open().engine
    first = engine.next_fetch()
    assert isinstance(first, FetchPage)
    engine.fetched(web._answer(first))
    engine.commit()
    web.work(engine)
    assert web.states()[f"{HOME}001"].state is State.REDIRECTED
    if continuous:  # it is requested again, as what is found by a link
        assert web.states()[target].status == 404
    else:
        assert engine.is_done()
        assert target not in web.states()
