"""Report sites that were unreachable in their last runs: since when, why, and the number of their documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from crawlspace.clock import iso, local_time
from crawlspace.model import Held
from crawlspace.state.duplicates import host_of
from crawlspace.state.store import SiteStore, UrlStore
from crawlspace.state.unreachable import UnreachableSite, cause_of
from crawlspace.text import counted


@dataclass(frozen=True, slots=True)
class SiteReport:
    """One unreachable site. `documents` counts those in the index; if `held`, they are deleted only by approval."""

    row: UnreachableSite
    documents: int
    held: bool

    @property
    def cause(self) -> str:
        return cause_of(self.row.status, self.row.detail)

    @property
    def since(self) -> str:
        """In the local time of this machine."""
        return local_time(self.row.since)

    @property
    def sentence(self) -> str:
        """`connection refused or lost (612) since 2026-11-20 14:00, in 5 runs: 1,169 documents are held`"""
        documents = "no document depends on it"
        if self.documents and self.held:
            documents = counted(self.documents, "document is held", "documents are held")
        elif self.documents:
            documents = counted(self.documents, "document depends on it", "documents depend on it")
        return f"{self.cause} ({self.row.status}) since {self.since}, in {counted(self.row.runs, 'run')}: {documents}"

    def as_json(self) -> dict[str, object]:
        return {
            "site": self.row.site,
            "status": self.row.status,
            "cause": self.cause,
            "since": iso(self.row.since),
            "runs": self.row.runs,
            "documents": self.documents,
            "held": self.held,
        }


def unreachable_sites(store: SiteStore, *, max_temporary_errors: int, only: str | None = None) -> list[SiteReport]:
    """Return the unreachable sites, those with the most documents first; `only` selects one."""
    rows = [row for row in store.unreachable() if only in (None, row.site)]
    documents = store.documents([row.site for row in rows])
    found = [SiteReport(row, documents[row.site], row.is_held(max_temporary_errors)) for row in rows]
    return sorted(found, key=lambda one: (-one.documents, one.row.site))


def held_sites(sites: Iterable[SiteReport]) -> dict[str, SiteReport]:
    """Return the sites whose documents are held, by name."""
    return {one.row.site: one for one in sites if one.held and one.documents}


def held_by_reason(store: UrlStore, sites: Sequence[SiteReport] = ()) -> Counter[Held]:
    """Return the number of documents in the index whose deletion is held, by reason."""
    found = Counter[Held]()
    for (reason, _), number in held_by_host(store, sites).items():
        found[reason] += number
    return found


def held_by_host(store: UrlStore, sites: Sequence[SiteReport] = ()) -> Mapping[tuple[Held, str], int]:
    """Return the same by reason and host (without port). All documents of a site that is held as a whole count for Held.HOST alone."""
    whole = held_sites(sites)
    found = Counter[tuple[Held, str]]()
    for (reason, site), number in store.held_numbers().items():
        if site not in whole:
            found[reason, host_of(site)] += number
    for name, one in whole.items():
        found[Held.HOST, host_of(name)] += one.documents
    return found
