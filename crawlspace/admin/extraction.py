"""Rebuild the documents of a collection from the archive and send them: after its code, rules or readers of files have changed.

As a reindex, a page of URLs at a time, with what is made of the next page begun meanwhile. What is made is recorded as the outcome of a
fetch is, without what only a fetch shows: times, errors and validators of the URL, its links, and the condition of its site.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from crawlspace.admin.reindex import Reindexed, Reindexing
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
"""So many times as many are begun, so that whoever makes documents need not wait while others are recorded and sent."""

SOON_S = 1.0
"""Longer than that no batch waits to be acknowledged: it keeps others from sending."""


class Begun(Protocol):
    """Documents that are being made."""

    def is_made(self, *, within_s: float) -> bool:
        """Wait for them, but no longer than that; return whether they are made."""

    def made(self) -> Mapping[int, RebuiltDocument]:
        """Wait for them, and return them by id. Raises CrawlspaceError."""


@dataclass(frozen=True, slots=True)
class Making:
    """How documents are made and kept: `begin` has those of pages be made, and `hash` changes with the code and settings for that."""

    begin: Callable[[Sequence[UrlState]], Begun]
    hash: str
    kept_in: NewDocuments
    outcomes: OutcomePolicy
    policy: RecrawlPolicy
    report: Callable[[str, str], None]
    """Takes the URL of a page of which no document was made, and why."""


@dataclass(frozen=True, slots=True)
class _BegunPage:
    states: Mapping[int, UrlState]
    """The URLs of which documents are made, by id."""
    documents: Begun


@dataclass(frozen=True, slots=True)
class Extraction(Reindexing):
    """A reindex of documents that are rebuilt."""

    store: Store
    making: Making
    _next: deque[_BegunPage] = field(default_factory=deque)
    """What was begun of the pages that come."""

    @property
    def meta(self) -> str:
        return EXTRACTING

    @property
    def code(self) -> str:
        return self.making.hash

    def pages(self, after: int) -> Iterator[list[KnownUrl]]:
        """Yield all URLs from the one after that id on, while documents of those that follow are made."""
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
        """Record what was made of a page; documents of which nothing could be made are sent as they are stored."""
        begun = self._next.popleft()
        if not begun.documents.is_made(within_s=SOON_S):
            self.settle()  # that may take minutes
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
        self._next.append(_BegunPage(states, self.making.begin(list(states.values()))))

    def _changes(
        self, asked: Mapping[int, UrlState], rebuilt: Mapping[int, RebuiltDocument]
    ) -> dict[int, tuple[UrlState, Change]]:
        """Return the changes by id, each with the state that it was made for."""
        changes = {}
        for state in self.store.get_by_ids(list(rebuilt)):
            if state.archived == asked[state.id].archived and state.lease_until is None:
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
        """Return the change of a URL; None where a crawl has it meanwhile."""
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
        """Send stored documents: those that are held, or of which nothing was made. Those without a response are fetched by the next crawl."""
        unable = self.send_stored(indexed, done)
        done.kept += sum(known.id in rebuilt and bool(rebuilt[known.id].kept) for known in indexed)
        without_response = [
            known.id for known in indexed if known.id in rebuilt and rebuilt[known.id].is_missing and known.id not in unable
        ]
        done.fetched += len(without_response)
        done.sent -= len(without_response)
        self.store.revise(without_response, self.to_be_fetched, now=self.now)


def _can_be_made(known: KnownUrl) -> bool:
    """Return whether a document is made of an archived page: it has one, or was kept out by code, rules or directives.

    A held deletion stays, and so does a document that a person has kept although its page has none any more: until the next fetch.
    """
    if known.archived is None or known.held is not None or known.never_due:
        return False
    if known.has_document:
        return known.state in (State.DONE, State.FAILED)
    return known.state == State.EXCLUDED and known.status in LINKS_ONLY
