"""The marker: a document with the number of the last batch that a collection sent to an index, so that an index restored from a copy is noticed.

Its id is that of no URL, and its version grows like that of a document. It is written with each batch, if the index has the batch before:
so the marker of an index that was restored keeps its number until the index is repaired.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence

from crawlspace.document import IndexOrder
from crawlspace.index.marks import Agreement, BatchMark
from crawlspace.index.search_server.items import Item, ItemAnswer, ItemResult

logger = logging.getLogger(__name__)

MARKER_PREFIX = "mark:"
"""The beginning of a marker's id; the id of a document has 32 hexadecimal digits."""


class Marker(ABC):
    """The marker of the collection `owner` in an index. Raises IndexUnavailable."""

    def __init__(self, *, sink: str, owner: str, where: str) -> None:
        """`where` names the index and its server, for messages."""
        self._sink = sink
        self._owner = owner
        self._where = where
        self._is_supported = True
        self._reported = Agreement.SAME
        self._has_warned = False

    @abstractmethod
    async def _stored(self) -> tuple[BatchMark | None, int]:
        """Return the mark in the index, and the version of the marker; None and 0 without a marker."""

    @abstractmethod
    async def _may_predate_markers(self) -> bool:
        """Return whether an index without the marker may have had batches of this collection before markers existed."""

    @abstractmethod
    def _item(self, mark: BatchMark, version: int) -> Item:
        """Return the marker as an item."""

    def _mark_of_other_index(self, mark: BatchMark) -> BatchMark | None:
        """Return the mark to write to an index that never had a batch of this collection, though there were some; None: write none."""
        return None

    async def read(self) -> BatchMark | None:
        """Return the mark in the index."""
        return (await self._stored())[0]

    async def item_for(self, mark: BatchMark, orders: Sequence[IndexOrder], *, always: bool = False) -> Item | None:
        """Return the item to write with a batch, or None; log a warning if the index has not had the batch before.

        `always`: regardless of the mark in the index.
        """
        if not self._is_supported:
            return None
        stored, version = await self._stored()  # each time: another process may have sent, and the index may have been restored
        is_first = stored is None and await self._may_predate_markers()
        new: BatchMark | None = mark
        if not always and not is_first and not self._may_follow(mark, stored):
            new = None if stored is not None else self._mark_of_other_index(mark)
        return None if new is None else self._item(new, max(version + 1, *(order.version for order in orders)))

    async def check(self, mark: BatchMark) -> None:
        """Log a warning if the index has not had the batch before this one, which comes next."""
        if self._is_supported:
            stored, _ = await self._stored()
            if stored is not None or not await self._may_predate_markers():
                self._may_follow(mark, stored)

    def settle(self, answer: ItemAnswer) -> bool:
        """Process the answer to the marker; return whether the batch has to be sent again."""
        if answer.result is ItemResult.REFUSED:
            self._disable(answer.why)
        return answer.is_server_failure

    def _disable(self, why: str) -> None:
        """Write no markers to this index any more."""
        self._is_supported = False
        if not self._has_warned:
            self._has_warned = True
            logger.warning(
                "the sink %s: %s accepts no document with the mark of a batch, so an index restored from an older copy would not be noticed: %s",
                self._sink,
                self._where,
                why,
            )

    def _may_follow(self, mark: BatchMark, stored: BatchMark | None) -> bool:
        """Return whether a mark may be written to an index with the mark `stored`; log a warning about a new difference."""
        relation = mark.relation_to(stored)
        if relation is not self._reported and relation is not Agreement.SAME:
            can_repair = relation is not Agreement.STORE_BEHIND  # else the crawl has to find again what the store has lost
            logger.warning(
                "the sink %s: %s (was it restored from a copy?); the crawl continues, and `scrapy audit %s --sink %s%s` %s",
                self._sink,
                relation.value,
                self._owner,
                self._sink,
                " --repair" if can_repair else "",
                "sends what is missing there" if can_repair else "shows what differs",
            )
        self._reported = relation
        return relation is Agreement.SAME or mark.batch == 1
