"""Sites that are left alone for a while: they give no robots.txt, or have failed too often in a row."""

from __future__ import annotations

import logging
from collections import Counter
from http import HTTPStatus
from typing import Protocol

from crawlspace.frontier.frontier import Frontier
from crawlspace.frontier.robots import Robots
from crawlspace.model import Status
from crawlspace.run import FetchRobots
from crawlspace.state.recrawl import RecrawlPolicy, retry_wait

logger = logging.getLogger(__name__)


class Notes(Protocol):
    def note_pending(self, site: str, status: int | None) -> None: ...


class Silences:
    """Decides what follows for a site when it doesn't answer as it should. `continuous`: the crawl goes on when all is done."""

    def __init__(self, frontier: Frontier, robots: Robots, notes: Notes, *, continuous: bool, noted_before: bool) -> None:
        """`noted_before`: sites of an earlier run gave no robots.txt, and their URLs say so."""
        self._frontier = frontier
        self._robots = robots
        self._notes = notes
        self._continuous = continuous
        self._noted = noted_before
        self._tries: Counter[str] = Counter()

    def robots_read(
        self, fetch: FetchRobots, *, status: int, body: str, retry_after_s: float | None, policy: RecrawlPolicy
    ) -> None:
        """A site whose robots.txt can't be read waits, and is given up for this run after the retries."""
        site = fetch.site
        elsewhere = fetch.target_site != site
        if elsewhere and status == Status.EXCLUDED:
            status = HTTPStatus.NOT_FOUND  # it was redirected to an address that the rules keep out: as to a host that they do
        if not elsewhere and status in (Status.NO_SUCH_HOST, Status.EXCLUDED):
            self._robots.pass_over(site, fetch.scheme)  # there is no one to ask, as each of its URLs will say for itself
        elif self._robots.save(site, fetch.scheme, status=status, body=body):
            self._tries.pop(site, None)
            if self._noted:
                self._notes.note_pending(site, None)
        else:
            self._tries[site] += 1
            tries = self._tries[site]
            if tries <= policy.retry_times:
                self._frontier.wait_site(site, retry_wait(tries, retry_after_s=retry_after_s, policy=policy))
            else:
                self._gives_no_robots(site, status, policy)
        self._frontier.unhold(site)

    def failed(self, site: str, failures: int, policy: RecrawlPolicy) -> None:
        """A site has failed so often in a row that it is left alone."""
        if site not in self._frontier.silent:
            until = self._leave_alone(site, policy)
            logger.warning(
                "%s has failed %d times in a row: it is left alone, its URLs stay as they are %s", site, failures, until
            )

    def _gives_no_robots(self, site: str, status: int, policy: RecrawlPolicy) -> None:
        self._tries.pop(site, None)
        until = self._leave_alone(site, policy)
        self._notes.note_pending(site, Status.ROBOTS_UNAVAILABLE)
        self._noted = True
        logger.warning(
            "%s gives no robots.txt (%s: %s): nothing of it is fetched, its URLs stay pending (741) %s",
            site,
            status,
            Status(status).sentence if status in list(Status) else "HTTP status",
            until,
        )

    def _leave_alone(self, site: str, policy: RecrawlPolicy) -> str:
        """For this run, or for an hour where the crawl goes on."""
        if self._continuous:
            self._frontier.wait_site(site, policy.retry_after_max_s)
            return "for the next hour"
        self._frontier.give_up(site)
        return "until the next start"
