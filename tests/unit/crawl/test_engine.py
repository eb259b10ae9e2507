"""The engine: a collection over many days, with refreshes, deletion limits, cycles and commands, and rare conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from msgspec import structs

from crawlspace import settings as defaults
from crawlspace.clock import FakeClock
from crawlspace.config.collection import Collection, load_collection
from crawlspace.config.sinks import EMBEDDED
from crawlspace.crawl.depths.end_of_run import end_run, pending_depths
from crawlspace.crawl.engine import CHECK_EVERY_S, Engine
from crawlspace.crawl.rule_changes.reconcile import plan
from crawlspace.crawl.rule_changes.rediscovery import SpiderCode
from crawlspace.crawl.rule_changes.survey import Plan
from crawlspace.crawl.run import FetchPage, FetchRobots
from crawlspace.crawl.startup import (
    Startup,
    build_deletion_limit,
    build_known_url_decisions,
    build_rediscovery,
    build_space,
    hash_of,
    open_engine,
)
from crawlspace.document import Document, IndexOrder
from crawlspace.errors import IndexUnavailable
from crawlspace.model import Held, NewUrl, Requester, Source, State, UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.state.changes import Change, Effects
from crawlspace.state.site_health import Health
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.store import Store
from crawlspace.status import Status
from tests.conftest import assert_same
from tests.contract.conftest import new
from tests.contract.memory.store import MemoryStore
from tests.contract.sinks import MemorySink
from tests.draining import drain_all

DAY = 86_400
HOME = "http://a.example/"


class Web:
    """Pages by URL: a title, which is the whole content, a status, or an exception's status; and the collection that crawls it."""

    spider = SpiderCode()
    most_requests = 10_000

    def __init__(self, folder: Path, store: Store, **settings: object) -> None:
        self.folder = folder
        self.store = store
        self.clock = FakeClock()
        self.sink = MemorySink(EMBEDDED)
        self.settings = settings
        self.pages: dict[str, str | int] = {}
        self.links: dict[str, list[str]] = {}
        self.asked: list[tuple[str, bool]] = []
        (folder / "demo").mkdir(exist_ok=True)
        self.write(start=HOME)

    def write(self, *, start: str, rules: str = "") -> None:
        (self.folder / "demo" / "start_urls.txt").write_text(start + "\n")
        (self.folder / "demo" / "crawl.rules").write_text(rules)

    def collection(self) -> Collection:
        names = {name: value for name, value in vars(defaults).items() if name.isupper()}
        given = {"CRAWLSPACE_COLLECTIONS_DIR": str(self.folder), "ROBOTSTXT_OBEY": False, "DOWNLOAD_DELAY": 0, "RETRY_TIMES": 1}
        longest = str(self.settings.get("CRAWLSPACE_REFRESH_MAX", "30d"))
        starts = {"CRAWLSPACE_START_REFRESH": "372h" if longest == "30d" else longest}  # as a new page
        return load_collection("demo", {**names, **given, **starts, **self.settings})

    def open(self) -> Startup:
        return open_engine(self.collection(), store=self.store, sinks=[self.sink], clock=self.clock, spider=self.spider)

    def plan(self) -> Plan:
        """What a start would do to the known URLs."""
        collection = self.collection()
        space = build_space(collection)
        return plan(
            self.store,
            build_known_url_decisions(collection, space, self.store),
            hash=hash_of(collection, space),
            deletion_limit=build_deletion_limit(collection),
            rediscovery=build_rediscovery(collection, space, spider=self.spider),
            depths=pending_depths(self.store, collection),
        )

    def crawl(self, *, after: int = 0) -> Engine:
        """One crawl, that many days after the last; what was asked for is in `asked`, with whether conditionally."""
        self.clock.advance(after * DAY)
        engine = self.open().engine
        self.asked = []
        self.work(engine)
        assert engine.is_done()
        end_run(engine)
        drain_all(engine.deliveries.drains[0])
        engine.close()
        return engine

    def work(self, engine: Engine) -> None:
        """Fetch until nothing is left to do at this moment or soon, with at most `most_requests`."""
        before = len(self.asked)
        while len(self.asked) < before + self.most_requests:
            fetch = engine.next_fetch()
            if fetch is None:
                engine.commit()
                drain_all(engine.deliveries.drains[0])
                wait = engine.wake_in()
                if wait is None or wait > 3600:
                    return
                self.clock.advance(wait)
                continue
            assert isinstance(fetch, FetchPage)
            self.asked.append((fetch.state.url, fetch.conditional))
            engine.fetched(self._answer(fetch))

    def _answer(self, fetch: FetchPage) -> Outcome:
        url = fetch.state.url
        content = self.pages.get(url, 404)
        if isinstance(content, int):
            passes = content in (Status.TIMEOUT, Status.CONNECT_ERROR, Status.LOGGED_OUT, 429)
            kind = OutcomeKind.FAILED if passes else OutcomeKind.GONE
            return Outcome(fetch.state.id, url, kind, content, host_failure=content >= 500)
        if fetch.conditional and fetch.state.etag == content:
            return Outcome(fetch.state.id, url, OutcomeKind.UNCHANGED, 304, conditional=True)
        outcome = Outcome(fetch.state.id, url, OutcomeKind.DOCUMENT, 200, checksum=content.ljust(16).encode(), etag=content)
        outcome.document = Document(url, title=content, text=content)
        outcome.links = self.links.get(url, [])
        return outcome

    def of(self, url: str) -> UrlState:
        """The state of a known URL."""
        state = self.store.get(url)
        assert state is not None
        return state

    def urls(self) -> list[str]:
        """Which pages were asked for in the last crawl, in order."""
        return [url for url, _ in self.asked]

    def asked_for(self, url: str) -> int:
        """How often a page was asked for in the last crawl."""
        return self.urls().count(url)

    @property
    def indexed(self) -> set[str]:
        return {url.removeprefix(HOME) for url in self.sink.documents}

    def held(self) -> dict[str, Held | None]:
        return {state.url.removeprefix(HOME): state.held for state in self.store.urls(held=True)}


