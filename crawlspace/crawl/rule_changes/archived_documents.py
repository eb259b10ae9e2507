"""Push the documents of folded URLs under the URLs that they are folded into, from the archive, before those are fetched.

A start folds the URLs and leaves their documents in the index (`folded_documents.py`). A crawl goes through these, a few at a step, while it
fetches others: what the archive has becomes the document of the other URL, which is due at once, with an unconditional GET, all the same. In
that transaction the folded URLs are forgotten and their documents deleted, so the index follows the options at once, however long it takes to
fetch. What the archive does not have, or the rules of the other URL keep out of the index, waits for the fetch.

Several workers may do so at the same time: what one of them has moved is not pending for the others any more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from msgspec import structs

from crawlspace.model import Document, State, UrlState
from crawlspace.plural import counted
from crawlspace.state.changes import Change, Effects
from crawlspace.state.lifecycle import status_of_document
from crawlspace.state.once_a_run import at_once
from crawlspace.urls import Url

if TYPE_CHECKING:
    from crawlspace.crawl.engine import Engine

logger = logging.getLogger(__name__)

DOCUMENTS_AT_ONCE = 8
"""They are read and pushed between two turns of the crawl, about a millisecond each."""
_LONGEST_STEP_S = 0.02
"""Or fewer, where they are large."""


class MovedStore(Protocol):
    def get(self, url: str) -> UrlState | None: ...
    def revise(self, ids: Iterable[int], change: Callable[[UrlState], Change | None], *, now: int) -> Effects: ...


class DocumentMoving:
    """The documents of one collection that wait for other URLs. Raises StoreError."""

    def __init__(
        self, engine: Engine, read: Callable[[UrlState], Document | None], checksum: Callable[[Document, str], bytes | None]
    ) -> None:
        """`read` returns the document that the archive has of a URL. `checksum` returns that of a document under another URL; None where only
        a fetch can tell."""
        self._engine = engine
        self._store: MovedStore = engine.store
        self._read = read
        self._checksum = checksum
        self._seen = 0
        self._leased: list[Url] = []
        """URLs that were leased when it was their turn: mostly `before_fetch` moves what waits for them."""
        self.moved = 0
        """How many have been moved."""
        self._told = 0
        engine.folded.are_moved, engine.folded.moved = bool(engine.folded), self.before_fetch
        engine.folded.finish = self.finish
        engine.commits.places_move()

    def step(self) -> bool:
        """Move some documents, unless too many wait to be sent. Return False when there are no more."""
        folded = self._engine.folded
        if self._engine.deliveries.hold_up:
            return folded.are_moved
        waiting = folded.ahead(self._seen, DOCUMENTS_AT_ONCE) if folded.are_moved else []
        if not waiting:
            folded.are_moved = False
            self.tell()
            return False
        began = self._engine.clock.monotonic()
        for into in waiting:
            if into is not None:
                self._move(into)
            self._seen += 1
            if self._engine.clock.monotonic() - began > _LONGEST_STEP_S:
                break
        return True

    def again(self) -> bool:
        """Look once more at what was leased when it was its turn; return whether some of it still is."""
        leased, self._leased = self._leased, []
        for into in leased:
            self._move(into)
        self.tell()
        return bool(self._leased)

    def finish(self) -> None:
        """At the end of a crawl, move what waits for URLs that were leased and are not being fetched, as where a site has failed."""
        leased, self._leased = self._leased, []
        for into in leased:
            self._move(into, is_last=True)
        self.tell()

    def before_fetch(self, other: UrlState) -> Sequence[Change]:
        """Return the changes that move a document to a leased URL; nothing if none waits for it, or it cannot be moved."""
        change, waiting = self._moving_to(other) if _lacks_a_document(other) else (None, ())
        if change is None:
            return ()
        self.moved += 1
        return (change, *(Change(state, forget=True, together_with=other.id) for state in waiting))

    def _move(self, into: Url, *, is_last: bool = False) -> None:
        """Push a document under a URL for which some wait, unless that is leased; where it `is_last`, unless it is being fetched."""
        other = self._store.get(into.text)
        if other is None or not _lacks_a_document(other):
            return
        if self._engine.is_awaited(other.id) or (other.lease_until is not None and not is_last):
            self._leased.append(into)
            return
        change, waiting = self._moving_to(other)
        if change is not None:
            self._write(other, change, waiting, is_last=is_last)

    def _moving_to(self, other: UrlState) -> tuple[Change | None, Sequence[UrlState]]:
        """Return what gives a URL the document of a folded one, and all folded ones that wait for it; None where that cannot be."""
        waiting = self._engine.folded.of(other)
        if waiting:
            decision = self._engine.discovery.recheck(other)
            if decision.admitted and decision.actions.index:
                changes = (self._change(other, state) for state in sorted(waiting, key=_place))
                return next(filter(None, changes), None), waiting
        return None, waiting

    def _change(self, other: UrlState, state: UrlState) -> Change | None:
        if "#" in state.url and "#" not in other.url:  # a route that is not followed any more: its page shows something else
            return None
        document = self._read(state) if state.indexed else None
        checksum = None if document is None else self._checksum(document, other.url)
        if document is None or checksum is None:
            return None
        after = structs.replace(
            other,
            state=State.DONE,
            status=status_of_document(state),
            fetched_at=state.fetched_at,
            next_fetch=at_once(self._now(), state.fetched_at),
            lease_until=None,
            interval_s=state.interval_s,
            retries=0,
            errors=0,
            held=None,
            held_mark=0,
            checksum=checksum,
            fields_mark=state.fields_mark,
            rules=0,
        )
        return Change(after, document=replace(document, url=other.url), archived=state.archived)

    def _write(self, other: UrlState, change: Change, waiting: Iterable[UrlState], *, is_last: bool) -> None:
        ids, now = [state.id for state in waiting], self._now()
        left: set[int] = set()
        is_as_seen = False

        def if_as_seen(state: UrlState) -> Change | None:
            """Return the change of the other URL, which comes first, and those of the folded ones; None where that was changed meanwhile."""
            nonlocal is_as_seen
            if state.id == other.id:
                is_as_seen = state == other
                left.clear()
                left.update(ids if is_as_seen else ())
                return change if is_as_seen else None
            if state.id not in left:
                return None
            left.remove(state.id)
            return Change(state, forget=True)

        effects = self._store.revise([other.id, *ids], if_as_seen, now=now)
        self._engine.inserted([], effects)
        self._engine.deliveries.ordered(effects.pushes + effects.deletes)
        if is_as_seen:
            self.moved += 1
            if not is_last:  # else the next start fetches it
                self._engine.frontier.due(other.site, change.state.queue, now, retry=True)

    def _now(self) -> int:
        return int(self._engine.clock.now())

    def tell(self) -> None:
        """Log how many have been moved since the last call."""
        new, self._told = self.moved - self._told, self.moved
        if new:
            logger.info(
                "the URL options have folded known URLs: %s pushed under the new URLs, as archived, until these are fetched",
                counted(new, "document is", "documents are"),
            )


def _lacks_a_document(other: UrlState) -> bool:
    """Return whether a URL has none and may have one: no answer of its page says that there is none."""
    return other.state in (State.PENDING, State.FAILED) and other.checksum is None


def _place(state: UrlState) -> tuple[int, int]:
    return state.rank, state.id
