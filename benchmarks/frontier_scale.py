"""Whether ten million pending URLs are processed as fast as few: `python -m benchmarks.frontier_scale [--size 10000000]`.

Once with the URLs spread evenly over a thousand sites, and once with nine of ten at one of them. Each step runs in its own process,
which reports its memory and ends as if killed. Compared in turn: a hundred thousand URLs are inserted into a file that has as many, and
into the large one; and a frontier over the small file and one over the large file return URLs.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from math import inf
from pathlib import Path
from statistics import median

from benchmarks.measure import BenchmarkFailed, Row, finish, median_ratio, run, say, tail
from benchmarks.store import NOW, SITES, pending_url
from crawlspace.clock import SystemClock
from crawlspace.frontier.frontier import Frontier
from crawlspace.frontier.site_queue import Pace
from crawlspace.state.sqlite.store import SqliteStore

_SMALL = 100_000
_ROUNDS = 2
"""So each rate is measured over 200,000 URLs."""
_MANNERS = {"scattered": (1, 100), "as pages bring them": (10, 1_000)}
"""URLs of one site in a row, and in a transaction. A fast crawl records 128 pages at once, each with some new links to its own site."""
_AT_THE_END = (1 + _ROUNDS * len(_MANNERS)) * _SMALL
"""URLs inserted during the measurement."""
_FEW = 100_000
_PICKS = 8_000
_LEAST_RATIO, _MOST_MB, _MOST_RESUME_S, _MOST_BYTES = 0.5, 400, 2.0, 150

_Figures = dict[str, list[float]]
_Layout = Callable[[int], int]
"""Returns the number of the site of the n-th URL."""

_LAYOUTS: Mapping[str, _Layout] = {
    "1,000 sites": lambda turn: turn % SITES,
    "one site has 90 %": lambda turn: 0 if turn % 10 else turn // 10 % SITES,
}


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Compare very many pending URLs in SQLite with few.")
    parser.add_argument("--size", type=int, default=10_000_000, help=f"pending URLs in the large file, more than {_AT_THE_END:,}")
    parser.add_argument("--step", nargs=5, metavar=("STEP", "LAYOUT", "FILE", "FROM", "TO"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.step:
        step, layout, file, first, end = options.step
        figures = _STEPS[step](Path(file), _LAYOUTS[layout], range(int(first), int(end)))
        figures["peak"] = [
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 * 1024 if sys.platform == "darwin" else 1024)
        ]
        print(json.dumps(figures), flush=True)
        os._exit(0)  # as a kill would: nothing is closed
    if options.size <= _AT_THE_END:
        parser.error(f"--size {options.size:,}: it must be more than {_AT_THE_END:,}")
    rows: list[Row] = []
    for layout in _LAYOUTS:
        with tempfile.TemporaryDirectory(prefix="bench-frontier-") as temp:
            rows += _measured(layout, Path(temp), options.size)
    return rows


def _measured(layout: str, folder: Path, size: int) -> Iterator[Row]:
    def row(measure: str, value: float, form: str, *, least: float = -inf, most: float = inf) -> Row:
        target = f">= {least:g}" if least > -inf else f"< {most:g}" if most < inf else ""
        return Row(
            "frontier_scale", f"{measure}, {layout}", format(value, form), target, least <= value < most if target else None
        )

    many, few = folder / "many.db", folder / "few.db"
    filled = _in_a_process("fill", layout, many, 0, size - _AT_THE_END)
    grown = _in_a_process("grow", layout, many, size - _AT_THE_END, size)
    _in_a_process("fill", layout, few, 0, _FEW)
    with_few, with_many = [], []
    for _ in range(_ROUNDS):
        with_few.append(_in_a_process("hand_out", layout, few, 0, _FEW))
        with_many.append(_in_a_process("hand_out", layout, many, 0, size))
    SqliteStore(many).close()  # takes in what is still in its log
    for manner in _MANNERS:
        small, large = grown[f"few {manner}"], grown[f"many {manner}"]
        yield row(f"inserts/s at {_SMALL:,} URLs, {manner}", median(small), ",.0f")
        yield row(f"inserts/s at {size:,} URLs, {manner}", median(large), ",.0f")
        yield row(f"inserts of many to few, {manner}", median_ratio(large, small), ".2f", least=_LEAST_RATIO)
    small, large = ([rate for run in runs for rate in run["leased"]] for runs in (with_few, with_many))
    yield row(f"URLs leased/s at {_FEW:,} URLs", median(small), ",.0f")
    yield row(f"URLs leased/s at {size:,} URLs", median(large), ",.0f")
    yield row("leased of many to few", median_ratio(large, small), ".2f", least=_LEAST_RATIO)
    resumed = median(seconds for run in with_many for seconds in run["resumed"])
    yield row(f"seconds to resume after a kill, {size:,} URLs", resumed, ".3f", most=_MOST_RESUME_S)
    peak = max(*filled["peak"], *grown["peak"])
    yield row(f"MB resident at most, inserting {size:,} URLs", peak, ".0f", most=_MOST_MB)
    peak = max(mb for run in with_many for mb in run["peak"])
    yield row(f"MB resident at most, leasing of {size:,} URLs", peak, ".0f", most=_MOST_MB)
    beyond = (many.stat().st_size - filled["text"][0] - grown["text"][0]) / size
    yield row(f"bytes a URL beyond its text, {size:,} URLs", beyond, ".0f", most=_MOST_BYTES)


def _in_a_process(step: str, layout: str, file: Path, first: int, end: int) -> _Figures:
    """Run a step in its own process, and return its figures."""
    say(f"{step}: URLs {first:,} to {end:,}, {layout}")
    log = file.with_suffix(".log")
    command = [sys.executable, "-m", "benchmarks.frontier_scale", "--step", step, layout, str(file), str(first), str(end)]
    cost = run(command, log=log, limit_s=3_600)
    if cost.status:
        raise BenchmarkFailed(f"{step} ended with exit status {cost.status}:\n{tail(log)}")
    figures: _Figures = json.loads(tail(log, 1))
    return figures


# --- the steps, in their processes ----------------------------------------------------------------------------------


def _fill(file: Path, layout: _Layout, numbers: range) -> _Figures:
    """Insert URLs into a file."""
    text, _ = _insert(SqliteStore.open_for_crawl(file), layout, numbers, "as pages bring them")
    return {"text": [text]}


def _grow(file: Path, layout: _Layout, numbers: range) -> _Figures:
    """Insert URLs into a file and, in turn, as many into new ones; the first ones fill the page cache and are not counted."""
    store = SqliteStore.open_for_crawl(file)
    text, _ = _insert(store, layout, numbers[:_SMALL], "as pages bring them")
    figures: _Figures = {"text": [text]}
    for number, manner in enumerate([*_MANNERS] * _ROUNDS, 1):
        with tempfile.TemporaryDirectory(dir=file.parent) as folder:
            new = SqliteStore.open_for_crawl(Path(folder, file.name))
            _insert(new, layout, range(_SMALL), manner)
            figures.setdefault(f"few {manner}", []).append(_insert(new, layout, range(_SMALL, 2 * _SMALL), manner)[1])
            new.close()
        text, rate = _insert(store, layout, numbers[number * _SMALL : (number + 1) * _SMALL], manner)
        figures.setdefault(f"many {manner}", []).append(rate)
        figures["text"][0] += text
    return figures


def _hand_out(file: Path, _layout: _Layout, numbers: range) -> _Figures:
    """Resume from a file and take URLs from the frontier, none of which needs a request."""
    began = time.perf_counter()
    store = SqliteStore.open_for_crawl(file)
    sites = list(store.sites())
    frontier = Frontier(store, clock=SystemClock(), site_delays=_NoDelay(), lease_s=600)
    resumed = time.perf_counter() - began
    began = time.perf_counter()
    for _ in range(_PICKS):
        state = frontier.next()
        if state is None:
            raise BenchmarkFailed(f"of {len(numbers):,} URLs at {len(sites):,} sites, fewer than {_PICKS:,} were leased")
        frontier.skip(state)
    return {"resumed": [resumed], "leased": [_PICKS / (time.perf_counter() - began)]}


class _NoDelay:
    def of(self, site: str) -> Pace:
        return Pace(0.0, 8)

    def change_at(self) -> float:
        return inf

    def phase(self) -> None:
        return None


def _insert(store: SqliteStore, layout: _Layout, numbers: range, manner: str) -> tuple[int, float]:
    """Return the characters of the URLs, and how many were inserted a second; creating them is not timed."""
    characters, seconds = 0, 0.0
    in_a_row, at_once = _MANNERS[manner]
    for start in range(0, len(numbers), at_once):
        urls = [pending_url(number, site=layout(number // in_a_row)) for number in numbers[start : start + at_once]]
        characters += sum(len(one.url) for one in urls)
        began = time.perf_counter()
        store.discover(urls, now=NOW)
        seconds += time.perf_counter() - began
    return characters, len(numbers) / seconds


_STEPS: Mapping[str, Callable[[Path, _Layout, range], _Figures]] = {"fill": _fill, "grow": _grow, "hand_out": _hand_out}


if __name__ == "__main__":
    sys.exit(finish(main))
