"""All benchmarks, or those named, as one table and as `docs/benchmarks.md`.

    python -m benchmarks.run [NAME …]

Without names all are run, which takes some time, and the page is written anew; with names, only their rows of it are replaced.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import re
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.measure import PROJECT, BenchmarkFailed, Row, say

NAMES = ("decisions", "store", "extract", "whole_crawl", "politeness", "memory", "real_site", "crash")
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
    results: dict[str, list[Row]] = {}
    failed = False
    for name in options.names or NAMES:
        say(f"── {name}")
        try:
            results[name] = [_as_row(name, row) for row in importlib.import_module(f"benchmarks.{name}").main([])]
        except BenchmarkFailed as failure:
            say(f"{name} failed: {failure}")
            failed = True
            continue
        for row in results[name]:
            print(row, flush=True)
            failed = failed or row.met is False
    if not options.dry:
        _PAGE.write_text(_filled(_PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")
    return int(failed)


def machine() -> str:
    """Return what the figures were measured on, without names of machines or users."""
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


def _as_row(name: str, row: object) -> Row:
    """Take a row, or a plain (measure, value[, target[, met]]) of a benchmark that has no more to say."""
    if isinstance(row, Row):
        return row
    if isinstance(row, tuple):
        measure, value, *more = row
        target = str(more[0]) if more else ""
        met = bool(more[1]) if len(more) > 1 and more[1] is not None else None
        return Row(name, str(measure), str(value), target, met)
    raise BenchmarkFailed(f"{name} returned {row!r}, which is no row")


def _filled(page: str, results: dict[str, list[Row]]) -> str:
    """Return the page with these results in the place of older ones of the same benchmarks."""
    head, _, rest = page.partition(_BEGIN)
    old, _, foot = rest.partition(_END)
    sections = dict(_sections(old))
    day = datetime.now(UTC).date().isoformat()
    for name, rows in results.items():
        sections[name] = f"{day}, {machine()}\n\n{_table(rows)}"
    ordered = [name for name in NAMES if name in sections]
    body = "".join(f"\n### `{name}`\n\n{sections[name].strip()}\n" for name in ordered)
    return f"{head}{_BEGIN}\n{body}\n{_END}{foot}"


def _sections(text: str) -> Iterable[tuple[str, str]]:
    parts = _HEADING.split(text)
    return zip(parts[1::2], parts[2::2], strict=True)


def _table(rows: Sequence[Row]) -> str:
    lines = ["| measure | value | target | met |", "|---|---|---|---|"]
    for row in rows:
        met = {None: "", True: "yes", False: "**no**"}[row.met]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in (row.measure, row.value, row.target, met)) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