@pytest.fixture
def store(local_store: Store) -> Store:
    return local_store


@pytest.fixture
def web(store: Store, tmp_path: Path) -> Web:
    made = Web(tmp_path, store)
    names = [f"{HOME}{number}" for number in range(5)]
    made.pages = {HOME: "home", **{name: name for name in names}}
    made.links = {HOME: names}
    return made


def test_a_refresh_fetches_only_due_pages_and_conditionally(web: Web) -> None:
    web.crawl()
    web.crawl(after=15)
    assert web.asked == []
    web.crawl(after=1)
    assert_same(web.asked, [(url, True) for url in web.pages])
    web.write(start=HOME, rules="forbid prefix http://elsewhere.example/")
    web.crawl(after=31)
    assert_same(web.asked, [(url, False) for url in web.pages])
    web.crawl(after=31)
    assert_same(web.asked, [(url, True) for url in web.pages])


def test_of_too_many_deletions_in_a_run_the_rest_is_held_until_the_page_answers(web: Web) -> None:
    web.settings = {"CRAWLSPACE_MAX_DELETIONS": 2}
    web.crawl()
    web.pages = {HOME: "home"}
    engine = web.crawl(after=31)
    assert len(web.indexed) == 6 - 2
    assert engine.withheld == 3
    held = web.held()
    assert list(held.values()) == [Held.MANY] * 3
    web.crawl(after=31)
    assert web.held() == held, "what is held is not sent by the next run, bit by bit"
    first = next(iter(held))
    web.pages[HOME + first] = "back"
    web.crawl(after=31)
    assert web.held() == {name: Held.MANY for name in held if name != first}
    assert first in web.indexed


