"""Send a sink all documents if it lacks some: because it is new, a person requested it, or waiting orders were dropped.

They come from the archive, a few at a time between other work, at the pace of the sink; the progress is stored. A document that is not
archived is fetched with an unconditional GET, and sent then.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from crawlspace.clock import Clock
from crawlspace.crawl.sinks.deliveries import backfill_progress, backfilled_up_to, note_backfilled, request_backfill
from crawlspace.crawl.sinks.repair import unsent
from crawlspace.document import Document
from crawlspace.index.login_exclusion import LoginExclusion, is_marked, stand_in
from crawlspace.model import UrlState
from crawlspace.state.changes import Change
from crawlspace.state.due_times import at_once
from crawlspace.state.store import Store
from crawlspace.state.views import KnownUrl
from crawlspace.text import counted

logger = logging.getLogger(__name__)

URLS_AT_ONCE = 100
MOST_WAITING = 1_000
"""Orders that may wait for a sink while it is filled."""


class ArchivedDocuments(Protocol):
    """An archive."""

    def document(self, place: int, url: str) -> Document | None: ...


class Backfill:
    """The backfill of one sink. Raises StoreError."""

    def __init__(
        self,
        store: Store,
        sink: str,
        clock: Clock,
        archive: ArchivedDocuments,
        due: Callable[[UrlState], None],
        *,
        exclusion: LoginExclusion | None = None,
    ) -> None:
        """`due` is called with each URL that must be fetched for it; `exclusion`: documents that the sink leaves out."""
        self._store = store
        self._sink = sink
        self._clock = clock
        self._archive = archive
        self._due = due
        self._exclusion = exclusion
        self._ordered = self._fetched = self._lost = self._left_out = 0
        self._noted = ""
        """The progress that this object has stored."""
        self._reached = 0
        """The id up to which all documents but the awaited ones were ordered."""
        self._awaited: set[int] = set()
        """Ids of URLs that must be fetched for it, and that were in flight when they were reached."""
        self._ordered_and_awaited: set[int] = set()
        """Ids of those whose stored documents were ordered anyway."""

    def step(self) -> bool:
        """Order the next documents; return whether there may be more for which there is room."""
        noted = backfill_progress(self._store, self._sink)
        if not noted or self._store.backlog(self._sink) >= MOST_WAITING:
            return False
        if noted != self._noted:  # of another crawl, or all are requested again
            self._noted, self._reached = noted, backfilled_up_to(self._store, self._sink)
            self._awaited.clear()
        awaited = len(self._awaited)
        page = self._store.scan(self._reached, URLS_AT_ONCE)
        if page:
            self._reached = page[-1].id
            self._order(page)
        else:
            first = sorted(self._awaited)[:URLS_AT_ONCE]
            self._awaited.difference_update(first)
            self._order([known for id in first for known in self._store.scan(id - 1, 1) if known.id == id])
        if backfill_progress(self._store, self._sink) != noted:
            return True  # meanwhile a command has requested all again
        if not page and not self._awaited:
            self._end()
            return False
        after = min(self._reached, *(id - 1 for id in self._awaited)) if self._awaited else self._reached
        self._noted = request_backfill(self._store, self._sink, after=after, reached=self._reached)
        return bool(page) or len(self._awaited) < awaited

    def _order(self, page: Sequence[KnownUrl]) -> None:
        """Order the documents of these URLs, or make the URLs due."""
        indexed = [known for known in page if known.indexed]
        documents = {known.id: self._document(known) for known in indexed}
        again = self._ordered_and_awaited & documents.keys()
        unable = again | set(self._store.push_again({id: documents[id] for id in documents.keys() - again}, sink=self._sink))
        left_out: set[int] = set()
        stale: set[int] = set()
        if self._exclusion is not None:
            behind = self._exclusion.requires_login
            left_out = {known.id for known in indexed if self._exclusion.has(known.url, documents[known.id])}
            # Archived before a log-in was added or removed: the next fetch may return another page.
            stale = {known.id for known in indexed if is_marked(documents[known.id]) != behind(known.url)}
            unable |= stale
            left_out -= again
        wanted: dict[int, UrlState] = {}
        leased: set[int] = set()
        lost: set[int] = set()

        def change(state: UrlState) -> Change | None:
            """Return the change of a URL in its present state; called again if it was changed meanwhile."""
            wanted.pop(state.id, None)
            leased.discard(state.id)
            lost.discard(state.id)
            if state.lease_until is not None:  # its next outcome would replace the change
                leased.add(state.id)
                return None
            made = unsent(state, now=at_once(now, state.fetched_at))
            if made is None:
                lost.add(state.id)
            else:
                wanted[state.id] = made.state
            return made

        now = int(self._clock.now())
        self._store.revise(unable, change, now=now)
        for state in wanted.values():
            self._due(state)
        self._ordered += len(indexed) - len(unable | left_out)
        self._left_out += len(left_out)
        self._fetched += len(wanted)
        self._lost += len(lost)
        self._awaited |= leased
        self._ordered_and_awaited |= leased & stale

    def _document(self, known: KnownUrl) -> Document | None:
        document = None if known.archived is None else self._archive.document(known.archived, known.url)
        if document is None and self._exclusion is not None and self._exclusion.has(known.url):
            return stand_in(known.url)
        return document

    def _end(self) -> None:
        note_backfilled(self._store, self._sink)
        logger.info(
            "the sink %s gets all documents%s: %s from the archive%s",
            self._sink,
            f" but {self._left_out:,} of pages behind a log-in" if self._left_out else "",
            counted(self._ordered, "was sent", "were sent"),
            f", {counted(self._fetched, 'is', 'are')} fetched and sent, because it does not have them" if self._fetched else "",
        )
        if self._lost:
            logger.warning(
                "the sink %s lacks %s that the archive does not have and that no fetch will replace, such as those excluded by the rules whose"
                " deletion is held",
                self._sink,
                counted(self._lost, "document"),
            )
