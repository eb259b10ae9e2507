"""Choose the URL to fetch next: every site that may be requested is kept busy, and none is requested too soon.

The store holds the queues; memory has only sites with something to do, each with a few leased URLs. The source is chosen by
weight, then the lowest shift, then the site that has been ready for longest. A choice costs the same however many URLs wait.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Mapping
from math import ceil, inf
from typing import Protocol

from crawlspace.clock import Clock
from crawlspace.frontier.leases import Leases
from crawlspace.frontier.site_queue import Backoff, Failures, Pace, SiteQueue, Wait, indexes_in, indexes_of, outlasts
from crawlspace.frontier.site_waits import AddressGroups, DueTimes, SiteLimit, WaitingSites
from crawlspace.frontier.source_weights import DEFAULT_WEIGHTS, WeightedSources
from crawlspace.model import QUEUES, Queue, Source, UrlState
from crawlspace.state.site_pauses import Pauses, pause_of
from crawlspace.state.store import LeaseStore

logger = logging.getLogger(__name__)

FAR_S = 60.0
"""A site that may not be requested for longer than this frees its place for another."""
UNCERTAIN_S = 10.0
"""Time after which a failed look-up of a site's address is repeated."""


class OtherWorkers(Protocol):
    """The other workers of a shared crawl."""

    def give_up(self, site: str) -> None:
        """Have none of them fetch anything of the site in this run."""

    def resume(self, site: str) -> None:
        """Have them fetch a site again that was given up."""


class DelaySource(Protocol):
    """The current pace of sites."""

    def of(self, site: str) -> Pace: ...

    def change_at(self) -> float:
        """Return when the phase may change, in seconds since 1970; infinite if it won't."""

    def phase(self) -> object:
        """Return the state common to all sites. While it is equal, a site's pace changes only with its robots.txt."""


