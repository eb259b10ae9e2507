"""Cron expressions: what is read, what they mean where the clock is set, and how mistakes are named."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from itertools import islice
from zoneinfo import ZoneInfo

import pytest

from crawlspace.cron import is_cron, read_cron
from crawlspace.errors import SettingError

BERLIN = ZoneInfo("Europe/Berlin")
LOCAL = None

TIMES: list[tuple[str, tzinfo | None, str, list[str]]] = [
    # expression, zone, after, the next times
    ("0 2 * * *", UTC, "2026-05-04 02:00", ["2026-05-05 02:00", "2026-05-06 02:00"]),
    ("@daily", UTC, "2026-05-04 02:00", ["2026-05-05 00:00"]),
    ("@Weekly", UTC, "2026-05-04 02:00", ["2026-05-10 00:00"]),
    ("  */30   8-9 * *  MON-fri ", UTC, "2026-05-09 12:00", ["2026-05-11 08:00", "2026-05-11 08:30", "2026-05-11 09:00"]),
    ("0 0 1,15 feb *", UTC, "2026-02-02 00:00", ["2026-02-15 00:00", "2027-02-01 00:00"]),
    ("0 0 29 2 *", UTC, "2026-01-01 00:00", ["2028-02-29 00:00"]),
    ("0 0 13 * 5", UTC, "2026-05-04 00:00", ["2026-05-08 00:00", "2026-05-13 00:00"]),  # either day, as cron has it
    # a time that does not exist, and one that comes twice
    ("30 2 * * *", BERLIN, "2026-03-28 12:00", ["2026-03-29 03:00", "2026-03-30 02:30"]),
    ("30 2 * * *", BERLIN, "2026-10-24 12:00", ["2026-10-25 02:30", "2026-10-26 02:30"]),
    ("0 2-3 * * *", BERLIN, "2026-10-24 12:00", ["2026-10-25 02:00", "2026-10-25 03:00", "2026-10-26 02:00"]),
    ("0 2-3 * * *", BERLIN, "2026-03-28 12:00", ["2026-03-29 03:00", "2026-03-30 02:00"]),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "zone", "after", "expected"), TIMES)
def test_times(expression: str, zone: tzinfo | None, after: str, expected: list[str]) -> None:
    cron = read_cron("NAME", expression, zone=zone)
    since = datetime.fromisoformat(after).replace(tzinfo=zone).timestamp()
    found = [datetime.fromtimestamp(at, zone) for at in islice(cron.after(since), len(expected))]
    assert [f"{at:%Y-%m-%d %H:%M}" for at in found] == expected
    assert cron.next_after(since) == found[0].timestamp()


def test_local_time_has_each_time_once() -> None:
    cron = read_cron("NAME", "*/20 * * * *", zone=LOCAL)
    times = list(islice(cron.after(datetime(2026, 1, 1, tzinfo=UTC).timestamp()), 3 * 24 * 400))
    assert times == sorted(set(times))


WRONG: list[tuple[object, str]] = [
    ("0 2 * *", "it must be minute, hour, day of the month, month and day of the week"),
    ("0 0 2 * * *", "it must be minute, hour, day of the month"),
    ("@sometimes", "it must be minute, hour, day of the month"),
    (7, "it must be minute, hour, day of the month"),
    ("60 2 * * *", "a minute is from 0 to 59"),
    (f"{'9' * 5_000} 2 * * *", "it must be minute, hour, day of the month"),
    ("x 2 * * *", "a minute is from 0 to 59"),
    ("0 24 * * *", "an hour is from 0 to 23"),
    ("0 2 0 * *", "a day of the month is from 1 to 31"),
    ("0 0 31 2 *", "a day of the month is from 1 to 31, and one of its months has it"),
    ("0 2 * 13 *", "a month is from 1 to 12, or JAN to DEC"),
    ("0 2 * * 8", "a day of the week is from 0 to 7, or SUN to SAT"),
    ("* * */20 * 1L", "no day is ever like that"),
]


@pytest.mark.parametrize(("value", "rule"), WRONG, ids=[str(value)[:20] for value, _ in WRONG])
def test_mistakes(value: object, rule: str) -> None:
    with pytest.raises(SettingError) as raised:
        read_cron("NAME", value, zone=UTC)
    message = str(raised.value)
    assert message.startswith("NAME is ")
    assert rule in message
    assert len(message) < 500


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0 2 * * *", True),
        ("@daily", True),
        ("0 2 *", True),
        ("24h", False),
        ("24 h", False),
        (0, False),
        ("", False),
        (None, False),
    ],
)
def test_what_is_meant_as_an_expression(value: object, expected: bool) -> None:
    assert is_cron(value) is expected
