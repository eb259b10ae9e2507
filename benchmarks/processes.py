"""A crawl of several processes against one of a single process, on one site.

    python -m benchmarks.processes --pages 20000 --rounds 3

The server runs on the same processors: with two of them, it takes a part of what the second process could use.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.measure import Row, finish, in_turn, median_ratio
from benchmarks.whole_crawl import our_crawl, site_served

_TARGET = 1.6


def main(arguments: Sequence[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Compare a crawl of several processes with one of a single process.")
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    one, several = "1 process", f"{options.processes} processes"
    numbers = {one: 1, several: options.processes}
    with tempfile.TemporaryDirectory(prefix="bench-processes-") as temp, site_served(Path(temp), options.pages) as ground:
        programs = {
            name: partial(ground.checked, name, partial(our_crawl, ground, "--processes", str(number)))
            for name, number in numbers.items()
        }
        costs = in_turn(programs, options.rounds)
    rows = [
        Row(
            "processes",
            f"{name}: pages/s, CPU of all, peak memory of one",
            f"{median(cost.pages_per_s(options.pages) for cost in taken):.0f}/s, {median(cost.cpu_s for cost in taken):.1f} s,"
            f" {median(cost.peak_mb for cost in taken):.0f} MB",
        )
        for name, taken in costs.items()
    ]
    ratio = median_ratio([cost.wall_s for cost in costs[one]], [cost.wall_s for cost in costs[several]])
    measure = f"{several} against {one}, pages/s of {options.pages}"
    return [*rows, Row("processes", measure, f"{ratio:.2f} times", f">= {_TARGET:g}", ratio >= _TARGET)]


if __name__ == "__main__":
    raise SystemExit(finish(main))
