"""Why a crawl that came to its end did not do its work: what makes its exit status 1, as sentences for the head of its summary."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from crawlspace.crawl.run import Progress
from crawlspace.model import Status

SHOWN = 3
_ANSWERS_TO_OWN_CODE = (int(Status.NOINDEX), 304)


@dataclass(frozen=True, slots=True)
class Run:
    """A crawl that has ended by itself. `unreachable` are the sites that gave no answer in it, and why."""

    progress: Progress
    start_sites: Collection[str]
    unreachable: Mapping[str, str]
    with_documents: Collection[str]
    """Those of them of which there are documents in the index: a dead link to somewhere else is no fault of a run."""
    has_documents: bool


def faults_of(run: Run) -> list[str]:
    """Return what is wrong with a run as a whole, the worst first; nothing where it did its work."""
    progress = run.progress
    if run.start_sites and all(site in run.unreachable for site in run.start_sites):
        causes = {site: run.unreachable[site] for site in sorted(run.start_sites)}
        return [f"no start site could be reached: {_listed(causes)}"]
    if not progress.fetched:
        missed = {site: cause for site, cause in run.unreachable.items() if site in {*run.start_sites, *run.with_documents}}
        if missed:
            return [f"nothing could be fetched: {_listed(missed)}"]
        if progress.by_status[Status.ROBOTS_FORBIDDEN] and not run.has_documents:
            return ["nothing could be fetched: robots.txt forbids all that was to be"]
        return []
    unexpected = progress.by_status[Status.UNEXPECTED]
    if unexpected and not progress.documents and not any(progress.by_status[code] for code in _ANSWERS_TO_OWN_CODE):
        return [f"every page that was parsed ended in an unexpected error ({int(Status.UNEXPECTED)}), see the log"]
    if progress.errors == progress.fetched:
        errors = sorted((code, count) for code, count in progress.by_status.items() if code not in _NOT_FETCHED)
        return [f"every page of the run failed: {', '.join(f'{count:,} × {code}' for code, count in errors[:SHOWN])}"]
    return []


_NOT_FETCHED = (int(Status.ROBOTS_FORBIDDEN), int(Status.EXCLUDED), int(Status.EXCLUDED_HERE))


def _listed(causes: Mapping[str, str]) -> str:
    """`a.example:80 (connection refused), b.example:80 (no answer in time) and 4 more`"""
    shown = ", ".join(f"{site} ({cause})" for site, cause in list(causes.items())[:SHOWN])
    return shown + (f" and {len(causes) - SHOWN:,} more" if len(causes) > SHOWN else "")
