"""What sites wait for: a time, the first due URL, the limit of concurrent sites, and the slot of their address."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf

from crawlspace.cache import Recent
from crawlspace.frontier.site_queue import AddressGroup, SiteQueue

_FEW = 1_000
_LEFT = 10_000


class WaitingSites:
    """Sites that wait for a time on the monotonic clock, soonest first. Each waits for one time, its `wakes_at`; heap entries with another time are skipped."""

    def __init__(self) -> None:
        self._moments: list[tuple[float, int, SiteQueue]] = []
        self._order = count()

    def put(self, site_queue: SiteQueue, until: float) -> None:
        if until != site_queue.wakes_at:
            site_queue.wakes_at = until
            heappush(self._moments, (until, next(self._order), site_queue))

    def take(self, now: float) -> Iterator[SiteQueue]:
        """Yield the sites whose time has come."""
        while self._moments and self._moments[0][0] <= now:
            at, _, site_queue = heappop(self._moments)
            if site_queue.wakes_at == at:
                site_queue.wakes_at = None
                yield site_queue

    @property
    def first(self) -> float | None:
        """The soonest time; no site may be waiting for it any more."""
        return self._moments[0][0] if self._moments else None


class DueTimes:
    """The times at which known URLs become due, in seconds since 1970: the first of each queue of each site. `SiteQueue.due` has the valid time of each queue.

    A time replaced by a sooner one stays in the heap until half of the entries are such: the heap has at most twice as many
    entries as there are queues, however long a crawl runs.
    """

    def __init__(self) -> None:
        self._moments: list[tuple[int, int, SiteQueue, int]] = []
        self._order = count()
        self._most = _FEW

    def add(self, site_queue: SiteQueue, queue_index: int, at: int) -> None:
        """Record that a URL in the queue is due at that time; a sooner time already recorded remains."""
        before = site_queue.due.get(queue_index)
        if before is not None and before <= at:
            return
        site_queue.due[queue_index] = at
        heappush(self._moments, (at, next(self._order), site_queue, queue_index))
        if len(self._moments) > self._most:
            holding = {(moment[2], moment[3]): moment for moment in self._moments if _holds(moment)}
            self._moments = list(holding.values())
            heapify(self._moments)
            self._most = max(_FEW, 2 * len(holding))

    def take(self, wall: float) -> Iterator[tuple[SiteQueue, int]]:
        """Yield the queues with a URL that has become due, and remove them."""
        while self._moments and self._moments[0][0] <= wall:
            moment = heappop(self._moments)
            if _holds(moment):
                _, _, site_queue, queue_index = moment
                del site_queue.due[queue_index]
                yield site_queue, queue_index

    @property
    def moments(self) -> int:
        """The number of entries, replaced ones included."""
        return len(self._moments)

    def first(self, queue_indexes: int) -> int | None:
        """Return when the next URL is due in one of these queues, given as bits."""
        while self._moments and not (_holds(self._moments[0]) and queue_indexes >> self._moments[0][3] & 1):
            heappop(self._moments)
        return self._moments[0][0] if self._moments else None

    def first_site(self, queue_indexes: int) -> str | None:
        """Return the site of that URL."""
        return None if self.first(queue_indexes) is None else self._moments[0][2].site


def _holds(moment: tuple[int, int, SiteQueue, int]) -> bool:
    at, _, site_queue, queue_index = moment
    return site_queue.due.get(queue_index) == at


class SiteLimit:
    """The number of sites crawled at the same time. A site keeps its place until it has nothing more to request, or may not be requested for long."""

    def __init__(self, most: int | None, most_pages: int | None = None) -> None:
        """`most` sites at the same time; None: no limit. `most_pages` of each, while others wait; None: all that it has."""
        self._left = inf if most is None else most
        self._most_pages = inf if most_pages is None else most_pages
        self._outside: deque[SiteQueue] = deque()

    def take(self, site_queue: SiteQueue) -> bool:
        """Return whether the site has a place now; if not, it waits for one."""
        if not site_queue.placed and self._left > 0:
            self._left -= 1
            site_queue.placed = True
        elif not (site_queue.placed or site_queue.outside):
            site_queue.outside = True
            self._outside.append(site_queue)
        return site_queue.placed

    def is_over(self, site_queue: SiteQueue) -> bool:
        """Return whether others wait for the place of a site, and it has had its pages, or is suspended."""
        return site_queue.placed and bool(self._outside) and (site_queue.in_turn >= self._most_pages or site_queue.pace.suspended)

    def leave(self, site_queue: SiteQueue) -> Iterator[SiteQueue]:
        """Free a site's place; yield those that may take one now, as long as one is free."""
        if not site_queue.placed:
            return
        site_queue.placed = False
        site_queue.in_turn = 0
        self._left += 1
        while self._left > 0 and self._outside:
            following = self._outside.popleft()
            following.outside = False
            if following.works:
                yield following


class AddressGroups:
    """The groups of sites with the same address: those with a delay share it and are requested one after the other."""

    def __init__(self) -> None:
        self._by_address: dict[str, AddressGroup] = {}
        self._left: Recent[str, AddressGroup] = Recent(_LEFT)
        """Groups without sites, kept because their last delay may be longer than that of a later site."""

    def join(self, site_queue: SiteQueue, address: str) -> None:
        """Let a site share the delay of all others at that address."""
        address_group = self._by_address.get(address)
        if address_group is None:
            address_group = self._by_address[address] = self._left.get(address) or AddressGroup(address)
        address_group.sites += 1
        site_queue.address_group = address_group

    def leave(self, site_queue: SiteQueue) -> None:
        """Remove a site from its group after its last delay."""
        address_group = site_queue.address_group
        if address_group is not None:
            address_group.sites -= 1
            if not address_group.sites:
                del self._by_address[address_group.address]
                self._left.put(address_group.address, address_group)

    def next_request_at(self, site_queue: SiteQueue) -> float | None:
        """Return when a site that is ready by itself may be requested; None if it must wait in line for its group's slot."""
        address_group = site_queue.address_group
        if address_group is None or not site_queue.pace.delay_s:
            return -inf
        if address_group.holder is None:
            address_group.holder = site_queue
        elif address_group.holder is not site_queue:
            if not site_queue.waits_for_group:
                site_queue.waits_for_group = True
                address_group.line.append(site_queue)
            return None
        return address_group.next_turn(site_queue)

    def has_turn(self, site_queue: SiteQueue) -> bool:
        """Return whether its group allows a request to the site now."""
        address_group = site_queue.address_group
        if address_group is None or not site_queue.pace.delay_s:
            return True
        return address_group.holder is site_queue and not (site_queue.in_flight and address_group.line)

    def pass_on(self, site_queue: SiteQueue) -> SiteQueue | None:
        """End the slot of a site, if it has it and no request is in flight; return the next site."""
        address_group = site_queue.address_group
        if address_group is None or address_group.holder is not site_queue or site_queue.in_flight:
            return None
        if site_queue.last_request_at > address_group.last_request_at:
            address_group.last_request_at, address_group.delay_s = site_queue.last_request_at, site_queue.pace.delay_s
        address_group.holder = address_group.line.popleft() if address_group.line else None
        if address_group.holder is not None:
            address_group.holder.waits_for_group = False
        return address_group.holder
