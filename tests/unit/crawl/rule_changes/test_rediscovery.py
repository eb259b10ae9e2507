"""A change of a check: its costs in the plan, and which links of archived pages a crawl judges again, which wait for a fetch."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from crawlspace.crawl.conditional import generation
from crawlspace.crawl.rule_changes.archived import PAGES_AT_ONCE, LinkJudging
from crawlspace.crawl.rule_changes.rediscovery import JUDGING, SpiderCode, judging
from crawlspace.crawl.run import FetchPage
from crawlspace.errors import SettingError, StoreDamaged
from crawlspace.model import Held, State, UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.state.changes import Change
from crawlspace.state.store import Store
from tests.conftest import assert_same
from tests.unit.crawl.test_engine import HOME, Web

PAGES = [f"{HOME}{number}" for number in range(200)]
WITH_REFUSED = PAGES[::40]
OTHER = "http://other.example/"
ONLY_HERE = "allow domain a.example\nforbid domain *\n"
BOTH = "allow domain other.example\nallow domain a.example\nforbid domain *\n"


class Site(Web):
    """200 pages, of which 5 have a link to another host."""

    spider = SpiderCode("first")


@pytest.fixture
def site(local_store: Store, tmp_path: Path) -> Site:
    made = Site(tmp_path, local_store)
    made.pages = {HOME: "home", OTHER: "other", **{page: page for page in PAGES}}
    made.links = {HOME: PAGES, **{page: [OTHER] for page in WITH_REFUSED}}
    made.write(start=HOME, rules=ONLY_HERE)
    return made


def test_a_loosened_rule_costs_a_request_for_each_page_with_a_link_refused_by_it(site: Site) -> None:
    site.crawl()
    assert len(site.asked) == 201
    site.write(start=HOME, rules=BOTH)
    assert site.plan().due == 6
    site.crawl()
    assert_same(site.urls(), [HOME, *WITH_REFUSED, OTHER])
    assert all(not conditional for _, conditional in site.asked)
    assert site.plan().due == 0
    site.crawl()
    assert site.asked == []


def test_a_tightened_rule_costs_nothing(site: Site) -> None:
    site.crawl()
    site.write(start=HOME, rules="forbid domain a.other.example\n" + ONLY_HERE)
    assert site.plan().due == 0
    site.crawl()
    assert site.asked == []


def test_a_document_that_was_held_for_a_rule_is_sent_after_its_next_fetch_though_unchanged(site: Site) -> None:
    """A sink that was filled meanwhile does not have it."""
    site.settings = {"CRAWLSPACE_MAX_DELETIONS": 0, "CRAWLSPACE_MAX_DELETIONS_PERCENT": 0}
    site.crawl()
    site.write(start=HOME, rules=f"forbid prefix {PAGES[1]}\n{ONLY_HERE}")
    site.crawl()
    assert PAGES[1].removeprefix(HOME) in site.held()
    held = len(site.held())
    site.write(start=HOME, rules=ONLY_HERE)
    assert (site.crawl().progress.pushes, site.held()) == (held, {})


def test_pages_can_be_left_to_their_own_time(site: Site) -> None:
    site.crawl()
    site.write(start=HOME, rules=BOTH)
    site.settings = {"CRAWLSPACE_REDISCOVER": False}
    assert site.plan().due == 0
    site.crawl()
    assert site.asked == []
    site.crawl(after=31)
    assert OTHER in site.urls()


def test_another_spider_reads_the_start_page_at_once_and_each_page_whole(site: Site) -> None:
    site.crawl()
    before = generation(site.store)
    site.spider = SpiderCode("second")
    assert site.plan().due == 1
    assert generation(site.store) == before
    site.crawl()
    assert site.asked == [(HOME, False)]
    site.crawl(after=31)
    assert_same(site.asked, [(HOME, True), *((page, False) for page in PAGES)])
    site.crawl(after=31)
    assert all(conditional for _, conditional in site.asked)


@pytest.mark.parametrize("spider", ["first", ""])
def test_the_same_spider_or_one_that_is_not_known_changes_nothing(site: Site, spider: str) -> None:
    site.crawl()
    site.spider = SpiderCode(spider)
    assert site.plan().due == 0
    site.crawl()
    assert site.asked == []


def test_start_urls_have_an_interval_of_their_own(site: Site) -> None:
    site.settings = {"CRAWLSPACE_START_REFRESH": "2d"}
    site.crawl()
    site.crawl(after=1)
    assert site.asked == []
    site.crawl(after=1)
    assert site.asked == [(HOME, True)]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"CRAWLSPACE_START_REFRESH": "31d"},
            r"CRAWLSPACE_START_REFRESH \(2678400 s\) is above CRAWLSPACE_REFRESH_MAX \(2592000 s\)",
        ),
        ({"CRAWLSPACE_START_REFRESH": 0}, "CRAWLSPACE_START_REFRESH"),
        ({"CRAWLSPACE_START_REFRESH": "soon"}, "CRAWLSPACE_START_REFRESH"),
        ({"CRAWLSPACE_REDISCOVER": "perhaps"}, "CRAWLSPACE_REDISCOVER"),
    ],
)
def test_wrong_settings(site: Site, settings: dict[str, object], sentence: str) -> None:
    site.settings = settings
    with pytest.raises(SettingError, match=sentence):
        site.collection()


# --- links of archived pages ----------------------------------------------------------------------------------------


ARCHIVED = [f"{HOME}{number}" for number in range(2 * PAGES_AT_ONCE + 3)]
LINKED = [f"http://other.example/{number}" for number in range(len(ARCHIVED))]
ADMITTED = "allow domain other.example\n" + ONLY_HERE
ONE_MORE = "allow domain more.example\n" + ADMITTED
FOLLOWS = SpiderCode("a hash", follows_links=True)


class ArchivedSite(Web):
    """Each page leads to one of another host, and is in the archive."""

    spider = FOLLOWS

    def __init__(self, folder: Path, store: Store) -> None:
        super().__init__(folder, store)
        self.pages = {HOME: "home", **{url: url for url in (*ARCHIVED, *LINKED)}}
        self.links = {HOME: ARCHIVED, **{page: [other] for page, other in zip(ARCHIVED, LINKED, strict=True)}}
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


@pytest.fixture
def archived_site(tmp_path: Path, store: Store) -> ArchivedSite:
    return ArchivedSite(tmp_path, store)


def test_what_comes_into_reach_is_fetched_and_the_pages_are_not(archived_site: ArchivedSite) -> None:
    before = {url: archived_site.of(url) for url in ARCHIVED}
    archived_site.write(start=HOME, rules=ADMITTED)
    archived_site.judge()
    assert_same(archived_site.read, ARCHIVED)
    assert_same(archived_site.urls(), [HOME, *LINKED])
    for url, was in before.items():
        assert archived_site.of(url) == structs.replace(was, refused=None)
    assert archived_site.store.get_meta(JUDGING) == ""
    archived_site.judge()
    assert (archived_site.read, archived_site.asked) == ([], [])


def test_a_page_whose_deletion_is_held_is_fetched(archived_site: ArchivedSite) -> None:
    """At its place is the document of the index, and not its last response."""
    archived_site.revise(lambda state: Change(structs.replace(state, held=Held.MANY)) if state.url == ARCHIVED[0] else None)
    archived_site.write(start=HOME, rules=ADMITTED)
    archived_site.judge()
    assert_same(archived_site.read, ARCHIVED[1:])
    assert_same(archived_site.urls(), [HOME, ARCHIVED[0], *LINKED])


FIELDS = [
    # what the links of pages inherited when these were fetched, and what they are to inherit by the rules of now
    ((), (("dep", "new"),)),
    ((("dep", "old"),), (("dep", "new"),)),
    ((("dep", "old"), ("kind", "ü")), ()),
    ((("dep", "old"),), (("dep", "old"),)),
]


@pytest.mark.parametrize(("before", "now"), FIELDS)
def test_links_inherit_what_they_did_at_the_last_fetch(
    archived_site: ArchivedSite, before: tuple[tuple[str, str], ...], now: tuple[tuple[str, str], ...]
) -> None:
    """Until the page is fetched again: also those that come into reach."""
    archived_site.fields = before
    known, found = ARCHIVED[1], LINKED[0]
    archived_site.links[ARCHIVED[0]] = [found, known]
    archived_site.revise(
        lambda state: Change(structs.replace(state, next_fetch=0, rules=0)) if state.url == ARCHIVED[0] else None
    )
    archived_site.crawl()
    archived_site.archive()
    archived_site.fields = now
    archived_site.not_archived = set(ARCHIVED[1:])
    archived_site.write(start=HOME, rules=ADMITTED)
    archived_site.judge(steps=1)
    expected = dict(before) or None
    assert [(text := archived_site.of(url).inherited) and json.loads(text) for url in (known, found)] == [expected, expected]


def test_a_start_goes_on_where_the_last_one_was_stopped(archived_site: ArchivedSite) -> None:
    archived_site.write(start=HOME, rules=ADMITTED)
    archived_site.judge(steps=1)
    assert_same(archived_site.read, ARCHIVED[:PAGES_AT_ONCE])
    archived_site.judge()
    assert_same(archived_site.read, ARCHIVED[PAGES_AT_ONCE:])
    assert_same(archived_site.urls(), [HOME, *LINKED])


def test_another_change_before_the_end_has_all_pages_judged_by_both(archived_site: ArchivedSite) -> None:
    archived_site.links[ARCHIVED[0]] = [LINKED[0], "http://more.example/"]
    archived_site.write(start=HOME, rules=ADMITTED)
    archived_site.judge(steps=1)
    archived_site.clock.advance(1)
    archived_site.write(start=HOME, rules=ONE_MORE)
    archived_site.judge()
    assert_same(archived_site.read, [ARCHIVED[0], *ARCHIVED[PAGES_AT_ONCE:]])
    assert "http://more.example/" in archived_site.urls()


def test_what_is_not_in_the_archive_is_fetched(archived_site: ArchivedSite) -> None:
    archived_site.not_archived = set(ARCHIVED[:2])
    archived_site.write(start=HOME, rules=ADMITTED)
    archived_site.judge()
    assert_same(archived_site.urls(), [HOME, *ARCHIVED[:2], *LINKED])


def test_pages_without_a_record_and_of_spiders_that_parse_are_due_at_once(archived_site: ArchivedSite) -> None:
    archived_site.spider = SpiderCode("a hash")
    archived_site.write(start=HOME, rules=ADMITTED)
    archived_site.judge()
    assert (archived_site.read, set(archived_site.urls())) == ([], {HOME, *ARCHIVED, *LINKED})


def test_a_page_that_was_fetched_since_is_not_judged_again(archived_site: ArchivedSite) -> None:
    archived_site.write(start=HOME, rules=ADMITTED)
    archived_site.judge(steps=1)
    later = int(archived_site.clock.now()) + 1
    archived_site.revise(lambda state: Change(structs.replace(state, fetched_at=later)) if state.url == ARCHIVED[-1] else None)
    archived_site.judge()
    assert_same(archived_site.read, ARCHIVED[PAGES_AT_ONCE:-1])


def test_links_beyond_the_limit_of_a_host_stay_refused(archived_site: ArchivedSite) -> None:
    archived_site.settings = {"CRAWLSPACE_MAX_URLS_PER_HOST": len(ARCHIVED) + 1}
    archived_site.links[ARCHIVED[0]] = [LINKED[0], f"{HOME}one-more"]
    archived_site.write(start=HOME, rules=ADMITTED)
    archived_site.judge()
    assert archived_site.of(ARCHIVED[0]).refused == "h1"
    assert archived_site.of(ARCHIVED[0]).etag is None
    assert archived_site.store.get(f"{HOME}one-more") is None


@pytest.mark.parametrize(("to", "is_due"), [({"state": State.GONE, "status": 404}, False), ({"retries": 1}, True)])
def test_a_page_that_changes_meanwhile_is_left_to_its_fetch(
    archived_site: ArchivedSite, to: dict[str, Any], *, is_due: bool
) -> None:
    archived_site.write(start=HOME, rules=ADMITTED)
    engine = archived_site.open().engine

    def stored(state: UrlState) -> Outcome | None:
        archived_site.revise(lambda one: Change(structs.replace(one, **to)) if one.id == state.id else None)
        return archived_site.stored(state)

    LinkJudging(engine, stored).step()
    for url in ARCHIVED[:PAGES_AT_ONCE]:
        now = archived_site.of(url)
        assert {name: getattr(now, name) for name in to} == to
        assert ((now.next_fetch or 0) <= archived_site.clock.now()) == is_due
    assert archived_site.store.get(LINKED[0]) is None


def test_a_damaged_note_is_reported(archived_site: ArchivedSite) -> None:
    archived_site.store.set_meta(JUDGING, "[")
    with pytest.raises(StoreDamaged):
        judging(archived_site.store)
