"""Sends documents and deletions to the index while the crawl goes on."""

from __future__ import annotations

from crawlspace.runtime.pipelines.index import BaseDrainIndex


class DrainIndex(BaseDrainIndex):
    """Sends what the outbox holds, in batches: at once when a batch is full, else every half second; all of it at the end."""
