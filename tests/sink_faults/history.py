"""Runs one history, and compares the index with the state afterwards."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import cache
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
from random import Random

from crawlspace.clock import FakeClock
from crawlspace.index.versions import Versions
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.urls import document_id
from tests.fault_proxy import FaultProxy
from tests.search_server import SearchServer, search_server
from tests.sink_faults.faults import Faults
from tests.sink_faults.worker import SINK, Report, Task, text_of, work

MOST_KILLS = 5


@dataclass
class Told:
    """What became of a history."""

    seed: int
    wrong: list[str]
    happened: Counter[str]
    kills: int
    sent: int
    orders: int
    parked: int

    def __str__(self) -> str:
        return "\n".join([f"seed {self.seed}: {len(self.wrong)} differences", *self.wrong])


@cache
def _context() -> ForkServerContext:
    """Processes that have imported all they need when they begin."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.sink_faults.worker"])
    return context


def run_history(
    seed: int,
    folder: Path,
    *,
    steps: int,
    most_kills: int = MOST_KILLS,
    slow: Callable[[], None] = lambda: None,
    restart_server: Callable[[], None] | None = None,
) -> Told:
    """Run one; with `restart_server` the server is killed once, too."""
    with ExitStack() as stack:
        search = stack.enter_context(search_server())
        proxy = stack.enter_context(closing(FaultProxy(search.url)))
        history = _History(seed, folder, search, proxy, steps=steps, most_kills=most_kills, slow=slow)
        history.faults.restart_server = restart_server
        history.run()
        return history.told()


@dataclass
class _History:
    seed: int
    folder: Path
    search: SearchServer
    proxy: FaultProxy
    steps: int
    most_kills: int
    slow: Callable[[], None]
    pid: int = 0
    """Of the process that runs; 0: none does, or it was killed."""
    kills: int = 0
    next_step: int = 0
    newest: dict[str, tuple[int, str]] = field(default_factory=dict)
    """The newest order of each URL: number and kind."""
    orders: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.faults = Faults(self.search, self.seed, self._kill, self.slow)
        self.proxy.rest, self.proxy.beside = self.faults.bulk(), self.faults.beside()

    def run(self) -> None:
        chance = Random(self.seed)
        while self.next_step < self.steps:
            self._live(dies_at=chance.randrange(1, 30 * self.steps // self.most_kills) if self.kills < self.most_kills else -1)
        self.faults.end()
        self._live(dies_at=0)

    def _live(self, *, dies_at: int) -> None:
        """Run the process until it ends or is killed."""
        here, there = _context().Pipe()
        steps = range(self.next_step, self.steps)
        options = self.search.options(batch_bytes=10_000, connections=3)
        task = Task(self.folder, {**options, "url": self.proxy.url}, self.seed, steps, dies_at)
        process = _context().Process(target=work, args=(task, there), daemon=True)
        process.start()
        there.close()
        self.pid = process.pid or 0
        here.send("go")
        self._listen(here)
        process.join()
        self.pid = 0
        self.faults.incarnation += 1
        if process.exitcode == -signal.SIGKILL:
            self.kills += 1
        elif process.exitcode:
            raise AssertionError(f"seed {self.seed}: the process ended with exit code {process.exitcode}")

    def _listen(self, reports: Connection) -> None:
        while True:
            try:
                report: Report = reports.recv()
            except (EOFError, OSError):
                return
            self.next_step = report[0]
            for number, op, url in report[1]:
                self.orders.add(number)
                if number > self.newest.get(url, (0, ""))[0]:
                    self.newest[url] = number, op

    def _kill(self) -> None:
        """Kill the process, which waits for the answer to a request; one that was killed may not have its number any more."""
        pid, self.pid = self.pid, 0
        if pid and self.kills < self.most_kills:
            os.kill(pid, signal.SIGKILL)

    def told(self) -> Told:
        with closing(SqliteStore(self.folder / "state.db", read_only=True, sinks=(SINK,))) as store:
            wrong = [*self.faults.wrong, *self._differences(store)]
            parked = len(store.parked(SINK))
        return Told(self.seed, wrong, self.faults.happened, self.kills, self.faults.sent.total(), len(self.orders), parked)

    def _differences(self, store: SqliteStore) -> list[str]:
        found, wrong = self.search.documents(), []
        versions = Versions(store, SINK, FakeClock())
        parked = {url for _, url, _ in store.parked(SINK)}
        if waiting := store.backlog(SINK):
            wrong.append(f"{waiting} orders still wait")
        states = {state.url: state for state in store.urls()}
        for url, state in states.items():
            there = found.get(url)
            number, op = self.newest.get(url, (0, "delete"))
            if (op == "push", number) != (state.indexed, state.ordered if state.indexed else number):
                wrong.append(f"{url} is {state.indexed=} with order {state.ordered}, and its newest order is {number}, {op}")
            if url in parked:
                continue
            if there is None:
                wrong += [f"MISSING {url}"] if state.indexed else []
            elif not state.indexed:
                wrong.append(f"EXTRA {url} of version {there['_version']}")
            else:
                text, version = text_of(state.checksum or b""), versions.least(state.ordered)
                if there["_version"] != version:
                    wrong.append(f"VERSION {url} is {there['_version']} and should be {version}")
                if there["text"] != {"other": text}:
                    wrong.append(f"TEXT {url} is {str(there['text'])[:60]}, and should be {text[:60]}")
                if there["id"] != document_id(url):
                    wrong.append(f"ID {url} is {there['id']}")
        wrong += [f"EXTRA {url}, which nobody knows" for url in found.keys() - states.keys()]
        return wrong
