"""What a crawl does about link depths that have grown, and about pages to which no way leads any more."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
from msgspec import structs

from crawlspace.admin.url_changes import UrlChanges
from crawlspace.crawl import startup
from crawlspace.crawl.engine import Engine
from crawlspace.errors import SettingError
from crawlspace.model import Held, State
from crawlspace.state.changes import Change
from crawlspace.state.depths import LOWERED
from crawlspace.state.lifecycle import excluded
from crawlspace.state.store import Store
from crawlspace.status import Status
from tests.conftest import assert_same
from tests.unit.crawl.rule_changes.test_rediscovery import Site
from tests.unit.crawl.test_engine import HOME

A, B, C, D = (f"{HOME}{name}" for name in "abcd")
MONTH = 31


@pytest.fixture
def site(tmp_path: Path, store: Store) -> Site:
    made = Site(tmp_path, store)
    made.write(start=HOME)
    made.pages = {HOME: "home", A: "a", B: "b", C: "c", D: "d"}
    made.links = {HOME: [A, D], A: [B], B: [C], C: [D]}
    return made


def depths(site: Site) -> dict[str, int | None]:
    """By name; None for orphans."""
    return {
        state.url.removeprefix(HOME): None if state.orphaned is not None else state.depth
        for state in sorted(site.store.urls(), key=lambda state: state.url)
        if state.status == 200
    }


def test_a_page_that_came_back_by_a_long_way_is_not_deleted_by_a_limit(site: Site) -> None:
    site.crawl()
    del site.pages[D]
    site.crawl(after=MONTH)
    assert "d" not in depths(site)
    site.pages |= {D: "d", C: "c is new"}
    site.crawl(after=MONTH)  # HOME answers 304, and C names D again
    assert depths(site) == {"": 0, "a": 1, "b": 2, "c": 3, "d": 1}
    site.settings = {"DEPTH_LIMIT": 2}
    assert site.plan().deletions == 1
    site.crawl()
    assert site.indexed == {"", "a", "b", "d"}


def test_links_of_a_page_that_is_read_twice_in_a_run_since_it_shows_the_text_of_another(site: Site) -> None:
    others = {f"{HOME}{number}": f"page {number}" for number in range(30)}
    site.pages |= others  # on a small site nothing is read twice
    site.links[HOME] = [A, D, *others]
    site.crawl()
    assert depths(site)["c"] == 3
    site.pages[D], site.links[D] = "a", [C]
    site.crawl(after=MONTH)
    assert site.asked_for(D) == 2
    assert depths(site)["c"] == 2


def test_what_is_farther_than_the_limit_leaves_at_the_next_start(site: Site) -> None:
    site.settings = {"DEPTH_LIMIT": 3}
    site.crawl()
    assert depths(site) == {"": 0, "a": 1, "b": 2, "c": 3, "d": 1}
    site.pages |= {HOME: "home is new"}
    site.links[HOME] = [D]
    site.links[D] = [A]
    site.pages[D] = "d is new"
    site.crawl(after=MONTH)
    assert depths(site) == {"": 0, "a": 2, "b": 3, "c": 4, "d": 1}
    assert site.indexed == {"", "a", "b", "c", "d"}, "a start says so before"
    plan = site.plan()
    assert (plan.excluded, plan.deletions) == (1, 1)
    site.crawl()
    assert site.indexed == {"", "a", "b", "d"}
    assert not site.plan().has_effect


@pytest.mark.parametrize("rules", ["", "forbid prefix http://elsewhere.example/"])
def test_one_start_url_takes_the_place_of_another_and_nothing_leaves(site: Site, rules: str) -> None:
    """C is at the limit from A, and from HOME by way of D, which only the start URL that is removed had made nearer."""
    site.settings = {"DEPTH_LIMIT": 2}
    site.links = {A: [B, HOME], B: [C], HOME: [D], D: [C]}
    site.write(start=A)
    site.crawl()
    assert depths(site) == {"": 1, "a": 0, "b": 1, "c": 2, "d": 2}
    site.write(start=HOME, rules=rules)
    assert site.plan().deletions == 0
    site.pages[C] = 500
    site.crawl()
    assert site.of(C).indexed
    assert "c" in site.indexed
    assert depths(site) == {"": 0, "a": None, "b": None, "c": 2, "d": 1}
    assert C not in site.urls()


def test_a_plan_knows_what_a_removed_start_url_makes_too_far(site: Site) -> None:
    site.settings = {"DEPTH_LIMIT": 2}
    site.write(start=f"{HOME}\n{B}")
    site.crawl()
    assert depths(site) == {"": 0, "a": 1, "b": 0, "c": 1, "d": 1}
    site.write(start=HOME)
    assert (site.plan().excluded, site.plan().deletions) == (1, 1), "c"
    site.crawl()
    site.crawl()
    assert site.indexed == {"", "a", "b", "d"}


def test_a_depth_that_is_only_marked_deletes_nothing(site: Site) -> None:
    """A crawl that was stopped has settled nothing, when the limit changes."""
    site.crawl()
    del site.pages[D]
    site.crawl(after=MONTH)
    site.pages |= {D: "d", C: "c is new"}
    site.clock.advance(MONTH * 86_400)
    engine = site.open().engine
    site.work(engine)
    engine.close()
    assert depths(site)["d"] == 4
    site.settings = {"DEPTH_LIMIT": 3}
    assert site.plan().deletions == 0
    site.crawl()
    assert depths(site) == {"": 0, "a": 1, "b": 2, "c": 3, "d": 1}


def lose_a(site: Site) -> None:
    site.crawl()
    site.pages[HOME] = "home is new"
    site.links[HOME] = [D]
    site.crawl(after=MONTH)


def test_orphans_are_kept_and_fetched_while_they_answer(site: Site) -> None:
    lose_a(site)
    assert depths(site) == {"": 0, "a": None, "b": None, "c": None, "d": 1}
    assert site.store.counts().orphaned == 3
    for _ in range(3):
        site.crawl(after=MONTH)
        assert A in [url for url, _ in site.asked]
    assert site.indexed == {"", "a", "b", "c", "d"}


def test_orphans_are_deleted_after_some_runs(site: Site) -> None:
    site.settings = {"CRAWLSPACE_ORPHANS": "delete:2"}
    lose_a(site)
    assert site.indexed == {"", "a", "b", "c", "d"}
    engine = site.crawl()
    assert (site.indexed, engine.progress.deletes) == ({"", "d"}, 3)
    assert depths(site) == {"": 0, "d": 1}
    assert site.store.counts().orphaned == 0


def test_an_orphan_that_is_linked_again_stays(site: Site) -> None:
    site.settings = {"CRAWLSPACE_ORPHANS": "delete:2"}
    lose_a(site)
    site.pages[D] = "d is new"
    site.links[D] = [B]
    site.crawl(after=MONTH)
    assert depths(site) == {"": 0, "b": 2, "c": 3, "d": 1}
    assert site.indexed == {"", "b", "c", "d"}


def test_too_many_orphans_are_held(site: Site) -> None:
    site.settings = {"CRAWLSPACE_ORPHANS": "delete:1", "CRAWLSPACE_MAX_DELETIONS": 2}
    lose_a(site)
    assert site.indexed == {"", "a", "b", "c", "d"}
    assert {url for url, held in site.held().items() if held is Held.MANY} == {"a", "b", "c"}
    site.crawl(after=MONTH)
    assert len(site.held()) == 3, "a new run does not delete bit by bit what an earlier one has held"


def hold_orphans(site: Site) -> None:
    site.settings = {"CRAWLSPACE_ORPHANS": "delete:1", "CRAWLSPACE_MAX_DELETIONS": 1, "CRAWLSPACE_START_REFRESH": "1d"}
    lose_a(site)
    assert set(site.held()) == {"a", "b", "c"}


def test_an_orphan_that_is_linked_again_is_held_no_longer(site: Site) -> None:
    """Though it is not due: a person who approves what is held would delete pages that are linked."""
    hold_orphans(site)
    site.pages[HOME] = "home is new again"
    site.links[HOME] = [B, D]
    site.crawl(after=2)
    assert_same([url for url, _ in site.asked], [HOME])
    assert depths(site) == {"": 0, "a": None, "b": 1, "c": 2, "d": 1}
    assert site.held() == {"a": Held.MANY}
    UrlChanges(site.store, clock=site.clock).approve()
    site.crawl(after=MONTH)
    assert site.indexed == {"", "b", "c", "d"}


def test_what_is_held_for_its_own_answer_stays_held_when_a_way_leads_to_it_again(site: Site) -> None:
    hold_orphans(site)
    del site.pages[B]
    site.crawl(after=MONTH)
    site.pages[HOME] = "home is new again"
    site.links[HOME] = [B, C, D]
    site.crawl(after=2)
    assert depths(site) == {"": 0, "a": None, "c": 1, "d": 1}
    assert site.held() == {"a": Held.MANY, "b": Held.MANY}


def test_a_start_url_that_is_removed_becomes_an_orphan(site: Site) -> None:
    other = f"{HOME}other"
    site.pages[other] = "other"
    site.write(start=f"{HOME}\n{other}")
    site.crawl()
    site.write(start=HOME)
    site.crawl()
    assert depths(site) == {"": 0, "a": 1, "b": 2, "c": 3, "d": 1, "other": None}
    site.write(start=f"{HOME}\n{other}")
    site.crawl()
    assert depths(site)["other"] == 0


@pytest.mark.parametrize("value", ["delete", "delete:0", "delete:-1", "delete:x", "forget:1", "", None, 3, True])
def test_wrong_values_of_the_setting(site: Site, value: object) -> None:
    site.settings = {"CRAWLSPACE_ORPHANS": value}
    with pytest.raises(
        SettingError, match=r'CRAWLSPACE_ORPHANS is .*: write "keep", or "delete:3" to delete them after three runs'
    ):
        site.collection()


def test_what_comes_back_into_the_space_without_the_page_that_led_there_is_an_orphan(site: Site) -> None:
    site.crawl()
    site.write(start=HOME, rules=f"forbid prefix {A}\nforbid prefix {B}\nforbid prefix {C}")
    site.crawl()
    site.write(start=HOME, rules=f"forbid prefix {A}\nforbid prefix {C}")
    site.crawl()
    assert depths(site) == {"": 0, "b": None, "d": 1}
    site.write(start=HOME)
    site.crawl()
    assert depths(site) == {"": 0, "a": 1, "b": 2, "c": 3, "d": 1}


def test_an_orphan_that_the_end_of_a_run_finds_near_enough_is_no_orphan_any_more(site: Site) -> None:
    """It was too deep before. Nothing says any more whether the page that led there is a redirect, while its site fails."""
    site.settings = {"CRAWLSPACE_ORPHANS": "delete:2"}
    site.crawl()
    home = site.of(HOME)
    now = int(site.clock.now())
    forbidden = structs.replace(excluded(home, Status.ROBOTS_FORBIDDEN), next_fetch=now + 1)
    site.store.record([Change(forbidden)], now=now)
    site.crawl()
    assert depths(site) == {"a": None, "b": None, "c": None, "d": None}
    site.settings["DEPTH_LIMIT"] = 1
    site.pages |= {HOME: Status.TIMEOUT, A: Status.TIMEOUT}
    site.crawl(after=MONTH)
    b = site.of(B)
    assert (b.state, b.depth, b.orphaned) == (State.PENDING, 1, None)
    assert site.store.counts().orphaned == 1, "c, which is too deep"


class Killed(BaseException):
    pass


@pytest.mark.parametrize("killed_before", ["", "set_depths", "fetch_again"])
def test_what_was_too_deep_is_crawled_when_a_way_leads_again_to_the_orphan_that_links_it(
    site: Site, monkeypatch: pytest.MonkeyPatch, killed_before: str
) -> None:
    site.settings = {"DEPTH_LIMIT": 2}
    site.pages = {HOME: "home", A: "a", B: "b", C: "c", D: "d"}
    site.links = {HOME: [A, B, C], A: [D], B: [C], C: [D]}
    site.crawl()
    site.pages[HOME], site.links[HOME] = "home without A and C", [B]
    site.crawl(after=MONTH)
    assert depths(site) == {"": 0, "a": None, "b": 1, "c": 2, "d": 3}
    site.crawl(after=MONTH)
    assert site.indexed == {"", "a", "b", "c"}
    site.pages[HOME], site.links[HOME] = "home with A again", [A, B]  # A has not changed, and its links are not read again

    def killed(*_: object, linked: bool = killed_before == "set_depths") -> None:
        if linked:  # at the end of the run
            raise Killed

    with monkeypatch.context() as patched:
        if killed_before:
            patched.setattr(Engine if killed_before == "fetch_again" else site.store, killed_before, killed)
        with pytest.raises(Killed) if killed_before else nullcontext():
            site.crawl(after=MONTH)
    assert bool(site.store.get_meta(LOWERED)) == bool(killed_before)
    site.crawl()
    assert depths(site) == {"": 0, "a": 1, "b": 1, "c": 2, "d": 2}
    assert site.indexed == {"", "a", "b", "c", "d"}


@pytest.mark.parametrize("limited_from_the_start", [False, True])
def test_what_a_kill_leaves_of_a_shorter_way_is_made_up_for(
    site: Site, monkeypatch: pytest.MonkeyPatch, *, limited_from_the_start: bool
) -> None:
    """A URL is nearer in one transaction, and what was too deep before is fetched by another one."""
    if not limited_from_the_start:
        site.crawl()
    site.settings = {"DEPTH_LIMIT": 1}
    site.crawl()
    assert site.indexed == {"", "a", "d"}
    site.write(start=f"{HOME}\n{A}")

    def killed(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(startup, "reconcile", killed)
        with pytest.raises(Killed):
            site.open()
    assert site.store.get_meta(LOWERED)
    site.settings = {"DEPTH_LIMIT": 1, "CRAWLSPACE_REDISCOVER": False}
    assert site.plan().has_effect
    site.crawl()
    assert site.indexed == {"", "a", "b", "d"}
    assert not site.store.get_meta(LOWERED)
