"""The delay and concurrency of each site at present: from its settings, the time of the week, and its robots.txt."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, inf
from typing import NamedTuple, Protocol

from crawlspace.clock import Clock
from crawlspace.config.collection import Collection
from crawlspace.crawl.autothrottle import AutoThrottle
from crawlspace.frontier.delay_schedule import Slot
from crawlspace.frontier.frontier import Frontier
from crawlspace.frontier.ports import DelaySource, OtherWorkers
from crawlspace.frontier.robots.cache import Robots, RobotsStore
from crawlspace.frontier.site_queue import Pace
from crawlspace.model import Outcome
from crawlspace.state.recrawl import RecrawlPolicy
from crawlspace.state.store import LeaseStore
from crawlspace.urls import DEFAULT_PORTS

_ALWAYS = Slot(None, suspended=False, until=inf)


def robots_of(collection: Collection, store: RobotsStore, clock: Clock) -> Robots:
    """Return what reads robots.txt for a collection."""
    return Robots(
        store,
        clock=clock,
        user_agent=collection.robots_agent,
        ttl_s=collection.robots_ttl_s,
        longest_delay_s=collection.robots_delay_max_s,
    )


class RetriesUntil(Protocol):
    @property
    def retries_until(self) -> float: ...


def frontier_of(
    collection: Collection,
    leases: LeaseStore,
    site_delays: DelaySource,
    *,
    clock: Clock,
    time: RetriesUntil,
    policy: RecrawlPolicy,
    others: OtherWorkers | None,
) -> Frontier:
    """Return the frontier of a collection."""
    return Frontier(
        leases,
        clock=clock,
        site_delays=site_delays,
        lease_s=collection.lease_s,
        weights=collection.weights,
        max_sites=collection.max_sites,
        backoff=collection.backoff,
        retries_until=time.retries_until,
        longest_wait_s=policy.retry_after_max_s,
        others=others,
    )


class RequestedDelays(Protocol):
    def delay_of(self, site: str, scheme: str) -> float: ...


class _Prescribed(NamedTuple):
    """The pace of a site before its latency counts, and whether the target concurrency of AutoThrottle does not raise it."""

    pace: Pace
    is_concurrency_fixed: bool


class SiteDelays:
    """The delay and concurrency of each site of a collection.

    In a slot of CRAWLSPACE_VARIABLE_DELAY, its delay applies to all sites without their own delay in CRAWLSPACE_SITES; "suspend"
    stops all requests. With AUTOTHROTTLE_ENABLED a delay follows the latency of its site, and is never shorter than these.
    """

    def __init__(self, collection: Collection, clock: Clock, requested: RequestedDelays) -> None:
        """`requested` returns the delays from robots.txt; unused if robots.txt is not obeyed."""
        self._sites = collection.sites
        self._timetable = collection.timetable
        self._obey = collection.robots_obey
        self._clock = clock
        self._requested = requested
        self._throttle = AutoThrottle(collection.throttle) if collection.throttle is not None else None
        self._together = ceil(collection.throttle.target_concurrency) if collection.throttle is not None else 1
        """Requests to one site at a time that the target concurrency needs."""
        self._slot = _ALWAYS
        self._slot_read_at = inf
        """Time of the last look-up of the slot; infinite before the first."""

    def of(self, site: str) -> Pace:
        prescribed = self._prescribed(site)
        if self._throttle is None:
            return prescribed.pace
        concurrency = prescribed.pace.concurrency if prescribed.is_concurrency_fixed else self._together
        return replace(
            prescribed.pace,
            delay_s=self._throttle.delay_s(site, least_s=prescribed.pace.delay_s),
            concurrency=max(prescribed.pace.concurrency, concurrency),
        )

    def answered(self, site: str, outcome: Outcome) -> bool:
        """Have the delay of a site follow its latency, if it is to. Returns whether its pace has changed."""
        if self._throttle is None or outcome.latency_s is None:
            return False
        least_s = self._prescribed(site).pace.delay_s
        return self._throttle.answered(site, latency_s=outcome.latency_s, status=outcome.status, least_s=least_s)

    def _prescribed(self, site: str) -> _Prescribed:
        """Return the pace by settings, time of the week and robots.txt."""
        host, _, port = site.rpartition(":")
        settings = self._sites.of(host, int(port))
        slot = self._present()
        delay, by_slot = settings.delay_s, False
        if slot.delay_s is not None and not settings.own_delay:
            delay, by_slot = slot.delay_s, True
        requested = max(self._requested.delay_of(site, scheme) for scheme in DEFAULT_PORTS) if self._obey else 0.0
        one_at_a_time = requested > 0 or (by_slot and delay > 0)
        pace = Pace(max(delay, requested), 1 if one_at_a_time else settings.concurrency, suspended=slot.suspended)
        return _Prescribed(pace, is_concurrency_fixed=one_at_a_time or settings.own_concurrency)

    def change_at(self) -> float:
        """Return when the slot may change, in seconds since 1970; infinite without a timetable."""
        return self._present().until

    def is_suspended(self) -> bool:
        """Return whether the slot suspends all requests."""
        return self._present().suspended

    def phase(self) -> tuple[float | None, bool]:
        """Return what the slot sets for all sites: its delay in seconds or None, and whether requests are suspended."""
        slot = self._present()
        return slot.delay_s, slot.suspended

    def _present(self) -> Slot:
        now = self._clock.now()
        if self._timetable is not None and not self._slot_read_at <= now < self._slot.until:  # earlier: the clock was set back
            self._slot, self._slot_read_at = self._timetable.at(now), now
        return self._slot
