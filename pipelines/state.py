"""Records each outcome: state, links and index order in one transaction, many outcomes to a transaction."""

from __future__ import annotations

from crawlspace.runtime.pipelines.state import BaseRecordState


class RecordState(BaseRecordState):
    """Closes the lease of each fetch."""
