"""The process that records pages and sends what follows from that, step by step, until it is killed or done."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any

from crawlspace.clock import FakeClock
from crawlspace.index.outbox import Drain
from crawlspace.state.sqlite.store import SqliteStore
from tests.contract.conftest import NOW, Known
from tests.search_server import sink_of

SINK = "search"
BATCH = 8
NAMES = tuple(f"a.example/{name}" for name in "abcdefghij")
POISON = "poison"
"""A document with this word is refused whenever it is sent."""
_LAST = 300
"""Steps at the end: more than any wait that has grown meanwhile needs."""
Report = tuple[int, list[tuple[int, str, str]]]
"""The step that is next, and the orders that wait: number, kind and URL."""


@dataclass(frozen=True)
class Task:
    folder: Path
    options: dict[str, object]
    seed: int
    steps: range
    dies_at: int
    """Before which call of the store; 0: never."""


class MortalStore:
    """A store whose process is killed at one of its calls."""

    def __init__(self, store: SqliteStore, dies_at: int) -> None:
        self._store = store
        self._left = dies_at

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not callable(found):
            return found

        def called(*arguments: Any, **options: Any) -> Any:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return found(*arguments, **options)

        return called


def text_of(checksum: bytes) -> str:
    """The text of the pages of a group: up to 4,000 characters, so that a batch is several requests."""
    chance = Random(checksum)
    poison = POISON if chance.random() < 0.05 else "harmless"
    return f"{checksum.decode()} {poison} {'filler ' * chance.choice((0, 10, 300, 550))}"


def work(task: Task, reports: Connection) -> None:
    """Begin when told to: whoever may kill this process knows it by then."""
    logging.disable()  # it would report what is made to fail
    reports.recv()
    with (
        closing(SqliteStore.open_for_crawl(task.folder / "state.db", sinks=(SINK,))) as store,
        closing(sink_of(task.folder, task.options)) as sink,
    ):
        mortal: Any = MortalStore(store, task.dies_at)
        known, clock = Known(mortal), FakeClock()
        drain = Drain(mortal, sink, clock, batch=BATCH)

        def report(next_step: int) -> None:
            waiting = store.orders(SINK, 1_000, now=NOW)
            reports.send((next_step, [(order.sequence, order.op.value, order.url) for order in waiting]))

        report(task.steps.start)
        if task.steps.start == 0:
            known.discover(*NAMES)
        for step in task.steps:
            chance = Random(f"{task.seed} {step}")
            for _ in range(chance.choice((1, 1, 3, 12))):
                _change(known, chance, step)
            report(step)
            drain.step()
            clock.advance(chance.choice((0, 1, 100)))
            report(step + 1)
        if task.dies_at == 0:
            _send_rest(drain, clock.advance)
    reports.close()


def _send_rest(drain: Drain, advance: Callable[[float], None]) -> None:
    for _ in range(_LAST):
        if not drain.backlog():
            return
        advance(100)
        drain.step()


def _change(known: Known, chance: Random, step: int) -> None:
    """Record one page: another text, or that of another page, or that it is gone."""
    name = chance.choice(NAMES)
    if chance.random() < 0.35:
        known.record(known.change(name, checksum=None))
        return
    checksum = f"{chance.randrange(step + 1)}" if chance.random() < 0.2 else f"{step}.{chance.randrange(100)}"
    known.record(known.page(name, checksum, text=text_of(checksum.encode())))
