"""Which URL is fetched next: every site that may be asked is kept busy, and none is asked too soon.

The store holds the queue; here are only the sites, and for each a handful of leased URLs, so memory grows with sites being crawled
and not with URLs. Among the sites that may be asked now, the one whose first URL has the smallest (source, shift, order of discovery) goes first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from heapq import heappop, heappush
from typing import Protocol

from crawlspace.clock import Clock
from crawlspace.frontier.politeness import Pace, Place, Rank, SiteTurns, rank_of
from crawlspace.model import NewUrl, Source, UrlState
from crawlspace.state.store import Site

BATCH = 64
"""URLs leased at a time from a site without a delay."""
POLITE_BATCH = 8
SITES_AT_HAND = 1000
"""Sites that hold leased URLs at a time."""


class LeaseStore(Protocol):
    def sites(self) -> Iterator[Site]: ...
    def lease(self, site: str, limit: int, *, now: int, until: int, source: Source | None = None) -> list[UrlState]: ...
    def release(self, ids: Iterable[int]) -> None: ...
    def reclaim(self, *, now: int, keep: Collection[int] = ()) -> dict[str, int]: ...
    def next_due(self, site: str) -> int | None: ...
    def wait_site(self, site: str, until: int | None) -> None: ...


class Frontier:
    """Hands out leased URLs, one turn at a time. `under_way` counts those not yet finished."""

    def __init__(
        self,
        store: LeaseStore,
        *,
        clock: Clock,
        pace_of: Callable[[str], Pace],
        lease_s: int,
        retries_until: float = 0.0,
        longest_wait_s: float = 3600.0,
    ) -> None:
        """`longest_wait_s` bounds what is left of a site's silence, should the clock have been set back."""
        self._store = store
        self._clock = clock
        self._pace_of = pace_of
        self._lease_s = lease_s
        self._sites: dict[str, SiteTurns] = {}
        self._idle: deque[SiteTurns] = deque()
        self._ready: list[tuple[Rank, SiteTurns]] = []
        self._waiting: list[tuple[float, str, SiteTurns]] = []
        self._later: list[tuple[int, str, SiteTurns]] = []
        self._at_hand = 0
        self._held: set[int] = set()
        """Ids leased by this process, at hand or under way."""
        self.under_way = 0
        self._retries_until = retries_until
        """Until when retries of this run are outstanding; what is due before then is waited for."""
        self.silent: set[str] = set()
        """Sites given up for this run."""
        now = round(clock.now())
        for known in store.sites():
            turns = self._turns(known.site)
            turns.more = known.pending
            turns.due_at = known.next_due
            if known.wait_until and known.wait_until > now:
                turns.next_turn = clock.monotonic() + min(known.wait_until - now, longest_wait_s)
            self._put(turns)
        self._next_reclaim = clock.monotonic() + lease_s / 4

    def next(self) -> UrlState | None:
        """Return the next URL to fetch, or None when no site may be asked now (see `wake_in`)."""
        now = self._clock.monotonic()
        if now >= self._next_reclaim:
            self._reclaim(now)
        self._wake(now)
        while True:
            self._fill(now)
            if not self._ready:
                return None
            _, turns = heappop(self._ready)
            turns.place = Place.NOWHERE
            if not turns.has_room:
                continue
            for source in sorted(
                turns.urgent
            ):  # only what goes before the rest, so that little more is at hand than can be asked for
                self._lease(turns, POLITE_BATCH, source)
            turns.urgent.clear()
            if turns.at_hand and turns.next_turn <= now:
                return self._take(turns, now)
            self._put(turns)

    def finished(self, state: UrlState, *, sent_ago_s: float = 0.0) -> None:
        """The request for a URL is over, whatever came of it; `sent_ago_s` is how long ago it was really sent.

        Between handing out and sending, time may pass in a busy process: the delay is kept from the sending.
        """
        self._held.discard(state.id)
        self._asked(self._sites[state.site], sent_ago_s)

    def _asked(self, turns: SiteTurns, sent_ago_s: float) -> None:
        if turns.pace.delay_s > 0:
            turns.next_turn = max(turns.next_turn, self._clock.monotonic() - sent_ago_s + turns.pace.delay_s)
        self._over(turns)

    def _over(self, turns: SiteTurns) -> None:
        turns.under_way -= 1
        self.under_way -= 1
        self._put_if_nowhere(turns)

    def put_back(self, state: UrlState) -> None:
        """Take back a URL just handed out that was not asked for; the turn is given back too."""
        turns = self._sites[state.site]
        turns.next_turn = turns.turn_before
        heappush(turns.at_hand, (rank_of(state), state))
        self._at_hand += 1
        self._over(turns)

    def skip(self, state: UrlState) -> None:
        """A URL just handed out turned out to need no request; the turn is given back."""
        turns = self._sites[state.site]
        turns.next_turn = turns.turn_before
        self._held.discard(state.id)
        self._over(turns)

    def hold(self, site: str) -> None:
        """Hand out nothing of the site until `unhold`; one request to it (its robots.txt) is under way from now."""
        turns = self._sites[site]
        turns.held = True
        turns.turn_before = turns.next_turn
        turns.next_turn = self._clock.monotonic() + turns.pace.delay_s
        turns.under_way += 1
        self.under_way += 1

    def unhold(self, site: str) -> None:
        """The request that `hold` stands for is over."""
        turns = self._sites[site]
        turns.held = False
        self._asked(turns, 0.0)

    def discovered(self, urls: Iterable[NewUrl], pending_sites: Mapping[str, int]) -> None:
        """New URLs are in the store: `pending_sites` of them by site, all among `urls`."""
        for site in pending_sites:
            turns = self._turns(site)
            turns.more = True
            self._put_if_nowhere(turns)
        for url in urls:
            known = self._sites.get(url.site)
            if known is not None and known.at_hand and (url.source, url.shift) < known.at_hand[0][0][:2]:
                known.urgent.add(url.source)

    def due(self, site: str, at: int, *, retry: bool = False) -> None:
        """A known URL of the site is due at that time (seconds since 1970); a retry is waited for before the crawl is done."""
        turns = self._turns(site)
        if site in self.silent:
            return
        if retry:
            self._retries_until = max(self._retries_until, at)
        if turns.due_at is None or at < turns.due_at:
            turns.due_at = at
            if turns.place in (Place.NOWHERE, Place.DUE_LATER):
                turns.place = Place.NOWHERE
                self._put(turns)

    def look_again(self) -> None:
        """Another process has written to the store: see which sites have something now."""
        for known in self._store.sites():
            if known.site in self.silent:
                continue
            turns = self._turns(known.site)
            turns.more = turns.more or known.pending
            if known.next_due is not None and (turns.due_at is None or known.next_due < turns.due_at):
                turns.due_at = known.next_due
                if turns.place is Place.DUE_LATER:
                    turns.place = Place.NOWHERE
            self._put_if_nowhere(turns)

    def wait_site(self, site: str, seconds: float) -> None:
        """Ask the site for nothing during that time; remembered across restarts."""
        turns = self._turns(site)
        turns.next_turn = max(turns.next_turn, self._clock.monotonic() + seconds)
        self._store.wait_site(site, round(self._clock.now() + seconds))
        self._give_back(turns)
        self._put_if_nowhere(turns)

    def give_up(self, site: str) -> None:
        """Ask the site for nothing more in this run; its URLs stay pending."""
        turns = self._turns(site)
        self.silent.add(site)
        self._give_back(turns)
        turns.more = False
        turns.due_at = None
        if turns.place is Place.DUE_LATER:
            turns.place = Place.NOWHERE

    def wake_in(self) -> float | None:
        """Seconds until `next` may have something again; None when that depends on what is under way."""
        moments = []
        if self._idle and self._at_hand_sites_left():
            moments.append(0.0)
        if self._ready:
            moments.append(0.0)
        if self._waiting:
            moments.append(self._waiting[0][0] - self._clock.monotonic())
        if self._later:
            moments.append(self._later[0][0] - self._clock.now())
        return max(0.0, min(moments)) if moments else None

    def is_done(self) -> bool:
        """Nothing is pending, leased or due, and no retry of this run is outstanding; silent sites do not count."""
        if self.under_way or self._at_hand or self._idle or self._ready or self._waiting:
            return False
        later = self._later
        while later and (later[0][2].place is not Place.DUE_LATER or later[0][2].due_at != later[0][0]):
            heappop(later)
        return not later or later[0][0] > max(self._clock.now(), self._retries_until)

    def close(self) -> None:
        """Give all leases back that were not asked for."""
        for turns in self._sites.values():
            self._give_back(turns)

    # --- moving sites between places ------------------------------------------------------------------------------

    def _turns(self, site: str) -> SiteTurns:
        turns = self._sites.get(site)
        if turns is None:
            pace = self._pace_of(site)
            batch = BATCH
            if pace.delay_s > 0:  # what is at hand must be asked for well before its lease ends
                batch = max(1, min(POLITE_BATCH, int(self._lease_s / 2 / pace.delay_s)))
            turns = self._sites[site] = SiteTurns(site, pace, max(batch, min(pace.concurrency, BATCH)))
        return turns

    def _put_if_nowhere(self, turns: SiteTurns) -> None:
        if turns.place is Place.NOWHERE or (turns.place is Place.DUE_LATER and (turns.at_hand or turns.more)):
            self._put(turns)

    def _put(self, turns: SiteTurns) -> None:
        turns.place = Place.NOWHERE
        if not turns.has_room or turns.site in self.silent:
            return
        if turns.at_hand:
            if turns.next_turn > self._clock.monotonic():
                turns.place = Place.WAITING
                heappush(self._waiting, (turns.next_turn, turns.site, turns))
            else:
                turns.place = Place.READY
                heappush(self._ready, (turns.at_hand[0][0], turns))
        elif turns.more:
            turns.place = Place.IDLE
            self._idle.append(turns)
        elif turns.due_at is not None:
            turns.place = Place.DUE_LATER
            heappush(self._later, (turns.due_at, turns.site, turns))

    def _wake(self, now: float) -> None:
        waiting = self._waiting
        while waiting and waiting[0][0] <= now:
            self._put(heappop(waiting)[2])
        later = self._later
        if later and later[0][0] <= self._clock.now():
            wall = self._clock.now()
            while later and later[0][0] <= wall:
                at, _, turns = heappop(later)
                if turns.place is Place.DUE_LATER and turns.due_at == at:
                    turns.due_at = None
                    turns.more = True
                    self._put(turns)

    def _fill(self, now: float) -> None:
        """Lease for sites that have nothing at hand, a few each time, or until one is ready."""
        few = 4
        while self._idle and self._at_hand_sites_left() and (few > 0 or not self._ready):
            turns = self._idle.popleft()
            turns.place = Place.NOWHERE
            if turns.site in self.silent:
                continue
            if turns.next_turn > now + self._lease_s / 2:  # silent for long: its URLs stay in the store till then
                turns.place = Place.WAITING
                heappush(self._waiting, (turns.next_turn, turns.site, turns))
                continue
            self._lease(turns, turns.batch)
            self._put(turns)
            few -= 1

    def _at_hand_sites_left(self) -> bool:
        return self._at_hand < SITES_AT_HAND * POLITE_BATCH

    def _lease(self, turns: SiteTurns, limit: int, source: Source | None = None) -> None:
        now = round(self._clock.now())
        got = self._store.lease(turns.site, limit, now=now, until=now + self._lease_s, source=source)
        for state in got:
            heappush(turns.at_hand, (rank_of(state), state))
            self._held.add(state.id)
        self._at_hand += len(got)
        if len(got) < limit and source is None:
            turns.more = False
            turns.due_at = self._store.next_due(turns.site)

    def _take(self, turns: SiteTurns, now: float) -> UrlState:
        state = heappop(turns.at_hand)[1]
        self._at_hand -= 1
        turns.under_way += 1
        self.under_way += 1
        turns.turn_before = turns.next_turn
        turns.next_turn = now + turns.pace.delay_s
        soon = turns.next_turn <= now + self._lease_s / 2
        if not turns.at_hand and turns.more and soon and (not self._idle or self._at_hand_sites_left()):
            self._lease(turns, turns.batch)  # else the site goes to the end of those that wait for a place
        self._put(turns)
        return state

    def _give_back(self, turns: SiteTurns) -> None:
        if turns.at_hand:
            ids = [state.id for _, state in turns.at_hand]
            self._store.release(ids)
            self._held.difference_update(ids)
            self._at_hand -= len(turns.at_hand)
            turns.at_hand.clear()
            turns.more = True

    def _reclaim(self, now: float) -> None:
        self._next_reclaim = now + self._lease_s / 4
        for site in self._store.reclaim(now=round(self._clock.now()), keep=self._held):
            turns = self._turns(site)
            turns.more = True
            self._put_if_nowhere(turns)
