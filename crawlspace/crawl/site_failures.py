"""What follows for a site that gives no answer, or no robots.txt: it waits, is given up for the run, and the run is counted for it.

A robots.txt that cannot be read stops the URLs of its own scheme and port only. Where a site has URLs of both schemes, those of the
other one are crawled on; it is given up as a whole when none of its schemes is left.
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
from crawlspace.frontier.robots.cache import Answer, Robots
from crawlspace.frontier.site_queue import GivingUp
from crawlspace.model import NewUrl, Outcome, Status, UrlState
from crawlspace.state.recrawl import RecrawlPolicy, retry_wait
from crawlspace.state.unreachable import UNREACHABLE, UnreachableSite, after_failed_run, cause_of
from crawlspace.urls import DEFAULT_PORTS

logger = logging.getLogger(__name__)

FEW = 3
"""So many requests in a row must have been in vain before the time counts: one page or two may hang by themselves."""
DAY_S = 86_400.0
_BITS = 1 << 23


class SiteRows(Protocol):
    def unreachable(self) -> list[UnreachableSite]: ...
    def schemes(self, site: str) -> frozenset[str]: ...


@dataclass(slots=True)
class _Failing:
    """How the last fetches of a site ended, none of which it answered."""

    status: int
    cause: str
    id: int
    several: bool = False
    """They were of different URLs."""


class SiteFailures:
    """Gives sites up and counts the runs in which they gave no answer. `rows` are the counts so far, by site."""

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
        """The sites that gave no answer in this run, and why."""
        self._tries: Counter[tuple[str, str]] = Counter()
        self._blocked: dict[str, dict[str, float]] = {}
        """By site the schemes of which nothing is fetched, and until when on the monotonic clock."""
        self._schemes: dict[str, frozenset[str]] = {}
        """Of the sites that have a blocked scheme."""
        self._failing: dict[str, _Failing] = {}
        self._answered = _Answered(clock)

    # --- robots.txt -----------------------------------------------------------------------------------------------

    def robots_read(
        self, fetch: FetchRobots, *, status: int, body: str, retry_after_s: float | None = None, detail: str = ""
    ) -> None:
        """Take the answer to the question for a robots.txt, or how that failed."""
        site, scheme = fetch.site, fetch.scheme
        elsewhere = fetch.target_site != site
        if elsewhere and status == Status.EXCLUDED:
            status = HTTPStatus.NOT_FOUND  # it was redirected to an address that the rules keep out: as to a host that they do
        if not elsewhere and status in (Status.NO_SUCH_HOST, Status.EXCLUDED):
            self._robots.pass_over(site, scheme)  # there is no one to ask, as each of its URLs will say for itself
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
            self._block(fetch, status, cause_of(status, detail))

    def robots_to_ask(self, state: UrlState) -> FetchRobots | None:
        """Return which robots.txt to ask for before a URL; None where the URL has to wait, because that of its scheme cannot be read.

        In place of one that cannot be read it is that of the site's other scheme, if that is not known: a host that is down is then
        found out at once, however many URLs it has.
        """
        fetch = FetchRobots.of(state)
        blocked = self._blocked.get(state.site)
        if blocked is None or not self._is_blocked(blocked, fetch.scheme):
            return fetch
        for other in self._schemes[state.site] - blocked.keys():
            root = f"{other}://{_netloc(state.site, other)}/"
            if self._robots.ask(root, site=state.site) is Answer.UNKNOWN:
                return FetchRobots(state.site, other, f"{root}robots.txt")
        return None

    def found(self, urls: Iterable[NewUrl]) -> None:
        """URLs were entered: one of another scheme brings back a site that was given up for its robots.txt."""
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

    def _block(self, fetch: FetchRobots, status: int, cause: str) -> None:
        site, scheme = fetch.site, fetch.scheme
        schemes = self._schemes.setdefault(site, self._store.schemes(site) | {scheme})
        blocked = self._blocked.setdefault(site, {})
        blocked[scheme] = self._clock.monotonic() + self._policy().retry_after_max_s if self._giving_up.continuous else inf
        left = sorted(other for other in schemes if not self._is_blocked(blocked, other))
        if left:
            what = f"its {scheme} URLs are not fetched {self._until()}; those of {left[0]} are still tried"
        else:
            self._give_up(site)
            what = f"nothing of it is fetched, its URLs stay as they are {self._until()}"
            if site not in self._answered:
                self._count(site, status, cause)
        if status in UNREACHABLE:
            logger.warning("%s is unreachable: %s (%s): %s", site, cause, status, what)
        else:
            logger.warning("%s gives no robots.txt: %s: %s", site, cause, what)

    # --- pages ----------------------------------------------------------------------------------------------------

    def fetched(self, state: UrlState, outcome: Outcome) -> None:
        """Take how the fetch of a URL has ended: the frontier is told, too."""
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
        left = f"nothing more of it is fetched, its URLs stay as they are {self._until()}"
        failing = self._failing.get(site)
        if failing is None or not failures.unanswered:
            logger.warning("%s has failed %d times in a row: %s", site, failures.in_row, left)
            return
        for_s = f"for {failures.without_answer_s:.0f} s, " if in_vain else ""
        logger.warning("%s is unreachable %s%d times in a row: %s: %s", site, for_s, failures.unanswered, failing.cause, left)
        self._count_failing(site, failing)

    def know(self, site: str, row: UnreachableSite | None) -> None:
        """Another worker had the site: its row may be another one by now, or gone."""
        if row is not None:
            self.rows[site] = row
        else:
            self.rows.pop(site, None)

    def unanswered(self) -> dict[str, str]:
        """Return the sites that gave no answer in this run, and why."""
        return {site: one.cause for site, one in self._failing.items() if site not in self._answered} | self.causes

    def end(self) -> None:
        """Count the run, if it is done, for the sites that had too few URLs to be given up, and answered none of them."""
        for site, failing in self._failing.items() if self._frontier.is_done() else ():
            if site not in self.causes:
                self._count_failing(site, failing)

    def _fail(self, site: str, outcome: Outcome) -> None:
        before = self._failing.get(site)
        several = before is not None and (before.several or before.id != outcome.id)
        self._failing[site] = _Failing(int(outcome.status), cause_of(outcome.status, outcome.detail), outcome.id, several)

    def _answer(self, site: str) -> None:
        self._answered.add(site)
        self._failing.pop(site, None)
        if site in self.rows:
            del self.rows[site]
            self.causes.pop(site, None)
            self._save_row(site, None)

    def _count_failing(self, site: str, failing: _Failing) -> None:
        """Count the run, unless it may be the fault of a single page."""
        if site not in self._answered and (failing.several or failing.status == Status.NO_SUCH_HOST):
            self._count(site, failing.status, failing.cause)

    def _count(self, site: str, status: int, cause: str) -> None:
        now, before = int(self._clock.now()), self.rows.get(site)
        self.causes[site] = cause
        if self._giving_up.continuous and before is not None and 0 <= now - before.counted_at < self._policy().refresh_min_s:
            return  # a crawl that goes on asks every hour, and a day's failures count as one run's
        row = self.rows[site] = after_failed_run(before, site=site, status=status, now=now)
        self._save_row(site, row)

    def _give_up(self, site: str) -> None:
        if self._giving_up.continuous:
            self._frontier.wait_site(site, self._policy().retry_after_max_s)
        else:
            self._frontier.give_up(site)

    def _until(self) -> str:
        return "for the next hour" if self._giving_up.continuous else "until the next start"


class _Answered:
    """Which sites have answered in this run, or in a crawl that goes on in the last day or two: a megabyte, however many there are.

    Of a hundred thousand sites one in a hundred counts as one that has answered although it has not.
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
    """Return host and port as a URL in normal form has them."""
    host, _, port = site.rpartition(":")
    return host if int(port) == DEFAULT_PORTS[scheme] else site
