"""Sites in a running crawl: their delay and concurrency, their failures, and how many URLs their hosts may have.

An unreadable robots.txt blocks the URLs of its own scheme and port only. If a site has URLs of both schemes, those of the other
one are still crawled; it is given up when none of its schemes is left.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from math import ceil, inf
from typing import NamedTuple, Protocol

from crawlspace.cache import Recent
from crawlspace.clock import Clock
from crawlspace.config.collection import Collection
from crawlspace.crawl.outcomes import site_answered, site_failed
from crawlspace.crawl.run import FetchRobots
from crawlspace.frontier.delay_schedule import Slot, Timetable
from crawlspace.frontier.frontier import DelaySource, Frontier, OtherWorkers
from crawlspace.frontier.robots import Robots, RobotsStore, RobotsVerdict
from crawlspace.frontier.site_queue import GivingUp, Pace
from crawlspace.model import NewUrl, UrlState
from crawlspace.outcome import Outcome
from crawlspace.rules.exclusion import KnownUrlDecisions
from crawlspace.rules.limits import Limits
from crawlspace.settings import ThrottleSettings
from crawlspace.state.metadata import get_table
from crawlspace.state.recrawl import RecrawlPolicy, retry_wait
from crawlspace.state.store import LeaseStore, MetaStore, SiteStore, Store
from crawlspace.state.unreachable import UNREACHABLE, UnreachableSite, after_failed_run, cause_of
from crawlspace.status import Status
from crawlspace.urls import DEFAULT_PORTS

logger = logging.getLogger(__name__)

DELAY, SITES, VARIABLE_DELAY, ROBOTS_TXT = "DOWNLOAD_DELAY", "CRAWLSPACE_SITES", "CRAWLSPACE_VARIABLE_DELAY", "robots.txt"
"""What the delay of a site comes from."""
_NO_TIMETABLE = Slot(None, suspended=False, until=inf)
THROTTLED_SITES = 50_000
"""Minimal number of sites whose delay is remembered; others start with the start delay again."""
FEW_FAILURES = 3
"""Failed requests in a row before the time counts, because single pages may hang."""
DAY_S = 86_400.0
_ANSWERED_BITS = 1 << 23
KEPT_OUT = "kept_out"
"""Meta: by site, the known URLs excluded by the limit of a host only, and the documents held for it, at the last rule change."""
_LIMITED_SITES = 10_000
"""Maximal sites recorded; at others a new URL may replace an older one."""


def robots_of(collection: Collection, store: RobotsStore, clock: Clock) -> Robots:
    """Return the robots.txt cache of a collection."""
    return Robots(
        store,
        clock=clock,
        user_agent=collection.robots_agent,
        ttl_s=collection.robots_ttl_s,
        own_agent=lambda site: collection.sites.at(site).user_agent,
        longest_delay_s=collection.robots_delay_max_s,
    )


def frontier_of(
    collection: Collection,
    leases: LeaseStore,
    site_delays: DelaySource,
    *,
    clock: Clock,
    retries_until: float,
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
        max_pages_in_turn=collection.max_pages_in_turn,
        backoff=collection.backoff,
        retries_until=retries_until,
        longest_wait_s=policy.retry_after_max_s,
        others=others,
    )


class RequestedDelays(Protocol):
    def delay_of(self, site: str, scheme: str) -> float: ...


class PrescribedPace(NamedTuple):
    """The pace of a site without its latency, what its delay comes from, and whether AutoThrottle's target concurrency must not raise it."""

    pace: Pace
    where: str
    is_concurrency_fixed: bool


