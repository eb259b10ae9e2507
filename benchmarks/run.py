"""Run all benchmarks, or those named, and print one table and `docs/benchmarks.md`.

    python -m benchmarks.run [NAME …]

Without names all are run, which takes some time, and the page is written from scratch; with names, only their rows are replaced.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import re
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from textwrap import fill

from benchmarks.measure import PROJECT, BenchmarkFailed, Row, say, taken_away_s

NAMES = (
    "decisions",
    "actions",
    "load_time",
    "start",
    "store",
    "frontier_scale",
    "extract",
    "search",
    "whole_crawl",
    "politeness",
    "many_sites",
    "shared_speed",
    "shared_politeness",
    "shared_memory",
    "recrawl",
    "reconcile",
    "files",
    "page_rules",
    "sitemaps",
    "lastmod",
    "boilerplate",
    "near_duplicates",
    "explorer",
    "sink_speed",
    "sink_crawl",
)
"""In the order of the page. `links` takes long and `rendering` needs a browser: both are run alone."""
_PAGE = PROJECT / "docs" / "benchmarks.md"
_BEGIN, _END = "<!-- results: written by python -m benchmarks.run -->", "<!-- end of results -->"
_HEADING = re.compile(r"^### `(\w+)`$", re.MULTILINE)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run", description="Run the benchmarks and write docs/benchmarks.md."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"among {', '.join(NAMES)}; all by default")
    parser.add_argument("--dry", action="store_true", help="leave docs/benchmarks.md as it is")
    options = parser.parse_args(arguments)
    unknown = set(options.names) - set(NAMES)
    if unknown:
        parser.error(f"no benchmark is called {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    results: dict[str, list[object]] = {}
    away: dict[str, str] = {}
    failed = False
    for name in options.names or NAMES:
        say(f"── {name}")
        before = time.monotonic(), taken_away_s()
        try:
            results[name] = _run(name)
        except (BenchmarkFailed, ModuleNotFoundError) as failure:
            say(f"{name} failed: {failure}")
            failed = True
            continue
        away[name] = _share_away(*before)
        for row in results[name]:
            print(row, flush=True)
            failed = failed or (isinstance(row, Row) and row.met is False)
    if not options.dry:
        _PAGE.write_text(_filled(_PAGE.read_text(encoding="utf-8"), results, away), encoding="utf-8")
    return int(failed)


def _share_away(began: float, before_s: float | None) -> str:
    after_s = taken_away_s()
    if before_s is None or after_s is None:
        return ""
    share = (after_s - before_s) / (time.monotonic() - began) / (os.cpu_count() or 1)
    return f"; {share:.0%} of the processors' time went to other machines of the host"


def machine() -> str:
    """Return a description of the machine, without names of machines or users."""
    model = platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
        memory = f", {os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"
    except (OSError, ValueError):
        memory = ""
    return (
        f"{os.cpu_count()} cores ({model}){memory}; {platform.system()}, "
        f"Python {platform.python_version()}, Scrapy {version('scrapy')}"
    )


def _run(name: str) -> list[object]:
    """Run a benchmark in its own process: the peak memory of its children begins with that of its process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(_rows, name).result()


def _rows(name: str) -> list[object]:
    """Run a benchmark as if by itself, without options."""
    sys.argv = [name]
    return list(importlib.import_module(f"benchmarks.{name}").main())


def _filled(page: str, results: dict[str, list[object]], away: dict[str, str]) -> str:
    """Return the page with these results instead of older ones of the same benchmarks, and the processor share of others."""
    head, _, rest = page.partition(_BEGIN)
    old, _, foot = rest.partition(_END)
    sections = dict(_sections(old))
    day = datetime.now(UTC).date().isoformat()
    for name, rows in results.items():
        sections[name] = f"{fill(f'{day}, {machine()}{away[name]}', 120)}\n\n{_table(rows)}"
    ordered = sorted(sections, key=lambda name: NAMES.index(name) if name in NAMES else len(NAMES))
    body = "".join(f"\n### `{name}`\n\n{sections[name].strip()}\n" for name in ordered)
    return f"{head}{_BEGIN}\n{body}\n{_END}{foot}"


def _sections(text: str) -> Iterable[tuple[str, str]]:
    parts = _HEADING.split(text)
    return zip(parts[1::2], parts[2::2], strict=True)


def _table(rows: Sequence[object]) -> str:
    """Return Markdown: our rows with their targets; a benchmark's own kind of row (named tuple, data class) by its fields."""
    heads: list[str] = []
    lines: list[list[str]] = []
    for row in rows:
        if isinstance(row, Row):
            heads = ["measure", "value", "target", "met"]
            lines.append([row.measure, row.value, row.target, {None: "", True: "yes", False: "**no**"}[row.met]])
        else:
            cells = _fields(row)
            heads = [name.replace("_per_s", "/s").replace("_s", ", s").replace("_", " ") for name in cells]
            lines.append([_number(value) for value in cells.values()])
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in (heads, ["---"] * len(heads), *lines)
    )


def _fields(row: object) -> dict[str, object]:
    if isinstance(row, tuple) and hasattr(row, "_asdict"):
        return dict(row._asdict())
    if is_dataclass(row) and not isinstance(row, type):
        return asdict(row)
    if isinstance(row, tuple):
        return dict(zip(("measure", "value", "target", "met"), row, strict=False))
    raise BenchmarkFailed(f"{row!r} is no row")


def _number(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


if __name__ == "__main__":
    sys.exit(main())
