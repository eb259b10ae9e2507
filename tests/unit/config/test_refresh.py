"""What the settings on refresh are read as, and how mistakes in them are named."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from crawlspace import settings as defaults
from crawlspace.config.refresh import CYCLE, SCHEDULE, SMART, read_refresh
from crawlspace.errors import SettingError

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


WRONG: list[tuple[dict[str, object], str]] = [
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


@pytest.mark.parametrize(("given", "message"), WRONG)
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
