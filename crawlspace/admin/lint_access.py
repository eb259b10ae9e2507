"""What is wrong with the log-ins and headers of CRAWLSPACE_SITES, or looks so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from crawlspace.config.access import SiteAccess
from crawlspace.config.sites import SiteTable
from crawlspace.urls import Url


def lint_access(
    accesses: Sequence[SiteAccess], starts: Sequence[Url], sites: SiteTable, *, keeps_sessions: bool = True
) -> Iterator[tuple[Literal["error", "warning"], str, str]]:
    """Yield level, code and message of each finding."""
    if not keeps_sessions and any(access.session is not None for access in accesses):
        yield (
            "warning",
            "no-session-key",
            "CRAWLSPACE_SESSION_KEY is not set: the shared store keeps no sessions, and each worker logs in for itself in each run",
        )
    for access in accesses:
        for where in access.literals():
            yield (
                "error",
                "literal-secret",
                f"{where} is a secret itself; write env:NAME for a variable of the environment, or file:PATH for a file that has it",
            )
        own = [start for start in starts if sites.of(start.host, start.port).access is access]
        if not own:
            yield "warning", "unused-login", f"{access.where} matches no start URL: is its host spelt as in start_urls.txt?"
        if not access.logs_in:
            continue
        if access.allow_plain_http:
            yield (
                "warning",
                "plain-login",
                f"{access.where} allows plain http: whoever is on the way can read what is sent ({access.sentence})",
            )
        elif plain := [start.text for start in own if start.scheme != "https"]:
            yield "warning", "plain-login", f"{plain[0]} is requested without what {access.where} has: that goes over https only"
