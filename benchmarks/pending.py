"""Lines a second, and memory, of `scrapy import-pending` and `scrapy urls --format pending`: `python -m benchmarks.pending`.

    python -m benchmarks.pending --lines 10000000

A file of URLs in normal form on a thousand hosts, with two realms, is imported into a new collection, written again and imported once
more, each by a process of its own. What is written must be the file, byte for byte.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import BenchmarkFailed, Row, finish, run, tail

LINES = 200_000
MOST_MB = 200
_NUMBERS = (0, 2, 1_700_000_000)


def main(lines: int = LINES) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        demo = place / "collections" / "demo"
        demo.mkdir(parents=True)
        (demo / "start_urls.txt").write_text("http://host0000.example/\n")
        file, again = place / "search.pending.txt", place / "again.txt"
        with file.open("w", encoding="ascii") as written:
            written.writelines(_lines(lines))
        imports = ["import-pending", "demo", str(file)]
        rows = [
            *_rows("import", lines, place, imports, place / "log"),
            *_rows("export", lines, place, ["urls", "demo", "--format", "pending"], again),
            *_rows("import again", lines, place, imports, place / "log"),
        ]
        is_same = file.read_bytes() == again.read_bytes()
        rows.append(Row("pending", "the file is written as it was read", str(is_same), "True", is_same))
    return rows


def _lines(number: int) -> Iterator[str]:
    of_a_host = -(-number // 1_000)
    for n in range(number):
        host, path = divmod(n, of_a_host)
        realm = "Main" if host % 2 else "My%20Site"
        yield f"http://host{host:04}.example/section/{path:08}.html {realm} {_NUMBERS[n % 3]}\n"


def _rows(step: str, lines: int, place: Path, command: list[str], log: Path) -> list[Row]:
    settings = {"CRAWLSPACE_COLLECTIONS_DIR": place / "collections", "CRAWLSPACE_DATA_DIR": place / "data"}
    options = [text for name, value in settings.items() for text in ("-s", f"{name}={value}")]
    cost = run([sys.executable, "-m", "scrapy", *command, *options], log=log, limit_s=24 * 3_600)
    if cost.status:
        raise BenchmarkFailed(f"{step} ended with {cost.status}:\n{tail(log)}")
    return [
        Row("pending", f"{step}, {lines:,} lines: lines/s, CPU seconds", f"{lines / cost.wall_s:,.0f}, {cost.cpu_s:.1f}"),
        Row("pending", f"{step}: largest memory", f"{cost.peak_mb:.0f} MB", f"{MOST_MB} MB", cost.peak_mb <= MOST_MB),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=LINES)
    number = parser.parse_args().lines
    sys.exit(finish(lambda: main(number)))