class SiteDelays:
    """The delay and concurrency of each site of a collection.

    In a slot of CRAWLSPACE_VARIABLE_DELAY, its delay applies to all sites without their own delay in CRAWLSPACE_SITES; "suspend"
    stops all requests. A site with a timetable of its own has that instead. With AUTOTHROTTLE_ENABLED a delay follows the latency of its site, and is never shorter than these.
    """

    def __init__(self, collection: Collection, clock: Clock, requested: RequestedDelays) -> None:
        """`requested` returns the delays from robots.txt; unused if robots.txt is not obeyed."""
        self._sites = collection.sites
        self._timetables = collection.sites.timetables
        self._obey = collection.robots_obey
        self._clock = clock
        self._requested = requested
        self._throttle = AutoThrottle(collection.throttle) if collection.throttle is not None else None
        self._together = ceil(collection.throttle.target_concurrency) if collection.throttle is not None else 1
        """Concurrent requests to one site that the target concurrency needs."""
        self._slots: dict[Timetable, tuple[Slot, float]] = {}
        """The slots looked up last, and when."""

    def of(self, site: str) -> Pace:
        prescribed = self.prescribed(site)
        if self._throttle is None:
            return prescribed.pace
        concurrency = prescribed.pace.concurrency if prescribed.is_concurrency_fixed else self._together
        return replace(
            prescribed.pace,
            delay_s=self._throttle.delay_s(site, least_s=prescribed.pace.delay_s),
            concurrency=max(prescribed.pace.concurrency, concurrency),
        )

    def answered(self, site: str, outcome: Outcome) -> bool:
        """Adapt the delay of a site to its latency, if configured. Return whether its pace has changed."""
        if self._throttle is None or outcome.latency_s is None:
            return False
        least_s = self.prescribed(site).pace.delay_s
        return self._throttle.answered(site, latency_s=outcome.latency_s, status=outcome.status, least_s=least_s)

    def prescribed(self, site: str) -> PrescribedPace:
        """Return the pace by settings, time of the week and robots.txt."""
        settings = self._sites.at(site)
        slot = self._present(settings.timetable)
        delay, by_slot = settings.delay_s, False
        where = SITES if settings.own_delay else DELAY
        if slot.delay_s is not None and (settings.own_timetable or not settings.own_delay):
            delay, by_slot, where = slot.delay_s, True, VARIABLE_DELAY
        requested = max(self._requested.delay_of(site, scheme) for scheme in DEFAULT_PORTS) if self._obey else 0.0
        one_at_a_time = requested > 0 or (by_slot and delay > 0)
        pace = Pace(max(delay, requested), 1 if one_at_a_time else settings.concurrency, suspended=slot.suspended)
        is_fixed = one_at_a_time or settings.own_concurrency
        return PrescribedPace(pace, ROBOTS_TXT if requested > delay else where, is_concurrency_fixed=is_fixed)

    def change_at(self) -> float:
        """Return when a slot may change, in seconds since 1970; infinite without a timetable."""
        return min((self._present(table).until for table in self._timetables), default=inf)

    def is_suspended(self, site: str) -> bool:
        """Return whether the slot of a site suspends its requests; `site` is empty for one that is not known."""
        settings = self._sites.at(site) if site else self._sites.default
        return self._present(settings.timetable).suspended

    def phase(self) -> Sequence[tuple[float | None, bool]]:
        """Return the settings of the slot of each timetable: its delay in seconds or None, and whether requests are suspended."""
        slots = [self._present(table) for table in self._timetables]
        return [(slot.delay_s, slot.suspended) for slot in slots]

    def _present(self, timetable: Timetable | None) -> Slot:
        if timetable is None:
            return _NO_TIMETABLE
        now = self._clock.now()
        slot, read_at = self._slots.get(timetable, (_NO_TIMETABLE, inf))
        if not read_at <= now < slot.until:  # earlier: the clock was set back
            slot = timetable.at(now)
            self._slots[timetable] = slot, now
        return slot


class AutoThrottle:
    """The delays of the sites of this process. `least_s` is the minimum by settings, time of the week and robots.txt."""

    def __init__(self, settings: ThrottleSettings) -> None:
        self._settings = settings
        self._delays: Recent[str, float] = Recent(THROTTLED_SITES)

    def delay_s(self, site: str, *, least_s: float) -> float:
        """Return the delay of a site."""
        delay_s = self._delays.get(site)
        return max(least_s, self._settings.start_delay_s if delay_s is None else delay_s)

    def answered(self, site: str, *, latency_s: float, status: int, least_s: float) -> bool:
        """Adapt to the latency of a response. Return whether the delay of the site has changed."""
        settings = self._settings
        before_s = self.delay_s(site, least_s=least_s)
        target_s = latency_s / settings.target_concurrency
        after_s = max(target_s, (before_s + target_s) / 2)
        after_s = max(least_s, min(after_s, settings.max_delay_s))
        if status != HTTPStatus.OK and after_s < before_s:  # errors are fast, and would increase the requests to a failing site
            after_s = before_s
        self._delays.put(site, after_s)
        if settings.debug:
            logger.info(
                "%s: delay %d ms (%+d), latency %d ms, status %d",
                site,
                after_s * 1000,
                (after_s - before_s) * 1000,
                latency_s * 1000,
                status,
            )
        return after_s != before_s


