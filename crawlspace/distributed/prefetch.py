"""Acquire sites for a worker and prefetch their URLs, so that its frontier never waits for the server.

The server assigns whole sites with some of their URLs, and more URLs in one call for all sites. A site is released when it has no URLs left,
when it must pause for long, or when other workers own less than their share, as soon as no request to it is in flight.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from typing import Protocol, TypeVar

from crawlspace.clock import Clock
from crawlspace.distributed.owned_sites import Background, OwnedSites
from crawlspace.frontier.frontier import FAR_S, Frontier
from crawlspace.model import UrlState
from crawlspace.state.redis.workers import Acquired, AcquiredSite, Cluster, SiteRelease, Worker, WorkerExpired

logger = logging.getLogger(__name__)

EXPIRED = "this worker did not report for too long: its sites were given to others; it continues with other sites"

T = TypeVar("T")

NEW_SITES = 64
"""Sites acquired by one call."""
NEW_SITE_URLS = 16
"""URLs of each source leased of a new site."""
MAX_BUFFERED = 8_000
"""Maximal buffered URLs of all sites; beyond that no new sites are acquired."""
HEARTBEAT_S, FIRST_IDLE_HEARTBEAT_S = 1.5, 0.2
"""Seconds between heartbeats; a worker that has just run out of work sends them sooner, to find more, then less often."""
MARGIN_S = 1.0
"""Seconds before its possible expiry in which this worker sends no requests."""
LEAVING_S, STAYING_S = 15.0, 60.0
"""Seconds after which a leaving site with a request in flight is kept, and for which it is then not chosen again."""
CLAIM_PAUSE_S = 0.4
"""Seconds between two calls that claim sites from other workers."""
SWEEP_PAUSE_S = 0.3
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 1.0
"""Seconds until the next call for new sites after one that returned none."""


class Crawl(Protocol):
    """The crawl of this worker."""

    @property
    def frontier(self) -> Frontier: ...

    def is_idle(self) -> bool:
        """Return whether nothing is in flight, pending or unrecorded here."""

    def leased_again(self, state: UrlState) -> bool:
        """Update a URL that was leased again while this worker is fetching it; return whether it is."""

    def site_acquired(self, one: AcquiredSite) -> None:
        """Take over the state of an acquired site, before the frontier gets its URLs."""

    def store_changed(self) -> None:
        """Clear the cache of known URLs: some may have been removed."""

    def wake(self) -> None:
        """Check for the next request."""

    def report(self) -> str:
        """Return the report on this worker for commands."""

    def deletions(self) -> int:
        """Return the number of documents that this worker has deleted in this run."""


class OtherRequests(Protocol):
    """Requests to sites other than for leased URLs, such as for a redirected robots.txt."""

    def waiting(self) -> Collection[str]:
        """Return the sites that such requests wait for, or are in flight to."""

    def is_requesting(self, site: str) -> bool:
        """Return whether such a request to the site is in flight."""

    def begin(self, site: str) -> None:
        """Note that the site was acquired."""

    def has_requested(self, site: str) -> bool:
        """Return whether such a request was sent since the site was acquired."""


class Prefetch:
    """Keeps the buffers of `sites` filled while a crawl runs."""

    def __init__(
        self,
        crawl: Crawl,
        sites: OwnedSites,
        worker: Worker,
        background: Background,
        *,
        others: OtherRequests,
        join_again: Callable[[], None],
        clock: Clock,
        lease_s: int,
        max_sites: int | None = None,
    ) -> None:
        """`join_again` makes this worker join the others after it expired."""
        self._crawl = crawl
        self._sites = sites
        self._worker = worker
        self._background = background
        self._others = others
        self._join_again = join_again
        self._clock = clock
        self._lease_s = lease_s
        self._max_sites = max_sites
        self._needed: Collection[str] = ()
        self._staying: dict[str, float] = {}
        """Sites that were kept instead of being released, and until when."""
        self._is_leasing = self._is_beating = self._is_joining = self._is_claiming = self._is_closed = False
        self._pause_s = 0.0
        self.incarnation = 0
        """Number of times this worker has expired."""
        self._safe_until = clock.monotonic() + worker.timeout_s - MARGIN_S
        self._next_lease = self._next_heartbeat = self._next_sweep = self._next_claim = 0.0
        self.cluster: Cluster | None = None
        """State of the crawl at the last heartbeat."""
        self._idle_s = 0.0
        """Seconds to the next heartbeat of an idle worker; 0.0 if busy."""
        self._was_nothing_left = False
        self.is_over = False
        """Whether the run is complete, for all workers."""

    @property
    def may_be_expired(self) -> bool:
        """Whether the server has not answered for so long that this worker may have expired."""
        return self._clock.monotonic() >= self._safe_until

    def owned_for_s(self, site: str) -> float:
        """Return for how many seconds no other worker can own an acquired site; 0.0 if one may."""
        return 0.0 if self._sites.has_lost(site) else max(0.0, self._safe_until - self._clock.monotonic())

    def tick(self) -> None:
        """Lease, release and report as needed. Call it several times a second."""
        now = self._clock.monotonic()
        self._needed = self._others.waiting()
        self._release_leaving(now)
        self.refill()
        self._claim(now)
        if now >= self._next_sweep:
            self._next_sweep = now + SWEEP_PAUSE_S
            self._release_finished()
        if self._sites or not self._crawl.is_idle():
            self._idle_s = 0.0
        elif not self._idle_s:
            self._idle_s, self._next_heartbeat = FIRST_IDLE_HEARTBEAT_S, now
        if now >= self._next_heartbeat and not self._is_beating:
            self._next_heartbeat = now + (self._idle_s or HEARTBEAT_S)
            self._idle_s = min(2 * self._idle_s, HEARTBEAT_S)
            self._is_beating = True
            self._background.do(self._heartbeat, self._beaten)

    def refill(self) -> None:
        """Lease more URLs of sites with empty buffers, and of new sites, unless a call is in flight."""
        if self._is_leasing or self._is_closed:
            return
        wanted, new = self._sites.wanted, self._wanted_new()
        if not wanted and not new:
            return
        self._sites.wanted, self._is_leasing = {}, True
        number, now, sources = self._worker.next_number(), int(self._clock.now()), self._sites.missing_sources(wanted)

        def take() -> Acquired:
            return self._worker.take(
                refill=wanted, sources=sources, new=new, limit=NEW_SITE_URLS, now=now, until=now + self._lease_s, number=number
            )

        self._background.do(lambda: _unless_expired(take), lambda acquired: self._acquired(acquired, wanted_new=new > 0))

    def expect_more(self) -> None:
        """Note that the run is not complete, because URLs were inserted."""
        self.is_over = False

    def close(self) -> None:
        """Release all owned sites."""
        self._is_closed = True
        self._background.do(self._worker.leave)

    # --- acquiring ------------------------------------------------------------------------------------------------

    def _wanted_new(self) -> int:
        is_any_free = self.cluster is not None and self.cluster.free > 0  # it must be crawled, even if all workers are busy
        has_enough = self._crawl.frontier.wake_in() == 0.0 and not is_any_free
        if has_enough or self._clock.monotonic() < self._next_lease or self._sites.buffered >= MAX_BUFFERED:
            return 0
        return NEW_SITES if self._max_sites is None else max(0, min(NEW_SITES, self._max_sites - len(self._sites)))

    def _acquired(self, acquired: Acquired | None, *, wanted_new: bool) -> None:
        self._is_leasing = False
        if self._is_closed or acquired is None:
            self._rejoin()
            return
        new = 0
        for one in acquired.sites:
            if one.site in self._sites.leaving:
                self._sites.release([state.id for state in one.states])
                continue
            if one.site not in self._sites:
                self._crawl.frontier.given_up_sites.discard(one.site)  # the server assigns no given-up sites, and has newer state
            new += self._own(one)
        if wanted_new:
            self._pause_s = 0.0 if new else min(max(SHORTEST_PAUSE_S, 2 * self._pause_s), LONGEST_PAUSE_S)
            self._next_lease = self._clock.monotonic() + self._pause_s
        if acquired.share is not None:
            self._share(acquired.share)
        self._release_leaving(self._clock.monotonic())
        if acquired.sites:
            self._crawl.wake()

    def _own(self, one: AcquiredSite) -> bool:
        """Add an acquired site, or more URLs of an owned one. Return whether it is new."""
        is_new = one.site not in self._sites
        if is_new:
            self._others.begin(one.site)
        # A request in flight when this worker expired counts for its URL, which is leased again, in its present state.
        queues = self._sites.put(one.site, [state for state in one.states if not self._crawl.leased_again(state)])
        last_request_ago_s, wait_s = None, 0.0
        if one.known is not None:
            self._crawl.site_acquired(one)
            last_request_ago_s = one.known.last_request_ago_s
            wait_s = 0.0 if one.known.wait_until is None else one.known.wait_until - self._clock.now()
        self._crawl.frontier.arrived(one.site, queues, last_request_ago_s=last_request_ago_s, wait_s=wait_s)
        return is_new

    def _claim(self, now: float) -> None:
        """Claim the sites that other requests wait for."""
        sites = [site for site in self._needed if site not in self._sites]
        if not sites or self._is_claiming or now < self._next_claim or self._is_closed:
            return
        self._next_claim, self._is_claiming = now + CLAIM_PAUSE_S, True
        self._background.do(lambda: _unless_expired(lambda: self._worker.claim(sites, now=int(self._clock.now()))), self._claimed)

    def _claimed(self, acquired: list[AcquiredSite] | None) -> None:
        self._is_claiming = False
        if self._is_closed or acquired is None:
            self._rejoin()
            return
        for one in acquired:
            if self._own(one):
                self._sites.wanted[one.site] = NEW_SITE_URLS  # no other worker can crawl it meanwhile
                self._crawl.wake()
        self._release_leaving(self._clock.monotonic())

    # --- heartbeats -----------------------------------------------------------------------------------------------

    def _heartbeat(self) -> tuple[float, Cluster | None]:
        began = self._clock.monotonic()  # of this attempt: the reply to the previous one may have been lost
        return began, _unless_expired(lambda: self._worker.heartbeat(self._crawl.report(), deleted=self._crawl.deletions()))

    def _beaten(self, answer: tuple[float, Cluster | None]) -> None:
        self._is_beating = False
        if self._is_closed:
            return
        began, cluster = answer
        if self.may_be_expired:
            self._crawl.wake()
        self._safe_until = began + self._worker.timeout_s - MARGIN_S
        if cluster is None:
            self._rejoin()
            return
        before, self.cluster = self.cluster, cluster
        if before is not None and before.edition != cluster.edition:
            self._crawl.store_changed()
        if cluster.broken > (0 if before is None else before.broken):
            logger.warning(
                "%d records of this collection in Redis are not ours, or of a newer version: they were quarantined (%s), and their URLs"
                " are entered again where a link or start URL leads to them",
                cluster.broken,
                self._worker.broken_key,
            )
        now = self._clock.monotonic()
        self._pause(cluster, now)
        for site in cluster.claimed:
            if self._may_leave(site, now) and (site not in self._needed or self._others.has_requested(site)):
                self._leave(site, now)
        is_nothing_left = cluster.is_nothing_left and not self._sites and self._crawl.is_idle()
        self.is_over = is_nothing_left and self._was_nothing_left
        self._was_nothing_left = is_nothing_left
        if self.is_over:
            self._crawl.wake()
        elif is_nothing_left:
            self._next_heartbeat = 0.0  # the last outcomes may have found more
        elif not cluster.free:
            self._share(cluster.fair_share)

    def _pause(self, cluster: Cluster, now: float) -> None:
        """Release the sites that a person has paused since the last heartbeat, and fetch those that were acquired when they were resumed."""
        if cluster.pauses == self._sites.pauses:
            return
        frontier = self._crawl.frontier
        was_paused = {site for site in self._sites if frontier.is_paused(site)}
        self._sites.pauses = cluster.pauses
        frontier.recheck_sites()
        for site in filter(self._sites.holds, self._sites):
            if frontier.is_paused(site):
                self._leave(site, now)
            elif site in was_paused:
                frontier.arrived(site, self._sites.put(site, ()), last_request_ago_s=None, wait_s=0.0)

    def _rejoin(self) -> None:
        """Start over after this worker expired: other workers own its sites."""
        if self._is_closed or self._is_joining:
            return
        self._is_joining = True
        logger.warning(EXPIRED)
        for site in self._sites:
            self._crawl.frontier.leave_site(site)
        self._sites.lose_all()
        self._staying.clear()
        self.incarnation += 1
        self._background.do(self._join_again, self._joined)

    def _joined(self, _: None) -> None:
        self._is_joining = False
        self._crawl.store_changed()  # URLs found meanwhile were not stored, nor were their pages

    # --- releasing ------------------------------------------------------------------------------------------------

    def _share(self, fair: int) -> None:
        """Release sites beyond a fair share to other workers, those with the fewest URLs in flight or buffered first."""
        surplus = len(self._sites) - len(self._sites.leaving) - fair
        if surplus <= 0:
            return
        now = self._clock.monotonic()
        may_leave = [site for site in reversed(self._sites) if self._may_leave(site, now) and site not in self._needed]
        for site in sorted(may_leave, key=self._crawl.frontier.open_requests)[:surplus]:
            self._leave(site, now)

    def _may_leave(self, site: str, now: float) -> bool:
        return self._sites.holds(site) and self._staying.get(site, now) <= now

    def _leave(self, site: str, now: float) -> None:
        self._crawl.frontier.leave_site(site)
        self._sites.leave(site, now)

    def _release_leaving(self, now: float) -> None:
        """Release the leaving sites without requests in flight; keep those that answer too late."""
        leaving = self._sites.leaving
        if self._is_leasing or self._is_claiming or not leaving or self._is_closed:
            return  # an answer may find more of them
        self._release(
            [site for site in leaving if not (self._crawl.frontier.open_requests(site) or self._others.is_requesting(site))]
        )
        for site in [site for site, since in leaving.items() if now - since > LEAVING_S]:
            self._sites.stay(site, NEW_SITE_URLS)
            self._staying[site] = now + STAYING_S

    def _release_finished(self) -> None:
        """Release the sites that have nothing more to fetch here for now."""
        if self._is_leasing or self._is_claiming:
            return
        frontier, sites = self._crawl.frontier, self._sites
        self._release(
            [
                site
                for site in sites
                if not (site in sites.wanted or site in sites.leaving or site in self._needed or frontier.open_requests(site))
                and (not sites.has_buffered(site) or frontier.is_stopped(site) or frontier.next_slot_in(site) > FAR_S)
            ]
        )

    def _release(self, sites: Sequence[str]) -> None:
        releases = []
        for site in sites:
            ids = self._sites.drop(site)
            self._staying.pop(site, None)
            releases.append(SiteRelease(site, *self._crawl.frontier.leave_site(site), ids))
        if releases:
            self._background.do(lambda: self._worker.release_sites(releases))


def _unless_expired(call: Callable[[], T]) -> T | None:
    """Return the result of the call; None if this worker has expired."""
    try:
        return call()
    except WorkerExpired:
        return None
