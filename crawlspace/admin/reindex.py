"""Send the documents of a collection to its sinks again, from the archive and without the network.

A batch of URLs at a time: their documents are read, ordered, and sent before too many wait; the progress is stored, so that the next call
continues after a kill. A document that cannot be read is fetched by the next crawl, and stays in the index until then. Each sink has its own
progress.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

import msgspec

from crawlspace.config.sinks import EMBEDDED
from crawlspace.crawl.sinks.backfill import ArchivedDocuments
from crawlspace.crawl.sinks.deliveries import notes_of_backfill
from crawlspace.crawl.sinks.repair import notes_of_restored, unsent
from crawlspace.document import Document
from crawlspace.model import UrlState
from crawlspace.state.changes import Change
from crawlspace.state.due_times import at_once
from crawlspace.state.dump import ValueRecord
from crawlspace.state.store import Store
from crawlspace.state.views import KnownUrl
from crawlspace.text import counted

REINDEXING = "reindexing"
"""Meta, with a colon and the name of a sink if it is for one alone: the progress of a reindex; empty without one."""
BATCH = 200
MOST_WAITING = 3_000
"""Maximal orders waiting for the index, so that it gets many at once."""


class Reindexed(msgspec.Struct):
    """The progress of a reindex: up to the URL with the id `after`."""

    batch: int = 0
    """The last batch of orders in the index when it began, see `index/marks.py`."""
    after: int = 0
    sent: int = 0
    fetched: int = 0
    """Documents without a record, which the next crawl fetches and sends."""
    left: int = 0
    """Documents without a record that are not fetched, because their deletion is held."""
    code: str = ""
    """Hash of the code and settings that documents are rebuilt with."""
    removed: int = 0
    """Documents that are deleted, because their page has none any more."""
    withheld: int = 0
    """Such deletions that are held for approval."""
    kept: int = 0
    """Documents that could not be rebuilt, and are sent as stored."""

    @property
    def is_whole(self) -> bool:
        """Return whether nothing remains for the next crawl, or for a person."""
        return not (self.fetched or self.left or self.kept)

    def sentence(self, collection: str, *, to: str = "") -> str:
        """Return a sentence for a user; `to` names the sink if needed."""
        sentence = f"{collection}: {counted(self.sent, 'document was', 'documents were')} sent again{f' to {to}' if to else ''}"
        if self.removed:
            sentence += f"; {counted(self.removed, 'page has', 'pages have')} no document any more, and left the index"
        if self.withheld:
            sentence += (
                f"; {counted(self.withheld, 'document is', 'documents are')} held in the index, because to delete so much needs approval"
                f" (`scrapy deletions {collection}`)"
            )
        if self.kept:
            sentence += f"; {counted(self.kept, 'document', 'documents')} could not be rebuilt, and stayed as before"
        if self.fetched:
            sentence += f"; {counted(self.fetched, 'has', 'have')} no record in the archive: the next crawl fetches and sends"
            sentence += f" {'it' if self.fetched == 1 else 'them'} (`scrapy urls {collection} --not-archived`)"
        if self.left:
            sentence += f"; {counted(self.left, 'has', 'have')} no record and a held deletion, and is in the index as before"
        return sentence


@dataclass(frozen=True, slots=True)
class IndexState:
    """The last batch of orders that an index has (0: none), and its number of documents of the collection."""

    batch: int
    documents: int


UNKNOWN = IndexState(0, sys.maxsize)
"""The state of an index that does not report it."""


@dataclass(frozen=True, slots=True)
class Reindexing:
    """`deliver(most)` sends until at most `most` orders wait, and may continue to send until `settle` is called.

    `progress` takes the number of URLs done, and of all.
    """

    store: Store
    archive: ArchivedDocuments
    index: IndexState
    now: int
    deliver: Callable[[int], None]
    progress: Callable[[int, int], None]
    settle: Callable[[], None] = field(default=lambda: None, kw_only=True)
    sink: str | None = field(default=None, kw_only=True)
    """The sink that gets the documents; None: each."""

    def run(self) -> Reindexed:
        """Order and send all documents; continue an earlier call that was stopped, if the index is still the same."""
        done = self._begun()
        total, seen = sum(self.store.counts().by_state.values()), 0
        for page in self.pages(done.after):
            self.order(page, done)
            done.after = page[-1].id
            self.store.set_meta(self.meta, msgspec.json.encode(done).decode())
            seen += len(page)
            self.progress(seen, total)
            self.deliver(MOST_WAITING)
        self.deliver(0)
        self.store.set_meta(self.meta, "")
        return done

    @property
    def meta(self) -> str:
        return meta_of(self.sink)

    @property
    def code(self) -> str:
        """Hash of everything that the documents depend on besides the archive."""
        return ""

    def pages(self, after: int) -> Iterator[list[KnownUrl]]:
        """Yield all URLs after an id, a page at a time."""
        while page := self.store.scan(after, BATCH):
            yield page
            after = page[-1].id

    def order(self, page: Collection[KnownUrl], done: Reindexed) -> None:
        """Order the documents of a page to be sent."""
        self.send_stored([known for known in page if known.indexed], done)

    def send_stored(self, indexed: Collection[KnownUrl], done: Reindexed) -> set[int]:
        """Order stored documents to be sent; those without a record are fetched. Return the ids of these."""
        documents = {known.id: self._document(known) for known in indexed}
        unable = set(self.store.push_again(documents, sink=self.sink))
        never_due = {known.id for known in indexed if known.never_due}
        self.store.revise(unable - never_due, partial(to_be_fetched, now=self.now), now=self.now)
        done.sent += len(indexed) - len(unable)
        done.fetched += len(unable - never_due)
        done.left += len(unable & never_due)
        return unable

    def _begun(self) -> Reindexed:
        done = _read(self.store.get_meta(self.meta))
        if done is None or done.code != self.code:
            return Reindexed(self.index.batch, code=self.code)
        waiting = self.store.counts().outbox if self.sink is None else self.store.backlog(self.sink)
        is_same = self.index.batch >= done.batch and self.index.documents >= done.sent - waiting
        return done if is_same else Reindexed(self.index.batch, code=self.code)

    def _document(self, known: KnownUrl) -> Document | None:
        return None if known.archived is None else self.archive.document(known.archived, known.url)


def records_of_restored(sinks: Iterable[str]) -> list[ValueRecord]:
    """Return the records by which a store that was restored from a backup sends its documents to all sinks again."""
    notes = {meta_of(None): ""}
    for sink in sinks:
        notes[meta_of(sink)] = ""  # what was under way when the backup was made
        notes.update(notes_of_restored(sink) if sink == EMBEDDED else notes_of_backfill(sink))
    return [ValueRecord("meta", name, value) for name, value in notes.items()]


def meta_of(sink: str | None) -> str:
    """Return the meta name for the reindex of a sink, or of all."""
    return REINDEXING if sink is None else f"{REINDEXING}:{sink}"


def _read(text: str | None) -> Reindexed | None:
    try:
        if text:
            return msgspec.json.decode(text, type=Reindexed)
    except (msgspec.MsgspecError, RecursionError):
        pass
    return None


def to_be_fetched(state: UrlState, *, now: int) -> Change | None:
    """Make a document due to be fetched and sent; one in flight is sent by its outcome."""
    return None if state.lease_until is not None else unsent(state, now=at_once(now, state.fetched_at))
