"""Sites without a response, or without robots.txt: they are paused, given up for the run, and counted as unreachable in it.

An unreadable robots.txt blocks the URLs of its own scheme and port only. If a site has URLs of both schemes, those of the other
one are still crawled; it is given up when none of its schemes is left.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from math import inf
from typing import Protocol

from crawlspace.clock import Clock
from crawlspace.crawl.outcomes import site_answered, site_failed
from crawlspace.crawl.run import FetchRobots
from crawlspace.frontier.frontier import Frontier
from crawlspace.frontier.robots.cache import Robots, RobotsVerdict
from crawlspace.frontier.site_queue import GivingUp
from crawlspace.model import NewUrl, Outcome, Status, UrlState
from crawlspace.state.recrawl import RecrawlPolicy, retry_wait
from crawlspace.state.unreachable import UNREACHABLE, UnreachableSite, after_failed_run, cause_of
from crawlspace.urls import DEFAULT_PORTS

logger = logging.getLogger(__name__)

FEW = 3
"""Failed requests in a row before the time counts, because single pages may hang."""
DAY_S = 86_400.0
_BITS = 1 << 23


class SiteRows(Protocol):
    def unreachable(self) -> list[UnreachableSite]: ...
    def schemes(self, site: str) -> frozenset[str]: ...


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
        store: SiteRows,
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
            status = HTTPStatus.NOT_FOUND  # redirected to an address that the rules forbid: as for a forbidden host
        if not elsewhere and status in (Status.NO_SUCH_HOST, Status.EXCLUDED):
            self._robots.pass_over(site, scheme)  # each of its URLs will get its own error
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

        In place of an unreadable one, it is that of the site's other scheme, if unknown: so an unreachable host is recognised at
        once, however many URLs it has.
        """
        fetch = FetchRobots.of(state)
        blocked = self._blocked.get(state.site)
        if blocked is None or not self._is_blocked(blocked, fetch.scheme):
            return fetch
        for other in self._schemes[state.site] - blocked.keys():
            root = f"{other}://{_netloc(state.site, other)}/"
            if self._robots.ask(root, site=state.site) is RobotsVerdict.UNKNOWN:
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
            logger.warning("%s gives no robots.txt: %s: %s", site, cause, what)

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
        in_vain = failures.unanswered >= FEW and failures.without_answer_s >= self._giving_up.after_s
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
        """At the end of a complete run, count it for the sites with too few URLs to be given up, and no response."""
        for site, failing in self._failing.items() if self._frontier.is_done() else ():
            if site not in self.causes:
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
        self._bits = bytearray(_BITS // 8)
        self._since = clock.monotonic()

    def add(self, site: str) -> None:
        if self._clock.monotonic() - self._since >= DAY_S:
            self._bits = bytearray(_BITS // 8)
            self._since = self._clock.monotonic()
        place = hash(site) % _BITS
        self._bits[place >> 3] |= 1 << (place & 7)

    def __contains__(self, site: str) -> bool:
        place = hash(site) % _BITS
        return bool(self._bits[place >> 3] & 1 << (place & 7))


def _netloc(site: str, scheme: str) -> str:
    """Return host and port as in URLs in normal form."""
    host, _, port = site.rpartition(":")
    return host if int(port) == DEFAULT_PORTS[scheme] else site
