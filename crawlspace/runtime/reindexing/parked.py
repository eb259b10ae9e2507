"""`scrapy reindex --parked`: send the sinks again what they have refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from crawlspace.admin.parked import SentAgain, send_again
from crawlspace.config.sinks import EMBEDDED
from crawlspace.runtime.command import refuse_index_elsewhere, refuse_missing_index
from crawlspace.runtime.reindexing.sending import sending_to

if TYPE_CHECKING:
    from crawlspace.runtime.command import Place
    from crawlspace.runtime.stores.places import OpenStore


def send_parked(place: Place, opened: OpenStore, sinks: Sequence[str]) -> Iterator[SentAgain]:
    """Send each of these sinks what it has refused, if there is any; yield what became of that. Raises StoreError."""
    for name in sinks:
        if not opened.store.parked(name):
            continue
        if name == EMBEDDED:
            refuse_index_elsewhere(place, opened)
            refuse_missing_index(place)
        with sending_to(name, place, opened) as sending:
            yield send_again(opened.store, name, partial(sending.until, 0))
