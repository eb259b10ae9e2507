"""What the engine does where a crawl seldom leads: over the memory store, with a clock that stands still."""

from __future__ import annotations

from pathlib import Path

from crawlspace import settings as defaults
from crawlspace.clock import FakeClock
from crawlspace.config.collection import load_collection
from crawlspace.config.sinks import EMBEDDED
from crawlspace.crawl.engine import Engine
from crawlspace.crawl.run import FetchPage, FetchRobots
from crawlspace.crawl.startup import build_space
from crawlspace.document import Document, IndexOrder
from crawlspace.model import State
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.state.changes import Change, Effects
from tests.contract.memory.store import MemoryStore
from tests.contract.sinks import MemorySink

DAY = 86_400


class Picky(MemoryStore):
    """Breaks on documents with a certain title."""

    def record(self, changes: list[Change], *, now: int) -> Effects:  # type: ignore[override]
        if any(change.document is not None and change.document.title == "breaks" for change in changes):
            raise TypeError("it cannot be packed")
        return super().record(changes, now=now)


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
    crawled = engine(tmp_path, MemoryStore(sinks=(EMBEDDED,)), FakeClock(), ROBOTSTXT_OBEY=True, RETRY_TIMES=0)
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
    orders: list[IndexOrder] = store.orders(EMBEDDED, 10, now=int(clock.now()))
    assert [(order.op, order.document.title if order.document else "") for order in orders] == [("push", "old"), ("push", "new")]
    assert again.is_done()
