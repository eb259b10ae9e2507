"""Rebuild the documents of a collection from the archive and send them, after changes of code, rules or file formats.

Like a reindex, it processes a page of URLs at a time, while documents of the next pages are being rebuilt. A rebuilt document is recorded
like the outcome of a fetch, except for data that only a fetch provides: times, errors and validators of the URL, its links, and the health
of its site.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from crawlspace.admin.reindex import Reindexed, Reindexing, to_be_fetched
from crawlspace.archive.writer import NewDocuments
from crawlspace.crawl.conditional import mark_after
from crawlspace.crawl.outcomes import OutcomePolicy
from crawlspace.crawl.replay import RebuiltDocument
from crawlspace.model import State, UrlState
from crawlspace.state.changes import Change
from crawlspace.state.recrawl import RecrawlPolicy
from crawlspace.state.store import Store
from crawlspace.state.views import KnownUrl
from crawlspace.status import LINKS_ONLY

EXTRACTING = "extracting"
"""Meta: as REINDEXING, of documents that are rebuilt."""

URLS_AT_ONCE = 250
AHEAD = 3
"""Pages that are being rebuilt ahead, so that processes need not wait while others are recorded and sent."""

SOON_S = 1.0
"""Longest time for which a batch waits to be acknowledged: it blocks other senders."""


class PendingRebuild(Protocol):
    """Documents that are being rebuilt."""

    def is_complete(self, *, within_s: float) -> bool:
        """Wait for them up to `within_s`; return whether they are complete."""

    def made(self) -> Mapping[int, RebuiltDocument]:
        """Wait for them, and return them by id. Raises CrawlspaceError."""


@dataclass(frozen=True, slots=True)
class DocumentRebuilder:
    """Rebuilding and storing of documents: `begin` starts rebuilding those of pages; `hash` changes with the code and settings."""

    begin: Callable[[Sequence[UrlState]], PendingRebuild]
    hash: str
    kept_in: NewDocuments
    outcomes: OutcomePolicy
    policy: RecrawlPolicy
    report: Callable[[str, str], None]
    """Called with the URL of a page whose document was not rebuilt, and the reason."""


@dataclass(frozen=True, slots=True)
class _PendingPage:
    states: Mapping[int, UrlState]
    """The URLs whose documents are being rebuilt, by id."""
    documents: PendingRebuild


@dataclass(frozen=True, slots=True)
class Extraction(Reindexing):
    """A reindex of documents that are rebuilt."""

    store: Store
    making: DocumentRebuilder
    _next: deque[_PendingPage] = field(default_factory=deque)
    """The next pages, being rebuilt."""

    @property
    def meta(self) -> str:
        return EXTRACTING

    @property
    def code(self) -> str:
        return self.making.hash

    def pages(self, after: int) -> Iterator[list[KnownUrl]]:
        """Yield all URLs after an id, while documents of the next ones are being rebuilt."""
        begun: deque[list[KnownUrl]] = deque()
        while True:
            while len(begun) < AHEAD and (page := self.store.scan(after, URLS_AT_ONCE)):
                self._begin(page)
                begun.append(page)
                after = page[-1].id
            if not begun:
                return
            yield begun.popleft()

    def order(self, page: Collection[KnownUrl], done: Reindexed) -> None:
        """Record the rebuilt documents of a page; those that could not be rebuilt are sent as stored."""
        begun = self._next.popleft()
        if not begun.documents.is_complete(within_s=SOON_S):
            self.settle()  # this may take minutes
        rebuilt = begun.documents.made()
        for id, one in rebuilt.items():
            if one.kept:
                self.making.report(begun.states[id].url, one.kept)
        changes = self._changes(begun.states, {id: one for id, one in rebuilt.items() if not one.kept and not one.is_missing})
        self.making.outcomes.take_changed()
        effects = self.store.revise(changes, lambda state: self._unless_changed(state, changes), now=self.now)
        self.making.outcomes.recorded(effects.displaced)
        done.sent += effects.pushes
        self._count(changes, done)
        self._send_others([known for known in page if known.indexed and known.id not in changes], rebuilt, done)

    def _begin(self, page: Sequence[KnownUrl]) -> None:
        wanted = [known.id for known in page if _can_be_made(known)]
        states = {state.id: state for state in self.store.get_by_ids(wanted)}
        self._next.append(_PendingPage(states, self.making.begin(list(states.values()))))

    def _changes(
        self, before: Mapping[int, UrlState], rebuilt: Mapping[int, RebuiltDocument]
    ) -> dict[int, tuple[UrlState, Change]]:
        """Return the changes by id, each with the state before."""
        changes = {}
        for state in self.store.get_by_ids(list(rebuilt)):
            if state.archived == before[state.id].archived and state.lease_until is None:
                changes[state.id] = state, self._change(state, rebuilt[state.id])
        return changes

    def _change(self, state: UrlState, rebuilt: RebuiltDocument) -> Change:
        outcome = rebuilt.outcome_of(state)
        making = self.making
        after = making.outcomes.rebuild(state, outcome, policy=making.policy, canonical=rebuilt.canonical).state
        after.fields_mark, _ = mark_after(outcome, after, before=state.fields_mark)
        change = Change(after, document=outcome.document if after.checksum is not None else None)
        if change.document is not None and rebuilt.record and rebuilt.response is not None:
            change.archived = making.kept_in.add(rebuilt.record, rebuilt.response, state.url)
        return change

    def _unless_changed(self, state: UrlState, changes: Mapping[int, tuple[UrlState, Change]]) -> Change | None:
        """Return the change of a URL; None if a crawl has changed it."""
        seen, change = changes[state.id]
        return change if state == seen else None

    def _count(self, changes: Mapping[int, tuple[UrlState, Change]], done: Reindexed) -> None:
        for before, change in changes.values():
            if before.indexed and change.document is None:
                if change.state.checksum is None:
                    done.removed += 1
                else:
                    done.withheld += 1

    def _send_others(self, indexed: Sequence[KnownUrl], rebuilt: Mapping[int, RebuiltDocument], done: Reindexed) -> None:
        """Send stored documents: those that are held, or could not be rebuilt. Those without a response are fetched by the next crawl."""
        unable = self.send_stored(indexed, done)
        done.kept += sum(known.id in rebuilt and bool(rebuilt[known.id].kept) for known in indexed)
        without_response = [
            known.id for known in indexed if known.id in rebuilt and rebuilt[known.id].is_missing and known.id not in unable
        ]
        done.fetched += len(without_response)
        done.sent -= len(without_response)
        self.store.revise(without_response, partial(to_be_fetched, now=self.now), now=self.now)


def _can_be_made(known: KnownUrl) -> bool:
    """Return whether the document of an archived page is rebuilt: it has one, or was excluded by code, rules or directives.

    A held deletion stays until the next fetch, like a document that a person has kept although its page has none any more.
    """
    if known.archived is None or known.held is not None or known.never_due:
        return False
    if known.has_document:
        return known.state in (State.DONE, State.FAILED)
    return known.state == State.EXCLUDED and known.status in LINKS_ONLY
