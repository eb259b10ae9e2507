"""When a site may be asked how fast: how slots are read, and what holds when, by the wall clock of a time zone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NoReturn
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlspace.errors import SettingError
from crawlspace.frontier import delay_schedule
from crawlspace.frontier.delay_schedule import Slot, Timetable, read_timetable, read_zone
from tests.quick import examples

NAME = "CRAWLSPACE_VARIABLE_DELAY"
BERLIN = ZoneInfo("Europe/Berlin")
WEEK_OF = datetime(2026, 6, 15, tzinfo=BERLIN)  # a Monday, in summer time
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
OPEN, SUSPENDED = None, "suspended"
"""What holds outside of all slots, and in one without requests."""


def read(slots: dict[str, object], zone: str = "Europe/Berlin") -> Timetable:
    table = read_timetable(NAME, slots, zone=ZoneInfo(zone))
    assert table is not None
    return table


def held(slot: Slot) -> float | str | None:
    if slot.suspended:
        assert slot.delay_s is None
        return SUSPENDED
    return slot.delay_s


def moment(text: str, *, zone: ZoneInfo = BERLIN) -> float:
    """`Wed 09:00` in the week above, or a date and time with or without an offset."""
    if text[:3] in DAYS:
        day, clock = text.split()
        hours, minutes, *seconds = (float(part) for part in clock.split(":"))
        wall = WEEK_OF + timedelta(days=DAYS.index(day), hours=hours, minutes=minutes, seconds=sum(seconds))
        return wall.timestamp()
    parsed = datetime.fromisoformat(text)
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=zone)).timestamp()


def assert_held(table: Timetable, inside: str, outside: str, *, zone: ZoneInfo = BERLIN) -> None:
    """That a delay of 20 seconds holds at moments, and nothing at others; both separated by commas."""
    inner, outer = (list(filter(None, text.split(", "))) for text in (inside, outside))
    wanted: dict[str, object] = {**dict.fromkeys(inner, 20), **dict.fromkeys(outer, OPEN)}
    assert {text: held(table.at(moment(text, zone=zone))) for text in wanted} == wanted


WHEN = [
    # slot, moments inside, moments outside
    ("Mon-Fri 09:00-17:00", "Mon 09:00, Fri 16:59:59.9, Wed 12:00", "Mon 08:59:59.9, Fri 17:00, Sat 12:00, Sun 12:00"),
    ("wed 9-17", "Wed 09:00, Wed 16:59", "Wed 08:59, Wed 17:00, Tue 12:00, Thu 12:00"),
    ("WEDNESDAY 09.30 - 17.15", "Wed 09:30, Wed 17:14", "Wed 09:29, Wed 17:15"),
    ("Saturday,Sun 10-12", "Sat 10:00, Sun 11:59", "Fri 11:00, Mon 11:00, Sat 12:00"),
    ("Fri-Mon 10-12", "Fri 10:00, Sat 11:00, Sun 11:00, Mon 11:59", "Tue 11:00, Thu 11:00"),
    ("Mon, Wed-Thu ,Sat 10-12", "Mon 11:00, Wed 11:00, Thu 11:00, Sat 11:00", "Tue 11:00, Fri 11:00, Sun 11:00"),
    ("Mon,mon 10-12", "Mon 11:00", "Tue 11:00"),
    ("daily 10-12", "Mon 11:00, Sun 11:00", "Mon 12:00, Sun 09:59"),
    ("* 10:00-12:00", "Mon 11:00, Sun 11:00", "Mon 12:00, Sun 09:59"),
    ("Daily 00:00-24:00", "Mon 00:00, Wed 12:00, Sun 23:59:59.9", ""),
    # the end of a day
    ("Tue 00-24", "Tue 00:00, Tue 23:59:59.9", "Mon 23:59:59.9, Wed 00:00"),
    ("Tue 22:00-24:00", "Tue 22:00, Tue 23:59", "Wed 00:00"),
    ("Tue 22:00-00:00", "Tue 22:00, Tue 23:59", "Wed 00:00, Tue 00:00"),
    # over midnight, and over the week's end
    ("Fri 22:00-06:00", "Fri 22:00, Sat 00:00, Sat 05:59", "Fri 05:00, Fri 21:59, Sat 06:00, Sat 22:00"),
    ("Sun 22:00-06:00", "Sun 22:00, Sun 23:59, Mon 00:00, Mon 05:59", "Mon 06:00, Sun 05:00, Sun 21:59, Mon 22:00"),
    ("daily 22:00-06:00", "Mon 00:00, Mon 05:59, Wed 23:00, Sun 22:00", "Mon 06:00, Sun 21:59"),
    ("Sat-Sun 12:00-11:59", "Sat 12:00, Sun 11:58, Sun 12:00, Mon 11:58", "Sun 11:59, Mon 11:59, Sat 11:59"),
    # FAST's own form, also over days
    ("Wed:09.00-Wed:17.00", "Wed 09:00, Wed 16:59", "Wed 08:59, Wed 17:00, Tue 10:00"),
    ("Wed:09-Wed:17", "Wed 09:00, Wed 16:59", "Wed 08:59, Wed 17:00"),
    ("wed:09:30 - thursday:10:15", "Wed 09:30, Thu 00:00, Thu 10:14", "Wed 09:29, Thu 10:15"),
    ("Fri:18.00-Mon:06.00", "Fri 18:00, Sat 12:00, Sun 23:59, Mon 00:00, Mon 05:59", "Fri 17:59, Mon 06:00, Wed 12:00"),
    ("Wed:17.00-Wed:09.00", "Wed 17:00, Sun 12:00, Mon 00:00, Wed 08:59", "Wed 09:00, Wed 16:59"),
    ("Mon:00.00-Sun:24.00", "Mon 00:00, Wed 12:00, Sun 23:59", ""),
    ("Tue:00.00-Mon:24.00", "Mon 00:00, Tue 00:00, Sun 23:59", ""),
    ("Sat:00-Sun:24", "Sat 00:00, Sun 23:59", "Fri 23:59, Mon 00:00"),
]


@pytest.mark.parametrize(("slot", "inside", "outside"), WHEN, ids=[row[0] for row in WHEN])
def test_when_a_slot_holds(slot: str, inside: str, outside: str) -> None:
    assert_held(read({slot: 20}), inside, outside)


VALUES = [
    (20, 20.0),
    (0, 0.0),
    (0.5, 0.5),
    (" 20 ", 20.0),
    ("90s", 90.0),
    ("2m", 120.0),
    ("suspend", SUSPENDED),
    (" SusPend ", SUSPENDED),
]


@pytest.mark.parametrize(("value", "holds"), VALUES)
def test_what_holds_in_a_slot(value: object, holds: float | str) -> None:
    assert held(read({"Mon 9-17": value}).at(moment("Mon 12:00"))) == holds


def test_slots_side_by_side() -> None:
    table = read({"Sun 02:00-04:00": "suspend", "Mon-Fri 09:00-17:00": 20, "Mon-Fri 17:00-24:00": 5, "daily 00:00-01:00": "1m"})
    wanted = {"Mon 00:59": 60, "Mon 01:00": OPEN, "Mon 16:59": 20, "Mon 17:00": 5, "Tue 00:00": 60, "Sun 03:00": SUSPENDED}
    assert {text: held(table.at(moment(text))) for text in wanted} == wanted


# Winter time ends in Berlin on 2026-03-29 at 02:00, which is 03:00 then; summer time on 2026-10-25 at 03:00, which is 02:00 then.
CHANGES = [
    # slot, zone, moments inside, moments outside
    ("Sun 01:00-04:00", "Europe/Berlin", "2026-03-29T01:00, 2026-03-29T01:59:59, 2026-03-29T03:00, 2026-03-29T03:59", "2026-03-29T04:00"),
    ("Sun 02:00-03:00", "Europe/Berlin", "2026-03-22T02:30, 2026-04-05T02:30", "2026-03-29T01:59:59+01:00, 2026-03-29T03:00+02:00"),
    ("Sun 03:00-05:00", "Europe/Berlin", "2026-03-29T03:00+02:00, 2026-03-29T04:59+02:00", "2026-03-29T01:59+01:00, 2026-03-29T05:00+02:00"),
    # the hour that comes twice is in the slot both times
    ("Sun 02:00-03:00", "Europe/Berlin", "2026-10-25T02:00+02:00, 2026-10-25T02:59+02:00, 2026-10-25T02:00+01:00, 2026-10-25T02:59+01:00", "2026-10-25T01:59+02:00, 2026-10-25T03:00+01:00"),
    ("Sun 02:30-03:30", "Europe/Berlin", "2026-10-25T02:30+02:00, 2026-10-25T02:59+02:00, 2026-10-25T02:30+01:00, 2026-10-25T03:29+01:00", "2026-10-25T02:00+01:00, 2026-10-25T02:29+01:00"),
    ("Sat 22:00-06:00", "Europe/Berlin", "2026-10-24T22:00+02:00, 2026-10-25T05:59+01:00", "2026-10-25T06:00+01:00, 2026-10-24T21:59+02:00"),
    # half an hour back, at 02:00
    ("Sun 02:00-02:30", "Australia/Lord_Howe", "2026-04-05T02:00+10:30, 2026-04-05T02:29+10:30", "2026-04-05T01:59+11:00, 2026-04-05T01:59+10:30"),
    ("daily 09:00-17:00", "Asia/Kathmandu", "2026-06-15T09:00+05:45, 2026-06-15T16:59+05:45", "2026-06-15T08:59+05:45, 2026-06-15T17:00+05:45"),
    ("Mon 09:00-17:00", "Pacific/Kiritimati", "2026-06-14T19:00+00:00", "2026-06-15T09:00+00:00"),
]  # fmt: skip


@pytest.mark.parametrize(("slot", "zone", "inside", "outside"), CHANGES)
def test_daylight_saving(slot: str, zone: str, inside: str, outside: str) -> None:
    table, place = read({slot: 20}, zone), ZoneInfo(zone)
    assert_held(table, inside, outside, zone=place)


UNTIL = [
    # slot, moment, until when the answer holds
    ("Mon 09:00-17:00", "Mon 09:00", "Mon 09:15"),
    ("Mon 09:00-17:00", "Mon 09:14:59.999", "Mon 09:15"),
    ("Mon 09:00-17:00", "Mon 08:50", "Mon 09:00"),
    ("Mon 09:05-17:00", "Mon 09:00", "Mon 09:05"),
    ("Mon 09:05-09:07", "Mon 09:05", "Mon 09:07"),
    ("Mon 09:05-09:07", "Mon 09:06:59.999", "Mon 09:07"),
    ("Mon 09:05-09:07", "Mon 09:07", "Mon 09:15"),
    ("Sun 23:55-00:05", "Sun 23:56", "Sun 24:00"),
    ("Sun 23:55-00:05", "Sun 24:00", "Sun 24:05"),
]


@pytest.mark.parametrize(("slot", "now", "until"), UNTIL)
def test_until_when_an_answer_holds(slot: str, now: str, until: str) -> None:
    assert read({slot: 20}).at(moment(now)).until == moment(until)


@st.composite
def disjoint_slots(draw: st.DrawFn) -> dict[str, object]:
    """Up to six slots that don't overlap, from a few cuts of the week."""
    cuts = sorted(draw(st.lists(st.integers(0, 7 * 24 * 60 - 1), min_size=2, max_size=12, unique=True)))
    slots: dict[str, object] = {}
    for start, end in zip(cuts[::2], cuts[1::2], strict=False):  # of an odd number the last one is left
        slots[f"{written(start)}-{written(end)}"] = draw(st.sampled_from(["suspend", 0, 20, "2m"]))
    if len(cuts) % 2:
        slots[f"{written(cuts[-1])}-{written(cuts[0])}"] = 7  # over the week's end
    return slots


