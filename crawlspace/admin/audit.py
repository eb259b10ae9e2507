"""Compare the documents in a sink with the stored state of a collection, one by one.

Two passes, each a page at a time: every document that belongs in the index is looked up there, and every document that the index has of the
collection is looked up in the store. A crawl may run meanwhile. So apparent differences are rechecked, store
first, then index, then store: a document differs if the store has returned the same both times, and no order for it waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial

from crawlspace.admin.reindex import to_be_fetched
from crawlspace.crawl.sinks.backfill import ArchivedDocuments
from crawlspace.document import Document
from crawlspace.index.login_exclusion import LoginExclusion, is_marked, stand_in
from crawlspace.index.sink import Entry, Inventory
from crawlspace.index.versions import Versions
from crawlspace.model import UrlState
from crawlspace.state.store import Store
from crawlspace.state.views import KnownUrl

PAGE = 500


class DifferenceKind(StrEnum):
    MISSING = "missing"
    EXTRA = "extra"
    OUTDATED = "outdated"


@dataclass(frozen=True, slots=True)
class Difference:
    """A document that differs between index and store."""

    kind: DifferenceKind
    url: str
    id: int = 0
    """Id of its URL in the store; 0 for one without a document there."""
    archived: int | None = None
    """As in UrlState, like `ordered`."""
    ordered: int = 0


@dataclass(slots=True)
class Tallies:
    """Numbers of compared documents."""

    documents: int = 0
    """Documents that belong in the index, by the store."""
    waiting: int = 0
    """Of them, those that differ because their orders wait."""
    refused: int = 0
    """Of them, those that the index refuses."""
    of_others: int = 0
    """Of them, those that the index has from another collection, which pushed the same URL later."""
    left_out: int = 0
    """Other documents, which the sink does not get because they are behind a log-in."""


@dataclass(slots=True)
class Audit:
    """The audit of one sink. Raises IndexUnavailable, StoreError."""

    store: Store
    sink: str
    index: Inventory
    versions: Versions
    owner: str
    """The collection."""
    progress: Callable[[int, int], None] = lambda _done, _all: None
    """Takes the number of URLs compared, and of all."""
    tallies: Tallies = field(default_factory=Tallies)
    exclusion: LoginExclusion | None = None
    """The documents that the sink must not have: they are extra if it has them."""
    archive: ArchivedDocuments | None = None
    """Where the reason for a missing document is looked up, if the sink leaves documents out."""

    def differences(self) -> Iterator[list[Difference]]:
        """Yield differences in batches; later batches take account of repairs made before."""
        yield from self._of_store()
        yield from self._of_index()

    def _of_store(self) -> Iterator[list[Difference]]:
        total = sum(self.store.counts().by_state.values())
        after = seen = 0
        while page := self.store.scan(after, PAGE):
            after = page[-1].id
            seen += len(page)
            indexed = {known.url: known for known in page if known.indexed}
            found = self.index.look_up(list(indexed)) if indexed else {}
            self.tallies.left_out += sum(map(self._is_excluded, indexed))
            self.tallies.documents += sum(not self._is_excluded(url) for url in indexed)
            self.tallies.of_others += sum(entry.owner not in ("", self.owner) for entry in found.values())
            differ = [known for url, known in indexed.items() if self._judge(url, found.get(url), known.ordered) is not None]
            if differ:
                yield self._confirmed(differ)
            self.progress(seen, total)

    def _is_excluded(self, url: str) -> bool:
        return self.exclusion is not None and self.exclusion.has(url)

    def _judge(self, url: str, entry: Entry | None, ordered: int) -> DifferenceKind | None:
        is_own = entry is not None and entry.owner in ("", self.owner)
        if self._is_excluded(url):
            return DifferenceKind.EXTRA if is_own else None
        if entry is None:
            return DifferenceKind.MISSING
        return DifferenceKind.OUTDATED if is_own and entry.version and entry.version < self.versions.least(ordered) else None

    def _confirmed(self, differ: Sequence[KnownUrl]) -> list[Difference]:
        before = self._states(known.url for known in differ)
        orders = self.store.ordered(self.sink, list(before))
        found = self.index.look_up(list(before))
        after = self._states(before)
        confirmed = []
        for url, state in before.items():
            if url in orders:
                self.tallies.refused += orders[url]
                self.tallies.waiting += not orders[url]
            elif url in after and after[url].ordered == state.ordered:
                kind = self._judge(url, found.get(url), state.ordered)
                if kind is DifferenceKind.MISSING and self._was_excluded(state):
                    self.tallies.left_out += 1
                    self.tallies.documents -= 1
                elif kind is not None:
                    confirmed.append(Difference(kind, url, state.id, state.archived, state.ordered))
        return confirmed

    def _was_excluded(self, state: UrlState) -> bool:
        """Return whether a document is left out because it was fetched with a log-in that has been removed."""
        if self.exclusion is None or self.archive is None or state.archived is None:
            return False
        return is_marked(self.archive.document(state.archived, state.url))

    def _states(self, urls: Iterable[str]) -> dict[str, UrlState]:
        """Return the states of those that are in the index."""
        states = map(self.store.get, urls)
        return {state.url: state for state in states if state is not None and state.indexed}

    def _of_index(self) -> Iterator[list[Difference]]:
        for page in self.index.entries(owner=self.owner):
            urls = [entry.url for entry in page]
            extra = sorted(set(urls) - self.store.in_index(urls))
            if extra:
                orders = self.store.ordered(self.sink, extra)
                found = self.index.look_up(extra)
                there = {url for url in extra if url in found and found[url].owner in ("", self.owner)}
                there -= orders.keys() | self.store.in_index(extra)
                yield [Difference(DifferenceKind.EXTRA, url) for url in sorted(there)]


@dataclass(slots=True)
class Repair:
    """Gives the orders that make a sink equal to the store. A document that is not archived is fetched by the next crawl. Raises StoreError."""

    store: Store
    archive: ArchivedDocuments
    sink: str
    now: int
    ordered: int = 0
    fetched: int = 0
    """Documents without a record, which the next crawl fetches and sends."""

    def order(self, differences: Sequence[Difference]) -> None:
        extra = [one.url for one in differences if one.kind is DifferenceKind.EXTRA and not one.id]
        if extra:
            self.store.delete_again(self.sink, extra)
        documents = {one.id: self._document(one) for one in differences if one.id}
        unable = self.store.push_again(documents, sink=self.sink) if documents else []
        if unable:
            self.store.revise(unable, partial(to_be_fetched, now=self.now), now=self.now)
        self.ordered += len(differences) - len(unable)
        self.fetched += len(unable)

    def _document(self, one: Difference) -> Document | None:
        if one.kind is DifferenceKind.EXTRA:  # left out of this sink: the push becomes a deletion
            return stand_in(one.url)
        return None if one.archived is None else self.archive.document(one.archived, one.url)
