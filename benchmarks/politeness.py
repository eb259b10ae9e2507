"""How near a crawl of many sites comes to the polite maximum, and whether it ever exceeds it at any of them.

    python -m benchmarks.politeness --sites 200 --seconds 30

With n sites and a delay of d seconds, n / d pages a second are possible. The server, not the crawler, says what was reached.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from benchmarks.collection import BenchCollection
from benchmarks.measure import BenchmarkFailed, Row, finish, tail
from benchmarks.serve import PageServer, Reply, Request

_TARGET = 0.95
_TOLERANCE_S = 0.005
"""What scheduling between the two processes may take off a delay that was kept."""
_LINKS = 20
_STEADY_FROM_S, _STEADY_UNTIL_S = 5.0, 2.0
"""What is left out at both ends of the run: start-up, and the end."""


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Measure a polite crawl of many sites.")
    parser.add_argument("--sites", type=int, default=200)
    parser.add_argument("--delay", type=float, default=1.0, help="seconds between requests to a site")
    parser.add_argument("--seconds", type=int, default=30)
    options = parser.parse_args(arguments)
    hosts = [f"127.1.{number // 250}.{number % 250 + 1}" for number in range(options.sites)]
    with tempfile.TemporaryDirectory(prefix="bench-polite-") as temp, PageServer(endless_page, hosts) as server:
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
        cost = collection.crawl(limit_s=options.seconds * 4 + 60)
        pages = [request for request in server.requests if request.path != "/robots.txt"]
        if not pages:
            raise BenchmarkFailed(f"no page was fetched:\n{tail(collection.log)}")
    rate = _steady_rate(pages)
    possible = options.sites / options.delay
    gaps = shortest_gaps(pages)
    shortest = min(gaps.values(), default=float("inf"))
    early = sum(gap < options.delay - _TOLERANCE_S for gap in gaps.values())
    name = "politeness"
    return [
        Row(
            name,
            f"pages/s, {options.sites} sites, {options.delay:g} s delay",
            f"{rate:.1f} of {possible:.0f} ({rate / possible:.1%})",
            f">= {_TARGET:.0%}",
            rate >= _TARGET * possible,
        ),
        Row(
            name,
            "shortest time between two requests to one site",
            f"{shortest:.3f} s",
            f">= {options.delay:g} s − {_TOLERANCE_S * 1000:.0f} ms",
            early == 0,
        ),
        Row(name, "CPU, peak memory", f"{cost.cpu_s:.1f} s, {cost.peak_mb:.0f} MB"),
    ]


def endless_page(site: str, path: str) -> Reply:
    """A page with links to further pages of its site; there is always a next one."""
    if path == "/robots.txt":
        return 404, b"text/plain", b""
    number = int(path.strip("/").removesuffix(".html") or 0)
    links = "".join(f'<a href="/{number * _LINKS + n}.html">{n}</a> ' for n in range(1, _LINKS + 1))
    text = f"<!doctype html><title>Page {number} of {site}</title><p>{number} at {site}.</p>{links}"
    return 200, b"text/html; charset=utf-8", text.encode()


def shortest_gaps(requests: Sequence[Request]) -> dict[str, float]:
    """Return for each site with two requests or more the shortest time between two in a row.

    A request counts from its arrival, which may have been a little before the server came to read it.
    """
    return {
        site: min(later.at - (earlier.at - earlier.slack_s) for earlier, later in pairwise(asked))
        for site, asked in _by_site(requests).items()
        if len(asked) > 1
    }


def _steady_rate(requests: Sequence[Request]) -> float:
    """Return the pages a second in the steady part of the run.

    The sites are asked in step, so that counting requests between two moments would be off by a whole round; instead the time from
    one request of a site to its next counts as one page, spread evenly over that time.
    """
    begin, end = requests[0].at + _STEADY_FROM_S, requests[-1].at - _STEADY_UNTIL_S
    if end - begin < _STEADY_FROM_S:
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
