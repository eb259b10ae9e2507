"""The faults of a whole run, which make its exit status 1, as sentences for its summary."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from crawlspace.crawl.run import RunCounters
from crawlspace.model import LINKS_ONLY, OutcomeKind, Status
from crawlspace.plural import counted
from crawlspace.state.recrawl import RecrawlPolicy
from crawlspace.state.site_health import Health

SHOWN = 3
_ANSWERS_TO_OWN_CODE = (*LINKS_ONLY, 304)


class HealthStore(Protocol):
    def health(self, site: str) -> Health: ...


@dataclass(frozen=True, slots=True)
class Run:
    """A run that ended by itself. `unreachable` are the sites without any response, and the causes."""

    progress: RunCounters
    start_sites: Collection[str]
    unreachable: Mapping[str, str]
    with_documents: Collection[str]
    """The unreachable sites with documents in the index: a dead link to another site is no fault of a run."""
    has_documents: bool
    failing: Collection[str] = ()
    """The sites that had errors, and whose last answers were failures for the most part: not a page fails there, but the site."""
    refused_logins: Mapping[str, str] = field(default_factory=dict)
    """The sites with pages that are due and wait because their log-in is refused, with what that means."""
    without_login: Mapping[str, str] = field(default_factory=dict)
    """Those that wait because nobody could log in for now."""


def faults_of(run: Run) -> list[str]:
    """Return the faults of a run, the worst first; empty if it did its work."""
    progress = run.progress
    if run.refused_logins:
        return [f"{site} waits for its log-in: {why}" for site, why in sorted(run.refused_logins.items())[:SHOWN]]
    if run.without_login and not _has_shown(progress):
        return [f"{site} waits for its log-in: {why}" for site, why in sorted(run.without_login.items())[:SHOWN]]
    if run.start_sites and all(site in run.unreachable for site in run.start_sites):
        causes = {site: run.unreachable[site] for site in sorted(run.start_sites)}
        return [f"no start site could be reached: {_listed(causes)}"]
    missed = {site: cause for site, cause in run.unreachable.items() if site in {*run.start_sites, *run.with_documents}}
    if missed and progress.errors == progress.fetched:
        return [f"nothing could be fetched: {_listed(missed)}"]
    if not progress.fetched:
        if progress.by_status[Status.ROBOTS_FORBIDDEN] and not run.has_documents:
            return ["nothing could be fetched: robots.txt forbids every URL"]
        return []
    unexpected = progress.by_status[Status.UNEXPECTED]
    if unexpected and not progress.documents and not any(progress.by_status[code] for code in _ANSWERS_TO_OWN_CODE):
        return [f"every page that was parsed ended in an unexpected error ({int(Status.UNEXPECTED)}), see the log"]
    if progress.without_item and not (progress.documents or progress.by_kind[OutcomeKind.UNCHANGED]):
        pages = counted(progress.without_item, "page that was", "pages that were")
        return [
            f"no page gave an item, not even {pages} indexed: look at parse() or document() of the spider, and at ITEM_PIPELINES"
        ]
    # Dead links, and pages that fail while their site answers others, are no fault of a run in which nothing else was due.
    is_loop = progress.by_status[Status.REDIRECT_LOOP] > 0  # then redirects lead around, and none of them to a page
    failed = progress.errors + (progress.by_kind[OutcomeKind.REDIRECTED] if is_loop else 0)
    if failed == progress.fetched and (run.failing or not run.has_documents):
        codes = sorted((code, count) for code, count in progress.by_status.items() if code not in _NOT_FETCHED)
        how = "no page could be read, because redirects lead back to themselves" if is_loop else "every page of the run failed"
        return [f"{how}: {', '.join(f'{count:,} × {code}' for code, count in codes[:SHOWN])}"]
    return []


def failing_sites(store: HealthStore, sites: Iterable[str], policy: RecrawlPolicy) -> set[str]:
    """Return those of these sites whose last answers were failures, or pages that are gone, for the most part."""
    healths = {site: store.health(site) for site in sites}
    return {
        site
        for site, health in healths.items()
        if health.is_failing(policy.host_failed_percent) or health.is_mostly_missing(policy.host_fetches)
    }


def _has_shown(progress: RunCounters) -> bool:
    """Return whether any page of the run was shown."""
    return any(count for kind, count in progress.by_kind.items() if kind not in (OutcomeKind.FAILED, OutcomeKind.GONE))


_NOT_FETCHED = (int(Status.ROBOTS_FORBIDDEN), int(Status.EXCLUDED), int(Status.EXCLUDED_HERE))


def _listed(causes: Mapping[str, str]) -> str:
    """Return `a.example:80 (connection refused), b.example:80 (no answer in time) and 4 more`."""
    shown = ", ".join(f"{site} ({cause})" for site, cause in list(causes.items())[:SHOWN])
    return shown + (f" and {len(causes) - SHOWN:,} more" if len(causes) > SHOWN else "")