@dataclass(slots=True)
class _Failing:
    """The last fetches of a site, all without a response."""

    status: int
    detail: str
    id: int
    several: bool = False
    """Whether they were of different URLs."""

    @property
    def cause(self) -> str:
        return cause_of(self.status, self.detail)


class SiteFailures:
    """Gives sites up, and counts the runs without a response. `rows` are the counts so far, by site."""

    def __init__(
        self,
        frontier: Frontier,
        robots: Robots,
        store: SiteStore,
        *,
        save_row: Callable[[str, UnreachableSite | None], None],
        clock: Clock,
        giving_up: GivingUp,
        policy: Callable[[], RecrawlPolicy],
    ) -> None:
        self._frontier = frontier
        self._robots = robots
        self._store = store
        self._save_row = save_row
        self._clock = clock
        self._giving_up = giving_up
        self._policy = policy
        self.rows = {row.site: row for row in store.unreachable()}
        self.causes: dict[str, str] = {}
        """The unreachable sites of this run, and the causes."""
        self._tries: Counter[tuple[str, str]] = Counter()
        self._blocked: dict[str, dict[str, float]] = {}
        """By site, the blocked schemes, and until when on the monotonic clock."""
        self._schemes: dict[str, frozenset[str]] = {}
        """The schemes of sites with a blocked one."""
        self._failing: dict[str, _Failing] = {}
        self._answered = _Answered(clock)

    # --- robots.txt -----------------------------------------------------------------------------------------------

    def robots_read(
        self, fetch: FetchRobots, *, status: int, body: str, retry_after_s: float | None = None, detail: str = ""
    ) -> None:
        """Process the response to a request for robots.txt, or its failure."""
        site, scheme = fetch.site, fetch.scheme
        elsewhere = fetch.target_site != site
        if elsewhere and status == Status.EXCLUDED:
            status = HTTPStatus.NOT_FOUND  # redirected to a forbidden address: as for a forbidden host
        if not elsewhere and status in (Status.NO_SUCH_HOST, Status.EXCLUDED):
            self._robots.allow_briefly(site, scheme)  # each of its URLs will get its own error
            self._frontier.unblock(site)
            return
        saved = self._robots.save(site, scheme, status=status, body=body)
        failures = self._frontier.unblock(site, answered=elsewhere or status not in UNREACHABLE)
        if saved:
            self._tries.pop((site, scheme), None)
            self._answer(site)
            return
        self._tries[site, scheme] += 1
        tries = self._tries[site, scheme]
        if tries <= self._policy().retry_times and failures.without_answer_s < self._giving_up.after_s:
            self._frontier.wait_site(site, retry_wait(tries, retry_after_s=retry_after_s, policy=self._policy()))
        else:
            del self._tries[site, scheme]
            self._block(fetch, status, detail)

    def robots_to_fetch(self, state: UrlState) -> FetchRobots | None:
        """Return the robots.txt to request before a URL; None if the URL must wait, because that of its scheme cannot be read.

        If it is unreadable, the one of the site's other scheme is returned, if unknown: so an unreachable host is recognised at once, however
        many URLs it has.
        """
        fetch = FetchRobots.of(state)
        blocked = self._blocked.get(state.site)
        if blocked is None or not self._is_blocked(blocked, fetch.scheme):
            return fetch
        for other in self._schemes[state.site] - blocked.keys():
            root = f"{other}://{_netloc(state.site, other)}/"
            if self._robots.check(root, site=state.site) is RobotsVerdict.UNKNOWN:
                return FetchRobots(state.site, other, f"{root}robots.txt")
        return None

    def found(self, urls: Iterable[NewUrl]) -> None:
        """Update after inserting URLs: one of another scheme resumes a site that was given up for its robots.txt."""
        for url in urls:
            schemes = self._schemes.get(url.site) if url.site in self._frontier.given_up_sites else None
            if schemes is not None and url.url.partition(":")[0] not in schemes:
                self._schemes[url.site] = schemes | {url.url.partition(":")[0]}
                self._frontier.resume(url.site)

    def _is_blocked(self, blocked: dict[str, float], scheme: str) -> bool:
        until = blocked.get(scheme)
        if until is not None and self._clock.monotonic() >= until:
            del blocked[scheme]
            until = None
        return until is not None

    def _block(self, fetch: FetchRobots, status: int, detail: str) -> None:
        site, scheme, cause = fetch.site, fetch.scheme, cause_of(status, detail)
        schemes = self._schemes.setdefault(site, self._store.schemes(site) | {scheme})
        blocked = self._blocked.setdefault(site, {})
        blocked[scheme] = self._clock.monotonic() + self._policy().retry_after_max_s if self._giving_up.continuous else inf
        left = sorted(other for other in schemes if not self._is_blocked(blocked, other))
        if left:
            what = f"its {scheme} URLs are not fetched {self._until()}; those of {left[0]} are still tried"
        else:
            self._give_up(site)
            what = f"nothing of it is fetched, and its URLs keep their states {self._until()}"
            if site not in self._answered:
                self._count(site, status, detail)
        if status in UNREACHABLE:
            logger.warning("%s is unreachable: %s (%s): %s", site, cause, status, what)
        else:
            logger.warning("%s has no readable robots.txt: %s: %s", site, cause, what)

    # --- pages ----------------------------------------------------------------------------------------------------

    def fetched(self, state: UrlState, outcome: Outcome) -> None:
        """Process the outcome of a fetch, and pass it to the frontier."""
        site, answered = state.site, site_answered(outcome)
        failures = self._frontier.finished(state, sent_ago_s=outcome.sent_ago_s, failed=site_failed(outcome), answered=answered)
        if answered:
            self._answer(site)
        elif answered is not None:
            self._fail(site, outcome)
        if site in self._frontier.given_up_sites:
            return
        in_vain = failures.unanswered >= FEW_FAILURES and failures.without_answer_s >= self._giving_up.after_s
        if not in_vain and failures.in_row < self._giving_up.failures:
            return
        self._give_up(site)
        left = f"nothing more of it is fetched, and its URLs keep their states {self._until()}"
        failing = self._failing.get(site)
        if failing is None or not failures.unanswered:
            logger.warning("%s has failed %d times in a row: %s", site, failures.in_row, left)
            return
        for_s = f"for {failures.without_answer_s:.0f} s, " if in_vain else ""
        logger.warning("%s is unreachable %s%d times in a row: %s: %s", site, for_s, failures.unanswered, failing.cause, left)
        self._count_failing(site, failing)

    def know(self, site: str, row: UnreachableSite | None) -> None:
        """Update the row of a site from another worker; None removes it."""
        if row is not None:
            self.rows[site] = row
        else:
            self.rows.pop(site, None)

    def unanswered(self) -> dict[str, str]:
        """Return the unreachable sites of this run, and the causes."""
        return {site: one.cause for site, one in self._failing.items() if site not in self._answered} | self.causes

    def end(self) -> None:
        """Count a complete run for the sites without a response that had too few URLs to be given up."""
        for site, failing in self._failing.items() if self._frontier.is_done() else ():
            if site not in self.causes and not self._frontier.is_paused(site):
                self._count_failing(site, failing)

    def _fail(self, site: str, outcome: Outcome) -> None:
        before = self._failing.get(site)
        several = before is not None and (before.several or before.id != outcome.id)
        self._failing[site] = _Failing(int(outcome.status), outcome.detail, outcome.id, several)

    def _answer(self, site: str) -> None:
        self._answered.add(site)
        self._failing.pop(site, None)
        if site in self.rows:
            del self.rows[site]
            self.causes.pop(site, None)
            self._save_row(site, None)

    def _count_failing(self, site: str, failing: _Failing) -> None:
        """Count the run, unless it may be a fault of a single page."""
        if site not in self._answered and (failing.several or failing.status == Status.NO_SUCH_HOST):
            self._count(site, failing.status, failing.detail)

    def _count(self, site: str, status: int, detail: str) -> None:
        now, before = int(self._clock.now()), self.rows.get(site)
        self.causes[site] = cause_of(status, detail)
        if self._giving_up.continuous and before is not None and 0 <= now - before.counted_at < self._policy().refresh_min_s:
            return  # a continuous crawl tries every hour; a day's failures count as one run
        row = self.rows[site] = after_failed_run(before, site=site, status=status, now=now, detail=detail)
        self._save_row(site, row)

    def _give_up(self, site: str) -> None:
        if self._giving_up.continuous:
            self._frontier.wait_site(site, self._policy().retry_after_max_s)
        else:
            self._frontier.give_up(site)

    def _until(self) -> str:
        return "for the next hour" if self._giving_up.continuous else "until the next start"


