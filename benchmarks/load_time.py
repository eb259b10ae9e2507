"""How long large files of rules and start URLs take to load and to lint: `python -m benchmarks.load_time`.

Each kind is read at 1, 2 and 4 times a size, in a process of its own: parsed, checked and compiled as at a crawl's start, then linted as
by `scrapy lint`. The largest size loads within 20 seconds and 1 GB, or ends within 5 seconds in a sentence that names a limit.
"""

from __future__ import annotations

import argparse
import random
import resource
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from benchmarks.measure import Row
from crawlspace import settings as defaults
from crawlspace.config.collection import load_collection
from crawlspace.crawl.startup import build_space
from crawlspace.errors import CrawlspaceError
from crawlspace.lint.collection import lint_collection

_LOAD_S, _REFUSED_S, _LOAD_MB, _LINT = 20, 5, 1_000, 3
_LEAST_S = 0.5
"""Lint is not compared with shorter loads, because reading the settings takes as long."""
KINDS = {
    "prefix rules": ("crawl.rules", 1_000_000),
    "domain rules": ("crawl.rules", 200_000),
    "domain rules with a star": ("crawl.rules", 200_000),
    "address rules with many netmasks": ("crawl.rules", 100_000),
    "prefix rules of one literal": ("crawl.rules", 20_000),
    "rules.xml actions": ("rules.xml", 100_000),
    "rules.xml conditions inside others": ("rules.xml", 100_000),
    "start URLs": ("start_urls.txt", 1_000_000),
    "lines of comments": ("crawl.rules", 1_000_000),
}
"""Kind: file and the largest number."""


class Load(NamedTuple):
    load_s: float
    load_mb: float
    lint_s: float
    refused: str


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Time the load of large files of rules and start URLs.")
    parser.add_argument("--share", type=float, default=1.0, help="this share of the sizes")
    parser.add_argument("--kind", choices=KINDS, help="only this kind")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    for kind, (_, most) in KINDS.items():
        for divisor in (4, 2, 1) if options.kind in {None, kind} else ():
            number = round(most * options.share / divisor)
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
                found = process.submit(measure, kind, number).result()
            rows.append(_row(kind, number, found))
    return rows


def measure(kind: str, number: int) -> Load:
    """Load and lint a collection with so many lines of a kind."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "demo"
        folder.mkdir()
        (folder / "start_urls.txt").write_text("http://www.example.com/\n", encoding="utf-8")
        with (folder / KINDS[kind][0]).open("w", encoding="utf-8") as file:
            file.writelines(_lines(kind, number))
        values = {name: value for name, value in vars(defaults).items() if name.isupper()}
        settings = {**values, "CRAWLSPACE_COLLECTIONS_DIR": temporary, **_SCRAPYS}
        begun, refused = time.perf_counter(), ""
        try:
            build_space(load_collection("demo", settings))
        except CrawlspaceError as error:
            refused = str(error).partition("\n")[0]
        load_s, load_mb = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        begun = time.perf_counter()
        lint_collection(folder, settings, settings, store=None)
        return Load(load_s, load_mb, time.perf_counter() - begun, refused)


_SCRAPYS = {"REDIRECT_MAX_TIMES": 10, "DEPTH_LIMIT": 0}


def _row(kind: str, number: int, found: Load) -> Row:
    value = f"load {found.load_s:.1f} s, {found.load_mb:,.0f} MB; lint {found.lint_s:.1f} s"
    name = f"{number:,} {kind}"
    if found.refused:
        return Row("load_time", name, f"{value}; refused: {found.refused}", f"< {_REFUSED_S} s", found.load_s < _REFUSED_S)
    quick = found.load_s < _LOAD_S and found.load_mb < _LOAD_MB
    target = f"< {_LOAD_S} s, < {_LOAD_MB:,} MB; lint <= {_LINT} times"
    return Row("load_time", name, value, target, quick and found.lint_s <= _LINT * max(found.load_s, _LEAST_S))


def _lines(kind: str, number: int) -> Iterator[str]:
    draw = random.Random(7)
    numbers = range(number)
    if kind == "prefix rules":
        yield from (f"allow prefix http://h{n % 5000}.example.com/a/b{n}/\n" for n in numbers)
    elif kind == "domain rules":
        yield from (f"allow domain h{n}.example.com\n" for n in numbers)
    elif kind == "domain rules with a star":
        yield from (f"allow domain *.h{n}.example.com\n" for n in numbers)
    elif kind == "address rules with many netmasks":
        for _ in numbers:
            address, mask = (".".join(str(draw.randrange(256)) for _ in range(4)) for _ in range(2))
            yield f"allow address {address} {mask}\n"
    elif kind == "prefix rules of one literal":
        yield from (f"allow prefix http://www.example.com/*/{'x' * (n % 50 + 1)}/*{'y' * (n // 50 + 1)}.html\n" for n in numbers)
    elif kind == "rules.xml actions":
        fields = "".join('<AddMeta name="f{}" value="v"/>' for _ in range(10))
        yield "<Rules>\n"
        for n in range(number // 10):
            yield f'<Rule><Host val="h{n}.com"/>{fields.format(*range(n, n + 10))}</Rule>\n'
        yield "</Rules>\n"
    elif kind == "rules.xml conditions inside others":
        yield "<Rules>\n"
        for n in range(number // 4):
            yield f'<Rule><Or><Host val="h.com"/><Host val="g{n}.com"/></Or><NoIndex/></Rule>\n'
        for n in range(number // 4):
            yield f'<Rule><Host val="h.com"/><AddMeta name="f{n}" value="v"/></Rule>\n'
        yield "</Rules>\n"
    elif kind == "start URLs":
        yield from (f"http://h{n % 1000}.example.com/a/b{n}\n" for n in numbers)
    else:
        yield from (f"# {'x' * 98}\n" for _ in numbers)


if __name__ == "__main__":
    for row in main():
        print(row)
