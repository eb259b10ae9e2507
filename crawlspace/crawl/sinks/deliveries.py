"""The sinks of a crawl: the orders sent to each, those that wait, and when the crawl waits for a sink.

A sink gets a whole document, or a reference to it in the archive instead of a large text.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from crawlspace.archive.files import file_and_offset
from crawlspace.clock import Clock
from crawlspace.config.content import ALL_WHOLE, ReferenceSettings
from crawlspace.config.sinks import EMBEDDED, SinkSettings
from crawlspace.document import IndexOrder, packed_text
from crawlspace.index.orders import by_reference
from crawlspace.index.outbox import Delivery, Drain, Drained
from crawlspace.index.sink import Sink
from crawlspace.state.metadata import get_table
from crawlspace.state.store import ArchiveStore, MetaStore, Store
from crawlspace.text import counted

logger = logging.getLogger(__name__)

SINKS = "sinks"
"""Meta: the sinks that get orders, with their types, including those that are no longer in the settings."""
_BACKFILL = "filling:"
"""Meta, with the name of a sink: the id up to which missing documents were ordered; empty if it lacks none.

Another id may follow: that of the last URL whose document was ordered, if earlier ones are awaited."""
_TAKEN_OVER = -1
"""Value of that id while a command sends all documents, and no crawl has started to."""


class Deliveries:
    """Sends orders to the sinks. An unavailable sink delays no other. Raises StoreError."""

    def __init__(
        self, store: Store, sinks: Sequence[Sink], clock: Clock, *, most: int, settings: SinkSettings | None = None
    ) -> None:
        """`most`: maximal orders waiting for a sink; without `settings`, each sink gets whole documents."""
        self._store = store
        self._most = most
        references = ALL_WHOLE if settings is None else settings.references
        self.drains = [
            Drain(
                store,
                sink,
                clock,
                references=references_of(store, sink.name, references),
                exclusion=None if settings is None else settings.exclusion_of(sink.name),
            )
            for sink in sinks
        ]
        self._waiting = {drain.sink: drain.backlog() for drain in self.drains}

    @property
    def max_backlog(self) -> int:
        """Return the largest number of orders that wait for a sink."""
        return max(self._waiting.values(), default=0)

    def waiting(self, sink: str) -> int:
        """Return the number of orders that wait for a sink."""
        return self._waiting[sink]

    def ordered(self, number: int) -> None:
        """Count orders that were given to each sink."""
        for sink in self._waiting:
            self._waiting[sink] += number
        self._drop_excess_of_all()

    def recount(self, known: Mapping[str, int] | None = None) -> None:
        """Recount the waiting orders, from `known` if given."""
        for drain in self.drains:
            self._waiting[drain.sink] = drain.backlog() if known is None else known.get(drain.sink, 0)

    @property
    def blocks_crawl(self) -> bool:
        """Whether the crawl waits, because too many orders wait for a sink: one that answers, or the embedded index."""
        return any(
            self._waiting[drain.sink] >= self._most and (drain.sink == EMBEDDED or not drain.is_unavailable)
            for drain in self.drains
        )

    def settle(self, drain: Drain, delivery: Delivery) -> Drained:
        """Record what a sink has committed."""
        drained = drain.settle(delivery)
        self._waiting[drain.sink] = drain.backlog()
        self._drop_excess_of_all()
        return drained

    def drop_excess(self, drain: Drain) -> None:
        """Drop the pushes for a server that does not answer, if too many orders wait for it."""
        sink = drain.sink
        if sink == EMBEDDED or not drain.is_unavailable or self._waiting[sink] < self._most:
            return
        self._waiting[sink] = drain.backlog()  # other workers may have reported orders that were sent since
        if self._waiting[sink] >= self._most:
            self._drop_pushes(sink)

    def _drop_excess_of_all(self) -> None:
        for drain in self.drains:
            self.drop_excess(drain)

    def _drop_pushes(self, sink: str) -> None:
        lacks_some = lacks_documents(self._store, sink)
        request_backfill(self._store, sink)  # first: a kill may follow
        self._store.withdraw(sink, deletes=False)
        self._waiting[sink] = self._store.backlog(sink)
        if not lacks_some:
            logger.warning(
                "the sink %s has not answered for so long that %s wait for it: the pushes among them are dropped, and once it answers again"
                " all documents are sent to it; deletions are kept",
                sink,
                counted(self._most, "order"),
            )


def known_sinks(store: MetaStore) -> dict[str, str]:
    """Return the sinks that get orders, with their types. Raises StoreDamaged."""
    return {name: str(kind) for name, kind in (get_table(store, SINKS) or {}).items()}


def note_sinks(store: MetaStore, sinks: Mapping[str, str]) -> None:
    """Set the sinks that get orders: names and types."""
    written = json.dumps(dict(sinks), sort_keys=True)
    if store.get_meta(SINKS) != written:
        store.set_meta(SINKS, written)


def lacks_documents(store: MetaStore, sink: str) -> bool:
    """Return whether a sink lacks documents that must be sent to it."""
    return bool(store.get_meta(_BACKFILL + sink))


def notes_of_backfill(sink: str) -> dict[str, str]:
    """Return the metadata by which a sink is sent all documents."""
    return {_BACKFILL + sink: "0"}


def request_backfill(store: MetaStore, sink: str, *, after: int = 0, reached: int | None = None) -> str:
    """Request that a sink is sent all documents of URLs with ids above `after`; return the stored note.

    `reached` is the id up to which all documents but the awaited ones were sent.
    """
    noted = str(after) if reached is None else f"{after} {reached}"
    store.set_meta(_BACKFILL + sink, noted)
    return noted


def note_backfilled(store: MetaStore, sink: str) -> None:
    """Note that a sink lacks no documents any more."""
    store.set_meta(_BACKFILL + sink, "")


def backfill_progress(store: MetaStore, sink: str) -> str:
    """Return the progress of a sink's backfill, as noted by `request_backfill`; empty if it lacks none."""
    return store.get_meta(_BACKFILL + sink) or ""


