"""Which links of archived pages are judged again by a crawl, and what is left to a fetch."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from crawlspace.crawl.rule_changes.archived import PAGES_AT_ONCE, LinkJudging
from crawlspace.crawl.rule_changes.rediscovery import JUDGING, SpiderCode, judging
from crawlspace.crawl.run import FetchPage
from crawlspace.crawl.startup import Startup, open_engine
from crawlspace.errors import StoreDamaged
from crawlspace.model import Held, State, UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.state.changes import Change
from crawlspace.state.store import Store
from tests.conftest import assert_same
from tests.unit.crawl.test_engine_life import HOME, Web

PAGES = [f"{HOME}{number}" for number in range(2 * PAGES_AT_ONCE + 3)]
OTHER = [f"http://other.example/{number}" for number in range(len(PAGES))]
ONLY_HERE = "allow domain a.example\nforbid domain *\n"
BOTH = "allow domain other.example\n" + ONLY_HERE
ONE_MORE = "allow domain more.example\n" + BOTH
FOLLOWS = SpiderCode("a hash", follows_links=True)


class ArchivedSite(Web):
    """Each page leads to one of another host, and is in the archive."""

    spider = FOLLOWS

    def __init__(self, folder: Path, store: Store) -> None:
        super().__init__(folder, store)
        self.pages = {HOME: "home", **{url: url for url in (*PAGES, *OTHER)}}
        self.links = {HOME: PAGES, **{page: [other] for page, other in zip(PAGES, OTHER, strict=True)}}
        self.not_archived: set[str] = set()
        self.fields: tuple[tuple[str, str], ...] = ()
        """What links inherit by the rules of now."""
        self.read: list[str] = []
        self.write(start=HOME, rules=ONLY_HERE)
        self.crawl()
        self.archive()

    def archive(self) -> None:
        """Have all pages be archived as they were fetched."""
        self.revise(lambda state: Change(structs.replace(state), archived=100 + state.id))
        self.clock.advance(1)

    def open(self) -> Startup:
        return open_engine(self.collection(), store=self.store, sinks=[self.sink], clock=self.clock, spider=self.spider)

    def _answer(self, fetch: FetchPage) -> Outcome:
        outcome = super()._answer(fetch)
        outcome.link_metadata = self.fields
        return outcome

    def revise(self, change: Callable[[UrlState], Change | None]) -> None:
        self.store.revise([state.id for state in self.store.urls()], change, now=0)

    def stored(self, state: UrlState) -> Outcome | None:
        self.read.append(state.url)
        if state.url in self.not_archived:
            return None
        return Outcome(
            state.id, state.url, OutcomeKind.DOCUMENT, 200, links=self.links.get(state.url, []), link_metadata=self.fields
        )

    def judge(self, *, steps: int = 100) -> None:
        """Crawl, and judge links in so many steps before anything is fetched."""
        engine = self.open().engine
        judged = LinkJudging(engine, self.stored)
        assert engine.is_judging == bool(self.store.get_meta(JUDGING))
        self.asked, self.read = [], []
        assert not (engine.is_done() and engine.is_judging)
        while steps and judged.step():
            steps -= 1
        if steps:
            self.work(engine)
            assert engine.is_done()
        engine.close()

    def urls(self) -> list[str]:
        return [url for url, _ in self.asked]

    def of(self, url: str) -> UrlState:
        state = self.store.get(url)
        assert state is not None
        return state


@pytest.fixture
def site(tmp_path: Path, store: Store) -> ArchivedSite:
    return ArchivedSite(tmp_path, store)


def test_what_comes_into_reach_is_fetched_and_the_pages_are_not(site: ArchivedSite) -> None:
    before = {url: site.of(url) for url in PAGES}
    site.write(start=HOME, rules=BOTH)
    site.judge()
    assert_same(site.read, PAGES)
    assert_same(site.urls(), [HOME, *OTHER])
    for url, was in before.items():
        assert site.of(url) == structs.replace(was, refused=None)
    assert site.store.get_meta(JUDGING) == ""
    site.judge()
    assert (site.read, site.asked) == ([], [])


def test_a_page_whose_deletion_is_held_is_fetched(site: ArchivedSite) -> None:
    """At its place is the document of the index, and not its last response."""
    site.revise(lambda state: Change(structs.replace(state, held=Held.MANY)) if state.url == PAGES[0] else None)
    site.write(start=HOME, rules=BOTH)
    site.judge()
    assert_same(site.read, PAGES[1:])
    assert_same(site.urls(), [HOME, PAGES[0], *OTHER])


FIELDS = [
    # what the links of pages inherited when these were fetched, and what they are to inherit by the rules of now
    ((), (("dep", "new"),)),
    ((("dep", "old"),), (("dep", "new"),)),
    ((("dep", "old"), ("kind", "ü")), ()),
    ((("dep", "old"),), (("dep", "old"),)),
]


@pytest.mark.parametrize(("before", "now"), FIELDS)
def test_links_inherit_what_they_did_at_the_last_fetch(
    site: ArchivedSite, before: tuple[tuple[str, str], ...], now: tuple[tuple[str, str], ...]
) -> None:
    """Until the page is fetched again: also those that come into reach."""
    site.fields = before
    known, found = PAGES[1], OTHER[0]
    site.links[PAGES[0]] = [found, known]
    site.revise(lambda state: Change(structs.replace(state, next_fetch=0, rules=0)) if state.url == PAGES[0] else None)
    site.crawl()
    site.archive()
    site.fields = now
    site.not_archived = set(PAGES[1:])
    site.write(start=HOME, rules=BOTH)
    site.judge(steps=1)
    expected = dict(before) or None
    assert [(text := site.of(url).inherited) and json.loads(text) for url in (known, found)] == [expected, expected]


def test_a_start_goes_on_where_the_last_one_was_stopped(site: ArchivedSite) -> None:
    site.write(start=HOME, rules=BOTH)
    site.judge(steps=1)
    assert_same(site.read, PAGES[:PAGES_AT_ONCE])
    site.judge()
    assert_same(site.read, PAGES[PAGES_AT_ONCE:])
    assert_same(site.urls(), [HOME, *OTHER])


def test_another_change_before_the_end_has_all_pages_judged_by_both(site: ArchivedSite) -> None:
    site.links[PAGES[0]] = [OTHER[0], "http://more.example/"]
    site.write(start=HOME, rules=BOTH)
    site.judge(steps=1)
    site.clock.advance(1)
    site.write(start=HOME, rules=ONE_MORE)
    site.judge()
    assert_same(site.read, [PAGES[0], *PAGES[PAGES_AT_ONCE:]])
    assert "http://more.example/" in site.urls()


def test_what_is_not_in_the_archive_is_fetched(site: ArchivedSite) -> None:
    site.not_archived = set(PAGES[:2])
    site.write(start=HOME, rules=BOTH)
    site.judge()
    assert_same(site.urls(), [HOME, *PAGES[:2], *OTHER])


def test_pages_without_a_record_and_of_spiders_that_parse_are_due_at_once(site: ArchivedSite) -> None:
    site.spider = SpiderCode("a hash")
    site.write(start=HOME, rules=BOTH)
    site.judge()
    assert (site.read, set(site.urls())) == ([], {HOME, *PAGES, *OTHER})


def test_a_page_that_was_fetched_since_is_not_judged_again(site: ArchivedSite) -> None:
    site.write(start=HOME, rules=BOTH)
    site.judge(steps=1)
    later = int(site.clock.now()) + 1
    site.revise(lambda state: Change(structs.replace(state, fetched_at=later)) if state.url == PAGES[-1] else None)
    site.judge()
    assert_same(site.read, PAGES[PAGES_AT_ONCE:-1])


def test_links_beyond_the_limit_of_a_host_stay_refused(site: ArchivedSite) -> None:
    site.settings = {"CRAWLSPACE_MAX_URLS_PER_HOST": len(PAGES) + 1}
    site.links[PAGES[0]] = [OTHER[0], f"{HOME}one-more"]
    site.write(start=HOME, rules=BOTH)
    site.judge()
    assert site.of(PAGES[0]).refused == "h1"
    assert site.of(PAGES[0]).etag is None
    assert site.store.get(f"{HOME}one-more") is None


@pytest.mark.parametrize(("to", "is_due"), [({"state": State.GONE, "status": 404}, False), ({"retries": 1}, True)])
def test_a_page_that_changes_meanwhile_is_left_to_its_fetch(site: ArchivedSite, to: dict[str, Any], *, is_due: bool) -> None:
    site.write(start=HOME, rules=BOTH)
    engine = site.open().engine

    def stored(state: UrlState) -> Outcome | None:
        site.revise(lambda one: Change(structs.replace(one, **to)) if one.id == state.id else None)
        return site.stored(state)

    LinkJudging(engine, stored).step()
    for url in PAGES[:PAGES_AT_ONCE]:
        now = site.of(url)
        assert {name: getattr(now, name) for name in to} == to
        assert ((now.next_fetch or 0) <= site.clock.now()) == is_due
    assert site.store.get(OTHER[0]) is None


def test_a_damaged_note_is_reported(site: ArchivedSite) -> None:
    site.store.set_meta(JUDGING, "[")
    with pytest.raises(StoreDamaged):
        judging(site.store)
