"""From the item of a fetch to the store and the index."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import crawlspace.runtime.session.index_sending
import crawlspace.runtime.session.recording
from crawlspace.errors import StoreError
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.model import State
from crawlspace.runtime.components.items import Fetched
from pipelines.dedupe import Fingerprint
from pipelines.index import DrainIndex
from pipelines.state import RecordState
from tests.components.conftest import MakeCrawl, OpenCrawl, crawler_of_another

START = "http://shop.example/"


def page(text: str) -> str:
    return f"<title>Page</title><p>{text}</p>"


def prepared(fingerprint: Fingerprint, fetched: Fetched) -> Fetched:
    """Return a fetch with its document and checksum."""
    fingerprint.process_fetch(fetched)
    return fetched


# --- pipelines/dedupe.py ------------------------------------------------------------------------------------------


def test_equal_documents_have_one_checksum(open_crawl: MakeCrawl) -> None:
    crawl = open_crawl(START, f"{START}copy", f"{START}other")
    fingerprint = Fingerprint.from_crawler(crawl.crawler)
    texts = {START: "words", f"{START}copy": "words", f"{START}other": "other words"}
    checksums = {}
    for _ in texts:
        request = crawl.request()
        checksums[request.url] = prepared(fingerprint, crawl.read(request, page(texts[request.url]))).outcome.checksum
    assert checksums[START] == checksums[f"{START}copy"] != checksums[f"{START}other"]


TITLES = (
    ("<title>Title</title><h1>Heading</h1>", "Title"),
    ("<title> </title><h1>Heading</h1>", "Heading"),
    ("<meta property=og:title content=Shared>", "Shared"),
    ("", "Annual report.html"),
)


@pytest.mark.parametrize(("head", "title"), TITLES)
def test_a_document_has_a_title(open_crawl: MakeCrawl, head: str, title: str) -> None:
    crawl = open_crawl(f"{START}x/Annual%20report.html?a=b")
    fetched = crawl.read(crawl.request(), f"{head}<p>words")
    outcome = prepared(Fingerprint.from_crawler(crawl.crawler), fetched).outcome
    assert outcome.document is not None
    assert outcome.document.title == title


def test_equal_pages_without_a_title_have_one_checksum(open_crawl: MakeCrawl) -> None:
    crawl = open_crawl(f"{START}a", f"{START}b")
    fingerprint = Fingerprint.from_crawler(crawl.crawler)
    first, second = (prepared(fingerprint, crawl.read(crawl.request(), "<p>words")).outcome for _ in range(2))
    assert {one.document and one.document.title for one in (first, second)} == {"a", "b"}
    assert first.checksum == second.checksum


def test_an_item_of_fields_is_a_document_and_knows_its_url(open_crawl: MakeCrawl) -> None:
    crawl = open_crawl(START)
    fetched = crawl.read(crawl.request(), page("words"))
    fetched.item = {"title": "Own", "price": 7}
    outcome = prepared(Fingerprint.from_crawler(crawl.crawler), fetched).outcome
    assert fetched.item["url"] == START
    assert outcome.document is not None
    assert (outcome.document.title, outcome.document.text, outcome.document.fields) == ("Own", "words", {"price": "7"})


# --- pipelines/state.py -------------------------------------------------------------------------------------------


class Timers:
    """Calls that are to be made later."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[Callable[[], None]] = []
        monkeypatch.setattr(crawlspace.runtime.session.recording, "call_later", self._later)

    def _later(self, _: float, call: Callable[[], None]) -> SimpleNamespace:
        self.calls.append(call)
        return SimpleNamespace(cancel=lambda: self.calls.remove(call))


@pytest.fixture
def timers(monkeypatch: pytest.MonkeyPatch) -> Timers:
    return Timers(monkeypatch)


def recorded(crawl: OpenCrawl, *, pipeline: RecordState, text: str = "words") -> Any:
    """Fetch the next page and record it; return its item."""
    fetched = prepared(Fingerprint.from_crawler(crawl.crawler), crawl.read(crawl.request(), page(text)))
    pipeline.process_fetch(fetched)
    return fetched.item


def test_an_outcome_waits_for_the_others_of_its_transaction(open_crawl: MakeCrawl, timers: Timers) -> None:
    crawl = open_crawl(START, f"{START}2")
    pipeline = RecordState.from_crawler(crawl.crawler)
    document = recorded(crawl, pipeline=pipeline)
    recorded(crawl, pipeline=pipeline)
    assert document.title == "Page"
    assert (crawl.engine.uncommitted, len(timers.calls)) == (2, 1)
    timers.calls.pop()()
    assert (crawl.engine.uncommitted, crawl.state(START).state) == (0, State.DONE)


def test_a_full_transaction_waits_for_nothing(open_crawl: MakeCrawl, timers: Timers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crawlspace.runtime.session.recording, "BATCH", 2)
    crawl = open_crawl(START, f"{START}2")
    pipeline = RecordState.from_crawler(crawl.crawler)
    waiting = []
    for _ in range(2):
        recorded(crawl, pipeline=pipeline)
        waiting.append(crawl.engine.uncommitted)
    assert waiting == [1, 0]


def test_the_end_records_the_rest_and_leaves_no_timer(open_crawl: MakeCrawl, timers: Timers) -> None:
    crawl = open_crawl(START)
    pipeline = RecordState.from_crawler(crawl.crawler)
    recorded(crawl, pipeline=pipeline)
    pipeline.close_spider()
    assert (crawl.state(START).state, timers.calls) == (State.DONE, [])


