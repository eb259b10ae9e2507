"""Delays by time of the week: CRAWLSPACE_VARIABLE_DELAY, a table from slots of the week to delays.

    {"Mon-Fri 09:00-17:00": 20, "Sun 02:00-04:00": "suspend"}

FAST's form of a slot is accepted, too: "Wed:09.00-Wed:17.00", "Fri:18.00-Mon:06.00".
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from itertools import pairwise
from math import floor
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from crawlspace.errors import SettingError, did_you_mean
from crawlspace.parsing import duration, table
from crawlspace.text import quoted

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
DAY = 24 * 60
WEEK = 7 * DAY
"""Minutes; a week begins on Monday at 00:00."""
QUARTER_S = 900
"""Daylight saving changes at full quarters of an hour of UTC, so a result is never valid for longer."""
SUSPEND = "suspend"
_EXAMPLE = '{"Mon-Fri 09:00-17:00": 20, "Sun 02:00-04:00": "suspend"}'


@dataclass(frozen=True, slots=True)
class Slot:
    """The delay at a time, and until when it is valid; look it up again then."""

    delay_s: float | None
    """Seconds between requests instead of the site's own delay; None: the site's own delay applies, or requests are suspended."""
    suspended: bool
    until: float
    """Seconds since 1970, later than the requested time."""


class Timetable:
    """Immutable after compilation. The slots follow the wall clock of a time zone."""

    __slots__ = ("_pieces", "_starts", "_zone")

    def __init__(self, pieces: list[_Piece], zone: tzinfo | None) -> None:
        self._pieces = pieces
        self._starts = [piece.start for piece in pieces]
        self._zone = zone

    def at(self, now: float) -> Slot:
        """Return the slot at a time in seconds since 1970, valid to the next boundary of a slot, a quarter of an hour at most."""
        second = floor(now)  # boundaries are at full seconds
        local = datetime.fromtimestamp(second, UTC).astimezone(self._zone)
        minute = local.weekday() * DAY + local.hour * 60 + local.minute
        index = bisect_right(self._starts, minute) - 1
        piece = self._pieces[index] if index >= 0 else None
        boundary = self._starts[index + 1] if index + 1 < len(self._starts) else WEEK
        if piece is not None and minute < piece.end:
            boundary = piece.end
        else:
            piece = None
        until = min(second + (boundary - minute) * 60 - local.second, (second // QUARTER_S + 1) * QUARTER_S)
        if piece is None:
            return Slot(None, suspended=False, until=until)
        return Slot(piece.delay_s, suspended=piece.delay_s is None, until=until)


def read_timetable(name: str, value: object, *, zone: tzinfo | None) -> Timetable | None:
    """Parse the table; `zone` None is this machine's local time. Returns None without slots.

    Raises SettingError for the first invalid slot, and for two slots that overlap.
    """
    pieces: list[_Piece] = []
    slots = table(name, value, example=_EXAMPLE)
    for key, text in slots.items():
        where = f"{name}[{quoted(key)}]"
        delay_s = _delay(where, text)
        for start, end in _spans(where, key):
            pieces += _pieces(start, end, delay_s=delay_s, slot=str(key))
    if not pieces:
        return None
    pieces.sort(key=lambda piece: piece.start)
    _refuse_overlaps(name, pieces, [str(key) for key in slots])
    return Timetable(pieces, zone)


def read_zone(name: str, value: object) -> tzinfo | None:
    """Parse the name of a time zone, such as Europe/Berlin. None for "": this machine's local time. Raises SettingError."""
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise SettingError(
            f'{name} is {quoted(value)}; it must be the name of a time zone such as "Europe/Berlin", or "" for local time'
        )
    zone = value.strip()
    if zone == "UTC":
        return UTC  # known without data
    try:
        return ZoneInfo(zone)
    except (KeyError, ValueError, OSError):  # unknown; invalid name; a folder of zones
        known = {one.lower(): one for one in sorted(available_timezones())}
    if not known:
        raise SettingError(
            f'{name} is {quoted(value)}, and this machine has no time zone data; install the Python package tzdata, or leave the setting ""'
        )
    in_region = next((known[one] for one in known if one.endswith(f"/{zone.lower()}")), None)
    otherwise = f"did you mean {in_region!r}?" if in_region else 'it must be a name such as "Europe/Berlin", or "" for local time'
    meant = did_you_mean(zone, known.values(), otherwise)
    raise SettingError(f"{name} is {quoted(value)}, an unknown time zone: {meant}")