def test_a_crawl_that_goes_on_counts_its_deletions_again_each_day(web: Web) -> None:
    web.settings = {"CRAWLSPACE_MAX_DELETIONS": 2, "CRAWLSPACE_CONTINUOUS": True}
    engine = web.open().engine
    web.work(engine)
    assert not engine.is_done(), "it waits for what will be due"
    for number in range(4):
        web.pages[f"{HOME}{number}"] = 404 if number < 2 else f"well {number}"
    web.clock.advance(31 * DAY)
    web.work(engine)
    assert (len(web.indexed), web.held()) == (4, {})
    web.pages = {HOME: "home"}
    web.clock.advance(31 * DAY)
    web.work(engine)
    assert (len(web.indexed), len(web.held())) == (2, 1)


def test_an_outage_of_a_week_costs_nothing_and_a_page_that_stays_broken_leaves(web: Web) -> None:
    web.crawl()
    well = dict(web.pages)
    web.pages = dict.fromkeys(well, 500)
    for _ in range(7):
        web.crawl(after=31)
    assert len(web.indexed) == 6
    assert len(web.held()) == 6
    web.pages = {**well, f"{HOME}3": 500}
    web.crawl(after=31)
    assert web.held() == {"3": Held.HOST}, "its site has failed too often of late to tell"
    for _ in range(3):
        web.crawl(after=31)
    assert_same(web.indexed, ["", "0", "1", "2", "4"])
    assert web.held() == {}


def test_time_outs_are_borne_for_five_runs(web: Web) -> None:
    web.crawl()
    web.pages[f"{HOME}3"] = int(Status.TIMEOUT)
    for _ in range(4):
        web.crawl(after=31)
    assert "3" in web.indexed
    assert web.held() == {}
    web.crawl(after=31)
    assert "3" not in web.indexed


def test_pages_that_nobody_may_see_do_not_take_every_request_of_a_paused_site(web: Web) -> None:
    """A person wanted them first. They are due again hourly, which is how often the site is requested after so many failures."""
    web.settings = {"CRAWLSPACE_CONTINUOUS": True, "CRAWLSPACE_REFRESH_MIN": "1h", "CRAWLSPACE_REFRESH_MAX": "1h"}
    engine = web.open().engine
    web.most_requests = 6
    web.work(engine)
    engine.commit()
    closed, well = [f"{HOME}0", f"{HOME}1"], dict(web.pages)
    ids = [web.of(url).id for url in closed]
    web.store.revise(ids, lambda state: Change(structs.replace(state, requested_by=Requester.PERSON)), now=int(web.clock.now()))
    web.most_requests = 50
    web.pages = {url: int(Status.LOGGED_OUT) if url in closed else 500 for url in well}
    web.work(engine)
    web.pages = well | dict.fromkeys(closed, int(Status.LOGGED_OUT))
    web.work(engine)
    assert set(web.urls()[-50:]) == set(web.pages)


def test_pages_that_nobody_may_see_are_no_failures_of_their_site(web: Web) -> None:
    closed = [f"{HOME}closed/{number}" for number in range(40)]
    web.links[HOME] = [*closed, *web.links[HOME]]
    web.pages |= dict.fromkeys(closed, int(Status.LOGGED_OUT))
    engine = web.crawl()
    assert not engine.given_up_sites
    assert len(web.indexed) == 6


def test_a_page_that_links_to_forgotten_urls_gets_an_unconditional_get_next_time(web: Web) -> None:
    web.crawl()
    web.pages[f"{HOME}3"] = 404
    web.crawl(after=31)
    assert web.store.get(f"{HOME}3") is None
    web.pages[f"{HOME}3"] = "back"
    web.crawl(after=31)
    assert (HOME, True) in web.asked
    web.crawl(after=31)
    assert (HOME, False) in web.asked
    assert "3" in web.indexed