def backfilled_up_to(store: MetaStore, sink: str) -> int:
    """Return the id up to which a sink was sent its documents."""
    after, _, _ = backfill_progress(store, sink).partition(" ")
    return max(0, int(after or 0))


def take_over_backfill(store: MetaStore, sink: str) -> None:
    """Note that a command sends a sink all missing documents. A crawl that still finds some missing sends them again."""
    if lacks_documents(store, sink):
        request_backfill(store, sink, after=_TAKEN_OVER)


def end_backfill(store: MetaStore, sink: str) -> None:
    """Note that the command has finished: the sink lacks no documents, unless a crawl has found some missing since."""
    if store.get_meta(_BACKFILL + sink) == str(_TAKEN_OVER):
        note_backfilled(store, sink)


class ArchiveReferences:
    """The documents of a collection in its archive. Raises StoreError."""

    def __init__(self, store: ArchiveStore, settings: ReferenceSettings) -> None:
        self._store = store
        self._settings = settings
        self._files: dict[int, str] = {}

    def of(self, orders: Sequence[IndexOrder]) -> tuple[IndexOrder, ...]:
        """Return the orders with the archived location of their documents, and without the text of documents that are too large."""
        return tuple(map(self._of, orders))

    def _of(self, order: IndexOrder) -> IndexOrder:
        if order.document is None or order.archived is None:
            return order
        number, offset = file_and_offset(order.archived)
        if number not in self._files:
            self._files = self._store.archive_files()
        name = self._files.get(number)
        if name is None:
            return order
        known = replace(order, content_place=f"{name}:{offset}", content_url=self._settings.url_of(order.url))
        return (by_reference(known) or known) if self._settings.is_too_large(packed_text(order.document)) else known


def references_of(store: ArchiveStore, sink: str, settings: ReferenceSettings) -> ArchiveReferences | None:
    """Return the references to documents for a sink; None for one that gets whole documents."""
    return ArchiveReferences(store, settings) if settings.is_archived and sink != EMBEDDED else None
