"""How fast each site may be asked at present: its settings, the time of the week, and what its robots.txt asks for."""

from __future__ import annotations

from math import inf
from typing import Protocol

from crawlspace.clock import Clock
from crawlspace.config.collection import Collection
from crawlspace.frontier.delay_schedule import Slot
from crawlspace.frontier.site_queue import Pace
from crawlspace.urls import DEFAULT_PORTS

_ALWAYS = Slot(None, suspended=False, until=inf)


class RequestedDelays(Protocol):
    def delay_of(self, site: str, scheme: str) -> float: ...


class SiteDelays:
    """The paces of a collection's sites.

    In a slot of CRAWLSPACE_VARIABLE_DELAY its delay holds for all sites but those that have one of their own in CRAWLSPACE_SITES;
    while it says "suspend", nothing is asked at all.
    """

    def __init__(self, collection: Collection, clock: Clock, asked: RequestedDelays) -> None:
        """`asked` knows the delays that robots.txt asks for; it is not consulted where robots.txt is not obeyed."""
        self._sites = collection.sites
        self._timetable = collection.timetable
        self._obey = collection.robots_obey
        self._clock = clock
        self._asked = asked
        self._slot = _ALWAYS
        self._asked_at = inf
        """When the timetable was asked for the slot; it has not been yet."""

    def of(self, site: str) -> Pace:
        host, _, port = site.rpartition(":")
        settings = self._sites.of(host, int(port))
        slot = self._present()
        delay, by_slot = settings.delay_s, False
        if slot.delay_s is not None and not settings.own_delay:
            delay, by_slot = slot.delay_s, True
        asked = max(self._asked.delay_of(site, scheme) for scheme in DEFAULT_PORTS) if self._obey else 0.0
        one_at_a_time = asked > 0 or (by_slot and delay > 0)
        return Pace(max(delay, asked), 1 if one_at_a_time else settings.concurrency, suspended=slot.suspended)

    def change_at(self) -> float:
        """When the slot may become another, in seconds since 1970; infinite where there is no timetable."""
        return self._present().until

    def is_suspended(self) -> bool:
        """Whether the slot says that nothing is asked at all."""
        return self._present().suspended

    def phase(self) -> tuple[float | None, bool]:
        """What the slot says for all sites: seconds between requests, if it does, and whether nothing is asked at all."""
        slot = self._present()
        return slot.delay_s, slot.suspended

    def _present(self) -> Slot:
        now = self._clock.now()
        if self._timetable is not None and not self._asked_at <= now < self._slot.until:  # before: the clock was set back
            self._slot, self._asked_at = self._timetable.at(now), now
        return self._slot
