"""A worker's frontier takes its URLs from what was fetched ahead of need, so that the crawl never waits for the server.

The server hands out whole sites with some of their URLs, and more in one call for all sites. A site is released when nothing is left of it,
when it must pause for long, or when others have less than their share, as soon as no request to it is in flight. Calls run in the background.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from math import inf
from typing import Protocol, TypeVar

from crawlspace.clock import Clock
from crawlspace.distributed.owned_sites import Needs, OwnedSites
from crawlspace.frontier.frontier import FAR_S, Frontier
from crawlspace.model import Queue, UrlState
from crawlspace.state.redis.workers import Acquired, AcquiredSite, Cluster, SiteRelease, Worker, WorkerExpired
from crawlspace.state.store import Site

logger = logging.getLogger(__name__)

T = TypeVar("T")

NEW_SITES = 64
"""Taken at a time where there is nothing to ask."""
OF_A_NEW_SITE = 16
"""URLs of each source."""
MOST_READY = 8_000
"""Leased URLs that wait here, of all sites together; beyond that no new sites are taken."""
HEARTBEAT_S, IDLE_BEAT_S = 1.5, 0.2
"""A worker that has just run out of work asks sooner whether that was all, and then ever more seldom."""
MARGIN_S = 1.0
"""So long before others may take this worker for dead it asks for nothing more."""
LEAVING_S, STAYING_S = 15.0, 60.0
"""A site that is to go to another worker, but still answers after so long, stays; for so long it is then not to go again."""
CLAIM_PAUSE_S = 0.4
"""So often sites that are needed are claimed from others."""
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 1.0
"""Between two calls for new sites of which the first brought none."""


class Background(Protocol):
    """Runs what takes time, in order, and hands what comes of it to the crawl's thread."""

    def begin(self, failed: Callable[[BaseException], None]) -> None: ...
    def do(self, job: Callable[[], T], done: Callable[[T], None] | None = None) -> None: ...
    def settle(self) -> None: ...
    def hurry(self) -> None: ...
    def finish(self) -> None: ...


