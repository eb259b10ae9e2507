"""Times given by a cron expression, such as `0 2 * * mon-fri`, on the wall clock of a time zone.

cronsim parses and evaluates it, by the rules of Debian's cron: where the clock is set forward or back, a time of day that does not exist, or
comes twice, comes once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from itertools import islice, pairwise
from typing import ClassVar

from cronsim import CronSim, CronSimError

from crawlspace.errors import SettingError
from crawlspace.text import quoted

_SHORT = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIELDS = 5
_PARTS = {
    "minute": "a minute is from 0 to 59",
    "hour": "an hour is from 0 to 23",
    "day-of-month": "a day of the month is from 1 to 31, and one of its months has it; L is the last one",
    "month": "a month is from 1 to 12, or JAN to DEC",
    "day-of-week": "a day of the week is from 0 to 7, or SUN to SAT; 0 and 7 are Sunday",
}
_FORM = 'it must be minute, hour, day of the month, month and day of the week, as in "0 2 * * *" (each day at 02:00), or one of'
_COMPARED = 60
"""Times whose distances are compared."""


@dataclass(frozen=True, slots=True)
class Cron:
    """The times of an expression. `zone` None is this machine's local time."""

    REFERENCE: ClassVar[datetime] = datetime(2000, 1, 1, tzinfo=UTC)
    expression: str
    zone: tzinfo | None

    @property
    def text(self) -> str:
        """The expression with its time zone: times may differ where it differs."""
        return self.expression if self.zone is None else f"{self.expression} {self.zone}"

    def next_after(self, seconds: float) -> int | None:
        """Return the first time after that many seconds since 1970; None where there is none in 50 years."""
        return next(self.after(seconds), None)

    def after(self, seconds: float) -> Iterator[int]:
        """Yield the times after that one, in order."""
        last = seconds
        for found in CronSim(self.expression, datetime.fromtimestamp(int(seconds), self.zone)):
            at = int(found.timestamp())
            if at > last:  # local time has no zone, so that an hour comes twice or not at all
                last = at
                yield at

    @property
    def longest_s(self) -> int:
        """The longest time from one to the next, of some dozens."""
        return max(
            (after - before for before, after in pairwise(islice(self.after(self.REFERENCE.timestamp()), _COMPARED))), default=0
        )


def is_cron(value: object) -> bool:
    """Return whether a value is meant as a cron expression, and not as a duration."""
    return isinstance(value, str) and (value.strip().startswith("@") or len(value.split()) > 2)


def read_cron(name: str, value: object, *, zone: tzinfo | None) -> Cron:
    """Parse a cron expression of five fields. Raises SettingError, also for one whose times never come."""
    given = value.strip() if isinstance(value, str) else ""
    expression = _SHORT.get(given.lower(), " ".join(given.split()))
    if len(expression.split()) != _FIELDS:
        raise SettingError(f"{name} is {quoted(value)}; {_FORM} {', '.join(_SHORT)}")
    cron = Cron(expression, zone)
    try:
        first = cron.next_after(Cron.REFERENCE.timestamp())
    except (CronSimError, ValueError) as error:  # ValueError: a number of thousands of digits
        what = _PARTS.get(str(error).removeprefix("Bad "), _FORM)
        raise SettingError(f"{name} is {quoted(value)}; {what}") from None
    if first is None:
        raise SettingError(
            f"{name} is {quoted(value)}; no day is ever like that: change the day of the month, the month or the day of the week"
        )
    return cron
