"""What happens to a simulated crawl (kills, failures of its index, time that passes), and its result."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from crawlspace.clock import FakeClock
from crawlspace.crawl.engine import Engine
from crawlspace.crawl.timed.steps import STEP_EVERY_S
from crawlspace.document import IndexOrder, Op
from crawlspace.errors import IndexUnavailable
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.marks import BatchMark
from crawlspace.index.sink import Sent, Sink
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.sqlite.store import SqliteStore


class Stuck(Exception):
    """The crawl would never end."""


@dataclass(slots=True)
class Fate:
    """Events planned for a crawl."""

    kill_after: int | None = None
    """Database statements and steps of the crawl until it is killed."""
    stop_after: int | None = None
    """Steps until it is stopped by a person."""
    index_fails: float = 0.0
    """Share of the batches that the index does not take."""
    stalls: bool = False
    """Now and then more time passes than a lease lasts."""
    continues_for: float = 4000.0
    """Seconds that a continuous crawl continues when nothing is left to do; more than a failing site is paused for."""
    midway: Callable[[], str] | None = None
    """Changes the web, or gives a command, during the crawl: once, or at `moments`."""
    moments: list[float] = field(default_factory=list)
    """Seconds from the start of a continuous crawl, in order."""


@dataclass(slots=True)
class Run:
    """Result of a crawl."""

    ended: str = "finished"
    """Or "stopped", "killed", "broken"."""
    fetched: int = 0
    moved: int = 0
    """Documents of folded URLs that were moved as they were archived."""
    spared: int = 0
    """Requests spared, as a sitemap calls the page unchanged."""
    called: int = 0
    """Pages that are due, as a sitemap calls them changed or names them no more."""
    moved_away: int = 0
    """Documents that were found at another address: these are no deletions."""
    deletions: int = 0
    """Documents that a change of the rules deletes, held ones not counted."""
    held_for_rules: int | None = None
    """Deletions of a change of the rules that were held; None where the rules were as before."""
    lasted: float = 0.0
    """Seconds."""
    stalled: float = 0.0
    """Seconds in which it did nothing."""
    deletion_limit: int = 0
    """The deletion limit at the start of the crawl."""
    deletion_limit_by_rules: int = 0
    """The same before the change of the rules, which is counted by itself."""
    too_far: set[str] = field(default_factory=set)
    """URLs that were outside the crawl space after its start, where links may be counted."""
    pushed: set[str] = field(default_factory=set)
    """URLs whose documents were sent to the index."""
    changes: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """Errors in the log: there are none in a simulation."""
    orphans: set[str] = field(default_factory=set)
    """URLs that were forgotten at its end because nothing links them."""
    differences: list[str] = field(default_factory=list)
    """Differences found at its end."""


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


# --- kills ---------------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """The process was killed. No code of ours may handle it."""


class Countdown:
    """Raises Killed after so many statements and steps."""

    def __init__(self, left: int | None) -> None:
        self._left = left

    def tick(self) -> None:
        if self._left is not None:
            self._left -= 1
            if self._left <= 0:
                self._left = None  # what is rolled back after that is what a database does when it is opened again
                raise Killed

    def statement(self, *_: object) -> bool:
        self.tick()
        return True


class Failing:
    """An index that refuses a random share of the batches."""

    def __init__(self, sink: Sink, share: float, chance: random.Random) -> None:
        self.name = sink.name
        self.sink = sink
        self._share = share
        self._chance = chance
        self.pushed: set[str] = set()
        """URLs of the documents that were sent to it."""

    def mark(self) -> BatchMark | None:
        return self.sink.mark()

    def send(self, orders: Sequence[IndexOrder], mark: BatchMark | None = None) -> Sent:
        if self._chance.random() < self._share:
            raise IndexUnavailable("it is down")
        self.pushed.update(order.url for order in orders if order.op is Op.PUSH)
        return self.sink.send(orders, mark)

    def close(self) -> None:
        self.sink.close()


def killed_by(countdown: Countdown, opened: object) -> None:
    """Kill at a statement or a call of a store or an index."""
    if isinstance(opened, SqliteStore):
        opened._file.db.exec_trace = countdown.statement
    elif isinstance(opened, RedisStore):
        kill_between_calls(opened, countdown)
    elif isinstance(opened, EmbeddedIndex):
        opened._db.exec_trace = countdown.statement


def kill_between_calls(store: RedisStore, countdown: Countdown) -> None:
    """Kill before a call of the server, or after it, when its answer is lost."""
    server = store.server
    calls: dict[str, Callable[..., Any]] = {"call": server.call, "command": server.command}
    for name, real in calls.items():

        def call(*args: Any, _call: Callable[..., Any] = real, **kwargs: Any) -> Any:
            countdown.tick()
            answer = _call(*args, **kwargs)
            countdown.tick()
            return answer

        setattr(server, name, call)


# --- waiting -------------------------------------------------------------------------------------------------------


_A_WHILE_S = 300.0
"""The longest sleep of a continuous crawl, which checks then whether a refresh is due."""


def wait(engine: Engine, clock: FakeClock, *, until: float, send: Callable[[], None]) -> bool:
    """Advance the clock until a request may be due; return False when nothing is worth waiting for."""
    if engine.deliveries.blocks_crawl:
        send()
        clock.advance(1)
        return True
    rest = engine.wake_in()
    if engine.has_steps:
        rest = STEP_EVERY_S if rest is None else min(rest, STEP_EVERY_S)
    if engine.collection.continuous and engine.collection.refresh.schedule is not None:
        rest = _A_WHILE_S if rest is None else min(rest, _A_WHILE_S)
    if rest is None and engine.collection.continuous and engine.is_idle():
        return False  # nothing is known any more that could ever be due
    if rest is None:
        raise Stuck("nothing to request, nothing in flight, nothing to wait for, and not done")
    if engine.collection.continuous and rest > 1 and clock.now() + rest > until:
        return False
    clock.advance(max(rest, 0.01))
    return True
