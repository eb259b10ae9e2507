"""What a change of a check costs: the pages that had links refused by it, and the start URLs; the plan says as much."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlspace.crawl.conditional import generation
from crawlspace.crawl.depths.end_of_run import pending_depths
from crawlspace.crawl.rule_changes.reconcile import plan
from crawlspace.crawl.rule_changes.rediscovery import SpiderCode
from crawlspace.crawl.rule_changes.survey import Plan
from crawlspace.crawl.startup import (
    Startup,
    build_deletion_limit,
    build_known_url_decisions,
    build_rediscovery,
    build_space,
    hash_of,
    open_engine,
)
from crawlspace.errors import SettingError
from crawlspace.state.store import Store
from tests.conftest import assert_same
from tests.unit.crawl.test_engine_life import HOME, Web

PAGES = [f"{HOME}{number}" for number in range(200)]
WITH_REFUSED = PAGES[::40]
OTHER = "http://other.example/"
ONLY_HERE = "allow domain a.example\nforbid domain *\n"
BOTH = "allow domain other.example\nallow domain a.example\nforbid domain *\n"


class Site(Web):
    """200 pages, of which 5 have a link to another host."""

    spider = "first"

    def open(self) -> Startup:
        return open_engine(
            self.collection(), store=self.store, sinks=[self.sink], clock=self.clock, spider=SpiderCode(self.spider)
        )

    def plan(self) -> Plan:
        collection = self.collection()
        space = build_space(collection)
        return plan(
            self.store,
            build_known_url_decisions(collection, space, self.store),
            hash=hash_of(collection, space),
            deletion_limit=build_deletion_limit(collection),
            rediscovery=build_rediscovery(collection, space, spider=SpiderCode(self.spider)),
            depths=pending_depths(self.store, collection),
        )

    def urls(self) -> list[str]:
        return [url for url, _ in self.asked]


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
    site.spider = "second"
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
    site.spider = spider
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