def test_changed_rules_take_out_and_let_in(web: Web) -> None:
    web.crawl()
    web.write(start=HOME, rules=f"forbid prefix {HOME}3")
    opened = web.open()
    assert opened.plan is not None
    assert (opened.plan.excluded, opened.plan.deletions, opened.plan.held) == (1, 1, 0)
    web.work(opened.engine)
    opened.engine.close()
    assert_same(web.indexed, ["", "0", "1", "2", "4"])
    assert web.open().plan is None, "nothing has changed since"
    web.write(start=HOME)
    web.crawl()
    assert_same(web.asked, [(HOME, False), (f"{HOME}3", False)])
    assert "3" in web.indexed


def test_deletions_by_a_mistake_in_the_rules_are_held_until_it_is_fixed(web: Web) -> None:
    web.settings = {"CRAWLSPACE_MAX_DELETIONS": 2}
    web.crawl()
    web.write(start=HOME, rules=f"allow prefix {HOME}0\nforbid prefix {HOME}1\nforbid prefix {HOME}2\nforbid prefix {HOME}3")
    web.crawl(after=31)
    assert web.held() == dict.fromkeys("123", Held.RULES)
    assert_same([url for url, _ in web.asked], [HOME, f"{HOME}0", f"{HOME}4"])
    assert len(web.indexed) == 6
    web.write(start=HOME)
    web.crawl()
    assert web.held() == {}
    assert_same(web.asked, [(HOME, False), *((f"{HOME}{number}", False) for number in (1, 2, 3))])
    assert len(web.indexed) == 6


def test_rules_that_refuse_all_start_urls_change_nothing(web: Web) -> None:
    web.crawl()
    web.write(start=HOME, rules="forbid domain *")
    with pytest.raises(Exception, match="no start URL is in the crawl space"):
        web.open()
    assert len(list(web.store.urls(state=State.DONE))) == 6


def test_a_clock_that_was_set_back_does_not_put_refreshes_off_for_years(web: Web) -> None:
    web.clock.advance(4000 * DAY)
    web.crawl()
    web.clock.advance(-4000 * DAY)
    opened = web.open()
    assert opened.due_earlier == 6
    opened.engine.close()
    web.crawl(after=30)
    assert len(web.asked) == 6


def test_a_shorter_longest_interval_holds_for_what_is_known_already(web: Web) -> None:
    web.crawl()
    web.settings = {"CRAWLSPACE_REFRESH_MAX": "2d"}
    web.crawl(after=3)
    assert web.asked == [], "within two days from the start that is the first to know of it"
    web.crawl(after=3)
    assert len(web.asked) == 6


