"""Lines a second, and memory, of `scrapy import-pending` and `scrapy urls --format pending`: `python -m tests.long.pending`.

    python -m tests.long.pending --lines 10000000 --shared-lines 200000

A sorted file of URLs in normal form on a thousand hosts, with two realms, is imported into a new collection and written again. What was
written is imported once more, and must change nothing; it must be the file, byte for byte. Each step is a process of its own. First with a
store in a file, then with one in Redis.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.collection import redis_server
from benchmarks.measure import BenchmarkFailed, Row, finish, run, say, tail

LINES, SHARED_LINES = 1_000_000, 200_000
MOST_MB = 200
_HOSTS = 1_000
_NUMBERS = (0, 2, 1_700_000_000)


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Measure the import and the export of a pending file.")
    parser.add_argument("--lines", type=int, default=LINES, help="with a store in a file; 0: leave it out")
    parser.add_argument("--shared-lines", type=int, default=SHARED_LINES, help="with a store in Redis; 0: leave it out")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    if options.lines:
        rows += _measured("SQLite", options.lines, [])
    if options.shared_lines:
        with redis_server() as port:
            rows += _measured("Redis", options.shared_lines, ["-s", f"CRAWLSPACE_STORE_URL=redis://127.0.0.1:{port}/0"])
    return rows


def pending_lines(number: int) -> Iterator[str]:
    """Yield the lines of the file."""
    of_a_host = -(-number // _HOSTS)
    for n in range(number):
        host, path = divmod(n, of_a_host)
        realm = "Main" if host % 2 else "My%20Site"
        yield f"http://host{host:04}.example/section/{path:08}.html {realm} {_NUMBERS[n % 3]}\n"


def _measured(kind: str, lines: int, options: list[str]) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="bench-pending-") as folder:
        place = Path(folder)
        demo = place / "collections" / "demo"
        demo.mkdir(parents=True)
        (demo / "start_urls.txt").write_text("http://host0000.example/\n")
        file, again, log = place / "search.pending.txt", place / "again.txt", place / "log"
        with file.open("w", encoding="ascii") as written:
            written.writelines(pending_lines(lines))
        settings = {"CRAWLSPACE_COLLECTIONS_DIR": place / "collections", "CRAWLSPACE_DATA_DIR": place / "data"}
        options = [*options, *(text for name, value in settings.items() for text in ("-s", f"{name}={value}"))]
        yield from _rows(kind, "import", lines, ["import-pending", "demo", str(file), *options], log)
        yield from _rows(kind, "export", lines, ["urls", "demo", "--format", "pending", *options], again)
        yield from _rows(kind, "import again", lines, ["import-pending", "demo", str(again), "--json", *options], log)
        counts = json.loads(tail(log).splitlines()[-1])
        unchanged = counts["unchanged"]
        yield Row(
            "pending",
            f"{kind}: lines of the second import that change nothing",
            f"{unchanged:,}",
            f"{lines:,}",
            unchanged == lines,
        )
        is_same = filecmp.cmp(file, again, shallow=False)
        yield Row("pending", f"{kind}: the file is written as it was read", str(is_same), "True", is_same)


def _rows(kind: str, step: str, lines: int, command: list[str], log: Path) -> Iterator[Row]:
    cost = run([sys.executable, "-m", "scrapy", *command], log=log, limit_s=24 * 3_600)
    if cost.status:
        raise BenchmarkFailed(f"{step} ended with {cost.status}:\n{tail(log)}")
    say(f"{kind}: {step} took {cost.wall_s:.0f} s, {cost.cpu_s:.0f} s of the processor, {cost.peak_mb:.0f} MB")
    of_cpu = f"{lines / cost.wall_s:,.0f} ({lines / cost.cpu_s:,.0f} a second of the processor)"
    yield Row("pending", f"{kind}: {step}, lines/s of {lines:,}", of_cpu)
    yield Row("pending", f"{kind}: {step}, peak", f"{cost.peak_mb:.0f} MB", f"< {MOST_MB} MB", cost.peak_mb < MOST_MB)


if __name__ == "__main__":
    sys.exit(finish(main))
