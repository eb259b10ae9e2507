"""How close a crawl of many sites comes to the polite maximum, and whether it exceeds it at any of them.

    python -m benchmarks.politeness --sites 200 --seconds 30

With n sites and a delay of d seconds, n / d pages a second are possible. The figures come from the server, not from the crawler.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from benchmarks.collection import BenchCollection
from benchmarks.measure import BenchmarkFailed, Cost, ProcessorWaits, Row, finish, tail
from benchmarks.serve import PageServer, Reply, Request

TARGET = 0.95
TOLERANCE_S = 0.005
"""Tolerance for the scheduling of the two processes."""
_LINKS = 20
_START_S, _STEADY_UNTIL_S = 5.0, 2.0
"""Time excluded at both ends of the run: start-up, and the end."""


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Measure a polite crawl of many sites.")
    parser.add_argument("--sites", type=int, default=200)
    parser.add_argument("--delay", type=float, default=1.0, help="seconds between requests to a site")
    parser.add_argument("--seconds", type=int, default=30)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="bench-polite-") as temp, PageServer(endless_page, hosts(1, options.sites)) as server:
        collection = BenchCollection(Path(temp))
        collection.write(
            start_urls=[f"{origin}/0.html" for origin in server.origins],
            rules=f"allow domain 127.1.*:{server.port}\nforbid domain *\n",
            settings={
                "DOWNLOAD_DELAY": options.delay,
                "CONCURRENT_REQUESTS": options.sites,
                "CLOSESPIDER_TIMEOUT": options.seconds,
            },
        )
        crawl = served_crawl(collection, server, seconds=options.seconds)
    name = "politeness"
    return [
        rate_row(name, f"pages/s, {options.sites} sites, {options.delay:g} s delay", crawl.pages, options.sites / options.delay),
        gap_row(name, crawl.pages, options.delay),
        crawl.row(name),
    ]


@dataclass(frozen=True, slots=True)
class ServedCrawl:
    """A crawl as the server saw it: `pages` are the requests but those for robots.txt, in their order."""

    pages: list[Request]
    cost: Cost
    waits: ProcessorWaits

    def row(self, name: str) -> Row:
        cost = self.cost
        value = f"{cost.cpu_s:.1f} s, {cost.peak_mb:.0f} MB, {self.waits} of {cost.wall_s:.0f} s"
        return Row(name, "CPU, peak memory, waiting for a processor", value)


def served_crawl(collection: BenchCollection, server: PageServer, *, seconds: float) -> ServedCrawl:
    """Crawl a collection that stops itself after that time. Raises BenchmarkFailed where no page was fetched."""
    before = len(server.requests)
    with ProcessorWaits() as waits:
        cost = collection.crawl(limit_s=seconds * 4 + 60)
    pages = [request for request in server.requests[before:] if request.path != "/robots.txt"]
    if not pages:
        raise BenchmarkFailed(f"no page was fetched:\n{tail(collection.log)}")
    return ServedCrawl(pages, cost, waits)


def rate_row(name: str, measure: str, pages: Sequence[Request], possible: float, *, start_s: float = _START_S) -> Row:
    """Compare the pages a second of the steady part with what is possible; the first `start_s` seconds are left out."""
    rate = steady_rate(pages, start_s=start_s)
    value = f"{rate:.1f} of {possible:g} ({rate / possible:.1%})"
    return Row(name, measure, value, f">= {TARGET:.0%}", rate >= TARGET * possible)


def gap_row(name: str, pages: Sequence[Request], delay_s: float) -> Row:
    """Check that the delay was kept between any two requests to one site."""
    gaps = shortest_gaps(pages).values()
    early = sum(gap < delay_s - TOLERANCE_S for gap in gaps)
    return Row(
        name,
        "shortest time between two requests to one site",
        f"{min(gaps, default=float('inf')):.3f} s",
        f">= {delay_s:g} s − {TOLERANCE_S * 1000:.0f} ms",
        early == 0,
    )


def hosts(net: int, count: int) -> list[str]:
    """Return addresses of this machine in 127.`net`.0.0/16, at most 62,500."""
    return [f"127.{net}.{number // 250}.{number % 250 + 1}" for number in range(count)]


def endless_page(site: str, path: str) -> Reply:
    """Return a page with links to further pages of its site; there is always a next one."""
    if path == "/robots.txt":
        return 404, b"text/plain", b""
    number = int(path.strip("/").removesuffix(".html") or 0)
    links = "".join(f'<a href="/{number * _LINKS + n}.html">{n}</a> ' for n in range(1, _LINKS + 1))
    text = f"<!doctype html><title>Page {number} of {site}</title><p>{number} at {site}.</p>{links}"
    return 200, b"text/html; charset=utf-8", text.encode()


def shortest_gaps(requests: Sequence[Request]) -> dict[str, float]:
    """Return for each site with two requests or more the shortest time between two in a row.

    A request counts from its arrival, which may have been slightly before the server read it.
    """
    return {
        site: min(later.at - (earlier.at - earlier.slack_s) for earlier, later in pairwise(asked))
        for site, asked in _by_site(requests).items()
        if len(asked) > 1
    }


def steady_rate(requests: Sequence[Request], *, start_s: float = _START_S) -> float:
    """Return the pages a second in the steady part of the run.

    The sites are requested in step, so counting requests between two moments would be off by a whole round; instead the time from one
    request of a site to its next counts as one page, spread evenly over that time.
    """
    begin, end = requests[0].at + start_s, requests[-1].at - _STEADY_UNTIL_S
    if end - begin < _START_S:
        raise BenchmarkFailed(f"the crawl asked for {requests[-1].at - requests[0].at:.1f} s only: too short to measure")
    pages = 0.0
    for asked in _by_site(requests).values():
        for earlier, later in pairwise(request.at for request in asked):
            pages += max(0.0, min(later, end) - max(earlier, begin)) / (later - earlier)
    return pages / (end - begin)


def _by_site(requests: Sequence[Request]) -> dict[str, list[Request]]:
    sites: dict[str, list[Request]] = defaultdict(list)
    for request in requests:
        sites[request.site].append(request)
    return sites


if __name__ == "__main__":
    sys.exit(finish(main))
