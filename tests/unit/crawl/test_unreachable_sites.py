"""Sites that give no answer: when they are given up, what goes on meanwhile, and what is counted for them; without a network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from crawlspace.config.sinks import EMBEDDED
from crawlspace.crawl.engine import Engine
from crawlspace.crawl.run import FetchPage, FetchRobots
from crawlspace.model import State
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.state.store import Store
from crawlspace.state.unreachable import UnreachableSite, after_failed_run, cause_of
from crawlspace.status import Status
from crawlspace.urls import parse
from tests.contract.conftest import new
from tests.contract.memory.store import MemoryStore
from tests.unit.crawl.test_engine import DAY, Web

PERMANENT = (Status.TLS_FAILED, Status.NO_SUCH_HOST, Status.READ_ERROR)
A = "a.example:8080"


class Sites(Web):
    """A web in which some sites fail: `failing` has statuses by URL, or by what URLs begin with; each such request takes `takes_s`."""

    def __init__(self, folder: Path, store: Store, *, start: str, **settings: object) -> None:
        super().__init__(
            folder, store, **{"ROBOTSTXT_OBEY": True, "CRAWLSPACE_SITEMAP_GUESS": False, "RETRY_TIMES": 2, **settings}
        )
        self.write(start=start)
        self.failing: dict[str, int] = {}
        self.takes_s = 0.0
        self.requests: Counter[str] = Counter()
        """By scheme and site, those for robots.txt too."""
        self.fetched: set[str] = set()

    def know(self, urls: Iterable[str]) -> None:
        """Have URLs be pending."""
        self.store.discover([new(url) for url in urls], now=int(self.clock.now()))

    def work(self, engine: Engine) -> None:
        self.requests.clear()
        self.fetched.clear()
        while True:
            fetch = engine.next_fetch()
            if fetch is None:
                engine.commit()
                wait = engine.wake_in()
                if wait is None or wait >= 3600 or engine.is_done():
                    return
                self.clock.advance(max(wait, 0.001))
            elif isinstance(fetch, FetchRobots):
                status = self._status(fetch.url)
                engine.robots_read(fetch, status=status if status is not None else 404, body="", detail="connection refused")
            else:
                engine.fetched(self._outcome(fetch))

    def run(self, *, after: float = 1) -> float:
        """One crawl, that many days after the last; return the seconds it took."""
        self.clock.advance(after * DAY)
        engine = self.open().engine
        began = self.clock.monotonic()
        self.work(engine)
        assert engine.is_done()
        self.warnings = dict(engine._site_failures.causes)
        engine.close()
        return self.clock.monotonic() - began

    def _status(self, url: str) -> int | None:
        parsed = parse(url)
        self.requests[f"{parsed.scheme} {parsed.site}"] += 1
        status = next((status for begin, status in self.failing.items() if url.startswith(begin)), None)
        if status is not None:
            self.clock.advance(self.takes_s)
        return status

    def _outcome(self, fetch: FetchPage) -> Outcome:
        state = fetch.state
        status = self._status(state.url)
        if status is not None:
            kind = OutcomeKind.GONE if status in PERMANENT or status < 600 else OutcomeKind.FAILED
            return Outcome(state.id, state.url, kind, status, host_failure=status >= 500, detail="connection refused")
        self.fetched.add(state.url)
        return self._answer(fetch)

    def state(self, url: str) -> tuple[State, int | None, int]:
        state = self.store.get(url)
        assert state is not None
        return state.state, state.status, state.errors


@pytest.fixture
def store(local_store: Store) -> Store:
    return local_store


# --- one scheme of a site -----------------------------------------------------------------------------------------

HTTP = f"http://{A}/"
HTTPS = f"https://{A}/"


@pytest.mark.parametrize("status", [611, 612, 613, 614, 503, 429, 304])
def test_a_robots_txt_that_cannot_be_read_stops_its_own_scheme_only(store: Store, tmp_path: Path, status: int) -> None:
    sites = Sites(tmp_path, store, start=HTTP)
    sites.pages = {HTTP: "home", f"{HTTP}x": "x", f"{HTTPS}y": "y"}
    sites.links = {HTTP: [f"{HTTPS}y", f"{HTTP}x"]}
    sites.failing = {HTTPS: status}
    for after in (0, 40):
        sites.run(after=after)
        assert sites.fetched == {HTTP, f"{HTTP}x"}
        assert sites.state(f"{HTTPS}y") == (State.FAILED, 741, 0), "that is no error of the URL"
    assert store.unreachable() == []
    sites.failing = {}
    sites.run()
    assert sites.state(f"{HTTPS}y") == (State.DONE, 200, 0), "it is tried again"


def test_urls_of_another_scheme_bring_back_a_site_that_was_given_up(store: Store, tmp_path: Path) -> None:
    home = "http://b.example/"
    sites = Sites(tmp_path, store, start=home)
    sites.pages = {home: "home", f"{HTTP}x": "x"}
    sites.failing = {HTTPS: 614}
    sites.run(after=0)
    sites.know([f"{HTTPS}y"])
    sites.links = {home: [f"{HTTP}x"]}
    sites.pages[home] = "another"
    engine = sites.open().engine
    while store.schemes(A) == {"https"} or A not in engine.given_up_sites:  # given up before the link is found
        fetch = engine.next_fetch()
        if isinstance(fetch, FetchRobots):
            engine.robots_read(fetch, status=614 if fetch.site == A else 404, body="")
        elif fetch is None:
            if A in engine.given_up_sites:
                break
            sites.clock.advance(max(0.001, engine.wake_in() or 0))
        else:
            raise AssertionError(fetch)
    engine.enter([new(f"{HTTP}x")])
    sites.work(engine)
    assert sites.fetched == {f"{HTTP}x"}
    assert sites.state(f"{HTTPS}y")[0] is State.FAILED


@pytest.mark.parametrize("schemes", [("http",), ("https",), ("http", "https")])
def test_an_unreachable_site_with_very_many_urls_is_given_up_after_its_robots_txt(
    store: Store, tmp_path: Path, schemes: tuple[str, ...]
) -> None:
    sites = Sites(tmp_path, store, start="http://b.example/")
    urls = [f"{scheme}://{A}/{n}" for scheme in schemes for n in range(300)]
    sites.know(urls)
    sites.failing = {f"{scheme}://{A}": 612 for scheme in schemes}
    sites.run()
    tries = {f"{scheme} {A}": 3 for scheme in schemes}
    assert dict(sites.requests) == {"http b.example:80": 2, **tries}
    assert {sites.state(url) for url in urls} == {(State.PENDING, None, 0)}
    assert [(row.site, row.status, row.runs) for row in store.unreachable()] == [(A, 612, 1)]
    assert sites.warnings == {A: "connection refused"}


# --- when a site is given up --------------------------------------------------------------------------------------

GIVEN_UP = [
    # status, seconds a request takes, settings                                    seconds it took, requests at most
    ("refused, robots.txt not known", 612, 0, {"ROBOTSTXT_OBEY": True}, (15, 16), 3),
    ("no answer to robots.txt", 613, 60, {"ROBOTSTXT_OBEY": True}, (60, 61), 1),
    ("refused", 612, 0, {}, (60, 62), 12),
    ("refused, with a delay", 612, 0, {"DOWNLOAD_DELAY": 7}, (60, 76), 9),
    ("no answer in time", 613, 60, {}, (180, 182), 3),
    ("no answer in less time", 613, 25, {}, (75, 90), 4),
    ("a shorter time", 612, 0, {"CRAWLSPACE_SITE_GIVE_UP": "20s"}, (20, 21), 8),
    ("fewer failures", 612, 0, {"CRAWLSPACE_MAX_SITE_FAILURES": 4}, (5, 6), 4),
    ("errors are answers", 500, 0, {"CRAWLSPACE_BACKOFF_MAX": "10s"}, (100, 200), 20),
    ("no such host", 680, 0, {}, (60, 62), 12),
]


@pytest.mark.parametrize(
    ("status", "takes_s", "settings", "took", "most"), [row[1:] for row in GIVEN_UP], ids=[row[0] for row in GIVEN_UP]
)
def test_when_a_site_is_given_up(
    tmp_path: Path, status: int, takes_s: float, settings: dict[str, object], took: tuple[float, float], most: int
) -> None:
    store = MemoryStore(sinks=(EMBEDDED,))
    root = "http://dead.example/"
    sites = Sites(tmp_path, store, start=root, **{"ROBOTSTXT_OBEY": False, "CONCURRENT_REQUESTS_PER_DOMAIN": 1, **settings})
    sites.know(f"{root}{n}" for n in range(300))
    sites.failing, sites.takes_s = {root: status}, takes_s
    lasted = sites.run()
    assert took[0] <= lasted <= took[1]
    assert sites.requests["http dead.example:80"] <= most


def test_pages_that_hang_among_others_do_not_give_their_site_up(tmp_path: Path) -> None:
    root = "http://a.example/"
    sites = Sites(tmp_path, MemoryStore(sinks=(EMBEDDED,)), start=root, ROBOTSTXT_OBEY=False, CONCURRENT_REQUESTS_PER_DOMAIN=1)
    urls = [f"{root}{n}" for n in range(30)]  # in this order, so that never three that hang come in a row
    sites.know(urls)
    sites.pages = dict.fromkeys(urls, "page")
    sites.failing, sites.takes_s = {f"{root}{n}": 613 for n in range(10, 30, 3)}, 60
    sites.run()
    assert {root + str(n) for n in (3, 4, 5, 6, 7, 8, 9, 11, 12, 29)} <= sites.fetched | {root + "29"}
    assert sites.warnings == {}


# --- runs that are counted ----------------------------------------------------------------------------------------

COUNTED = [
    # statuses of the runs, None where the site answers      rows: status and runs, and whether the documents are held
    ([612], (612, 1), False),
    ([612] * 4, (612, 4), False),
    ([612] * 5, (612, 5), True),
    ([612, 613, 612, 681, 613], (613, 5), True),
    ([680], (680, 1), True),
    ([612, 680], (680, 2), True),
    ([680, 612], (612, 2), False),
    ([612] * 4 + [None], None, False),
    ([612] * 4 + [None, 612], (612, 1), False),
    ([503] * 2, (503, 2), False),
]


@pytest.mark.parametrize(("statuses", "row", "held"), COUNTED)
def test_each_run_without_an_answer_counts_once(
    tmp_path: Path, statuses: list[int | None], row: tuple[int, int] | None, *, held: bool
) -> None:
    root = "http://dead.example/"
    store = MemoryStore(sinks=(EMBEDDED,))
    sites = Sites(tmp_path, store, start=root)
    sites.pages = {root: "home", **{f"{root}{n}": f"page {n}" for n in range(4)}}
    sites.links = {root: [f"{root}{n}" for n in range(4)]}
    sites.run(after=0)
    assert store.documents(["dead.example:80"]) == {"dead.example:80": 5}
    began = 0
    for run, status in enumerate(statuses):
        sites.failing = {} if status is None else {root: status}
        if status is None or run == 0 or statuses[run - 1] is None:
            began = int(sites.clock.now()) + 40 * DAY
        sites.run(after=40)
    found = store.unreachable()
    assert [(one.status, one.runs) for one in found] == ([] if row is None else [row])
    assert [one.is_held(5) for one in found] == ([] if row is None else [held])
    assert all(began <= one.since <= began + 400 for one in found)
    assert store.documents(["dead.example:80"]) == {"dead.example:80": 5}, "nothing has left the index"


def test_a_site_with_few_urls_is_counted_at_the_end_of_the_run(tmp_path: Path) -> None:
    """It is never given up: its robots.txt is known, and there are too few URLs."""
    root, single = "http://few.example/", "http://single.example/"
    store = MemoryStore(sinks=(EMBEDDED,))
    sites = Sites(
        tmp_path, store, start=f"{root}\n{root}x\n{single}\nhttp://mixed.example/1\nhttp://mixed.example/2", ROBOTSTXT_OBEY=False
    )
    sites.failing = {root: 612, single: 613, "http://mixed.example/2": 612}
    sites.run(after=0)
    assert [(row.site, row.status) for row in store.unreachable()] == [("few.example:80", 612)], "one page may be at fault itself"


def test_a_crawl_that_goes_on_counts_a_day_as_a_run(tmp_path: Path) -> None:
    root = "http://dead.example/"
    store = MemoryStore(sinks=(EMBEDDED,))
    sites = Sites(tmp_path, store, start=root, CRAWLSPACE_CONTINUOUS=True)
    sites.failing = {root: 612}
    engine = sites.open().engine
    runs = []
    for _ in range(50):
        sites.work(engine)
        sites.clock.advance(3600)
        runs.append(store.unreachable()[0].runs)
    assert (runs[0], runs[20], runs[40]) == (1, 1, 2)


# --- a clock that was set back ------------------------------------------------------------------------------------

STEPS = [
    # what ends the first run, and the seconds within which the next one has fetched all
    ("robots.txt cannot be read", {}, "robots", 11),
    ("a delay over a second", {"DOWNLOAD_DELAY": 30}, "delay", 61),
    ("the site asks for a pause", {}, "retry after", 121),
    ("a retry is left", {}, "retry", 11),
]


@pytest.mark.parametrize("back_s", [600, 4 * 3600, 40 * DAY])
@pytest.mark.parametrize(("settings", "ends", "within_s"), [row[1:] for row in STEPS], ids=[row[0] for row in STEPS])
def test_after_the_clock_was_set_back_nothing_waits_longer_than_it_would_have(
    tmp_path: Path, store: Store, settings: dict[str, object], ends: str, within_s: float, back_s: int
) -> None:
    root = "http://a.example/"
    sites = Sites(tmp_path, store, start=root, **{"ROBOTSTXT_OBEY": ends == "robots", **settings})
    sites.pages = {root: "home", f"{root}x": "x"}
    sites.know([f"{root}x"])
    engine = sites.open().engine
    if ends == "robots":
        sites.failing = {root: 503}
        sites.work(engine)
    else:
        fetch = engine.next_fetch()
        assert isinstance(fetch, FetchPage)
        outcome = sites._answer(fetch)
        if ends != "delay":
            status, after_s = (429, 120.0) if ends == "retry after" else (503, None)
            outcome = Outcome(
                fetch.state.id, fetch.state.url, OutcomeKind.FAILED, status, host_failure=True, retry_after_s=after_s
            )
        engine.fetched(outcome)
        engine.commit()
    engine.close()
    sites.failing = {}
    sites.clock.set(sites.clock.now() - back_s)
    lasted = sites.run(after=0)
    assert {root, f"{root}x"} - sites.fetched == ({root} if ends == "delay" else set())
    assert lasted <= within_s


CAUSES = [
    (612, "there is no route to the host", "there is no route to the host"),
    (404, "a detail that is no cause", "HTTP status 404"),
    (612, "", "connection refused or lost"),
    (613, "", "no answer in time"),
    (614, "", "the TLS handshake failed, as with a certificate that is not valid"),
    (680, "", "the host name does not exist"),
    (503, "", "HTTP status 503"),
    (690, "", "a redirect whose target is malformed or not named"),
]


@pytest.mark.parametrize(("status", "detail", "cause"), CAUSES)
def test_causes(status: int, detail: str, cause: str) -> None:
    assert cause_of(status, detail) == cause


def test_since_is_never_in_the_future() -> None:
    before = UnreachableSite("a", 612, since=100, runs=1, counted_at=100)
    assert after_failed_run(before, site="a", status=613, now=50) == UnreachableSite("a", 613, since=50, runs=2, counted_at=50)
