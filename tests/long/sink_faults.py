"""Random faults between a process that sends and the search server, which is killed again and again: is the index as the state says?

    python -m tests.long.sink_faults --count 1000 --steps 16
    python -m tests.long.sink_faults --count 50 --real        # on the OpenSearch of the tests (a JDK and Maven), which is killed itself in 5
    python -m tests.long.sink_faults --seed 1234              # one alone

A history and what is compared are described in tests/sink_faults; `make test-full` has 20 short ones.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import Row, finish, say
from benchmarks.sink_server import ask, real_server

if TYPE_CHECKING:
    from tests.real_servers.run import RunningServer
    from tests.sink_faults.history import Told

_NAME = "sink faults"
_MEMORY = Path("/dev/shm")
"""A folder in memory: a killed process loses nothing on a disk either."""


def main(arguments: Sequence[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Send orders through random faults, and compare the index with the state.")
    parser.add_argument("--count", type=int, default=1_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, help="this one alone")
    parser.add_argument("--real", action="store_true", help="on the OpenSearch of the tests")
    parser.add_argument(
        "--server-kills", type=int, default=5, help="seeds in which that is killed with SIGKILL, and started again"
    )
    options = parser.parse_args(arguments)
    seeds = range(options.first, options.first + options.count) if options.seed is None else range(options.seed, options.seed + 1)
    began = time.monotonic()
    told: list[Told] = []
    with contextlib.ExitStack() as stack:
        if options.real:
            every = max(1, len(seeds) // options.server_kills) if options.server_kills else 0
            found = _on_real_server(seeds, options.steps, stack.enter_context(real_server()), every)
        else:
            found = _on_emulator(seeds, options.steps, options.processes)
        for one in found:
            told.append(one)
            if one.wrong:
                say(str(one))
            if len(told) % 50 == 0:
                wrong = sum(bool(other.wrong) for other in told)
                say(f"{len(told)} seeds, {wrong} with a difference, {time.monotonic() - began:.0f} s")
    return _rows(told, "OpenSearch" if options.real else "the emulator")


def _on_real_server(seeds: range, steps: int, server: RunningServer, every: int) -> Iterator[Told]:
    """Run the seeds one after the other, in this process; `every` so many the server is killed itself, with 0 never."""
    os.environ["CRAWLSPACE_TEST_OPENSEARCH_URL"] = server.url  # the tests read it once, when they are imported
    logging.disable()

    def restart() -> None:
        server.restart()
        ask(server.url, "GET", "/_cluster/health?wait_for_status=yellow&timeout=300s")

    for number, seed in enumerate(seeds, 1):
        yield _one(seed, steps=steps, restart_server=restart if every and number % every == 0 else None)


def _on_emulator(seeds: range, steps: int, processes: int) -> Iterator[Told]:
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=_be_quiet) as pool:
        yield from pool.map(partial(_one, steps=steps), seeds)


def _be_quiet() -> None:
    """Drop the warnings of what is made to fail, and of the emulator, which the processes of this one inherit."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stderr.fileno())


def _one(seed: int, *, steps: int, restart_server: Callable[[], None] | None = None) -> Told:
    from tests.sink_faults.history import run_history  # once it is known which server it uses

    with tempfile.TemporaryDirectory(prefix="bench-sink-faults-", dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
        return run_history(seed, Path(folder), steps=steps, slow=lambda: time.sleep(0.02), restart_server=restart_server)


def _rows(told: Sequence[Told], server: str) -> list[Row]:
    happened: Counter[str] = sum((one.happened for one in told), Counter())
    wrong = sum(bool(one.wrong) for one in told)
    faults = ", ".join(f"{name} {number:,}" for name, number in sorted(happened.items()) if name)
    orders, sent = sum(one.orders for one in told), sum(one.sent for one in told)
    return [
        Row(_NAME, "seeds; the server", f"{len(told):,}; {server}"),
        Row(_NAME, "bulk requests, of which something happened to", f"{happened.total():,}, {happened.total() - happened['']:,}"),
        Row(_NAME, "what happened", faults),
        Row(_NAME, "kills of the process that sends", f"{sum(one.kills for one in told):,}"),
        Row(_NAME, "orders, parked orders, orders sent", f"{orders:,}, {sum(one.parked for one in told):,}, {sent:,}"),
        Row(_NAME, "seeds with a difference", f"{wrong}", "0", wrong == 0),
    ]


if __name__ == "__main__":
    sys.exit(finish(main))