class Prefetch:
    """What this worker holds. `arrived` is told of each site that comes, before the frontier is."""

    def __init__(
        self,
        worker: Worker,
        background: Background,
        *,
        clock: Clock,
        lease_s: int,
        most_sites: int | None = None,
        come_back: Callable[[], None],
    ) -> None:
        """`come_back` joins the workers once more."""
        self._worker = worker
        self._background = background
        self._clock = clock
        self._lease_s = lease_s
        self._most_sites = most_sites
        self._join_again = come_back
        self._held = OwnedSites()
        self._wants: dict[str, int] = {}
        self._leaving: dict[str, float] = {}
        """Sites that are to go to others, and when that was decided: nothing more of them is asked."""
        self.needs = Needs()
        self._needed: Collection[str] = ()
        self._staying: dict[str, float] = {}
        """Sites that were to go and stayed, and until when."""
        self._taking = self._beating = self._returning = self._claiming = False
        self._pause_s = 0.0
        self.incarnation = 0
        """How often this worker has expired."""
        self._sure_until = inf
        self._next_take = self._next_heartbeat = self._next_sweep = self._next_claim = 0.0
        self._frontier: Frontier | None = None
        self._arrived: Callable[[AcquiredSite], None] = lambda _: None
        self._wake: Callable[[], None] = lambda: None
        self._changed: Callable[[], None] = lambda: None
        self.told: Callable[[], str] = lambda: ""
        """What this worker says of itself."""
        self.deleted: Callable[[], int] = lambda: 0
        self.cluster: Cluster | None = None
        self.is_idle: Callable[[], bool] = lambda: True
        """This worker itself has nothing under way."""
        self.is_in_flight: Callable[[int], bool] = lambda _: False
        """The URL with that id is being fetched by this worker."""
        self._idle_s = 0.0
        """The pause to the next beat of a worker that has nothing to do; 0.0 where it has."""
        self._was_nothing = False
        self.is_over = False
        """Nothing is left to do in this run, for any worker."""

    def begin(
        self,
        frontier: Frontier,
        *,
        arrived: Callable[[AcquiredSite], None],
        changed: Callable[[], None],
        wake: Callable[[], None],
    ) -> None:
        """Supply a frontier. `changed` is told when the store may know less than before, `wake` when there may be something to ask."""
        self._frontier, self._arrived, self._changed, self._wake = frontier, arrived, changed, wake
        self._sure_until = self._clock.monotonic() + self._worker.timeout_s - MARGIN_S

    @property
    def may_be_expired(self) -> bool:
        """The server has not been heard of for so long that others may have been given the sites that are held here."""
        return self._clock.monotonic() >= self._sure_until

    def holds_for_s(self, site: str) -> float:
        """For so many seconds yet nobody else can have been given a site that was this worker's; 0.0 where somebody may have."""
        return 0.0 if self._held.has_lost(site) else max(0.0, self._sure_until - self._clock.monotonic())

    def holds(self, site: str) -> bool:
        """Whether a request may be made to the site that no URL was handed out for."""
        return site in self._held and site not in self._leaving

    # --- what the frontier asks -----------------------------------------------------------------------------------

    def sites(self) -> Iterator[Site]:
        """None: they arrive."""
        return iter(())

    def lease(self, site: str, limit: int, *, now: int, until: int, queue: Queue | None = None) -> list[UrlState]:
        """Hand out what is buffered of a site; where that was all of its source, more is fetched meanwhile."""
        if queue is None or site not in self._held or site in self._leaving:
            return []
        got = self._held.hand_out(site, queue.queue_index, limit)
        if not self._held.has_any(site, queue.source):
            self._wants[site] = max(limit, self._wants.get(site, 0))
            self._take()
        return got

    def release(self, ids: Iterable[int]) -> None:
        if given := list(ids):
            self._background.do(lambda: self._worker.release(given))

    def reclaim(self, *, now: int, keep: Collection[int] = ()) -> dict[str, int]:
        """Nothing: the dead are found out by the server."""
        return {}

    def due(self, site: str) -> list[tuple[Queue, int]]:
        """Nothing: the server hands out what has become due."""
        return []

    def wait_site(self, site: str, until: int | None, *, wait_s: int = 0) -> None:
        self._background.do(lambda: self._worker.wait_site(site, until, wait_s=wait_s))

    def give_up(self, site: str) -> None:
        self._background.do(lambda: self._worker.give_up(site))

    def resume(self, site: str) -> None:
        self._background.do(lambda: self._worker.resume(site))

    # --- what keeps it going --------------------------------------------------------------------------------------

    def tick(self) -> None:
        """See to it that there is something to ask, and that the others know of this worker. To be called several times a second."""
        now = self._clock.monotonic()
        self._needed = self.needs.waiting()
        self._part(now)
        self._take()
        self._claim(now)
        if now >= self._next_sweep:
            self._next_sweep = now + 0.3
            self._sweep()
        if self._held or not self.is_idle():
            self._idle_s = 0.0
        elif not self._idle_s:
            self._idle_s, self._next_heartbeat = IDLE_BEAT_S, now
        if now >= self._next_heartbeat and not self._beating:
            self._next_heartbeat = now + (self._idle_s or HEARTBEAT_S)
            self._idle_s = min(2 * self._idle_s, HEARTBEAT_S)
            self._beating = True
            self._background.do(self._heartbeat, self._heard)

    def _take(self) -> None:
        if self._taking or self._frontier is None:
            return
        refill, new = self._wants, self._wanted_new()
        if not refill and not new:
            return
        self._wants, self._taking = {}, True
        number, now, sources = self._worker.next_number(), int(self._clock.now()), self._held.lacking(refill)

        def take() -> Acquired:
            return self._worker.take(
                refill=refill, sources=sources, new=new, limit=OF_A_NEW_SITE, now=now, until=now + self._lease_s, number=number
            )

        self._background.do(lambda: _unless_expired(take), lambda taken: self._taken(taken, asked_new=new > 0))

    def _wanted_new(self) -> int:
        assert self._frontier is not None
        is_any_free = self.cluster is not None and self.cluster.free > 0  # it is to have its turns, also where all are busy
        has_enough = self._frontier.wake_in() == 0.0 and not is_any_free
        if has_enough or self._clock.monotonic() < self._next_take or self._held.ready >= MOST_READY:
            return 0
        return NEW_SITES if self._most_sites is None else max(0, min(NEW_SITES, self._most_sites - len(self._held)))

    def _taken(self, taken: Acquired | None, *, asked_new: bool) -> None:
        self._taking = False
        if self._frontier is None or taken is None:
            self._come_back()
            return
        new = 0
        for one in taken.sites:
            if one.site in self._leaving:
                self.release([state.id for state in one.states])
                continue
            if one.site not in self._held:
                self._frontier.given_up_sites.discard(one.site)  # the server hands out none that was given up, and knows better
            new += self._hold(one)
        if asked_new:
            self._pause_s = 0.0 if new else min(max(SHORTEST_PAUSE_S, 2 * self._pause_s), LONGEST_PAUSE_S)
            self._next_take = self._clock.monotonic() + self._pause_s
        if taken.share is not None:
            self._share(taken.share)
        self._part(self._clock.monotonic())
        if taken.sites:
            self._wake()

    def _hold(self, one: AcquiredSite) -> bool:
        """Have a site from now on, or more of it. Returns whether it was not held before."""
        assert self._frontier is not None
        is_new = one.site not in self._held
        if is_new:
            self.needs.begin(one.site)
        # What was begun before this worker was taken for dead stands for its URL, which is leased anew.
        queue_indexes = self._held.put(one.site, [state for state in one.states if not self.is_in_flight(state.id)])
        self._arrived(one)
        asked_ago_s, wait_s = None, 0.0
        if one.known is not None:
            asked_ago_s = one.known.asked_ago_s
            wait_s = 0.0 if one.known.wait_until is None else one.known.wait_until - self._clock.now()
        self._frontier.arrived(one.site, list(map(Queue.of_index, queue_indexes)), asked_ago_s=asked_ago_s, wait_s=wait_s)
        return is_new

    def _claim(self, now: float) -> None:
        """See to it that the sites that are needed come here."""
        sites = [site for site in self._needed if site not in self._held]
        if not sites or self._claiming or now < self._next_claim or self._frontier is None:
            return
        self._next_claim, self._claiming = now + CLAIM_PAUSE_S, True
        self._background.do(lambda: _unless_expired(lambda: self._worker.claim(sites, now=int(self._clock.now()))), self._claimed)

    def _claimed(self, taken: list[AcquiredSite] | None) -> None:
        self._claiming = False
        if self._frontier is None or taken is None:
            self._come_back()
            return
        for one in taken:
            if self._hold(one):
                self._wants[one.site] = OF_A_NEW_SITE  # nobody else can crawl it meanwhile
                self._wake()
        self._part(self._clock.monotonic())

    def _heartbeat(self) -> tuple[float, Cluster | None]:
        began = self._clock.monotonic()  # of this try: the one before may have been lost
        return began, _unless_expired(lambda: self._worker.heartbeat(self.told(), deleted=self.deleted()))

    def _heard(self, heard: tuple[float, Cluster | None]) -> None:
        self._beating = False
        if self._frontier is None:
            return
        began, cluster = heard
        if self.may_be_expired:
            self._wake()
        self._sure_until = began + self._worker.timeout_s - MARGIN_S
        if cluster is None:
            self._come_back()
            return
        before, self.cluster = self.cluster, cluster
        if before is not None and before.edition != cluster.edition:
            self._changed()
        if cluster.broken > (0 if before is None else before.broken):
            logger.warning(
                "%d records of this collection in Redis are not ours, or of a newer version: they were put aside (%s), and their URLs"
                " are entered anew where a link or start URL leads to them",
                cluster.broken,
                self._worker.broken_key,
            )
        now = self._clock.monotonic()
        for site in cluster.claimed:
            if self._may_go(site, now) and (site not in self._needed or self.needs.has_asked(site)):
                self._dismiss(site, now)
        nothing = cluster.is_nothing_left and not self._held and self.is_idle()
        self.is_over = nothing and self._was_nothing
        self._was_nothing = nothing
        if self.is_over:
            self._wake()
        elif nothing:
            self._next_heartbeat = 0.0  # what was recorded just before may have led to more
        elif not cluster.free:
            self._share(cluster.fair_share)

    def _share(self, fair: int) -> None:
        """Let sites go for others, beyond a fair share: those first that are asked for the fewest pages at this moment."""
        assert self._frontier is not None
        many = len(self._held) - len(self._leaving) - fair
        if many <= 0:
            return
        now = self._clock.monotonic()
        may_go = [site for site in reversed(self._held) if self._may_go(site, now) and site not in self._needed]
        for site in sorted(may_go, key=self._frontier.asking)[:many]:
            self._dismiss(site, now)

    def _may_go(self, site: str, now: float) -> bool:
        return site in self._held and site not in self._leaving and self._staying.get(site, now) <= now

    def _dismiss(self, site: str, now: float) -> None:
        """Have a site go to another worker, as soon as no request is in flight there."""
        assert self._frontier is not None
        self._leaving[site] = now
        self._frontier.part(site)
        self._wants.pop(site, None)
        self.release(self._held.put_down(site))

    def _part(self, now: float) -> None:
        """Let go of the sites that are leaving where nothing is under way; keep what answers too late."""
        if self._taking or self._claiming or not self._leaving or self._frontier is None:
            return  # what comes may be theirs
        self._release_sites([site for site in self._leaving if not (self._frontier.asking(site) or self.needs.is_asking(site))])
        for site in [site for site, since in self._leaving.items() if now - since > LEAVING_S]:
            del self._leaving[site]
            self._staying[site] = now + STAYING_S
            self._wants[site] = OF_A_NEW_SITE

    def _sweep(self) -> None:
        """Let go of the sites that have nothing more to do here."""
        assert self._frontier is not None
        given_up = self._frontier.given_up_sites
        done = [
            site
            for site in self._held
            if not (
                self._taking
                or self._claiming
                or site in self._wants
                or site in self._leaving
                or site in self._needed
                or self._frontier.asking(site)
            )
            and (not self._held.has_any(site) or site in given_up or self._frontier.next_turn_in(site) > FAR_S)
        ]
        self._release_sites(done)

    def _release_sites(self, sites: Sequence[str]) -> None:
        assert self._frontier is not None
        going = []
        for site in sites:
            ids = self._held.drop(site)
            for noted in (self._wants, self._leaving, self._staying):
                noted.pop(site, None)
            going.append(SiteRelease(site, *self._frontier.part(site), ids))
        if going:
            self._background.do(lambda: self._worker.release_sites(going))

    def _come_back(self) -> None:
        """This worker was silent for too long: what it held is others', and it begins anew."""
        if self._frontier is None or self._returning:
            return
        self._returning = True
        logger.warning("this worker did not report for too long: its sites were given to others; it goes on with others")
        for site in self._held:
            self._frontier.part(site)
        self._held.lose_all()
        self.incarnation += 1
        for noted in (self._wants, self._leaving, self._staying):
            noted.clear()
        self._background.do(self._join_again, self._returned)

    def _returned(self, _: None) -> None:
        self._returning = False
        self._changed()  # what was found meanwhile was passed over with the pages on which it was found

    def close(self) -> None:
        """Give back all that is held."""
        self._frontier = None
        self._background.do(self._worker.leave)


def _unless_expired(call: Callable[[], T]) -> T | None:
    """What the call returns; None where this worker was taken for dead."""
    try:
        return call()
    except WorkerExpired:
        return None
