"""Which URL is fetched next: every site that may be asked is kept busy, and none is asked too soon.

The store holds the queues; in memory are only sites that have something to do, with a few leased URLs. The source is picked by weight, in
it the lowest shift, then the site that may be asked now and has waited longest. A pick costs the same however many URLs wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from math import ceil, inf

from crawlspace.clock import Clock
from crawlspace.frontier.address_groups import AddressGroups
from crawlspace.frontier.due_times import DueTimes
from crawlspace.frontier.leases import Leases
from crawlspace.frontier.ports import DelaySource, OtherWorkers
from crawlspace.frontier.site_limit import SiteLimit
from crawlspace.frontier.site_queue import Backoff, Failures, Pace, SiteQueue, indexes_in, indexes_of, outlasts
from crawlspace.frontier.source_weights import DEFAULT_WEIGHTS, WeightedSources
from crawlspace.frontier.timers import WaitingSites
from crawlspace.model import LANES, Queue, Source, UrlState
from crawlspace.state.store import LeaseStore

FAR_S = 60.0
"""A site that may not be asked for longer than this makes place for another."""
UNCERTAIN_S = 10.0
"""After so long a site is to be located again whose look-up gave no answer."""


class Frontier:
    """Hands out leased URLs, one turn at a time. `under_way` counts those not yet finished."""

    def __init__(
        self,
        store: LeaseStore,
        *,
        clock: Clock,
        site_delays: DelaySource,
        lease_s: int,
        weights: Mapping[Source, int] = DEFAULT_WEIGHTS,
        max_sites: int | None = None,
        backoff: Backoff | None = None,
        retries_until: float = 0.0,
        longest_wait_s: float = 3600.0,
        others: OtherWorkers | None = None,
    ) -> None:
        """`max_sites` are crawled at a time. `longest_wait_s` bounds what is left of a site's silence, should the clock have been set back."""
        self._store, self._clock, self._site_delays, self._others = store, clock, site_delays, others
        self._leases = Leases(store, clock=clock, lease_s=lease_s)
        self._sources = WeightedSources(weights)
        self._running = sum(1 << queue_index for source in self._sources.running for queue_index in indexes_of(source))
        self._places = SiteLimit(max_sites)
        self._backoff = backoff or Backoff(0.0, 0.0)
        self._sites: dict[str, SiteQueue] = {}
        self._address_groups = AddressGroups()
        self._lines: list[deque[SiteQueue]] = [deque() for _ in range(LANES)]
        """For each lane the sites that may be asked now and have something in it; one that may not any more is passed over."""
        self._waiting, self._later = WaitingSites(), DueTimes()
        self.working = 0
        """Sites that have something ready, though it may not be their turn."""
        self.in_flight = 0
        self._retries_until = retries_until
        """Until when retries of this run are outstanding; what is due before then is waited for."""
        self.given_up_sites: set[str] = set()
        """Sites given up for this run."""
        self._phase = site_delays.phase()
        self._phase_since, self._repace_at = clock.now(), site_delays.change_at()
        for known in store.sites():
            turns = self._turns(known.site)
            left_s = known.left_s(clock.now(), longest_s=longest_wait_s)
            if outlasts(known.wait_until, now=clock.now(), left_s=left_s):
                store.wait_site(known.site, ceil(clock.now() + left_s), wait_s=ceil(left_s))
            turns.not_before = clock.monotonic() + left_s
            self._learn(turns, known.pending, known.due)

    def next(self) -> UrlState | None:
        """Return the next URL to fetch, or None when no site may be asked now (see `wake_in`)."""
        now = self._clock.monotonic()
        if self._leases.reclaim():
            self.look_again()
        self._wake(now)
        for source in self._sources.order():
            for queue_index in indexes_of(source):
                state = self._next_in(queue_index, now)
                if state is not None:
                    self._sources.picked(source)
                    return state
        return None

    def finished(
        self, state: UrlState, *, sent_ago_s: float = 0.0, failed: bool | None = None, answered: bool | None = None
    ) -> Failures:
        """End the request of a URL, which was sent `sent_ago_s` ago; the site's delay counts from then.

        `failed`: whether the site failed, `answered`: whether it gave any answer; None where nothing was sent.
        """
        return self._asked(self._sites[state.site], sent_ago_s, failed=failed, answered=answered)

    def recorded(self, ids: Iterable[int]) -> None:
        """The store has what came of these URLs: their leases are over."""
        self._leases.recorded(ids)

    def put_back(self, state: UrlState) -> None:
        """Take back a URL that was not fetched; give the turn back to its site and its source."""
        self._leases.put_back(self._sites[state.site], state)
        self._sources.not_picked(state.queue.source)
        self.skip(state)

    def skip(self, state: UrlState) -> None:
        """Give the turn of a URL that needs no request back to its site, but not to its source, which could keep all others waiting."""
        turns = self._sites[state.site]
        turns.asked_at = turns.asked_before
        self._over(turns)

    def hold(self, site: str) -> None:
        """Hand out nothing of the site until `unhold`; one request to it (its robots.txt) is under way from now."""
        turns = self._sites[site]
        turns.held = True
        turns.begin(self._clock.monotonic())
        self.in_flight += 1

    def unblock(self, site: str, *, answered: bool | None = None) -> Failures:
        """The request that `hold` stands for is over; the site's pace may be another now. `answered` is as in `finished`."""
        turns = self._sites[site]
        turns.held = False
        self._set_pace(turns)
        return self._asked(turns, 0.0, answered=answered)

    def is_held(self, site: str) -> bool:
        """Whether nothing of the site is handed out until `unhold`, or `locate`."""
        return (turns := self._sites.get(site)) is not None and turns.held

    def is_located(self, site: str) -> bool:
        """Whether `locate` has told the address of a site that has just been handed out."""
        return self._clock.monotonic() < self._sites[site].located_until

    def await_address(self, state: UrlState) -> None:
        """Take back a URL just handed out, and hand out nothing of its site until `locate`."""
        self._sites[state.site].held = True
        self.put_back(state)

    def locate(self, site: str, address: str | None, *, certain: bool = True) -> None:
        """Have the site share its delay with all others of the same address; None: with none.

        Where that is not certain, because the look-up gave no answer, the site is to be located again after a while.
        """
        if (turns := self._sites.get(site)) is None or turns.located_until == inf:
            return
        turns.held = False
        turns.located_until = inf if certain else self._clock.monotonic() + UNCERTAIN_S
        if address is not None:
            self._address_groups.join(turns, address)
        self._settle(turns)

    def next_turn_in(self, site: str) -> float:
        """Seconds until the site may be asked by its own delay; 0.0 where it may be at once."""
        return 0.0 if (turns := self._sites.get(site)) is None else max(0.0, turns.next_turn - self._clock.monotonic())

    def asked_beside(self, site: str) -> None:
        """One request to the site goes out beside its turns: its delay counts from now."""
        turns = self._turns(site)
        self._set_pace(turns)
        turns.asked_at = self._clock.monotonic()
        self._settle(turns)

    def discovered(self, found: Iterable[tuple[str, Queue]]) -> None:
        """URLs of these sites may have become pending, in these queues."""
        for site, queue in found:
            turns = self._turns(site)
            bit = 1 << queue.queue_index
            if not turns.more & bit and site not in self.given_up_sites:
                turns.more |= bit
                self._settle(turns)

    def due(self, site: str, queue: Queue, at: int, *, retry: bool = False) -> None:
        """A known URL of the site is due at that time (seconds since 1970); a retry is waited for before the crawl is done."""
        if site not in self.given_up_sites:
            self._retries_until = max(self._retries_until, at) if retry else self._retries_until
            self._later.add(self._turns(site), queue.queue_index, at)

    def arrived(self, site: str, queues: Iterable[Queue], *, asked_ago_s: float | None, wait_s: float) -> None:
        """A site with URLs in these queues is this process' to ask; whoever asked it last did so long ago."""
        turns, now = self._turns(site), self._clock.monotonic()
        if asked_ago_s is not None:
            turns.asked_at = max(turns.asked_at, now - asked_ago_s)
            self._set_pace(turns)  # it may be asked beside its turns before it has had one
        if wait_s > 0:
            turns.not_before = max(turns.not_before, now + wait_s)
        if site not in self.given_up_sites:
            self._learn(turns, queues, ())

    def asking(self, site: str) -> int:
        """How many URLs of the site are under way or at hand."""
        return 0 if (turns := self._sites.get(site)) is None else turns.in_flight + sum(map(len, turns.buffered.values()))

    def part(self, site: str) -> tuple[float | None, float]:
        """Begin nothing more at a site. Returns how long ago it was asked, None where that matters no more, and how long it must rest."""
        if (turns := self._sites.get(site)) is None:
            return None, 0.0
        now = self._clock.monotonic()
        self._leases.give_back(turns)
        turns.more = 0
        turns.due.clear()
        self._settle(turns)
        return (None if turns.asked_at == -inf else now - turns.asked_at), max(0.0, turns.next_turn - now)

    def look_again(self) -> None:
        """Another process has written to the store: see which sites have something now."""
        for known in self._store.sites():
            if known.site not in self.given_up_sites:
                self._learn(self._turns(known.site), known.pending, known.due)

    def wait_site(self, site: str, seconds: float) -> None:
        """Ask the site for nothing during that time; remembered across restarts."""
        turns = self._turns(site)
        turns.not_before = max(turns.not_before, self._clock.monotonic() + seconds)
        self._remember(turns, turns.not_before)
        self._leases.give_back(turns)
        self._settle(turns)

    def give_up(self, site: str) -> None:
        """Ask the site for nothing more in this run; its URLs stay as they are."""
        turns = self._turns(site)
        self.given_up_sites.add(site)
        self._leases.give_back(turns)
        if self._others is not None:
            self._others.give_up(site)
        turns.more = 0
        turns.due.clear()
        self._settle(turns)

    def resume(self, site: str) -> None:
        """Ask a site again that was given up."""
        self.given_up_sites.discard(site)
        if self._others is not None:
            self._others.resume(site)
        self.look_again()

    def wake_in(self) -> float | None:
        """Seconds until `next` may have something again; None when that depends on what is under way."""
        if any(self._lines[queue_index] for queue_index in indexes_in(self._running)):
            return 0.0
        moments = [] if self._waiting.first is None else [self._waiting.first - self._clock.monotonic()]
        due_at = self._later.first(self._running)
        if due_at is not None:
            moments.append(due_at - self._clock.now())
        if self.working and self._repace_at < inf:
            moments.append(self._repace_at - self._clock.now())
        return max(0.0, min(moments)) if moments else None

    def is_done(self) -> bool:
        """Nothing is pending, leased or due, and no retry of this run is outstanding; silent sites and paused sources do not count."""
        due_at = self._later.first(self._running)
        is_due = due_at is not None and due_at <= max(self._clock.now(), self._retries_until)
        return not (self.in_flight or self.working or is_due)

    def close(self) -> None:
        """Give all leases back that were not asked for, and have the next run keep what is left of a long delay."""
        for turns in self._sites.values():
            self._leases.give_back(turns)
            may_ask_at = max(turns.asked_at + turns.pace.delay_s, turns.not_before)
            if may_ask_at > self._clock.monotonic() + 1:
                self._remember(turns, may_ask_at)

    # --- where a site stands --------------------------------------------------------------------------------------

    def _turns(self, site: str) -> SiteQueue:
        if (turns := self._sites.get(site)) is None:
            turns = self._sites[site] = SiteQueue(site, Pace(0.0, 1), 1)
        return turns

    def _set_pace(self, turns: SiteQueue) -> None:
        turns.set_pace(self._site_delays.of(turns.site), lease_s=self._leases.lease_s)

    def _learn(self, turns: SiteQueue, pending: Iterable[Queue], due: Iterable[tuple[Queue, int]]) -> None:
        for queue in pending:
            turns.more |= 1 << queue.queue_index
        for queue, at in due:
            self._later.add(turns, queue.queue_index, at)
        self._settle(turns)

    def _settle(self, turns: SiteQueue) -> None:
        """Put a site where it belongs, after anything has changed; a turn on its machine that it can't use goes to another."""
        stands: SiteQueue | None = turns
        while stands is not None and not self._place(stands):
            stands = self._address_groups.pass_on(stands)

    def _place(self, turns: SiteQueue) -> bool:
        """Put a site where it belongs. Returns whether it can use a turn."""
        works = turns.site not in self.given_up_sites and bool(turns.buffered or turns.more & self._running)
        if works != turns.works:
            turns.works = works
            self.working += 1 if works else -1
        if turns.in_flight and not (works and turns.has_room):
            return False
        now = self._clock.monotonic()
        next_turn = turns.next_turn
        if not works:
            self._leave(turns)
            if next_turn <= now and not turns.due and turns.site not in self.given_up_sites:
                if self._sites.get(turns.site) is turns:
                    del self._sites[turns.site]
                    self._address_groups.leave(turns)
            elif next_turn > now and not turns.due:
                self._waiting.put(turns, next_turn)  # until then its delay must be remembered
        elif next_turn > now:
            if next_turn > now + FAR_S and not turns.in_flight:
                self._leases.give_back(turns)
                self._leave(turns)
            self._waiting.put(turns, next_turn)
        elif turns.has_room and self._places.take(turns):
            at = self._address_groups.may_ask_at(turns)
            if at is not None and at <= now:
                self._line_up(turns)
            elif at is not None:
                self._waiting.put(turns, at)
            return True
        return False

    def _line_up(self, turns: SiteQueue) -> None:
        new = (turns.more & self._running | sum(1 << queue_index for queue_index in turns.buffered)) & ~turns.lined_up
        turns.lined_up |= new
        for queue_index in indexes_in(new):
            self._lines[queue_index].append(turns)

    def _leave(self, turns: SiteQueue) -> None:
        """Make place for another site."""
        for following in self._places.leave(turns):
            self._settle(following)

    def _wake(self, now: float) -> None:
        wall = self._clock.now()
        if not self._phase_since <= wall < self._repace_at:  # before: the clock was set back
            self._phase_since, self._repace_at = wall, self._site_delays.change_at()
            phase = self._site_delays.phase()
            if phase != self._phase:
                self._phase = phase
                for turns in list(self._sites.values()):
                    if turns.paced:
                        self._set_pace(turns)
                        self._settle(turns)
        for turns in self._waiting.take(now):
            self._settle(turns)
        for turns, queue_index in self._later.take(wall):
            turns.more |= 1 << queue_index
            self._settle(turns)

    def _next_in(self, queue_index: int, now: float) -> UrlState | None:
        line = self._lines[queue_index]
        while line:
            turns = line.popleft()
            turns.lined_up &= ~(1 << queue_index)
            if not turns.paced:  # not before its turn: there may be very many sites
                self._set_pace(turns)
                if turns.next_turn > now or not turns.has_room:
                    self._settle(turns)
            is_ready = turns.works and turns.has_room and turns.placed and self._address_groups.has_turn(turns)
            if not is_ready or turns.next_turn > now:
                continue  # it is lined up again once it may be asked
            if queue_index not in turns.buffered:
                self._lease(turns, queue_index)
            if queue_index in turns.buffered:
                return self._take(turns, queue_index, now)
            self._settle(turns)
        return None

    def _lease(self, turns: SiteQueue, queue_index: int) -> None:
        if not self._leases.fill(turns, queue_index, working=self.working):
            turns.more &= ~(1 << queue_index)
            turns.due.pop(queue_index, None)
            for queue, at in self._store.due(turns.site):
                if queue.queue_index == queue_index:
                    self._later.add(turns, queue_index, at)

    def _take(self, turns: SiteQueue, queue_index: int, now: float) -> UrlState:
        state = self._leases.take(turns, queue_index)
        turns.begin(now)
        self.in_flight += 1
        self._settle(turns)
        return state

    def _asked(self, turns: SiteQueue, ago_s: float, *, failed: bool | None = None, answered: bool | None = None) -> Failures:
        now = self._clock.monotonic()
        turns.asked_at = max(turns.asked_at, now - ago_s)
        counted = turns.count(failed=failed, answered=answered, now=now, backoff=self._backoff)
        self._over(turns)
        return counted

    def _over(self, turns: SiteQueue) -> None:
        turns.end()
        self.in_flight -= 1
        following = self._address_groups.pass_on(turns)
        if following is not None:
            self._settle(following)
        self._settle(turns)

    def _remember(self, turns: SiteQueue, until: float) -> None:
        wait_s = until - self._clock.monotonic()
        self._store.wait_site(turns.site, ceil(self._clock.now() + wait_s), wait_s=ceil(wait_s))