def test_commands_beside_a_crawl_are_noticed(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db", sinks=(EMBEDDED,))
    beside = SqliteStore(tmp_path / "state.db", sinks=(EMBEDDED,))
    web = Web(tmp_path, store, CRAWLSPACE_CONTINUOUS=True)
    web.pages = {HOME: "home", f"{HOME}0": "zero", f"{HOME}1": "one"}
    web.links = {HOME: [f"{HOME}0"]}
    engine = web.open().engine
    web.work(engine)
    web.asked.clear()
    known = beside.get(f"{HOME}0")
    assert known is not None
    now = int(web.clock.now())
    beside.revise([known.id], lambda state: Change(structs.replace(state, next_fetch=now, rules=0)), now=now)
    beside.discover([new(f"{HOME}1", source=Source.USER)], now=now)
    web.clock.advance(CHECK_EVERY_S)
    web.work(engine)
    assert_same(web.asked, [(f"{HOME}0", False), (f"{HOME}1", False)])
    beside.revise([known.id], lambda state: Change(state, forget=True), now=now)
    web.clock.advance(CHECK_EVERY_S)
    web.work(engine)
    assert_same(web.indexed, ["", "1"])
    store.close()
    beside.close()


MODES = [
    # mode           pending before the next cycle  asked for first  conditionally
    ("append",       True,                          "late",          True),
    ("prioritized",  True,                          "",              True),
    ("scratch",      False,                         "",              False),
    ("soft",         True,                          "late",          None),
]  # fmt: skip


@pytest.mark.parametrize(("mode", "kept", "first", "conditionally"), MODES)
def test_cycles(web: Web, mode: str, kept: bool, first: str, conditionally: bool | None) -> None:
    web.settings = {"CRAWLSPACE_REFRESH_CYCLE": "10d", "CRAWLSPACE_REFRESH_MODE": mode}
    web.crawl()
    web.crawl(after=9)
    assert web.asked == [], "a cycle lasts ten days, whatever the intervals"
    late: NewUrl = new(f"{HOME}late")
    web.pages[late.url] = "late"
    web.store.discover([late], now=int(web.clock.now()))
    web.crawl(after=2)
    asked = [url.removeprefix(HOME) for url, _ in web.asked]
    assert asked[0] == first
    assert ("late" in asked) is kept
    if conditionally is None:
        assert asked == ["late"], "the last cycle is worked off first"
        web.crawl()
        assert len(web.asked) == 7
    else:
        assert len(asked) == 6 + kept
        assert {whether for url, whether in web.asked if url != late.url} == {conditionally}
        web.crawl(after=9)
        assert web.asked == []


def test_orders_go_out_deletions_first(web: Web) -> None:
    web.crawl()
    web.pages |= {f"{HOME}1": 404, f"{HOME}2": "new"}
    web.sink.log.clear()
    web.crawl(after=31)
    assert web.sink.log == [f"delete {HOME}1", f"push {HOME}2"]


def test_an_index_that_is_down_holds_the_crawl_up_only_beyond_the_backlog(web: Web) -> None:
    web.settings = {"CRAWLSPACE_MAX_BACKLOG": 100}
    pages = [f"{HOME}more/{number}" for number in range(130)]
    web.pages |= {url: url for url in pages}
    web.links[HOME] = pages
    web.sink.failures = [IndexUnavailable("it is down")]
    engine = web.open().engine
    for _ in range(1000):
        fetch = engine.next_fetch()
        if fetch is None:
            break
        assert isinstance(fetch, FetchPage)
        engine.fetched(web._answer(fetch))
        engine.commit()
    assert engine.deliveries.blocks_crawl
    assert engine.deliveries.max_backlog == 100, "the crawl went on that far"
    assert (
        engine.deliveries.settle(
            engine.deliveries.drains[0], engine.deliveries.drains[0].deliver(engine.deliveries.drains[0].take())
        ).waiting_s
        is not None
    )
    web.clock.advance(2)
    while batch := engine.deliveries.drains[0].take():
        engine.deliveries.settle(engine.deliveries.drains[0], engine.deliveries.drains[0].deliver(batch))
    assert not engine.deliveries.blocks_crawl
    web.work(engine)
    assert len(web.indexed) == 131


def test_what_a_change_of_the_rules_sends_to_the_index_is_counted_with_the_run(web: Web) -> None:
    leaves, stays = f"{HOME}p/a", f"{HOME}much/longer/copy"
    web.pages, web.links = {HOME: "home", leaves: "same", stays: "same"}, {HOME: [leaves, stays]}
    web.crawl()
    web.write(start=HOME, rules=f"forbid prefix {HOME}p/")
    engine = web.crawl()
    assert (engine.progress.pushes, engine.progress.deletes, web.indexed) == (1, 1, {"", "much/longer/copy"})


# --- rare conditions, over the memory store with a clock that stands still ------------------------------------------


class Picky(MemoryStore):
    """Breaks on documents with a certain title."""

    def record(self, changes: Sequence[Change], *, now: int, health: Mapping[str, Health] | None = None) -> Effects:
        if any(change.document is not None and change.document.title == "breaks" for change in changes):
            raise TypeError("it cannot be packed")
        return super().record(changes, now=now, health=health)


def engine(folder: Path, store: MemoryStore, clock: FakeClock, **given: object) -> Engine:
    (folder / "demo").mkdir(exist_ok=True)
    (folder / "demo" / "start_urls.txt").write_text("http://a.example/1\nhttp://a.example/2\n")
    names = {name: value for name, value in vars(defaults).items() if name.isupper()}
    settings = {**names, "CRAWLSPACE_COLLECTIONS_DIR": str(folder), "ROBOTSTXT_OBEY": False, "DOWNLOAD_DELAY": 0, **given}
    collection = load_collection("demo", settings)
    made = Engine(collection, build_space(collection), store=store, sinks=[MemorySink(EMBEDDED)], clock=clock)
    made.seed()
    return made


def crawl(engine: Engine, titles: dict[str, str]) -> int:
    """Fetch all there is, each URL with its title; return how many were fetched."""
    fetched = 0
    while (fetch := engine.next_fetch()) is not None:
        assert isinstance(fetch, FetchPage)
        title = titles[fetch.state.url]
        outcome = Outcome(fetch.state.id, fetch.state.url, OutcomeKind.DOCUMENT, 200, checksum=title.ljust(16).encode())
        outcome.document = Document(fetch.state.url, title=title)
        engine.fetched(outcome)
        fetched += 1
    engine.commit()
    return fetched


def test_a_page_that_was_not_requested_is_as_before(tmp_path: Path) -> None:
    store, clock = MemoryStore(sinks=(EMBEDDED,)), FakeClock()
    first, second = "http://a.example/1", "http://a.example/2"
    crawled = engine(tmp_path, store, clock)
    for _ in range(crawled.collection.giving_up.failures + 1):
        fetch = crawled.next_fetch()
        assert isinstance(fetch, FetchPage)
        crawled.not_sent(fetch.state.id)
        crawled.not_sent(fetch.state.id)  # the second call has no effect
        assert not crawled.is_done()
    assert crawled.uncommitted == 0
    assert crawled.progress.fetched == 0
    assert crawl(crawled, {first: "a", second: "b"}) == 2
    assert crawled.is_done()


def test_a_robots_txt_that_was_not_requested_is_returned_again(tmp_path: Path) -> None:
    settings = {"ROBOTSTXT_OBEY": True, "CRAWLSPACE_SITEMAP_GUESS": False, "RETRY_TIMES": 0}
    crawled = engine(tmp_path, MemoryStore(sinks=(EMBEDDED,)), FakeClock(), **settings)
    for _ in range(3):
        fetch = crawled.next_fetch()
        assert isinstance(fetch, FetchRobots)
        assert crawled.next_fetch() is None
        crawled.frontier.unblock(fetch.site)
    fetch = crawled.next_fetch()
    assert isinstance(fetch, FetchRobots)
    crawled.robots_read(fetch, status=404, body="")
    assert crawl(crawled, {"http://a.example/1": "a", "http://a.example/2": "b"}) == 2


def test_a_document_that_cannot_be_stored_costs_neither_the_others_nor_what_is_indexed(tmp_path: Path) -> None:
    store, clock = Picky(sinks=(EMBEDDED,)), FakeClock()
    first, second = "http://a.example/1", "http://a.example/2"
    assert crawl(engine(tmp_path, store, clock), {first: "old", second: "old too"}) == 2
    clock.advance(40 * DAY)
    again = engine(tmp_path, store, clock)
    assert crawl(again, {first: "breaks", second: "new"}) == 2
    broken, well = store.get(first), store.get(second)
    assert broken is not None
    assert well is not None
    assert (broken.state, broken.status, broken.indexed) == (State.FAILED, 699, True)
    assert (well.state, well.indexed) == (State.DONE, True)
    assert store.health("a.example:80").answers == 4
    orders: list[IndexOrder] = store.orders(EMBEDDED, 10, now=int(clock.now()))
    assert [(order.op, order.document.title if order.document else "") for order in orders] == [("push", "old"), ("push", "new")]
    assert again.is_done()