class Frontier:
    """Returns leased URLs, one at a time. `in_flight` counts those not finished yet."""

    def __init__(
        self,
        store: LeaseStore,
        *,
        clock: Clock,
        site_delays: DelaySource,
        lease_s: int,
        weights: Mapping[Source, int] = DEFAULT_WEIGHTS,
        max_sites: int | None = None,
        max_pages_in_turn: int | None = None,
        backoff: Backoff | None = None,
        retries_until: float = 0.0,
        longest_wait_s: float = 3600.0,
        others: OtherWorkers | None = None,
    ) -> None:
        """`max_sites`: sites crawled at the same time, each for `max_pages_in_turn` while others wait.

        `longest_wait_s` bounds a stored wait, in case the clock was set back.
        """
        self._store, self._clock, self._site_delays, self._others = store, clock, site_delays, others
        self._leases = Leases(store, clock=clock, lease_s=lease_s)
        self._sources = WeightedSources(weights)
        self._running = sum(1 << queue_index for source in self._sources.running for queue_index in indexes_of(source))
        self._site_limit, self._backoff = SiteLimit(max_sites, max_pages_in_turn), backoff or Backoff(0.0, 0.0)
        self._sites: dict[str, SiteQueue] = {}
        self._lines: list[deque[SiteQueue]] = [deque() for _ in range(QUEUES)]
        """For each queue index, the sites that are ready and have a URL in it; sites no longer ready are skipped when taken."""
        self._address_groups, self._waiting, self._due_times = AddressGroups(), WaitingSites(), DueTimes()
        self.working = 0
        """Sites with pending or due URLs, ready or not."""
        self.in_flight = 0
        self._retries_until = retries_until
        """Time until which retries of this run are outstanding; what is due before then is awaited."""
        self.given_up_sites: set[str] = set()
        self.pauses: Pauses = {}
        """The hosts that a person has paused."""
        self._read_pauses()
        self._phase, self._phase_since, self._repace_at = site_delays.phase(), clock.now(), site_delays.change_at()
        for known in store.sites():
            site_queue = self._queue_of(known.site)
            left_s = known.left_s(clock.now(), longest_s=longest_wait_s)
            if outlasts(known.wait_until, now=clock.now(), left_s=left_s):
                store.wait_site(known.site, ceil(clock.now() + left_s), wait_s=ceil(left_s))
            site_queue.not_before = clock.monotonic() + left_s
            if not self.is_paused(known.site):
                self._learn(site_queue, known.pending, known.due)

    def next(self) -> UrlState | None:
        """Return the next URL to fetch, or None if no site may be requested now (see `wake_in`)."""
        now = self._clock.monotonic()
        if self._leases.reclaim():
            self.recheck_sites()
        self._wake(now)
        for source in self._sources.order():
            for queue_index in indexes_of(source):
                if self._lines[queue_index] and (state := self._next_in(queue_index, now)) is not None:
                    self._sources.picked(source)
                    return state
        return None

    def finished(
        self, state: UrlState, *, sent_ago_s: float = 0.0, failed: bool | None = None, answered: bool | None = None
    ) -> Failures:
        """Record the end of a request sent `sent_ago_s` ago. `failed`: the site failed; `answered`: it responded; None if not sent."""
        return self._request_ended(self._sites[state.site], sent_ago_s, failed=failed, answered=answered)

    def repace(self, site: str) -> None:
        """Update the pace of a site with a request in flight."""
        self._set_pace(self._sites[site])

    def recorded(self, ids: Iterable[int]) -> None:
        """End the leases of URLs whose outcome is stored."""
        self._leases.recorded(ids)

    def return_later(self, state: UrlState) -> None:
        """Take back a URL that was skipped, as the next of its queue."""
        self._leases.put_back(self._queue_of(state.site), state)
        if self.is_stopped(state.site):
            self._stop(self._queue_of(state.site))
        self._settle(self._queue_of(state.site))

    def put_back(self, state: UrlState, *, wait_s: float = 0.0) -> None:
        """Take back a URL that was not requested, and return its slot to the site, which waits `wait_s`, and the source."""
        site_queue = self._sites[state.site]
        site_queue.not_before = max(site_queue.not_before, self._clock.monotonic() + wait_s)
        self._leases.put_back(site_queue, state)
        self._sources.not_picked(state.queue.source)
        self.skip(state)

    def skip(self, state: UrlState) -> None:
        """End the slot of a URL that needed no request; the site gets it back, but not the source, which could block all others."""
        site_queue = self._sites[state.site]
        site_queue.last_request_at = site_queue.previous_request_at
        self._over(site_queue)

    def block(self, site: str) -> None:
        """Return nothing of the site until `unblock`; one request to it (its robots.txt) is in flight from now on."""
        site_queue = self._sites[site]
        site_queue.blocked = True
        site_queue.begin(self._clock.monotonic())
        self.in_flight += 1

    def unblock(self, site: str, *, answered: bool | None = None) -> Failures:
        """End the request for which `block` blocked the site, and update its pace. `answered` is as in `finished`."""
        site_queue = self._sites[site]
        site_queue.blocked = False
        self._set_pace(site_queue)
        return self._request_ended(site_queue, 0.0, failed=None, answered=answered)

    def is_blocked(self, site: str) -> bool:
        """Return whether the site is blocked until `unblock` or `locate`."""
        return (site_queue := self._sites.get(site)) is not None and site_queue.blocked

    def is_located(self, site: str) -> bool:
        """Return whether the address of a site is known, as set by `locate`."""
        return self._clock.monotonic() < self._sites[site].located_until

    def await_address(self, state: UrlState) -> None:
        """Take back a URL just returned, and block its site until `locate`."""
        self._sites[state.site].blocked = True
        self.put_back(state)

    def locate(self, site: str, address: str | None, *, certain: bool = True) -> None:
        """Let the site share its delay with others of the same address (None: with none); look up again later unless `certain`."""
        if (site_queue := self._sites.get(site)) is None or site_queue.located_until == inf:
            return
        site_queue.blocked = False
        site_queue.located_until = inf if certain else self._clock.monotonic() + UNCERTAIN_S
        if address is not None:
            self._address_groups.join(site_queue, address)
        self._settle(site_queue)

    def next_slot_in(self, site: str) -> float:
        """Return the seconds until the site's own delay is over; 0.0 if it is."""
        return 0.0 if (site_queue := self._sites.get(site)) is None else max(0.0, site_queue.next_turn - self._clock.monotonic())

    def record_other_request(self, site: str, *, sent_ago_s: float = 0.0) -> None:
        """Record a request to the site outside its slots: its delay counts from then."""
        site_queue = self._queue_of(site)
        self._set_pace(site_queue)
        site_queue.last_request_at = max(site_queue.last_request_at, self._clock.monotonic() - sent_ago_s)
        self._settle(site_queue)

    def discovered(self, found: Iterable[tuple[str, Queue]]) -> None:
        """Record that URLs of these sites may have become pending, in these queues."""
        for site, queue in found:
            site_queue = self._queue_of(site)
            bit = 1 << queue.queue_index
            if not site_queue.more & bit and not self.is_stopped(site):
                site_queue.more |= bit
                self._settle(site_queue)

    def due(self, site: str, queue: Queue, at: int, *, retry: bool = False) -> None:
        """Record when a known URL is due (seconds since 1970); the crawl does not end before an outstanding retry."""
        if not self.is_stopped(site):
            self._retries_until = max(self._retries_until, at) if retry else self._retries_until
            self._due_times.add(self._queue_of(site), queue.queue_index, at)

    def arrived(self, site: str, queues: Iterable[Queue], *, last_request_ago_s: float | None, wait_s: float) -> None:
        """Add a site that this process now owns, with URLs in these queues; the last request to it was `last_request_ago_s` ago."""
        site_queue, now = self._queue_of(site), self._clock.monotonic()
        if last_request_ago_s is not None:
            site_queue.last_request_at = max(site_queue.last_request_at, now - last_request_ago_s)
            self._set_pace(site_queue)  # `record_other_request` may come before its first slot
        if wait_s > 0:
            site_queue.not_before = max(site_queue.not_before, now + wait_s)
        if not self.is_stopped(site):
            self._learn(site_queue, queues, ())

    def open_requests(self, site: str) -> int:
        """Return the number of URLs of the site in flight or buffered."""
        return 0 if (found := self._sites.get(site)) is None else found.in_flight + sum(map(len, found.buffered.values()))

    def leave_site(self, site: str) -> tuple[float | None, float]:
        """Start no more requests to a site. Returns the seconds since the last one (None if irrelevant), and the rest of its delay."""
        if (site_queue := self._sites.get(site)) is None:
            return None, 0.0
        last, now = site_queue.last_request_at, self._clock.monotonic()
        self._stop(site_queue)
        return (None if last == -inf else now - last), max(0.0, site_queue.next_turn - now)

    def recheck_sites(self) -> None:
        """Update the sites from the store, after another process has written to it."""
        if self._read_pauses():
            for site_queue in list(self._sites.values()):
                if self.is_paused(site_queue.site):
                    self._stop(site_queue)
        for known in (one for one in self._store.sites() if not self.is_stopped(one.site)):
            self._learn(self._queue_of(known.site), known.pending, known.due)

    def wait_site(self, site: str, seconds: float) -> None:
        """Send no requests to the site for that time; stored for later runs."""
        site_queue = self._queue_of(site)
        site_queue.not_before = max(site_queue.not_before, self._clock.monotonic() + seconds)
        self._remember(site_queue, site_queue.not_before)
        self._leases.give_back(site_queue)
        self._settle(site_queue)

    def give_up(self, site: str) -> None:
        """Send no more requests to the site in this run; the state of its URLs doesn't change."""
        self.given_up_sites.add(site)
        self._stop(self._queue_of(site))
        if self._others is not None:
            self._others.give_up(site)

    def resume(self, site: str) -> None:
        """Resume a site that was given up."""
        self.given_up_sites.discard(site)
        if self._others is not None:
            self._others.resume(site)
        self.recheck_sites()

    def is_paused(self, site: str) -> bool:
        """Return whether a person has paused the site."""
        return pause_of(self.pauses, site) is not None

    def is_stopped(self, site: str) -> bool:
        """Return whether nothing of the site is requested, because it was given up or a person has paused it."""
        return site in self.given_up_sites or (bool(self.pauses) and self.is_paused(site))

    def wake_in(self) -> float | None:
        """Return the seconds until `next` may return a URL; None if that depends on requests in flight."""
        if any(self._lines[queue_index] for queue_index in indexes_in(self._running)):
            return 0.0
        moments = [] if self._waiting.first is None else [self._waiting.first - self._clock.monotonic()]
        if (due_at := self._due_times.first(self._running)) is not None:
            moments.append(due_at - self._clock.now())
        if self.working and self._repace_at < inf:
            moments.append(self._repace_at - self._clock.now())
        return max(0.0, min(moments)) if moments else None

    def paused(self) -> Wait | None:
        """Return what the next request waits for; None where one is in flight or may be sent, or waits for the delay of its site only."""
        if self.in_flight or self.wake_in() == 0.0:
            return None
        wall, now = self._clock.now(), self._clock.monotonic()
        working = [one for one in self._sites.values() if one.works]
        waits = [
            (self._repace_at - wall if one.pace.suspended else one.next_turn - now, one.site, one.why_paused) for one in working
        ]
        due_at, site = self._due_times.first(self._running), self._due_times.first_site(self._running)
        if due_at is not None and site is not None and due_at <= self._retries_until:
            waits.append((due_at - wall, site, "has pages that failed and are requested again then"))
        seconds, site, why = min(((at, site, why) for at, site, why in waits if at > 0), default=(inf, "", ""))
        return Wait(site, seconds, why, len({site for _, site, _ in waits})) if why and seconds < inf else None

    def is_done(self) -> bool:
        """Return whether nothing is pending, leased, due or to be retried; given-up sites and paused sources don't count."""
        due_at = self._due_times.first(self._running)
        is_due = due_at is not None and due_at <= max(self._clock.now(), self._retries_until)
        return not (self.in_flight or self.working or is_due)

    def close(self) -> None:
        """Return unused leases, and store the rest of long delays for the next run."""
        for site_queue in self._sites.values():
            self._leases.give_back(site_queue)
            next_request_at = max(site_queue.last_request_at + site_queue.pace.delay_s, site_queue.not_before)
            if next_request_at > self._clock.monotonic() + 1:
                self._remember(site_queue, next_request_at)

    # --- state of a site ------------------------------------------------------------------------------------------

    def _queue_of(self, site: str) -> SiteQueue:
        if (site_queue := self._sites.get(site)) is None:
            site_queue = self._sites[site] = SiteQueue(site, Pace(0.0, 1), 1)
        return site_queue

    def _set_pace(self, site_queue: SiteQueue) -> None:
        site_queue.set_pace(self._site_delays.of(site_queue.site), lease_s=self._leases.lease_s)

    def _read_pauses(self) -> bool:
        """Read the hosts that a person has paused; return whether they have changed."""
        before, self.pauses = self.pauses, self._store.site_pauses()
        for pattern, pause in self.pauses.items():
            if before.get(pattern) != pause:
                logger.warning("%s is %s; nothing of it is requested until it is resumed", pattern, pause.sentence)
        for pattern in before.keys() - self.pauses.keys():
            logger.warning("%s is not paused any more", pattern)
        return before != self.pauses

    def _stop(self, site_queue: SiteQueue) -> None:
        """Release the buffered URLs of a site, and forget what it has to fetch."""
        self._leases.give_back(site_queue)
        site_queue.more = 0
        site_queue.due.clear()
        self._settle(site_queue)

    def _learn(self, site_queue: SiteQueue, pending: Iterable[Queue], due: Iterable[tuple[Queue, int]]) -> None:
        for queue in pending:
            site_queue.more |= 1 << queue.queue_index
        for queue, at in due:
            self._due_times.add(site_queue, queue.queue_index, at)
        self._settle(site_queue)

    def _settle(self, site_queue: SiteQueue) -> None:
        """Update the position of a site after a change; a slot of its address group that it can't use goes to another site."""
        candidate: SiteQueue | None = site_queue
        while candidate is not None and not self._place(candidate):
            candidate = self._address_groups.pass_on(candidate)

    def _place(self, site_queue: SiteQueue) -> bool:
        """Update the position of a site. Return whether it can use a slot."""
        works = bool(site_queue.buffered or site_queue.more & self._running) and not self.is_stopped(site_queue.site)
        if works != site_queue.works:
            site_queue.works = works
            self.working += 1 if works else -1
        if site_queue.in_flight and not (works and site_queue.has_room):
            return False
        now = self._clock.monotonic()
        next_turn = site_queue.next_turn
        if self._site_limit.is_over(site_queue):
            if site_queue.in_flight:
                return False
            self._leases.give_back(site_queue)
            self._leave(site_queue)
        if not works:
            self._leave(site_queue)
            if next_turn <= now and not site_queue.due and site_queue.site not in self.given_up_sites:
                if self._sites.get(site_queue.site) is site_queue:
                    del self._sites[site_queue.site]
                    self._address_groups.leave(site_queue)
            elif next_turn > now and not site_queue.due:
                self._waiting.put(site_queue, next_turn)  # its delay must be kept until then
        elif next_turn > now:
            if next_turn > now + FAR_S and not site_queue.in_flight:
                self._leases.give_back(site_queue)
                self._leave(site_queue)
            self._waiting.put(site_queue, next_turn)
        elif site_queue.has_room and self._site_limit.take(site_queue):
            at = self._address_groups.next_request_at(site_queue)
            if at is not None and at <= now:
                self._line_up(site_queue)
            elif at is not None:
                self._waiting.put(site_queue, at)
            return True
        return False

    def _line_up(self, site_queue: SiteQueue) -> None:
        ready = site_queue.more & self._running | sum(1 << queue_index for queue_index in site_queue.buffered)
        new = ready & ~site_queue.lined_up
        site_queue.lined_up |= new
        for queue_index in indexes_in(new):
            self._lines[queue_index].append(site_queue)

    def _leave(self, site_queue: SiteQueue) -> None:
        """Free the site's place for another."""
        for following in self._site_limit.leave(site_queue):
            self._settle(following)

    def _wake(self, now: float) -> None:
        wall = self._clock.now()
        if not self._phase_since <= wall < self._repace_at:  # earlier: the clock was set back
            self._phase_since, self._repace_at = wall, self._site_delays.change_at()
            if (phase := self._site_delays.phase()) != self._phase:
                self._phase = phase
                for site_queue in list(self._sites.values()):
                    if site_queue.paced:
                        self._set_pace(site_queue)
                        self._settle(site_queue)
        for site_queue in self._waiting.take(now):
            self._settle(site_queue)
        for site_queue, queue_index in self._due_times.take(wall):
            site_queue.more |= 1 << queue_index
            self._settle(site_queue)

    # --- choosing -------------------------------------------------------------------------------------------------
    def _next_in(self, queue_index: int, now: float) -> UrlState | None:
        line = self._lines[queue_index]
        while line:
            site_queue = line.popleft()
            site_queue.lined_up &= ~(1 << queue_index)
            if not site_queue.paced:  # at its first slot: there may be very many sites
                self._set_pace(site_queue)
                if site_queue.next_turn > now or not site_queue.has_room:
                    self._settle(site_queue)
            is_ready = (
                site_queue.works and site_queue.has_room and site_queue.placed and self._address_groups.has_turn(site_queue)
            )
            if not is_ready or site_queue.next_turn > now:
                continue  # it is lined up again when it is ready
            if queue_index not in site_queue.buffered:
                self._lease(site_queue, queue_index)
            if queue_index in site_queue.buffered:
                return self._take(site_queue, queue_index, now)
            self._settle(site_queue)
        return None

    def _lease(self, site_queue: SiteQueue, queue_index: int) -> None:
        if not self._leases.fill(site_queue, queue_index, working=self.working):
            site_queue.more &= ~(1 << queue_index)
            site_queue.due.pop(queue_index, None)
            for queue, at in self._store.due(site_queue.site):
                if queue.queue_index == queue_index:
                    self._due_times.add(site_queue, queue_index, at)

    def _take(self, site_queue: SiteQueue, queue_index: int, now: float) -> UrlState:
        state = self._leases.take(site_queue, queue_index)
        site_queue.begin(now)
        site_queue.in_turn += 1
        self.in_flight += 1
        self._settle(site_queue)
        return state

    def _request_ended(self, site_queue: SiteQueue, ago_s: float, *, failed: bool | None, answered: bool | None) -> Failures:
        now = self._clock.monotonic()
        site_queue.last_request_at = max(site_queue.last_request_at, now - ago_s)
        counted = site_queue.count(failed=failed, answered=answered, now=now, backoff=self._backoff)
        self._over(site_queue)
        return counted

    def _over(self, site_queue: SiteQueue) -> None:
        site_queue.end()
        self.in_flight -= 1
        if (following := self._address_groups.pass_on(site_queue)) is not None:
            self._settle(following)
        self._settle(site_queue)

    def _remember(self, site_queue: SiteQueue, until: float) -> None:
        wait_s = until - self._clock.monotonic()
        self._store.wait_site(site_queue.site, ceil(self._clock.now() + wait_s), wait_s=ceil(wait_s))
