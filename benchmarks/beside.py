"""Compare this checkout with another one, such as that of an older commit, in turn on one machine.

    git worktree add ../before COMMIT
    python -m benchmarks.beside ../before                          # whole crawls of one site, in turn
    python -m benchmarks.beside ../before decisions reconcile      # any benchmark: its rows side by side

Both run with this interpreter, each in its own folder, in turn, so that the ratios hold although the machine's speed drifts. All numbers in a
benchmark's rows are compared.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.collection import BenchCollection
from benchmarks.measure import PROJECT, BenchmarkFailed, Cost, Row, finish, in_turn, median_ratio, run, say, tail
from benchmarks.whole_crawl import Ground, site_served

_NAME = "beside"
_LEAST = 0.97
"""Minimal speed of this checkout compared with the other one."""
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_ROW = re.compile(r"^(?P<measure>\S.{20,}?)\s{2,}(?P<value>.*?\d.*)$")


def main(arguments: Sequence[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Compare this checkout with another one, in turn.")
    parser.add_argument("other", type=Path, metavar="FOLDER", help="the other checkout")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="benchmarks whose rows are shown side by side; none: whole crawls"
    )
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    other = options.other.resolve()
    if not (other / "scrapy.cfg").exists():
        parser.error(f"{options.other} is no checkout of crawlspace: there is no scrapy.cfg in it")
    if not options.names:
        return _crawls(other, options.pages, options.rounds)
    return [row for name in options.names for row in _rows(name, other, options.rounds)]


def _crawls(other: Path, pages: int, rounds: int) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="bench-beside-") as temp, site_served(Path(temp), pages) as ground:
        places = {"other": other, "this": PROJECT}
        costs = in_turn(
            {name: partial(ground.checked, name, partial(_crawl, ground, place)) for name, place in places.items()}, rounds
        )
    wall = median_ratio([cost.wall_s for cost in costs["other"]], [cost.wall_s for cost in costs["this"]])
    cpu = median_ratio([cost.cpu_s for cost in costs["other"]], [cost.cpu_s for cost in costs["this"]])
    peak = median(cost.peak_mb for cost in costs["this"]) / median(cost.peak_mb for cost in costs["other"])
    return [
        Row(_NAME, f"whole crawl of {pages:,} pages, speed", f"{wall:.3f} (CPU {cpu:.3f})", f">= {_LEAST}", wall >= _LEAST),
        Row(_NAME, f"whole crawl of {pages:,} pages, peak memory", f"{peak:.3f}"),
    ]


def _crawl(ground: Ground, place: Path) -> Cost:
    folder = ground.folder / "crawl"
    shutil.rmtree(folder, ignore_errors=True)
    collection = BenchCollection(folder)
    collection.write(**ground.configuration)
    environment = {**collection.environment, "PYTHONPATH": str(place)}
    enter = ["/usr/bin/env", "-C", str(place)]
    cost = run([*enter, *collection.crawl_command()], environment=environment, log=collection.log)
    if cost.status:
        raise BenchmarkFailed(f"the crawl in {place} ended with exit status {cost.status}:\n{tail(collection.log)}")
    return cost


def _rows(name: str, other: Path, rounds: int) -> list[Row]:
    found: dict[str, dict[str, list[float]]] = {}
    for number in range(rounds):
        for which, place in (("other", other), ("this", PROJECT)):
            for measure, value in _measured(name, place):
                found.setdefault(measure, {}).setdefault(which, []).append(value)
            say(f"round {number + 1} {name}: {which}")
    rows = []
    for measure, by_place in found.items():
        if len(by_place.get("other", ())) == len(by_place.get("this", ())) == rounds:
            before, now = median(by_place["other"]), median(by_place["this"])
            ratio = f"{now / before:.3f}" if before else "-"
            rows.append(Row(name, measure, f"{before:g} -> {now:g}, ratio {ratio}"))
    return rows


def _measured(name: str, place: Path) -> list[tuple[str, float]]:
    """Return the numbers in the rows of a benchmark; those after the first of a row with their place in it."""
    environment = {**os.environ, "PYTHONPATH": str(place)}
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}"], cwd=place, env=environment, capture_output=True, text=True, check=False
    )
    rows = []
    for line in done.stdout.splitlines():
        match = _ROW.match(line)
        if match is not None:
            for nth, number in enumerate(_NUMBER.findall(match["value"]), 1):
                measure = match["measure"] if nth == 1 else f"{match['measure']} ({nth})"
                rows.append((measure, float(number.replace(",", ""))))
    if not rows:
        raise BenchmarkFailed(f"benchmarks.{name} in {place} printed no row:\n{done.stderr[-2000:]}")
    return rows


if __name__ == "__main__":
    sys.exit(finish(main))