def written(minute: int) -> str:
    return f"{DAYS[minute // 1440]}:{minute // 60 % 24:02}.{minute % 60:02}"


def minutes(first: float, count: int) -> Iterator[float]:
    return (first + 60.0 * number for number in range(count))


def by_the_wall(slots: dict[str, object], local: datetime) -> object:
    """What holds, told by comparing names of days and hours as they are written, for every slot."""
    now = f"{local.weekday()}:{local:%H.%M}"
    for slot, value in slots.items():
        start, end = (f"{DAYS.index(side[:3])}{side[3:]}" for side in slot.split("-"))
        if (start <= now < end) if start < end else (now >= start or now < end):
            return {"suspend": SUSPENDED, "2m": 120.0}.get(str(value), value)
    return OPEN


@settings(max_examples=examples(60), deadline=None)
@given(
    slots=disjoint_slots(),
    zone=st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Chatham"]),
    first=st.sampled_from(["2026-03-08", "2026-03-29", "2026-04-05", "2026-10-04", "2026-10-25", "2026-11-01", "2026-06-14"]),
    before=st.integers(0, 36 * 60),
)
def test_an_answer_holds_for_every_minute_until_its_end(slots: dict[str, object], zone: str, first: str, before: int) -> None:
    table = read(slots, zone)
    begin = moment(f"{first}T12:00+00:00") - 60.0 * before
    until, holds = 0.0, None
    for now in minutes(begin, 300):
        slot = table.at(now)
        assert now < slot.until <= now + 900
        assert held(slot) == by_the_wall(slots, datetime.fromtimestamp(now, ZoneInfo(zone)))
        if now < until:
            assert held(slot) == holds
            assert slot.until == until
        until, holds = slot.until, held(slot)


