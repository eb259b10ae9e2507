"""What is logged where the mark of an index is not that of the last batch."""

from __future__ import annotations

import logging

from crawlspace.index.marks import Agreement, BatchMark

logger = logging.getLogger(__name__)


class MarkReports:
    """Compares the marks of one collection, and logs a warning where they differ."""

    def __init__(self, *, sink: str, owner: str, where: str) -> None:
        """`where` names the index and its server."""
        self._sink = sink
        self._owner = owner
        self._where = where
        self._reported = Agreement.SAME
        self._has_warned = False

    def may_follow(self, mark: BatchMark, found: BatchMark | None) -> bool:
        """Return whether the mark of a batch may be written where the index has the mark `found`."""
        relation = mark.relation_to(found)
        if relation is not self._reported and relation is not Agreement.SAME:
            is_repaired = relation is not Agreement.STORE_BEHIND  # else the crawl has to find again what the store has forgotten
            logger.warning(
                "the sink %s: %s (was it restored from a copy?); the crawl goes on, and `scrapy audit %s --sink %s%s` %s",
                self._sink,
                relation.value,
                self._owner,
                self._sink,
                " --repair" if is_repaired else "",
                "sends what is missing there" if is_repaired else "shows what differs",
            )
        self._reported = relation
        return relation is Agreement.SAME or mark.batch == 1

    def not_taken(self, why: str) -> None:
        """Warn once that the index takes no marks."""
        if not self._has_warned:
            self._has_warned = True
            logger.warning(
                "the sink %s: %s takes no document with the mark of a batch, so that an index from an older copy would not be noticed: %s",
                self._sink,
                self._where,
                why,
            )
