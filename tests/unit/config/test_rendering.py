"""Settings on rendering and on refresh: their meaning, and how mistakes in them are named."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from crawlspace import settings as defaults
from crawlspace.config.collection import Collection, load_collection
from crawlspace.config.refresh import CYCLE, SCHEDULE, SMART, read_refresh
from crawlspace.config.sites import SiteRendering
from crawlspace.decision import Render
from crawlspace.errors import SettingError
from crawlspace.settings import BrowserSettings
from tests.unit.config.conftest import settings

APP = {"app.example": {"render": "Always", "render_hosts": "*.cdn.example, api.example:8443", "render_wait_for": " #content "}}


def demo(folder: Path, **own: object) -> Collection:
    return load_collection("demo", settings(folder, **own))


def test_nothing_is_rendered_by_default(collections: Path) -> None:
    found = demo(collections)
    assert not found.renders
    assert found.sites.of("a.example", 443).rendering == SiteRendering()
    assert found.browser == BrowserSettings(
        executable="", pages=4, timeout_s=30.0, max_pages=500, memory_bytes=1536 * 1024 * 1024
    )


def test_a_site_has_rendering_of_its_own(collections: Path) -> None:
    found = demo(collections, CRAWLSPACE_SITES=APP, CRAWLSPACE_RENDER="auto", CRAWLSPACE_RENDER_HOSTS=["static.example"])
    own = found.sites.of("app.example", 443).rendering
    assert (own.mode, own.hosts, own.wait_for) == (Render.ALWAYS, ("*.cdn.example", "api.example:8443"), "#content")
    assert (own.where, own.sets_mode, own.sets_hosts) == ("CRAWLSPACE_SITES['app.example']['render']", True, True)
    matcher = own.load_matcher()
    assert [matcher.match(host, 443) is not None for host in ("x.CDN.example", "cdn.example", "api.example")] == [
        True,
        False,
        False,
    ]
    other = found.sites.of("a.example", 443).rendering
    assert (other.mode, other.hosts, other.where) == (Render.AUTO, ("static.example",), "CRAWLSPACE_RENDER")


def test_a_site_takes_over_what_it_does_not_set(collections: Path) -> None:
    sites = {"a.example": {"render": "never"}, "b.example": {"render_hosts": []}, "c.example": {"delay": 1}}
    found = demo(
        collections,
        CRAWLSPACE_SITES=sites,
        CRAWLSPACE_RENDER="always",
        CRAWLSPACE_RENDER_HOSTS="x.example",
        CRAWLSPACE_RENDER_WAIT_FOR="main",
    )
    got = [found.sites.of(host, 80).rendering for host in sites]
    assert [(one.mode.value, one.hosts, one.wait_for) for one in got] == [
        ("never", ("x.example",), "main"),
        ("always", (), "main"),
        ("always", ("x.example",), "main"),
    ]


RULES = '<Rules><Rule><Path val="/"/><Render mode="{}"/></Rule></Rules>'


@pytest.mark.parametrize(
    ("own", "rule", "renders"),
    [
        ({"CRAWLSPACE_RENDER": "auto"}, "", True),
        ({"CRAWLSPACE_SITES": APP}, "", True),
        ({}, "always", True),
        ({}, "auto", True),
        ({}, "never", False),
        ({"CRAWLSPACE_SITES": {"a.example": {"render": "never"}}}, "", False),
    ],
)
def test_whether_anything_is_rendered(collections: Path, own: dict[str, object], rule: str, renders: bool) -> None:
    if rule:
        (collections / "demo" / "rules.xml").write_text(RULES.format(rule))
    assert demo(collections, **own).renders is renders


def test_pages_are_fetched_again_where_they_are_rendered_otherwise(collections: Path) -> None:
    hashes = [
        demo(collections, **own).content_hash
        for own in (
            {},
            {"CRAWLSPACE_RENDER_HOSTS": ["x.example"]},  # nothing is rendered: it has no effect
            {"CRAWLSPACE_RENDER": "auto"},
            {"CRAWLSPACE_RENDER": "auto", "CRAWLSPACE_RENDER_HOSTS": ["x.example"]},
            {"CRAWLSPACE_RENDER": "auto", "CRAWLSPACE_RENDER_WAIT_FOR": "main"},
            {"CRAWLSPACE_SITES": APP},
        )
    ]
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 5


WRONG: list[tuple[dict[str, object], str]] = [
    ({"CRAWLSPACE_RENDER": "yes"}, "CRAWLSPACE_RENDER is 'yes'; it must be one of always, auto, never"),
    ({"CRAWLSPACE_RENDER": True}, "CRAWLSPACE_RENDER is True; it must be one of always, auto, never"),
    ({"CRAWLSPACE_RENDER_HOSTS": 3}, "CRAWLSPACE_RENDER_HOSTS is 3; it must be a list of words"),
    ({"CRAWLSPACE_RENDER_HOSTS": ["a b"]}, "CRAWLSPACE_RENDER_HOSTS has 'a b'; it must hold hosts"),
    ({"CRAWLSPACE_RENDER_HOSTS": ["http://a/"]}, "CRAWLSPACE_RENDER_HOSTS has 'http://a/': "),
    ({"CRAWLSPACE_RENDER_WAIT_FOR": 3}, "CRAWLSPACE_RENDER_WAIT_FOR is 3; it must be a text"),
    ({"CRAWLSPACE_RENDER_WAIT_FOR": "p["}, "CRAWLSPACE_RENDER_WAIT_FOR is 'p[', which is no CSS selector: "),
    ({"CRAWLSPACE_SITES": {"a": {"render": None}}}, "CRAWLSPACE_SITES['a']['render'] is None; it must be one of always,"),
    ({"CRAWLSPACE_SITES": {"a": {"render_hosts": ["x:y"]}}}, "CRAWLSPACE_SITES['a']['render_hosts'] has 'x:y': "),
    ({"CRAWLSPACE_SITES": {"a": {"render_wait_for": ">"}}}, "CRAWLSPACE_SITES['a']['render_wait_for'] is '>', which is no"),
    ({"CRAWLSPACE_BROWSER": 3}, "CRAWLSPACE_BROWSER is 3; it must be a text"),
    ({"CRAWLSPACE_BROWSER_PAGES": 0}, "CRAWLSPACE_BROWSER_PAGES is 0; it must be from 1 to 64"),
    ({"CRAWLSPACE_BROWSER_TIMEOUT": "0s"}, "CRAWLSPACE_BROWSER_TIMEOUT is '0s'; it must be at least 1 s"),
    ({"CRAWLSPACE_BROWSER_MAX_PAGES": 0}, "CRAWLSPACE_BROWSER_MAX_PAGES is 0; it must be at least 1"),
    ({"CRAWLSPACE_BROWSER_MEMORY": "1GB"}, "CRAWLSPACE_BROWSER_MEMORY is '1GB'; it must be a whole number at least 268435456"),
]


@pytest.mark.parametrize(("own", "sentence"), WRONG)
def test_wrong_settings_of_rendering(collections: Path, own: dict[str, object], sentence: str) -> None:
    with pytest.raises(SettingError) as caught:
        demo(collections, **own)
    assert sentence in str(caught.value)


# --- refresh --------------------------------------------------------------------------------------------------------


GIVEN = {
    CYCLE: defaults.CRAWLSPACE_REFRESH_CYCLE,
    SCHEDULE: defaults.CRAWLSPACE_REFRESH_SCHEDULE,
    SMART: defaults.CRAWLSPACE_SMART_REFRESH,
}

READ: list[tuple[dict[str, object], bool, bool, int | None, str | None]] = [
    # settings, whether age counts, whether a page is ever fetched again, seconds of a cycle, expression of cycle or schedule
    ({}, True, True, None, None),
    ({SMART: "no"}, False, False, None, None),
    ({SMART: False, SCHEDULE: "@daily"}, False, True, None, "0 0 * * *"),
    ({SCHEDULE: " 0 2  * * sun "}, True, True, None, "0 2 * * sun"),
    ({SMART: False, CYCLE: 90}, True, True, 5400, None),
    ({CYCLE: "0 2 * * *"}, True, True, 0, "0 2 * * *"),
    ({CYCLE: "@hourly", SCHEDULE: None}, True, True, 0, "0 * * * *"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "age", "ever", "every_s", "expression"), READ)
def test_settings(given: dict[str, object], age: bool, ever: bool, every_s: int | None, expression: str | None) -> None:
    read = read_refresh({**GIVEN, "CRAWLSPACE_TIMEZONE": "UTC", **given})
    assert (read.has_due_times, read.is_ever) == (age, ever)
    assert (None if read.cycle is None else read.cycle.every_s) == every_s
    cron = read.schedule or (read.cycle.cron if read.cycle is not None else None)
    assert (None if cron is None else cron.expression) == expression


WRONG_REFRESH: list[tuple[dict[str, object], str]] = [
    ({CYCLE: "0 25 * * *"}, f"{CYCLE} is '0 25 * * *'; an hour is from 0 to 23"),
    ({CYCLE: "0 2 * *"}, f"{CYCLE} is '0 2 * *'; it must be minute, hour"),
    ({CYCLE: "nightly"}, f"{CYCLE} is 'nightly'; it must be minutes, or text like"),
    ({SCHEDULE: "24h"}, f"{SCHEDULE} is '24h'; it must be minute, hour"),
    ({SCHEDULE: 1440}, f"{SCHEDULE} is 1440; it must be minute, hour"),
    ({SCHEDULE: "0 0 31 2 *"}, f"{SCHEDULE} is '0 0 31 2 *'; a day of the month is from 1 to 31, and one of its months has it"),
    ({SCHEDULE: "@daily", CYCLE: "24h"}, f"{SCHEDULE} is '@daily', and {CYCLE} is '24h': both have all known pages fetched again"),
    ({SMART: "perhaps"}, f"{SMART} is 'perhaps'; it must be True or False"),
    ({SCHEDULE: "@daily", "CRAWLSPACE_TIMEZONE": "Berlin"}, "CRAWLSPACE_TIMEZONE is 'Berlin', an unknown time zone"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "message"), WRONG_REFRESH)
def test_mistakes(given: dict[str, object], message: str) -> None:
    with pytest.raises(SettingError) as raised:
        read_refresh({**GIVEN, "CRAWLSPACE_TIMEZONE": "UTC", **given})
    assert str(raised.value).startswith(message)


def test_a_cycle_follows_another_by_minutes_or_at_the_next_time() -> None:
    began = datetime(2026, 5, 4, 13, 30, tzinfo=UTC).timestamp()
    by_minutes = read_refresh({**GIVEN, "CRAWLSPACE_TIMEZONE": "UTC", CYCLE: 30}).cycle
    at_times = read_refresh({**GIVEN, "CRAWLSPACE_TIMEZONE": "UTC", CYCLE: "0 2 * * mon,thu"}).cycle
    assert by_minutes is not None
    assert at_times is not None
    assert by_minutes.next_after(began) - began == 1800
    assert datetime.fromtimestamp(at_times.next_after(began), UTC) == datetime(2026, 5, 7, 2, tzinfo=UTC)
    assert (by_minutes.longest_s, at_times.longest_s) == (1800, 4 * 86_400)