def test_local_time_is_that_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    table = read_timetable(NAME, {"Mon 09:00-17:00": 20}, zone=None)
    assert table is not None
    try:
        monkeypatch.setenv("TZ", "XXX-5")  # five hours ahead of UTC
        time.tzset()
        assert held(table.at(moment("2026-06-15T04:00+00:00"))) == 20
        assert held(table.at(moment("2026-06-15T03:59+00:00"))) is OPEN
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("value", [None, "", {}])
def test_nothing_set(value: object) -> None:
    assert read_timetable(NAME, value, zone=UTC) is None


WRONG = [
    # setting, what the sentence says
    ("Mon 9-17", "CRAWLSPACE_VARIABLE_DELAY is 'Mon 9-17'; it must be like {\"Mon-Fri 09:00-17:00\": 20,"),
    ([("Mon 9-17", 20)], "it must be like {"),
    # days
    ({"Mom 9-17": 20}, "CRAWLSPACE_VARIABLE_DELAY['Mom 9-17'] has an unknown day 'Mom': did you mean 'Mon'?"),
    ({"Mon-Fry 9-17": 20}, "has an unknown day 'Fry': did you mean 'Friday'?"),
    ({"Wendesday 9-17": 20}, "did you mean 'Wednesday'?"),
    ({"Montag 9-17": 20}, "has an unknown day 'Montag'"),
    ({"xyz 9-17": 20}, "has an unknown day 'xyz': it must be one of Mon, Tue, Wed, Thu, Fri, Sat, Sun"),
    ({"Mon,,Tue 9-17": 20}, "has an unknown day ''"),
    ({"Wen:09.00-Wed:17.00": 20}, "has an unknown day 'Wen': did you mean 'Wed'?"),
    ({"Wed:09.00-17.00": 20}, "has an unknown day 'Wed:': did you mean 'Wed'?"),
    # times
    ({"Mon 25:00-26:00": 20}, "CRAWLSPACE_VARIABLE_DELAY['Mon 25:00-26:00'] has '25:00', which is no time of a day: it must be"),
    ({"Mon 09:60-10:00": 20}, "has '09:60', which is no time"),
    ({"Mon 09:00-24:01": 20}, "has '24:01', which is no time"),
    ({"Mon 24:00-06:00": 20}, "has '24:00', which is no time"),
    ({"Wed:24.00-Thu:06.00": 20}, "has '24.00', which is no time"),
    # no slots
    ({"Mon": 20}, "CRAWLSPACE_VARIABLE_DELAY['Mon'] is no slot: it must be days and times such as \"Mon-Fri 09:00-17:00\""),
    ({"9-17": 20}, "is no slot"),
    ({"Mon 9:5-10:00": 20}, "is no slot"),
    ({"Mon 0900-1700": 20}, "is no slot"),
    ({"Mon 9": 20}, "is no slot"),
    ({"": 20}, "[''] is no slot"),
    ({9: 20}, "[9] is no slot"),
    # no length
    ({"Mon 09:00-09.00": 20}, "['Mon 09:00-09.00'] has no length: it ends when it begins; a whole day is 00:00-24:00"),
    ({"Wed:09.00-Wed:09:00": 20}, "['Wed:09.00-Wed:09:00'] has no length"),
    # overlaps
    ({"Mon-Fri 9-17": 20, "Wed 16:30-18:00": 5}, "the slots 'Mon-Fri 9-17' and 'Wed 16:30-18:00' overlap, as at Wed 16:30"),
    ({"Wed 16:30-18:00": 5, "Mon-Fri 9-17": 20}, "the slots 'Wed 16:30-18:00' and 'Mon-Fri 9-17' overlap, as at Wed 16:30"),
    ({"Mon 9-10": 20, "mon 09:00-10:00": 20}, "overlap, as at Mon 09:00"),
    ({"Sun 22:00-06:00": 20, "Mon 05:59-07:00": 5}, "overlap, as at Mon 05:59"),
    ({"Fri:18.00-Mon:06.00": 20, "Sat 9-10": "suspend"}, "overlap, as at Sat 09:00"),
    ({"daily 0-24": 20, "Sun 23:59-24:00": 5}, "overlap, as at Sun 23:59"),
    # values
    ({"Mon 9-17": -1}, "CRAWLSPACE_VARIABLE_DELAY['Mon 9-17'] is -1; it must be at least 0 s; or \"suspend\" for no requests"),
    ({"Mon 9-17": "stop"}, "['Mon 9-17'] is 'stop'; it must be seconds, or text like \"90s\""),
    ({"Mon 9-17": None}, "['Mon 9-17'] is None; it must be seconds"),
    ({"Mon 9-17": True}, "['Mon 9-17'] is True; it must be seconds"),
    ({"Mon 9-17": float("nan")}, "['Mon 9-17'] is nan; it must be seconds"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "sentence"), WRONG, ids=[str(row[0]) for row in WRONG])
