"""Reads what has all known pages fetched again at a time: a cycle, or a schedule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from crawlspace.cron import Cron, is_cron, read_cron
from crawlspace.errors import SettingError
from crawlspace.frontier.delay_schedule import read_zone
from crawlspace.parsing import boolean, duration
from crawlspace.text import quoted

CYCLE, SCHEDULE, SMART = "CRAWLSPACE_REFRESH_CYCLE", "CRAWLSPACE_REFRESH_SCHEDULE", "CRAWLSPACE_SMART_REFRESH"
_ZONE = "CRAWLSPACE_TIMEZONE"
_NEVER = 1 << 40


@dataclass(frozen=True, slots=True)
class CycleTimes:
    """When cycles begin: so many seconds after each other, or at the times of a cron expression."""

    every_s: int
    cron: Cron | None = None

    def next_after(self, began: float) -> int:
        """Return when the cycle begins that follows one that began then."""
        if self.cron is None:
            return int(began) + self.every_s
        return self.cron.next_after(began) or _NEVER

    @property
    def longest_s(self) -> int:
        """How long a cycle may be."""
        return self.every_s if self.cron is None else self.cron.longest_s


@dataclass(frozen=True, slots=True)
class RefreshTimes:
    """What has known pages fetched again. `by_age`: smart refresh, each after its own interval."""

    by_age: bool
    cycle: CycleTimes | None
    schedule: Cron | None

    @property
    def age_counts(self) -> bool:
        """Whether pages are due by a time of their own. In cycles they are, should a cycle not begin."""
        return self.by_age or self.cycle is not None

    @property
    def is_ever(self) -> bool:
        """Whether a page that was fetched is fetched again without anybody's doing."""
        return self.age_counts or self.schedule is not None


def read_refresh(settings: Mapping[str, object]) -> RefreshTimes:
    """Raises SettingError."""
    zone = read_zone(_ZONE, settings[_ZONE])
    value, schedule = settings[CYCLE], settings[SCHEDULE]
    cycle = None
    if is_cron(value):
        cycle = CycleTimes(0, read_cron(CYCLE, value, zone=zone))
    elif every_s := round(duration(CYCLE, value, low=0, bare="m")):
        cycle = CycleTimes(every_s)
    cron = None if schedule in (None, "") else read_cron(SCHEDULE, schedule, zone=zone)
    if cron is not None and cycle is not None:
        raise SettingError(
            f"{SCHEDULE} is {quoted(schedule)}, and {CYCLE} is {quoted(value)}: both have all known pages fetched again; keep one of them"
            f' (a cycle may begin at a time of day, too: {CYCLE} = "0 2 * * *")'
        )
    return RefreshTimes(by_age=boolean(SMART, settings[SMART]), cycle=cycle, schedule=cron)
