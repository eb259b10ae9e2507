"""How fast one site may be asked, and when its next turn is."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from crawlspace.model import SHIFTS, Source, UrlState

BATCH = 64
"""URLs leased at a time from a site without a delay."""
POLITE_BATCH = 8


def indexes_of(source: Source) -> range:
    """The lanes of a source, shift -2 first."""
    return range(source * SHIFTS, (source + 1) * SHIFTS)


def indexes_in(mask: int) -> Iterator[int]:
    """The lanes whose bits are set."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between the starts of two requests to a site, and how many may be under way at once."""

    delay_s: float
    concurrency: int
    suspended: bool = False
    """Nothing may be asked until the pace changes."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """How failures in a row slow a site down: from the third one on it rests for `first_s`, doubled with each, up to `longest_s`.

    One that has given no answer at all for `give_up_s` is given up: no rest goes beyond that.
    """

    first_s: float
    longest_s: float
    give_up_s: float = inf

    def rest_s(self, failures: int, *, without_answer_s: float = 0.0) -> float:
        wanted = 0.0 if failures < _BORNE else min(self.longest_s, self.first_s * 2.0 ** min(failures - _BORNE, 60))
        return min(wanted, max(0.0, self.give_up_s - without_answer_s)) if without_answer_s else wanted


_BORNE = 3
"""A page or two may fail by themselves."""


@dataclass(frozen=True, slots=True)
class GivingUp:
    """When a site is given up for the run: after so many failures in a row, or so many seconds without any answer."""

    failures: int = 20
    after_s: float = 60.0
    continuous: bool = False
    """The crawl goes on when all is done: then the site is asked again after an hour."""


class Failures(NamedTuple):
    """How a site has answered of late."""

    in_row: int = 0
    """Failures, error answers among them."""
    unanswered: int = 0
    """Requests in a row to which there was no answer at all."""
    without_answer_s: float = 0.0
    """For how many seconds it has been asked in vain."""


@dataclass(slots=True, eq=False)
class AddressGroup:
    """What answers at an address. One site at a time has its turn, and asks one thing; all others stand in a line."""

    address: str
    turn: SiteQueue | None = None
    """The site that is asking, or will be the next to ask."""
    line: deque[SiteQueue] = field(default_factory=deque)
    """Sites that could be asked but for it, in the order in which they came."""
    sites: int = 0
    asked_at: float = -inf
    delay_s: float = 0.0
    """Of the site that was asked last, without the rests of its own failures."""

    def next_turn(self, turns: SiteQueue) -> float:
        return self.asked_at + max(self.delay_s, turns.pace.delay_s)


@dataclass(slots=True, eq=False)
class SiteQueue:
    """One site's turns: what is at hand, under way, and when the next request may start. Times are on the monotonic clock."""

    site: str
    pace: Pace
    batch: int
    """URLs leased at a time."""
    buffered: dict[int, deque[UrlState]] = field(default_factory=dict)
    """Leased URLs by lane, in the order in which they are to be asked for."""
    more: int = 0
    """Bits of the lanes of which the store may have more that is ready."""
    lined_up: int = 0
    """Bits of the lanes in whose line it stands."""
    due: dict[int, int] = field(default_factory=dict)
    """When the first known URL is due, by lane, in seconds since 1970."""
    in_flight: int = 0
    asked_at: float = -inf
    asked_before: float = -inf
    not_before: float = -inf
    failures: int = 0
    """In a row."""
    rest_s: float = 0.0
    """What they add up to: its delay while it fails."""
    unanswered: int = 0
    """Requests in a row to which there was no answer at all."""
    asked_since: float = inf
    """When the first request was made since the last answer."""
    held: bool = False
    """Nothing is handed out until robots.txt has come."""
    paced: bool = False
    """Its pace has been asked for; until then it is not known."""
    works: bool = False
    """It has something to ask for."""
    placed: bool = False
    """It is one of the sites crawled at present."""
    outside: bool = False
    """It waits to be one of them."""
    wakes_at: float | None = None
    address_group: AddressGroup | None = None
    """What it shares with other sites."""
    located_until: float = -inf
    """Until then it counts as known whether there is such a machine."""
    waits_for_group: bool = False

    def set_pace(self, pace: Pace, *, lease_s: int) -> None:
        self.pace = pace
        self.paced = True
        batch = BATCH
        if pace.delay_s > 0:  # what is at hand must be asked for well before its lease ends
            batch = max(1, min(POLITE_BATCH, int(lease_s / 2 / pace.delay_s)))
        self.batch = max(batch, min(pace.concurrency, BATCH))

    def begin(self, now: float) -> None:
        """One request to the site goes out."""
        self.asked_before, self.asked_at = self.asked_at, now
        self.asked_since = min(self.asked_since, now)
        self.in_flight += 1

    def end(self) -> None:
        """One request is over, whatever came of it."""
        self.in_flight -= 1
        if not (self.in_flight or self.unanswered):
            self.asked_since = inf

    def count(self, *, failed: bool | None, answered: bool | None, now: float, backoff: Backoff) -> Failures:
        """Count how a request ended, before `end`; None where that tells nothing."""
        if answered:
            self.unanswered, self.asked_since = 0, inf
        elif answered is not None:
            self.unanswered += 1
        without_answer_s = now - self.asked_since if self.unanswered else 0.0
        if failed is not None:
            self.failures = self.failures + 1 if failed else 0
            self.rest_s = backoff.rest_s(self.failures, without_answer_s=without_answer_s)
        return Failures(self.failures, self.unanswered, without_answer_s)

    @property
    def has_room(self) -> bool:
        return self.in_flight < self.pace.concurrency and not self.held and not self.pace.suspended

    @property
    def delay_s(self) -> float:
        return max(self.pace.delay_s, self.rest_s)

    @property
    def next_turn(self) -> float:
        return max(self.asked_at + self.delay_s, self.not_before)


_LONG_S = 60.0


def outlasts(wait_until: int | None, *, now: float, left_s: float) -> bool:
    """Whether a stored wait goes on for longer than is left of it, because the clock has been set back: every later run would wait anew.

    What is left below a minute is not worth a write for each of many sites.
    """
    return wait_until is not None and left_s >= _LONG_S and now + left_s < wait_until
