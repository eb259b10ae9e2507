"""Unreachable sites: one row a site, however many URLs it has, and when its documents count as held."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import structs

from crawlspace.model import Requester, State, UrlState
from crawlspace.state.lifecycle import kept_detail
from crawlspace.state.recrawl import RecrawlPolicy, retry_wait
from crawlspace.status import Status

UNREACHABLE = frozenset(
    {
        Status.READ_ERROR,
        Status.CONNECT_ERROR,
        Status.TIMEOUT,
        Status.TLS_FAILED,
        Status.PROXY_FAILED,
        Status.NO_SUCH_HOST,
        Status.NO_DNS_ANSWER,
    }
)
"""The statuses of fetches without any response of the site."""
ALL_SCHEMES = frozenset({"http", "https"})


@dataclass(frozen=True, slots=True)
class UnreachableSite:
    """A site without a response in its last runs. Times are seconds since 1970."""

    site: str
    status: int
    """Of the last failure: one of UNREACHABLE, or that of its robots.txt without rules."""
    since: int
    """Time when it was given up in the first of these runs."""
    runs: int
    """Runs in a row."""
    counted_at: int
    """Time when the last of them was counted."""
    detail: str = ""
    """Of the last failure, as `UrlState.detail`."""

    def is_held(self, max_temporary_errors: int) -> bool:
        """Return whether its documents wait for approval: after so many runs, or after the first one where the host does not exist.

        Not if the proxy failed last, which is no evidence about the site.
        """
        if self.status == Status.PROXY_FAILED:
            return False
        return self.runs >= (1 if self.status == Status.NO_SUCH_HOST else max_temporary_errors)


def after_failed_run(before: UnreachableSite | None, *, site: str, status: int, now: int, detail: str = "") -> UnreachableSite:
    """Return the row of a site after one more run without a response."""
    since, runs = (now, 1) if before is None else (min(before.since, now), before.runs + 1)
    return UnreachableSite(site, status, since=since, runs=runs, counted_at=now, detail=kept_detail(detail) or "")


def cause_of(status: int, detail: str = "") -> str:
    """Return a short reason why a site is unreachable, or the response in place of its robots.txt."""
    if detail and status in UNREACHABLE:
        return detail
    if status in list(Status):
        return Status(status).sentence
    return f"HTTP status {status}"


def postponed(state: UrlState, *, policy: RecrawlPolicy, now: int) -> UrlState:
    """Return the state of a URL that must not be fetched because the robots.txt of its scheme cannot be read: it is due later.

    This is no error of the URL. A pending one becomes failed (741).
    """
    again = now + round(min(policy.of(state.site).refresh_min_s, policy.retry_after_max_s))
    if state.state is State.PENDING:
        state = structs.replace(state, state=State.FAILED, status=int(Status.ROBOTS_UNAVAILABLE))
    return structs.replace(state, next_fetch=again, retries=0, lease_until=None)


def logged_out(
    state: UrlState, again_s: float | None, *, policy: RecrawlPolicy, now: int, waits: bool, detail: str = ""
) -> UrlState:
    """Return the state of a URL that requires a log-in. A pending one becomes failed (616).

    It stays due if its site `waits` for another log-in. Else only this page is concerned, and it is due later: in this run if `again_s` is
    not None, because that is uncertain. After that it is no longer due before others, which a person may have asked for.
    """
    if state.state is State.PENDING:
        state = structs.replace(
            state, state=State.FAILED, status=int(Status.LOGGED_OUT), next_fetch=now, detail=kept_detail(detail)
        )
    retries = 0
    if not waits and again_s is not None and state.retries < policy.retry_times:
        retries = state.retries + 1
        state = structs.replace(state, next_fetch=now + retry_wait(retries, retry_after_s=again_s, policy=policy))
    elif not waits:
        state = structs.replace(state, next_fetch=now + round(policy.of(state.site).refresh_min_s), requested_by=Requester.NOBODY)
    return structs.replace(state, retries=retries, lease_until=None)


def not_rendered(state: UrlState, *, policy: RecrawlPolicy, now: int, run_ends: bool, detail: str = "") -> UrlState:
    """Return the state of a URL whose page was fetched and could not be rendered (617). Its document always stays.

    The next run retries it; a continuous crawl, after a while.
    """
    again_s = 1 if run_ends else round(min(policy.of(state.site).refresh_min_s, policy.retry_after_max_s))
    status = int(Status.NOT_RENDERED)
    failed = structs.replace(state, state=State.FAILED, status=status, fetched_at=now, next_fetch=now + again_s)
    return structs.replace(failed, retries=0, lease_until=None, requested_by=Requester.NOBODY, detail=kept_detail(detail))
