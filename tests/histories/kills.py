"""What goes wrong with a simulated crawl: it is killed, and its index fails."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from crawlspace.document import IndexOrder, Op
from crawlspace.errors import IndexUnavailable
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.marks import BatchMark
from crawlspace.index.sink import Sent, Sink
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.sqlite.store import SqliteStore


class Killed(BaseException):
    """The process is no more. Nothing of ours may handle it."""


class Countdown:
    """Kills when so many statements and steps have been made."""

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
    """An index that takes a batch only when chance will have it."""

    def __init__(self, sink: Sink, share: float, chance: random.Random) -> None:
        self.name = sink.name
        self.sink = sink
        self._share = share
        self._chance = chance
        self.pushed: set[str] = set()
        """URLs whose documents it was asked to take."""

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