def test_an_outcome_without_a_document_is_recorded(open_crawl: MakeCrawl, timers: Timers) -> None:
    crawl = open_crawl(START)
    pipeline = RecordState.from_crawler(crawl.crawler)
    pipeline.process_fetch(crawl.read(crawl.request(), status=404))
    pipeline.close_spider()
    assert crawl.state(START).status == 404


def test_a_page_that_was_not_recorded_at_its_end_is_recorded_as_failed(open_crawl: MakeCrawl, timers: Timers) -> None:
    crawl = open_crawl(START)
    pipeline = RecordState.from_crawler(crawl.crawler)
    fetched = crawl.read(crawl.request(), page("words"))
    pipeline.recorder.ensure(fetched.outcome)
    pipeline.recorder.ensure(fetched.outcome)  # it is not awaited any more
    assert crawl.engine.uncommitted == 1
    pipeline.close_spider()
    assert crawl.state(START).status == 699


# --- pipelines/index.py -------------------------------------------------------------------------------------------


class SlowIndex:
    """The index of a crawl, to which nothing may be sent twice at a time; each sending takes a few turns of the event loop."""

    def __init__(self, crawl: OpenCrawl, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sending = self.most_at_once = 0
        self.tick: Callable[[], None] = lambda: None
        self.file = crawl.session.collection.index_file
        monkeypatch.setattr(crawlspace.runtime.session.index_sending, "deferToThread", self._in_turns)
        monkeypatch.setattr(crawlspace.runtime.session.index_sending, "maybe_deferred_to_future", lambda awaitable: awaitable)
        monkeypatch.setattr(crawlspace.runtime.session.index_sending, "create_looping_call", self._looping)

    def urls(self) -> list[str]:
        index = EmbeddedIndex(self.file, read_only=True)
        try:
            return sorted(index.urls())
        finally:
            index.close()

    async def _in_turns(self, job: Callable[..., Any], *args: Any) -> Any:
        self.sending += 1
        self.most_at_once = max(self.most_at_once, self.sending)
        for _ in range(3):
            await asyncio.sleep(0)
        result = job(*args)
        self.sending -= 1
        return result

    def _looping(self, call: Callable[[], None]) -> SimpleNamespace:
        self.tick = call
        return SimpleNamespace(start=lambda period_s, now: None, running=False)


@pytest.mark.parametrize("turns", range(12), ids="{} turns before the end".format)
def test_a_tick_and_the_end_do_not_send_both(open_crawl: MakeCrawl, monkeypatch: pytest.MonkeyPatch, turns: int) -> None:
    starts = [f"{START}{number}" for number in range(3)]
    crawl = open_crawl(*starts)
    index = SlowIndex(crawl, monkeypatch)
    record = RecordState.from_crawler(crawl.crawler)
    drain = DrainIndex.from_crawler(crawl.crawler)

    async def run() -> None:
        drain.open_spider()
        for url in starts:
            recorded(crawl, pipeline=record, text=url)
        record.close_spider()
        index.tick()  # begins with the loop's next turn
        for _ in range(turns):
            await asyncio.sleep(0)
        await drain.close_spider()
        assert crawl.engine.deliveries.max_backlog == 0
        index.tick()  # one that was due at the same moment
        await all_done()

    asyncio.run(run())
    assert (index.urls(), index.most_at_once) == (starts, 1)


async def all_done() -> None:
    await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))


async def test_the_end_sends_what_is_recorded_only_then(open_crawl: MakeCrawl, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pipelines are closed last first."""
    crawl = open_crawl(START)
    index = SlowIndex(crawl, monkeypatch)
    Timers(monkeypatch)
    recorded(crawl, pipeline=RecordState.from_crawler(crawl.crawler))
    assert crawl.engine.uncommitted == 1
    await DrainIndex.from_crawler(crawl.crawler).close_spider()
    assert index.urls() == [START]


async def test_after_an_error_nothing_is_sent(open_crawl: MakeCrawl, monkeypatch: pytest.MonkeyPatch) -> None:
    crawl = open_crawl(START)
    index = SlowIndex(crawl, monkeypatch)
    Timers(monkeypatch)
    record = RecordState.from_crawler(crawl.crawler)
    recorded(crawl, pipeline=record)
    record.close_spider()
    crawl.session.error = StoreError("full")
    await DrainIndex.from_crawler(crawl.crawler).close_spider()
    assert (index.urls(), index.most_at_once) == ([], 0)


async def test_an_error_after_the_end_closes_nothing_twice(open_crawl: MakeCrawl) -> None:
    async def closed(*, reason: str) -> None:
        raise RuntimeError("Spider not opened")

    crawl = open_crawl(START)
    crawl.crawler.engine = SimpleNamespace(spider=crawl.spider, close_spider_async=closed)
    crawl.session.fail(StoreError("full"), crawl.crawler)
    crawl.crawler.engine.spider = None  # the end came first
    await all_done()
    assert str(crawl.session.error) == "full"


def test_other_spiders_have_nothing_to_send() -> None:
    crawler = crawler_of_another()
    drain = DrainIndex.from_crawler(crawler)
    drain.open_spider()
    asyncio.run(drain.close_spider())
    RecordState.from_crawler(crawler).close_spider()
