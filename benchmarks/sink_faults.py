"""Random faults between a process that sends and the search server, which is killed again and again: is the index as the state says?

    python -m benchmarks.sink_faults --count 1000 --steps 16
    python -m benchmarks.sink_faults --count 50 --real        # on the OpenSearch of the tests (a JDK and Maven)
    python -m benchmarks.sink_faults --seed 1234              # one alone

A history and what is compared are described in tests/sink_faults; `make test` has 20 short ones.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from benchmarks.measure import Row, finish, say
from benchmarks.sink_server import server_of
from tests.sink_faults.history import Told, run_history

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
    parser.add_argument("--real", action="store_true", help="on the OpenSearch of the tests, or CRAWLSPACE_TEST_OPENSEARCH_URL")
    options = parser.parse_args(arguments)
    seeds = range(options.first, options.first + options.count) if options.seed is None else range(options.seed, options.seed + 1)
    began = time.monotonic()
    told: list[Told] = []
    with contextlib.ExitStack() as stack:
        if options.real:
            url = os.environ.get("CRAWLSPACE_TEST_OPENSEARCH_URL")
            os.environ["CRAWLSPACE_TEST_OPENSEARCH_URL"] = stack.enter_context(server_of(url, is_real=True))
        for one in _all(seeds, options.steps, 1 if options.real else options.processes):
            told.append(one)
            if one.wrong:
                say(str(one))
            if len(told) % 50 == 0:
                wrong = sum(bool(other.wrong) for other in told)
                say(f"{len(told)} seeds, {wrong} with a difference, {time.monotonic() - began:.0f} s")
    return _rows(told, "OpenSearch" if options.real else "the emulator")


def _all(seeds: range, steps: int, processes: int) -> Iterator[Told]:
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=_be_quiet) as pool:
        yield from pool.map(partial(_one, steps=steps), seeds)


def _be_quiet() -> None:
    """Drop the warnings of what is made to fail, and of the emulator, which the processes of this one inherit."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stderr.fileno())


def _one(seed: int, *, steps: int) -> Told:
    with tempfile.TemporaryDirectory(prefix="bench-sink-faults-", dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
        return run_history(seed, Path(folder), steps=steps, slow=lambda: time.sleep(0.02))


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
        Row(_NAME, "orders, documents put aside, orders sent", f"{orders:,}, {sum(one.parked for one in told):,}, {sent:,}"),
        Row(_NAME, "seeds with a difference", f"{wrong}", "0", wrong == 0),
    ]


if __name__ == "__main__":
    sys.exit(finish(main))