class _Answered:
    """The sites that responded in this run (in a continuous crawl, in the last day or two), in a megabyte.

    Of a hundred thousand sites, about one in a hundred wrongly counts as responding.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._bits = bytearray(_ANSWERED_BITS // 8)
        self._since = clock.monotonic()

    def add(self, site: str) -> None:
        if self._clock.monotonic() - self._since >= DAY_S:
            self._bits = bytearray(_ANSWERED_BITS // 8)
            self._since = self._clock.monotonic()
        place = hash(site) % _ANSWERED_BITS
        self._bits[place >> 3] |= 1 << (place & 7)

    def __contains__(self, site: str) -> bool:
        place = hash(site) % _ANSWERED_BITS
        return bool(self._bits[place >> 3] & 1 << (place & 7))


class HostRoom:
    """The remaining number of URLs that hosts may have in this run."""

    def __init__(self, store: Store, limits_of: Callable[[str, int], Limits], *, run_ends: bool) -> None:
        """`limits_of` returns the limits of a host and port. In a continuous run no URL waits for the next start."""
        self._store = store
        self._limits_of = limits_of
        self._kept_out = kept_out(store) if run_ends else Counter[str]()
        self._adding: dict[str, str] = {}
        """Unknown URLs being inserted, with their hosts."""
        self._numbers: Counter[str] = Counter()
        """Number of these by host."""

    def most(self, site: str) -> int | None:
        """Return the limit of URLs for the host of a site; None without a limit."""
        host, _, port = site.rpartition(":")
        return self._limits_of(host, int(port)).max_urls_per_host

    def taken(self, host: str) -> int:
        """Return the number of URLs counted for a host, including those reserved for excluded URLs."""
        return self._store.host_count(host) + self._kept_out[host] + self._numbers[host]

    def is_inserting(self, url: NewUrl) -> bool:
        """Return whether a URL is counted as being inserted."""
        return url.url in self._adding

    def inserting(self, urls: Iterable[NewUrl]) -> None:
        """Count unknown URLs as being inserted."""
        for one in urls:
            host = self._adding[one.url] = one.site.rpartition(":")[0]
            self._numbers[host] += 1

    def committed(self, on_their_way: Iterable[NewUrl]) -> None:
        """Clear the counts after a commit, except for these URLs."""
        if self._adding:
            self._adding = {one.url: self._adding[one.url] for one in on_their_way if one.url in self._adding}
            self._numbers = Counter(self._adding.values())


def kept_out(store: Store) -> Counter[str]:
    """Return by host the number of known URLs excluded by the limit. Raises StoreDamaged."""
    hosts: Counter[str] = Counter()
    for site, (count, _) in _noted(store).items():
        hosts[site.rpartition(":")[0]] += count
    return hosts


def has_room(store: Store, limits: KnownUrlDecisions) -> bool:
    """Return whether a host with excluded or held URLs is below its limit; True if never recorded."""
    if not limits.hosts_are_limited:
        return False
    if not store.get_meta(KEPT_OUT):
        return True
    for site, (_, held) in _noted(store).items():
        host, _, port = site.rpartition(":")
        most = limits.limits_of(host, int(port)).max_urls_per_host if port.isdigit() else None
        if most is not None and store.host_count(host) - held < most:
            return True
    return False


def note_kept_out(store: MetaStore, beyond: Mapping[bool, Counter[str]], *, hold: bool) -> None:
    """Store by site the numbers of URLs excluded by the limit only. `beyond`: by having a document; `hold`: hold those."""
    held = beyond[True] if hold else Counter[str]()
    excluded = beyond[False] if hold else beyond[True] + beyond[False]
    sites = sorted(excluded.keys() | held.keys())[:_LIMITED_SITES]
    store.set_meta(KEPT_OUT, json.dumps({site: [excluded[site], held[site]] for site in sites}))


def _netloc(site: str, scheme: str) -> str:
    """Return host and port as in URLs in normal form."""
    host, _, port = site.rpartition(":")
    return host if int(port) == DEFAULT_PORTS[scheme] else site


def _noted(store: Store) -> dict[str, tuple[int, int]]:
    table = get_table(store, KEPT_OUT) or {}
    return {site: (int(pair[0]), int(pair[1])) for site, pair in table.items() if isinstance(pair, list) and len(pair) == 2}