# --- one slot -----------------------------------------------------------------------------------------------------


class _Piece(NamedTuple):
    """An interval of one week, in minutes; the end is exclusive."""

    start: int
    end: int
    delay_s: float | None
    """None: suspended."""
    slot: str
    """As written in the setting."""


_TIME = r"\d{1,2}(?:[.:]\d\d)?"
_DAYS_AND_TIMES = re.compile(rf"([^\d]+?)\s*({_TIME})\s*-\s*({_TIME})")
_FROM_DAY_TO_DAY = re.compile(rf"([^\W\d_]+)\s*:\s*({_TIME})\s*-\s*([^\W\d_]+)\s*:\s*({_TIME})")


def _spans(where: str, key: object) -> list[tuple[int, int]]:
    """Return the intervals of a slot, each with its end after its start; the end may be in the next week."""
    text = key.strip() if isinstance(key, str) else ""
    if match := _FROM_DAY_TO_DAY.fullmatch(text):
        first, last = _day(where, match[1]), _day(where, match[3])
        begin, finish = _minute(where, match[2]), _minute(where, match[4], is_end=True)
        if first == last and begin == finish:
            raise SettingError(f"{where} has no length: it ends when it begins")
        start, end = first * DAY + begin, last * DAY + finish
        return [(start, end if end > start else end + WEEK)]
    if match := _DAYS_AND_TIMES.fullmatch(text):
        days = _days(where, match[1])
        begin, finish = _minute(where, match[2]), _minute(where, match[3], is_end=True)
        if begin == finish:
            raise SettingError(f"{where} has no length: it ends when it begins; a whole day is 00:00-24:00")
        length = finish - begin if finish > begin else finish - begin + DAY
        return [(day * DAY + begin, day * DAY + begin + length) for day in sorted(days)]
    raise SettingError(
        f'{where} is no slot: it must be days and times such as "Mon-Fri 09:00-17:00", "Sat,Sun 22:00-06:00" or "Fri:18.00-Mon:06.00"'
    )


def _days(where: str, text: str) -> set[int]:
    if text.strip().lower() in {"daily", "*"}:
        return set(range(7))
    days: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        begin = _day(where, first)
        length = (_day(where, last) - begin) % 7 if dash else 0
        days.update((begin + n) % 7 for n in range(length + 1))
    return days


def _day(where: str, word: str) -> int:
    name = word.strip().lower()
    for number, day in enumerate(DAYS):
        if name in {day, day[:3]}:
            return number
    short = [day[:3].title() for day in DAYS]
    meant = did_you_mean(name, [*short, *(day.title() for day in DAYS)], f"it must be one of {', '.join(short)}")
    raise SettingError(f"{where} has an unknown day {quoted(word.strip())}: {meant}")


def _minute(where: str, text: str, *, is_end: bool = False) -> int:
    hours, minutes = int(text[:2].rstrip(".:")), int(text[-2:]) if len(text) > 2 else 0
    total = hours * 60 + minutes
    if minutes > 59 or total > DAY or (total == DAY and not is_end):
        raise SettingError(
            f"{where} has {quoted(text)}, which is no time of a day: it must be from 00:00 to 23:59; an end may be 24:00"
        )
    return total


def _pieces(start: int, end: int, *, delay_s: float | None, slot: str) -> list[_Piece]:
    """Split an interval at the end of the week."""
    if end <= WEEK:
        return [_Piece(start, end, delay_s, slot)]
    return [_Piece(start, WEEK, delay_s, slot), _Piece(0, end - WEEK, delay_s, slot)]


def _delay(where: str, value: object) -> float | None:
    if isinstance(value, str) and value.strip().lower() == SUSPEND:
        return None
    try:
        return duration(where, value, low=0)
    except SettingError as error:
        raise SettingError(f'{error}; or "{SUSPEND}" for no requests at all') from None


def _refuse_overlaps(name: str, pieces: list[_Piece], slots: list[str]) -> None:
    """Raise SettingError for the first two that overlap. `pieces` are sorted by start, `slots` in the order of the setting."""
    for before, after in pairwise(pieces):
        if after.start < before.end:
            one, other = sorted((before.slot, after.slot), key=slots.index)
            day, minute = divmod(after.start, DAY)
            moment = f"{DAYS[day][:3].title()} {minute // 60:02}:{minute % 60:02}"
            raise SettingError(f"{name}: the slots {one!r} and {other!r} overlap, as at {moment}; only one of them can apply")