def test_wrong(value: object, sentence: str) -> None:
    with pytest.raises(SettingError) as caught:
        read_timetable(NAME, value, zone=UTC)
    assert sentence in str(caught.value)


ADJACENT = [
    {"Mon 9-17": 20, "Mon 17-18": 5},
    {"Sun 22:00-06:00": 20, "Mon 06:00-07:00": 5, "Sun 21-22": 1},
    {"Mon:00.00-Wed:00.00": 20, "Wed:00.00-Mon:00.00": 5},
]


@pytest.mark.parametrize("slots", ADJACENT)
def test_slots_may_touch(slots: dict[str, object]) -> None:
    held_at = {held(read(slots).at(moment(f"Mon {hour:02}:30"))) for hour in range(24)}
    assert held_at & {5, 20}


ZONES = [
    ("", None),
    (None, None),
    ("UTC", UTC),
    ("Europe/Berlin", BERLIN),
    (" Europe/Berlin ", BERLIN),
]


@pytest.mark.parametrize(("value", "zone"), ZONES)
def test_time_zones(value: object, zone: object) -> None:
    assert read_zone("CRAWLSPACE_TIMEZONE", value) == zone


WRONG_ZONES = [
    ("Europe/Berlni", "CRAWLSPACE_TIMEZONE is 'Europe/Berlni', an unknown time zone: did you mean 'Europe/Berlin'?"),
    ("europe/berlim", "did you mean 'Europe/Berlin'?"),
    ("Kathmandu", "did you mean 'Asia/Kathmandu'?"),
    ("Europe", "an unknown time zone"),
    ("../etc/passwd", "an unknown time zone"),
    ("/", 'it must be a name such as "Europe/Berlin", or "" for local time'),
    ("a\0b", "an unknown time zone"),
    ("+02:00", "an unknown time zone"),
    (2, "CRAWLSPACE_TIMEZONE is 2; it must be the name of a time zone"),
    (True, "CRAWLSPACE_TIMEZONE is True; it must be the name of a time zone"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "sentence"), WRONG_ZONES)
def test_wrong_time_zones(value: object, sentence: str) -> None:
    with pytest.raises(SettingError) as caught:
        read_zone("CRAWLSPACE_TIMEZONE", value)
    assert sentence in str(caught.value)


def test_a_machine_without_time_zone_data(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> NoReturn:
        raise ZoneInfoNotFoundError(name)

    monkeypatch.setattr(delay_schedule, "ZoneInfo", unknown)
    monkeypatch.setattr(delay_schedule, "available_timezones", set)
    assert read_zone("CRAWLSPACE_TIMEZONE", "UTC") is UTC
    with pytest.raises(SettingError, match="this machine has no time zone data; install the Python package tzdata"):
        read_zone("CRAWLSPACE_TIMEZONE", "Europe/Berlin")
