"""A page that was fetched and could not be rendered (617): nothing is lost, no site is blamed, and the next run tries it again."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlspace.clock import FakeClock
from crawlspace.config.sinks import EMBEDDED
from crawlspace.crawl.engine import Engine
from crawlspace.crawl.run import FetchPage
from crawlspace.errors import SettingError
from crawlspace.model import Held, State, UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.state.error_policy import read_error_rules
from crawlspace.status import Status
from tests.contract.memory.store import MemoryStore
from tests.unit.crawl.test_engine import DAY, crawl, engine

FIRST, SECOND = "http://a.example/1", "http://a.example/2"


def fetches(crawled: Engine) -> list[UrlState]:
    """Have all that is to be fetched not be rendered; return it as it was before."""
    found = []
    while (fetch := crawled.next_fetch()) is not None:
        assert isinstance(fetch, FetchPage)
        outcome = Outcome(fetch.state.id, fetch.state.url, OutcomeKind.FAILED, Status.NOT_RENDERED, detail="time-out")
        assert crawled.fetched(outcome)
        crawled.commit()
        found.append(fetch.state)
    return found


def row(store: MemoryStore, url: str) -> UrlState:
    found = store.get(url)
    assert found is not None
    return found


def test_a_new_page_waits_for_the_next_run(tmp_path: Path) -> None:
    store, clock = MemoryStore(sinks=(EMBEDDED,)), FakeClock()
    crawled = engine(tmp_path, store, clock)
    assert [state.url for state in fetches(crawled)] == [FIRST, SECOND]
    crawled.frontier.recheck_sites()
    assert fetches(crawled) == []
    assert crawled.is_done()
    assert crawled.progress.by_status == {617: 2}
    assert [(one.state, one.status, one.checksum) for one in (row(store, FIRST), row(store, SECOND))] == [
        (State.FAILED, 617, None)
    ] * 2
    clock.advance(5)
    again = engine(tmp_path, store, clock)
    assert crawl(again, {FIRST: "a", SECOND: "b"}) == 2
    assert row(store, FIRST).state is State.DONE


def test_however_often_it_fails_its_document_stays(tmp_path: Path) -> None:
    store, clock = MemoryStore(sinks=(EMBEDDED,)), FakeClock()
    assert crawl(engine(tmp_path, store, clock), {FIRST: "a", SECOND: "b"}) == 2
    before = row(store, FIRST)
    for _ in range(12):
        clock.advance(40 * DAY)
        crawled = engine(tmp_path, store, clock)
        assert len(fetches(crawled)) == 2
        assert crawled.is_done()
        assert not crawled.given_up_sites
        assert (crawled.progress.deletes, crawled.unanswered_sites()) == (0, {})
    after = row(store, FIRST)
    assert (after.state, after.status, after.errors, after.held, after.indexed) == (State.FAILED, 617, 0, None, True)
    assert (after.checksum, after.interval_s, after.etag) == (before.checksum, before.interval_s, before.etag)
    assert [order.op for order in store.orders(EMBEDDED, 10, now=int(clock.now()))] == ["push", "push"]
    clock.advance(1)
    assert crawl(engine(tmp_path, store, clock), {FIRST: "a", SECOND: "b"}) == 2
    assert row(store, FIRST).status == 200


def test_what_was_held_before_is_neither_confirmed_nor_dropped(tmp_path: Path) -> None:
    store, clock = MemoryStore(sinks=(EMBEDDED,)), FakeClock()
    crawl(engine(tmp_path, store, clock), {FIRST: "a", SECOND: "b"})
    for _ in range(6):
        clock.advance(40 * DAY)
        crawled = engine(tmp_path, store, clock, RETRY_TIMES=0)
        while (fetch := crawled.next_fetch()) is not None:
            assert isinstance(fetch, FetchPage)
            crawled.fetched(Outcome(fetch.state.id, fetch.state.url, OutcomeKind.FAILED, 503, host_failure=True))
        crawled.commit()
    held = row(store, FIRST)
    assert (held.held, held.errors) == (Held.HOST, 6)
    clock.advance(40 * DAY)
    fetches(engine(tmp_path, store, clock))
    after = row(store, FIRST)
    assert (after.held, after.held_mark, after.errors, after.status) == (Held.HOST, held.held_mark, 6, 617)


def test_many_in_a_row_are_no_failure_of_the_site(tmp_path: Path) -> None:
    store, clock = MemoryStore(sinks=(EMBEDDED,)), FakeClock()
    crawled = engine(tmp_path, store, clock, CRAWLSPACE_START_URLS=[f"http://a.example/{number}" for number in range(60)])
    assert len(fetches(crawled)) == 60
    assert not crawled.given_up_sites


def test_a_crawl_that_does_not_end_tries_again_after_a_while(tmp_path: Path) -> None:
    store, clock = MemoryStore(sinks=(EMBEDDED,)), FakeClock()
    crawled = engine(tmp_path, store, clock, CRAWLSPACE_CONTINUOUS=True)
    assert len(fetches(crawled)) == 2
    clock.advance(60)
    assert fetches(crawled) == []
    clock.advance(3_600)
    assert len(fetches(crawled)) == 2


@pytest.mark.parametrize("code", [616, 617])
def test_no_setting_makes_it_delete(code: int) -> None:
    with pytest.raises(SettingError, match="which names no error"):
        read_error_rules({str(code): "DELETE"})
