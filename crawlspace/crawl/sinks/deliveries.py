"""The sinks of a crawl: what each is sent, what waits for it, and when the crawl waits for one.

A sink gets a document whole, or a reference to it in the archive instead of a large text.
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
from crawlspace.document import IndexOrder
from crawlspace.index.orders import by_reference
from crawlspace.index.outbox import Delivery, Drain, Drained
from crawlspace.index.sink import Sink
from crawlspace.state.metadata import get_table
from crawlspace.state.store import ArchiveStore, MetaStore, Store
from crawlspace.text import counted

logger = logging.getLogger(__name__)

SINKS = "sinks"
"""Meta: the sinks that orders are given to, with their types, also those that the settings do not name any more."""
_FILLING = "filling:"
"""Meta, with the name of a sink: the id up to which its documents were ordered since it lacked some; empty when it lacks none.

Another id may follow: that of the last URL whose document was ordered, where some of before are awaited."""
_TAKEN_OVER = -1
"""As an id up to which documents were ordered: a command sends them all, and nobody else has begun to."""


class Deliveries:
    """Raises StoreError. An unavailable sink holds up nothing but itself."""

    def __init__(
        self, store: Store, sinks: Sequence[Sink], clock: Clock, *, most: int, settings: SinkSettings | None = None
    ) -> None:
        """`most`: how many orders may wait for a sink; without `settings`, each sink gets all documents whole."""
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
    def most_waiting(self) -> int:
        """Return how many orders wait for the sink for which the most do."""
        return max(self._waiting.values(), default=0)

    def waiting(self, sink: str) -> int:
        """Return how many orders wait for a sink."""
        return self._waiting[sink]

    def ordered(self, number: int) -> None:
        """Count orders that were given to each of them."""
        for sink in self._waiting:
            self._waiting[sink] += number
        self._relieve()

    def recount(self, known: Mapping[str, int] | None = None) -> None:
        """Count again what waits, where it is not known."""
        for drain in self.drains:
            self._waiting[drain.sink] = drain.backlog() if known is None else known.get(drain.sink, 0)

    @property
    def hold_up(self) -> bool:
        """Whether the crawl waits, because too many orders wait for a sink: one that answers, or the embedded index."""
        return any(
            self._waiting[drain.sink] >= self._most and (drain.sink == EMBEDDED or not drain.is_unavailable)
            for drain in self.drains
        )

    def settle(self, drain: Drain, delivery: Delivery) -> Drained:
        """Record what a sink has committed."""
        drained = drain.settle(delivery)
        self._waiting[drain.sink] = drain.backlog()
        self._relieve()
        return drained

    def relieve(self, drain: Drain) -> None:
        """Drop the pushes for a server that does not answer, where too many orders wait for it."""
        sink = drain.sink
        if sink == EMBEDDED or not drain.is_unavailable or self._waiting[sink] < self._most:
            return
        self._waiting[sink] = drain.backlog()  # other workers may have reported more than wait by now
        if self._waiting[sink] >= self._most:
            self._drop_pushes(sink)

    def _relieve(self) -> None:
        for drain in self.drains:
            self.relieve(drain)

    def _drop_pushes(self, sink: str) -> None:
        lacks_some = lacks_documents(self._store, sink)
        have_filled(self._store, sink)  # first: a kill may follow
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
    """Return the sinks that orders are given to, with their types. Raises StoreDamaged."""
    return {name: str(kind) for name, kind in (get_table(store, SINKS) or {}).items()}


def note_sinks(store: MetaStore, sinks: Mapping[str, str]) -> None:
    """Have these be the sinks that orders are given to: names and types."""
    written = json.dumps(dict(sinks), sort_keys=True)
    if store.get_meta(SINKS) != written:
        store.set_meta(SINKS, written)


def lacks_documents(store: MetaStore, sink: str) -> bool:
    """Return whether a sink lacks documents that it has to be sent."""
    return bool(store.get_meta(_FILLING + sink))


def have_filled(store: MetaStore, sink: str, *, after: int = 0, reached: int | None = None) -> str:
    """Have a sink be sent all documents of the URLs with larger ids than that; return how that is noted.

    `reached` is the id up to which those were sent, too, that can be by now.
    """
    noted = str(after) if reached is None else f"{after} {reached}"
    store.set_meta(_FILLING + sink, noted)
    return noted


def filled(store: MetaStore, sink: str) -> None:
    """Note that a sink lacks no documents any more."""
    store.set_meta(_FILLING + sink, "")


def filling_noted(store: MetaStore, sink: str) -> str:
    """Return how far a sink was sent its documents, as `have_filled` has noted it; empty where it lacks none."""
    return store.get_meta(_FILLING + sink) or ""


def filled_up_to(store: MetaStore, sink: str) -> int:
    """Return the id up to which a sink was sent its documents."""
    after, _, _ = filling_noted(store, sink).partition(" ")
    return max(0, int(after or 0))


def take_over_filling(store: MetaStore, sink: str) -> None:
    """Note that a command sends a sink all documents that it lacks. A crawl that finds some lacking all the same sends them again."""
    if lacks_documents(store, sink):
        have_filled(store, sink, after=_TAKEN_OVER)


def end_filling(store: MetaStore, sink: str) -> None:
    """Note that the command has: the sink lacks no documents, unless a crawl has found some lacking since."""
    if store.get_meta(_FILLING + sink) == str(_TAKEN_OVER):
        filled(store, sink)


class ArchiveReferences:
    """The documents of a collection in its archive. Raises StoreError."""

    def __init__(self, store: ArchiveStore, settings: ReferenceSettings) -> None:
        self._store = store
        self._settings = settings
        self._files: dict[int, str] = {}

    def of(self, orders: Sequence[IndexOrder]) -> tuple[IndexOrder, ...]:
        """Return the orders with where their documents are, and those of documents that are too large without the text."""
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
        return (by_reference(known) or known) if self._settings.is_too_large(order.document.text) else known


def references_of(store: ArchiveStore, sink: str, settings: ReferenceSettings) -> ArchiveReferences | None:
    """Return what the documents for a sink are referred to with; None for one that gets all whole."""
    return ArchiveReferences(store, settings) if settings.is_archived and sink != EMBEDDED else None
