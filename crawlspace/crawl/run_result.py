"""The faults of a whole run, which make its exit status 1, as sentences for its summary."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from crawlspace.crawl.run import RunCounters
from crawlspace.model import LINKS_ONLY, OutcomeKind, Status
from crawlspace.plural import counted

SHOWN = 3
_ANSWERS_TO_OWN_CODE = (*LINKS_ONLY, 304)


@dataclass(frozen=True, slots=True)
class Run:
    """A run that ended by itself. `unreachable` are the sites without any response, and the causes."""

    progress: RunCounters
    start_sites: Collection[str]
    unreachable: Mapping[str, str]
    with_documents: Collection[str]
    """The unreachable sites with documents in the index: a dead link to another site is no fault of a run."""
    has_documents: bool


def faults_of(run: Run) -> list[str]:
    """Return the faults of a run, the worst first; empty if it did its work."""
    progress = run.progress
    if run.start_sites and all(site in run.unreachable for site in run.start_sites):
        causes = {site: run.unreachable[site] for site in sorted(run.start_sites)}
        return [f"no start site could be reached: {_listed(causes)}"]
    if not progress.fetched:
        missed = {site: cause for site, cause in run.unreachable.items() if site in {*run.start_sites, *run.with_documents}}
        if missed:
            return [f"nothing could be fetched: {_listed(missed)}"]
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
    if progress.errors == progress.fetched:
        errors = sorted((code, count) for code, count in progress.by_status.items() if code not in _NOT_FETCHED)
        return [f"every page of the run failed: {', '.join(f'{count:,} × {code}' for code, count in errors[:SHOWN])}"]
    return []


_NOT_FETCHED = (int(Status.ROBOTS_FORBIDDEN), int(Status.EXCLUDED), int(Status.EXCLUDED_HERE))


def _listed(causes: Mapping[str, str]) -> str:
    """Return `a.example:80 (connection refused), b.example:80 (no answer in time) and 4 more`."""
    shown = ", ".join(f"{site} ({cause})" for site, cause in list(causes.items())[:SHOWN])
    return shown + (f" and {len(causes) - SHOWN:,} more" if len(causes) > SHOWN else "")
