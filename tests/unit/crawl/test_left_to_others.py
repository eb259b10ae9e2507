"""A document at 761 is in the index, left there for another collection: said, counted, and its deletion is one like any other."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlspace.admin.report import known, known_urls, report
from crawlspace.admin.url_changes import UrlChanges
from crawlspace.model import Held, State
from crawlspace.state.store import Store
from tests.unit.crawl.test_engine import HOME, Web

MANY = 5
SALES = [f"http://sales.example/{number}" for number in range(MANY)]
FORBIDDEN = "forbid domain sales.example"


class TwoCollections(Web):
    """Pages of another host that another collection takes over, and gives up again."""

    deleted = 0
    """In the last run."""

    def write_global(self, rules: str) -> None:
        (self.folder / "demo" / "global.rules").write_text(rules)

    @property
    def sales(self) -> int:
        """Documents of the other host in the index."""
        return sum("sales" in url for url in self.sink.documents)

    def start(self) -> tuple[int, int, int]:
        """Start, and fetch what is due: documents the plan deletes, those it holds, those of the other host in the index then."""
        foretold, opened = self.plan(), self.open()
        assert (opened.plan or foretold) == foretold
        self.work(opened.engine)
        self.deleted = opened.engine.progress.deletes
        opened.engine.close()
        return foretold.deletions, foretold.held, self.sales


@pytest.fixture
def web(local_store: Store, tmp_path: Path) -> TwoCollections:
    made = TwoCollections(tmp_path, local_store)
    made.pages = {HOME: "home", **{url: f"sales {url}" for url in SALES}}
    made.links = {HOME: SALES}
    made.settings = {"CRAWLSPACE_MAX_DELETIONS": MANY}
    made.write_global("allow domain sales.example\nallow domain a.example")
    made.crawl()
    made.write(start=HOME, rules=FORBIDDEN)
    made.crawl()
    return made


def test_documents_left_to_others_are_reported_and_counted(web: TwoCollections) -> None:
    assert web.sales == MANY
    numbers = report("demo", web.store)
    assert (numbers.documents, numbers.left_to_others, numbers.as_json()["index"]) == (
        1,
        MANY,
        {"documents": 1, "duplicates": 0, "left_to_others": MANY, "lost": 0, "outbox": 0, "held": 0, "parked": 0},
    )
    state = web.of(SALES[0])
    assert known(state, web.store).left_to_others
    assert [one.as_json()["left_to_others"] for one in known_urls(web.store)] == [False] + [True] * MANY
    assert [one.left_to_others for one in web.store.scan(0, 99)] == [False] + [True] * MANY


def test_a_host_that_leaves_the_global_rules_is_a_deletion_like_any_other(web: TwoCollections) -> None:
    web.write_global("allow domain a.example")
    assert web.start() == (MANY, 0, 0)
    assert report("demo", web.store).left_to_others == 0
    assert web.deleted == MANY


@pytest.fixture
def held(web: TwoCollections) -> TwoCollections:
    web.settings = {"CRAWLSPACE_MAX_DELETIONS": MANY - 1}
    web.write_global("allow domain a.example")
    assert web.start() == (MANY, MANY, MANY)
    return web


def test_too_many_are_held_and_shown(held: TwoCollections) -> None:
    assert [state.held for state in held.store.urls(held=True)] == [Held.RULES] * MANY
    assert [(one.held, one.left_to_others) for one in known_urls(held.store, held=True)] == [(Held.RULES, True)] * MANY
    numbers = report("demo", held.store)
    assert (numbers.held, sum(held.store.held_numbers().values()), numbers.left_to_others) == ({Held.RULES: MANY}, MANY, MANY)
    assert not held.plan().changed, "it was done as far as it may be"


def test_what_is_held_leaves_when_approved(held: TwoCollections) -> None:
    assert UrlChanges(held.store, clock=held.clock).approve().changed == MANY
    held.crawl()
    assert (held.sales, sum(held.store.held_numbers().values()), held.store.counts().left_to_others) == (0, 0, 0)
    assert {state.status for state in held.store.urls() if state.url in SALES} == {760}


def test_what_is_discarded_is_held_again_by_the_next_start(held: TwoCollections) -> None:
    assert UrlChanges(held.store, clock=held.clock).discard().changed == MANY
    assert (sum(held.store.held_numbers().values()), held.store.counts().left_to_others) == (0, MANY)
    assert held.start() == (MANY, MANY, MANY)


def test_a_host_that_the_global_rules_have_again_loses_its_hold(held: TwoCollections) -> None:
    held.write_global("allow domain sales.example\nallow domain a.example")
    assert held.start() == (0, 0, MANY)
    assert (sum(held.store.held_numbers().values()), held.store.counts().left_to_others) == (0, MANY)


@pytest.mark.parametrize("is_held", [False, True])
def test_a_host_that_comes_back_into_the_space_is_crawled_again(web: TwoCollections, *, is_held: bool) -> None:
    if is_held:
        web.settings = {"CRAWLSPACE_MAX_DELETIONS": MANY - 1}
        web.write_global("allow domain a.example")
        web.start()
    web.write(start=HOME)
    assert web.start() == (0, 0, MANY)
    assert (web.store.counts().indexed, web.store.counts().left_to_others, sum(web.store.held_numbers().values())) == (
        1 + MANY,
        0,
        0,
    )
    assert {state.held for state in web.store.urls()} == {None}


def test_what_comes_back_and_is_excluded_before_it_is_fetched_stays_held(web: TwoCollections) -> None:
    web.write(start=HOME)
    web.open().engine.close()
    web.settings = {"CRAWLSPACE_MAX_DELETIONS": MANY - 1}
    web.write(start=HOME, rules="forbid prefix http://sales.example/")
    assert web.start() == (MANY, MANY, MANY)
    assert [(state.status, state.held) for state in web.store.urls(held=True)] == [(760, Held.RULES)] * MANY
    web.crawl(after=1)
    assert (web.sales, sum(web.store.held_numbers().values())) == (MANY, MANY)
    assert UrlChanges(web.store, clock=web.clock).approve().changed == MANY
    web.crawl()
    assert (web.sales, sum(web.store.held_numbers().values())) == (0, 0)


@pytest.mark.parametrize("status", [404, 410])
def test_pages_that_come_back_and_are_no_documents_any_more_count_towards_the_limit(web: TwoCollections, status: int) -> None:
    web.settings = {"CRAWLSPACE_MAX_DELETIONS": MANY - 2}
    web.pages.update(dict.fromkeys(SALES, status))
    web.write(start=HOME)
    engine = web.crawl()
    assert (engine.deleted, engine.withheld, web.sales) == (MANY - 2, 2, 2)
    assert [state.held for state in web.store.urls(held=True)] == [Held.MANY] * 2
    web.crawl(after=31)
    assert web.sales == 2, "until it is approved, or the page answers"
    UrlChanges(web.store, clock=web.clock).discard()
    assert web.store.counts().left_to_others == 2
    web.pages.update({url: f"again {url}" for url in SALES})
    web.crawl(after=62)
    states = [state for state in web.store.urls() if state.url in SALES and state.state is State.DONE]
    assert (len(states) >= 2, sum(web.store.held_numbers().values()), web.store.counts().left_to_others) == (True, 0, 0)
