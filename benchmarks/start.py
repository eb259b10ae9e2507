"""How much processor time commands take to start, as multiples of `python -c "import scrapy"`: `python -m benchmarks.start`.

Commands that only look, and a crawl to which nothing is due. Beside them those of Scrapy in a project with one spider and nothing of ours,
which are the least that ours could take. The commands run in turn, and of each the least time counts: others on the machine only add to it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from benchmarks.collection import NAME, BenchCollection
from benchmarks.measure import PROJECT, SCRAPY, BenchmarkFailed, Cost, Row, finish, in_turn, run, tail
from benchmarks.serve import PageServer

_LOOKING, _CRAWL = 1.75, 4.0
"""Largest multiples."""
_COMMANDS = {
    "list": _LOOKING,
    f"search {NAME} page": _LOOKING,
    f"urls {NAME}": _LOOKING,
    f"status {NAME}": _LOOKING,
    f"explain {NAME} http://127.0.0.1/": _LOOKING,
    f"lint {NAME}": _LOOKING,
    f"crawl {NAME}": _CRAWL,
}
_OF_SCRAPY = ("list", "crawl example")
_SPIDER = """
import scrapy

class Example(scrapy.Spider):
    name = "example"
    async def start(self):
        return
        yield
"""
_PAGE = b"<title>Page</title><p>A page with a few words."


def main(arguments: Sequence[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Measure the processor time that commands take to start.")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="bench-start-") as temporary, PageServer(_answer) as server:
        folder = Path(temporary)
        collection = BenchCollection(folder)
        collection.write(start_urls=[server.origins[0] + "/"], rules="allow domain 127.0.0.1\nforbid domain *\n", settings={})
        collection.crawl()
        plain = folder / "plain"
        plain.mkdir()
        (plain / "scrapy.cfg").write_text("[settings]\ndefault = plain\n", encoding="utf-8")
        (plain / "plain.py").write_text('SPIDER_MODULES = ["example"]\n', encoding="utf-8")
        (plain / "example.py").write_text(_SPIDER, encoding="utf-8")
        ours = partial(_run, folder=PROJECT, environment=collection.environment, log=collection.log)
        scrapys = partial(_run, folder=plain, environment={}, log=collection.log)
        programs = {"import scrapy": partial(scrapys, [sys.executable, "-c", "import scrapy"])}
        programs |= {f"Scrapy's own {line}": partial(scrapys, [*SCRAPY, *line.split()]) for line in _OF_SCRAPY}
        programs |= {line: partial(ours, [*SCRAPY, *line.split()]) for line in _COMMANDS}
        costs = in_turn(programs, options.rounds)
    least = {name: min(cost.cpu_s for cost in of_program) for name, of_program in costs.items()}
    return [_row(name, least) for name in least]


def _row(name: str, least: Mapping[str, float]) -> Row:
    multiple, most = least[name] / least["import scrapy"], _COMMANDS.get(name)
    value = f"{least[name]:.2f} s, {multiple:.2f} times"
    return Row("start", name, value, f"<= {most} times" if most else "", None if most is None else multiple <= most)


def _run(command: Sequence[str], *, folder: Path, environment: Mapping[str, str], log: Path) -> Cost:
    cost = run(command, environment={"PYTHONDONTWRITEBYTECODE": "", **environment}, log=log, folder=folder)
    if cost.status:
        raise BenchmarkFailed(f"{' '.join(command)} ended with exit status {cost.status}:\n{tail(log)}")
    return cost


def _answer(_site: str, _path: str) -> tuple[int, bytes, bytes]:
    return 200, b"text/html", _PAGE


if __name__ == "__main__":
    sys.exit(finish(main))
