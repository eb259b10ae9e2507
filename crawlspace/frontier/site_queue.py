"""The pace of one site, its buffered URLs, and the time of its next request."""

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
    """Return the queue indexes of a source, shift -2 first."""
    return range(source * SHIFTS, (source + 1) * SHIFTS)


def indexes_in(mask: int) -> Iterator[int]:
    """Yield the queue indexes whose bits are set."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between the starts of two requests to a site, and the maximal number of requests in flight."""

    delay_s: float
    concurrency: int
    suspended: bool = False
    """No requests until the pace changes."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Slows down a site after failures in a row: from the third one on it is paused for `first_s`, doubled with each, up to
    `longest_s`.

    A site without any response for `give_up_s` is given up: no pause is longer than that.
    """

    first_s: float
    longest_s: float
    give_up_s: float = inf

    def rest_s(self, failures: int, *, without_answer_s: float = 0.0) -> float:
        wanted = 0.0 if failures < _FIRST_PAUSE else min(self.longest_s, self.first_s * 2.0 ** min(failures - _FIRST_PAUSE, 60))
        return min(wanted, max(0.0, self.give_up_s - without_answer_s)) if without_answer_s else wanted


_FIRST_PAUSE = 3
"""Single pages may fail without a fault of the site."""


@dataclass(frozen=True, slots=True)
class GivingUp:
    """Limits after which a site is given up for the run: so many failures in a row, or so many seconds without any response."""

    failures: int = 20
    after_s: float = 60.0
    continuous: bool = False
    """The crawl is continuous: the site is tried again after an hour."""


class Wait(NamedTuple):
    """The reason why the next request waits."""

    site: str
    seconds: float
    why: str
    sites: int
    """That wait."""


class Failures(NamedTuple):
    """The recent failures of a site."""

    in_row: int = 0
    """Failures in a row, error responses included."""
    unanswered: int = 0
    """Requests in a row without any response."""
    without_answer_s: float = 0.0
    """Seconds since the first of them."""


@dataclass(slots=True, eq=False)
class AddressGroup:
    """The sites at one address. One site at a time has the slot, for one request; the others wait in line."""

    address: str
    holder: SiteQueue | None = None
    """The site with a request in flight, or with the next one."""
    line: deque[SiteQueue] = field(default_factory=deque)
    """Sites that are ready but for the group, in order of arrival."""
    sites: int = 0
    last_request_at: float = -inf
    delay_s: float = 0.0
    """Delay of the site requested last, without its pauses after failures."""

    def next_turn(self, site_queue: SiteQueue) -> float:
        return self.last_request_at + max(self.delay_s, site_queue.pace.delay_s)


@dataclass(slots=True, eq=False)
class SiteQueue:
    """One site's requests: buffered URLs, requests in flight, and the time of the next one. Times are on the monotonic clock."""

    site: str
    pace: Pace
    batch: int
    """URLs leased at a time."""
    buffered: dict[int, deque[UrlState]] = field(default_factory=dict)
    """Leased URLs by queue index, in the order of fetching."""
    more: int = 0
    """Bits of the queue indexes for which the store may have more ready URLs."""
    lined_up: int = 0
    """Bits of the queue indexes in whose line the site is."""
    due: dict[int, int] = field(default_factory=dict)
    """By queue index, when the first known URL is due, in seconds since 1970."""
    in_flight: int = 0
    last_request_at: float = -inf
    previous_request_at: float = -inf
    not_before: float = -inf
    failures: int = 0
    """In a row."""
    rest_s: float = 0.0
    """The pause that they cause, in place of its delay."""
    unanswered: int = 0
    """Requests in a row without any response."""
    unanswered_since: float = inf
    """Time when the first request since the last response was sent."""
    blocked: bool = False
    """Blocked until robots.txt or the address is known."""
    paced: bool = False
    """Whether its pace has been set."""
    works: bool = False
    """It has URLs to fetch."""
    placed: bool = False
    """It is one of the sites being crawled."""
    in_turn: int = 0
    """Pages that were requested of it since it has its place."""
    outside: bool = False
    """It waits for a place."""
    wakes_at: float | None = None
    address_group: AddressGroup | None = None
    """The group of sites with its address."""
    located_until: float = -inf
    """Time until which the look-up of its address is valid."""
    waits_for_group: bool = False

    def set_pace(self, pace: Pace, *, lease_s: int) -> None:
        self.pace = pace
        self.paced = True
        batch = BATCH
        if pace.delay_s > 0:  # buffered URLs must be fetched well before their lease ends
            batch = max(1, min(POLITE_BATCH, int(lease_s / 2 / pace.delay_s)))
        self.batch = max(batch, min(pace.concurrency, BATCH))

    def begin(self, now: float) -> None:
        """Record the start of a request to the site."""
        self.previous_request_at, self.last_request_at = self.last_request_at, now
        self.unanswered_since = min(self.unanswered_since, now)
        self.in_flight += 1

    def end(self) -> None:
        """Record the end of a request, whatever its result."""
        self.in_flight -= 1
        if not (self.in_flight or self.unanswered):
            self.unanswered_since = inf

    def count(self, *, failed: bool | None, answered: bool | None, now: float, backoff: Backoff) -> Failures:
        """Count the result of a request, before `end`; None if it shows nothing of the site."""
        if answered:
            self.unanswered, self.unanswered_since = 0, inf
        elif answered is not None:
            self.unanswered += 1
        without_answer_s = now - self.unanswered_since if self.unanswered else 0.0
        if failed is not None:
            self.failures = self.failures + 1 if failed else 0
            self.rest_s = backoff.rest_s(self.failures, without_answer_s=without_answer_s)
        return Failures(self.failures, self.unanswered, without_answer_s)

    @property
    def has_room(self) -> bool:
        return self.in_flight < self.pace.concurrency and not self.blocked and not self.pace.suspended

    @property
    def delay_s(self) -> float:
        return max(self.pace.delay_s, self.rest_s)

    @property
    def next_turn(self) -> float:
        return max(self.last_request_at + self.delay_s, self.not_before)

    @property
    def why_paused(self) -> str:
        """Return why no request may be sent before `next_turn`; empty where that is its delay alone."""
        if self.pace.suspended:
            return "is suspended by CRAWLSPACE_VARIABLE_DELAY, or variable_delay in CRAWLSPACE_SITES"
        if self.not_before > self.last_request_at + self.delay_s:
            return "is not to be requested before, by its own answer or a wait of an earlier run"
        return f"is paused after {self.failures} failures in a row" if self.rest_s > self.pace.delay_s else ""


_LONG_S = 60.0


def outlasts(wait_until: int | None, *, now: float, left_s: float) -> bool:
    """Return whether a stored wait exceeds the rest of it, because the clock was set back: every later run would wait again.

    A rest below a minute is not worth a write for each of many sites.
    """
    return wait_until is not None and left_s >= _LONG_S and now + left_s < wait_until
