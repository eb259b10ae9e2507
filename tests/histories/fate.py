"""What is to happen to a crawl of a history, and how it went."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


class Stuck(Exception):
    """The crawl would never end."""


@dataclass(slots=True)
class Fate:
    """What is to happen to a crawl."""

    kill_after: int | None = None
    """Database statements and steps of the crawl until it is killed."""
    stop_after: int | None = None
    """Steps until it is stopped in order."""
    index_fails: float = 0.0
    """Share of the batches that the index does not take."""
    stalls: bool = False
    """Now and then more time passes than a lease lasts."""
    goes_on_for: float = 4000.0
    """Seconds that a crawl without end goes on when nothing is left to do; more than a site is left alone for."""
    midway: Callable[[], str] | None = None
    """Changes the web, or gives a command, while it is being crawled: once, or at the `moments` given."""
    moments: list[float] = field(default_factory=list)
    """Seconds from the start of a crawl that goes on for long, in order."""


@dataclass(slots=True)
class Run:
    """How a crawl went."""

    ended: str = "finished"
    """Or "stopped", "killed", "broken"."""
    fetched: int = 0
    moved: int = 0
    """Documents of folded URLs that were moved as they were archived."""
    led_away: int = 0
    """Documents that were found at another address: these are no deletions."""
    deletions: int = 0
    """Documents that a change of the rules takes out of the index, and that are not held."""
    held_for_rules: int | None = None
    """Deletions of a change of the rules that were held; None where the rules were as before."""
    lasted: float = 0.0
    """Seconds."""
    stalled: float = 0.0
    """How many of them it did nothing at all."""
    most_deletions: int = 0
    """Of the brake, at the start of the crawl."""
    most_by_rules: int = 0
    """The same before the change of the rules, which is counted by itself."""
    too_far: set[str] = field(default_factory=set)
    """URLs that were outside the crawl space after its start, where links may be counted."""
    pushed: set[str] = field(default_factory=set)
    """URLs whose documents were sent to the index."""
    changes: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """What the crawler logged as an error: there is none in a simulation."""
    orphans: set[str] = field(default_factory=set)
    """URLs that were forgotten at its end because no way leads to them."""
    differences: list[str] = field(default_factory=list)
    """In what its end was wrong."""


class _Errors(logging.Handler):
    def __init__(self, into: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._into = into

    def emit(self, record: logging.LogRecord) -> None:
        self._into.append(f"{record.getMessage()}: {record.exc_info[1]!r}" if record.exc_info else record.getMessage())


@contextmanager
def errors_into(into: list[str]) -> Iterator[None]:
    """Note what the crawler logs as errors."""
    errors = _Errors(into)
    logger = logging.getLogger("crawlspace")
    logger.addHandler(errors)
    try:
        yield
    finally:
        logger.removeHandler(errors)
