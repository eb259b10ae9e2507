"""Who crawls a collection at this moment: values for the commands that look at one without crawling it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Share:
    """What one of several workers owns, and the numbers of its last report."""

    host: str
    unseen_s: float
    sites: int
    urls: int
    """Leased by it."""
    fetched: int = 0
    errors: int = 0
    documents: int = 0
    per_second: float = 0.0
    """Fetched since it began."""


@dataclass(frozen=True, slots=True)
class Crawler:
    """A process that crawls, and since when (seconds since 1970, UTC; 0: unknown)."""

    process: int
    since: int
    share: Share | None = None
    """Where the collection is shared."""
