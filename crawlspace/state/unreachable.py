"""Sites that cannot be reached: one row a site, however many URLs it has, and when its documents are shown as held."""

from __future__ import annotations

from dataclasses import dataclass

from crawlspace.model import Status

UNREACHABLE = frozenset(
    {
        Status.READ_ERROR,
        Status.CONNECT_ERROR,
        Status.TIMEOUT,
        Status.TLS_FAILED,
        Status.NO_SUCH_HOST,
        Status.NO_DNS_ANSWER,
    }
)
"""How a fetch ends to which the site gave no answer at all."""
ALL_SCHEMES = frozenset({"http", "https"})


@dataclass(frozen=True, slots=True)
class UnreachableSite:
    """A site that gave no answer in its last runs. Times are seconds since 1970."""

    site: str
    status: int
    """Of the last failure: one of UNREACHABLE, or what its robots.txt answered instead of rules."""
    since: int
    """When the first of these runs gave it up."""
    runs: int
    """Runs in a row."""
    counted_at: int
    """When the last of them was counted."""

    def is_held(self, max_temporary_errors: int) -> bool:
        """Return whether its documents wait for approval: after so many runs, or after the first one where the host does not exist."""
        return self.runs >= (1 if self.status == Status.NO_SUCH_HOST else max_temporary_errors)


def after_failed_run(before: UnreachableSite | None, *, site: str, status: int, now: int) -> UnreachableSite:
    """Return the row of a site after one more run in which it gave no answer."""
    if before is None:
        return UnreachableSite(site, status, since=now, runs=1, counted_at=now)
    return UnreachableSite(site, status, since=min(before.since, now), runs=before.runs + 1, counted_at=now)
