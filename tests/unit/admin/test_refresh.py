"""What users are told about when pages are fetched again: it is what the next crawls do."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from crawlspace.admin.refresh import refreshing, soonest_due
from crawlspace.config.sinks import EMBEDDED
from crawlspace.lint.collection import lint_refresh
from tests.contract.memory.store import MemoryStore
from tests.unit.crawl.test_engine import HOME
from tests.unit.crawl.timed.conftest import RefreshedWeb, at

OFF: dict[str, object] = {"CRAWLSPACE_SMART_REFRESH": False}
AT_TWO: dict[str, object] = {"CRAWLSPACE_REFRESH_SCHEDULE": "0 2 * * *"}
CYCLES: dict[str, object] = {"CRAWLSPACE_REFRESH_CYCLE": "0 2 * * *"}


@pytest.fixture
def web(tmp_path: Path) -> RefreshedWeb:
    return RefreshedWeb(tmp_path, MemoryStore(sinks=(EMBEDDED,)))


def local(text: str) -> str:
    return f"{datetime.fromtimestamp(at(text)).astimezone():%Y-%m-%d %H:%M}"


SAID: list[tuple[dict[str, object], str, str, str]] = [
    # settings since the first crawl (2026-05-04 12:00), when that is told, of the collection, of a page
    ({}, "2026-05-04 13:00", "", f"next {local('2026-05-20 00:00')}"),
    (OFF, "2026-05-04 13:00", "smart refresh is off: pages that were fetched are not fetched again, except those that failed",
     "never due by age: smart refresh is off (CRAWLSPACE_SMART_REFRESH), and there is no schedule"),
    ({**OFF, **AT_TWO}, "2026-05-04 13:00", ("smart refresh is off: all known URLs are fetched again by the schedule,"
     f" the next time on {local('2026-05-05 02:00')}"), f"next by the schedule of {local('2026-05-05 02:00')}"),
    ({**OFF, **AT_TWO}, "2026-05-09 13:00", ("smart refresh is off: all known URLs are fetched again by the schedule,"
     f" the next time was missed on {local('2026-05-05 02:00')}: the next start makes up for it"), f"next by the schedule of {local('2026-05-05 02:00')}"),
    ({"CRAWLSPACE_REFRESH_SCHEDULE": "@yearly"}, "2026-05-04 13:00", ("each page is fetched again after its own interval, and all known URLs are"
     f" fetched again by the schedule, the next time on {local('2027-01-01 00:00')}"), f"next {local('2026-05-20 00:00')}"),
    (CYCLES, "2026-05-04 13:00", f"everything known is fetched once in each cycle, the next on {local('2026-05-05 02:00')}",
     f"next in the cycle of {local('2026-05-05 02:00')}"),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "when", "of_all", "of_page"), SAID)
def test_what_is_said(web: RefreshedWeb, settings: dict[str, object], when: str, of_all: str, of_page: str) -> None:
    web.run(**settings)
    web.go_to(when)
    found = refreshing(web.collection().refresh, web.store, now=web.clock.now())
    state = web.of(f"{HOME}1")
    assert found.sentence(web.clock.now()).startswith(of_all)
    assert (found.sentence(web.clock.now()) == "") is (of_all == "")
    assert found.of_url(state).startswith(of_page)


SOONEST: list[tuple[dict[str, object], str | None, str]] = [
    # settings since the first crawl, when the next page is due after it, and its site
    ({}, "2026-05-20 00:00", "a.example:80"),
    (OFF, None, ""),
    ({**OFF, **AT_TWO}, "2026-05-05 02:00", ""),
    ({"CRAWLSPACE_REFRESH_SCHEDULE": "@yearly"}, "2026-05-20 00:00", "a.example:80"),
    (CYCLES, "2026-05-05 02:00", ""),
]


@pytest.mark.parametrize(("settings", "when", "site"), SOONEST)
def test_when_the_next_page_is_due_is_when_the_next_crawl_fetches_one(
    web: RefreshedWeb, settings: dict[str, object], when: str | None, site: str
) -> None:
    web.run(**settings)
    due = soonest_due(web.store, web.collection().refresh, now=web.clock.now())
    if when is None:
        assert due is None
        assert web.run("2036-01-01 12:00") == []
        return
    assert due == (int(at(when)), site)
    web.clock.advance(due[0] - web.clock.now() - 7_200)
    assert web.run() == []
    web.clock.advance(7_200)
    assert web.run() != []


def test_a_scheduled_refresh_that_was_begun_is_told(web: RefreshedWeb) -> None:
    web.run(**OFF, **AT_TWO)
    web.go_to("2026-05-05 03:00")
    engine = web.open().engine
    found = refreshing(web.collection().refresh, web.store, now=web.clock.now())
    assert found.sentence(web.clock.now()).endswith("; one has begun, and is not complete")
    engine._update()
    state = web.of(HOME)
    assert found.of_url(state).startswith(f"next by the schedule, due since {local('2026-05-05 03:00')}")


def test_a_switch_that_the_next_start_makes_is_told(web: RefreshedWeb) -> None:
    web.run()
    assert not refreshing(web.collection().refresh, web.store, now=0).is_switched
    web.settings |= OFF
    assert refreshing(web.collection().refresh, web.store, now=0).is_switched
    assert not refreshing(web.collection().refresh, None, now=0).is_switched
    web.run()
    assert not refreshing(web.collection().refresh, web.store, now=0).is_switched


OWN_INTERVALS: dict[str, object] = {"CRAWLSPACE_SITES": {"a.example": {"refresh_max": "9d"}}}
LINTED: list[tuple[dict[str, object], str]] = [
    ({}, ""),
    (OFF, "pages that were fetched are not fetched again"),
    ({**OFF, **AT_TWO}, ""),
    ({**OFF, **CYCLES}, "has no effect"),
    ({**OFF, **AT_TWO, **OWN_INTERVALS}, "refresh_min and refresh_max of single sites have no effect"),
    ({**OFF, **CYCLES, **OWN_INTERVALS}, "CRAWLSPACE_SMART_REFRESH has no effect"),
    (OWN_INTERVALS, ""),
    (AT_TWO, ""),
]


@pytest.mark.parametrize(("settings", "message"), LINTED)
def test_lint(web: RefreshedWeb, settings: dict[str, object], message: str) -> None:
    web.settings |= settings
    found = list(lint_refresh(web.collection()))
    assert [message in finding.message for finding in found] == ([True] if message else [])
    assert all((finding.level, finding.code) == ("warning", "refresh") for finding in found)
