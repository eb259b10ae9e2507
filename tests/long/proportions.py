"""Whether sources are fetched from in proportion to CRAWLSPACE_SOURCE_WEIGHTS, in a real crawl with and without delays.

    python -m tests.long.proportions --seconds 40

The site is made so that all six sources always have URLs: start URLs redirect, redirects lead to pages, pages lead to pages of all kinds,
and fetched pages are due again two seconds later. The path in the server's log shows the source of each request. A crawl is too short for
the default weights, whose lightest source is picked once in 13,111 times; they are measured on the frontier alone, with queues that are
never empty and a simulated clock.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from benchmarks.collection import NAME, BenchCollection
from benchmarks.measure import BenchmarkFailed, Row, finish, tail
from benchmarks.politeness import gap_row, hosts, served_crawl
from benchmarks.serve import PageServer, Reply, Request
from crawlspace.clock import FakeClock
from crawlspace.frontier.frontier import Frontier
from crawlspace.frontier.source_weights import DEFAULT_WEIGHTS
from crawlspace.model import Queue, Source, UrlState
from crawlspace.state.site_pauses import SitePause
from crawlspace.state.views import Site
from tests.site_delays import FixedDelays

_NAME = "proportions"
_WITHIN = 0.02
_WEIGHTS = {Source.USER: 30, Source.REDIR: 20, Source.INDEX: 20, Source.INDEX_FOLLOW: 10, Source.FOLLOW: 10, Source.REFRESH: 10}
_RULES = """\
<Rules>
  <Rule> <Path val="/index/"/> <Index/> <NoFollow/> </Rule>
  <Rule> <Path val="/follow/"/> <NoIndex/> <Follow/> </Rule>
</Rules>
"""
_REFRESH_S = 2
_START_S, _END_S = 10.0, 2.0
"""Time excluded at both ends of a crawl: until every source has URLs at every site, and for requests in flight at the end."""
_LINKS = {"index": 5, "both": 3, "follow": 3}
"""Links of a page, by the folder that they lead to: more than are picked from each."""
_FOLDERS = {
    "start": Source.USER,
    "moved": Source.REDIR,
    "index": Source.INDEX,
    "both": Source.INDEX_FOLLOW,
    "follow": Source.FOLLOW,
}
_CYCLES = 50
"""How often the lightest source is picked from with the default weights."""


@dataclass(frozen=True, slots=True)
class _Load:
    """`pages_per_s` is the expected maximum: four times as many start URLs are written, so that no site runs out of them."""

    sites: int
    delay_s: float
    pages_per_s: int


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Count from which sources a crawl picks.")
    parser.add_argument("--seconds", type=int, default=40, help="of each crawl")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    for load in (_Load(20, 0.0, 1000), _Load(200, 1.0, 200)):
        rows += _crawled(load, options.seconds)
    for delay_s in (0.0, 1.0):
        rows.append(_simulated(delay_s))
    return rows


def _crawled(load: _Load, seconds: int) -> list[Row]:
    starts = 4 * load.pages_per_s * seconds * _WEIGHTS[Source.USER] // sum(_WEIGHTS.values()) // load.sites
    with tempfile.TemporaryDirectory(prefix="bench-proportions-") as temp, PageServer(_page, hosts(6, load.sites)) as server:
        collection = BenchCollection(Path(temp))
        collection.write(
            start_urls=[f"{origin}/start/{number}" for number in range(starts) for origin in server.origins],
            rules=f"allow domain 127.6.*:{server.port}\nforbid domain *\n",
            settings={
                "DOWNLOAD_DELAY": load.delay_s,
                "CONCURRENT_REQUESTS": 200 if load.delay_s else 32,
                "CLOSESPIDER_TIMEOUT": seconds,
                "CRAWLSPACE_CONTINUOUS": True,  # else each URL is fetched once
                "CRAWLSPACE_REFRESH_MIN": _REFRESH_S,
                "CRAWLSPACE_REFRESH_MAX": _REFRESH_S,
                "CRAWLSPACE_SOURCE_WEIGHTS": {source.label: weight for source, weight in _WEIGHTS.items()},
            },
        )
        (collection.folder / "collections" / NAME / "rules.xml").write_text(_RULES, encoding="utf-8")
        crawl = served_crawl(collection, server, seconds=seconds)
        begin, end = crawl.pages[0].at + _START_S, crawl.pages[-1].at - _END_S
        picked = Counter(source for source, page in _by_source(crawl.pages) if begin <= page.at <= end)
        if not picked or len({page.path for page in crawl.pages if page.path.startswith("/start/")}) >= starts:
            raise BenchmarkFailed(f"the crawl was too short, or the start URLs ran out:\n{tail(collection.log)}")
    rows = [_row(f"a crawl of {load.sites} sites, {load.delay_s:g} s delay", picked, _WEIGHTS)]
    if load.delay_s:
        rows.append(gap_row(_NAME, crawl.pages, load.delay_s))
    return [*rows, crawl.row(_NAME)]


def _simulated(delay_s: float) -> Row:
    sites, clock = 200, FakeClock()
    frontier = Frontier(_EndlessQueues(sites), clock=clock, site_delays=FixedDelays(delay_s), lease_s=10**9)
    picked: Counter[Source] = Counter()
    most = _CYCLES * sum(DEFAULT_WEIGHTS.values())
    while picked.total() < most:
        state = frontier.next()
        if state is None:
            wait = frontier.wake_in()
            assert wait, "a site that may be asked was not"
            clock.advance(wait)
            continue
        picked[state.source] += 1
        frontier.finished(state)
        frontier.recorded([state.id])
    return _row(f"the frontier alone, {sites} sites, {delay_s:g} s delay", picked, DEFAULT_WEIGHTS)


def _row(measure: str, picked: Mapping[Source, int], weights: Mapping[Source, int]) -> Row:
    """Compare with the shares by weight. One pick more or less is always allowed."""
    total, whole = sum(picked.values()), sum(weights.values())
    wanted = {source: total * weight / whole for source, weight in weights.items()}
    off = {source: abs(picked.get(source, 0) - wanted[source]) for source in weights}
    worst = max(off[source] / wanted[source] for source in weights)
    met = all(off[source] <= max(1.0, _WITHIN * wanted[source]) for source in weights)
    numbers = " : ".join(f"{picked.get(source, 0):,}" for source in weights)
    asked = " : ".join(f"{weight:,}" for weight in weights.values())
    return Row(_NAME, f"{measure}, weights {asked}", f"{numbers} (off by {worst:.1%} at most)", f"within {_WITHIN:.0%}", met)


def _page(site: str, path: str) -> Reply:
    if path == "/robots.txt":
        return 404, b"text/plain", b""
    _, folder, name = path.split("/")
    if folder == "start":
        return 302, b"", f"/moved/{name}".encode()
    links = "".join(f'<a href="/{to}/{folder[0]}{name}-{n}">{n}</a> ' for to, most in _LINKS.items() for n in range(most))
    return (
        200,
        b"text/html; charset=utf-8",
        f"<!doctype html><title>{path} of {site}</title><p>{path} at {site}.</p>{links}".encode(),
    )


def _by_source(pages: Sequence[Request]) -> Iterator[tuple[Source, Request]]:
    """Return the source of each page: one that was requested before was due again."""
    seen: set[tuple[str, str]] = set()
    for page in pages:
        known = (page.site, page.path) in seen
        seen.add((page.site, page.path))
        yield Source.REFRESH if known else _FOLDERS[page.path.split("/")[1]], page


class _EndlessQueues:
    """A store in which every site has URLs in all sources, however many are leased."""

    def __init__(self, sites: int) -> None:
        self._sites = [f"www{number}.example.com:80" for number in range(sites)]
        self._ids = count(1)

    def sites(self) -> Iterator[Site]:
        return (Site(site, tuple(Queue(source) for source in Source)) for site in self._sites)

    def lease(self, site: str, limit: int, *, now: int, until: int, queue: Queue | None = None) -> list[UrlState]:
        del now, until
        source = Source.USER if queue is None else queue.source
        return [
            UrlState(id, id, f"http://{site}/{id}", site, source=source) for _, id in zip(range(limit), self._ids, strict=False)
        ]

    def release(self, ids: Iterable[int]) -> None:
        del ids

    def reclaim(self, *, now: int, keep: Collection[int] = ()) -> dict[str, int]:
        del now, keep
        return {}

    def due(self, site: str) -> list[tuple[Queue, int]]:
        del site
        return []

    def site_pauses(self) -> Mapping[str, SitePause]:
        return {}

    def wait_site(self, site: str, until: int | None, *, wait_s: int = 0) -> None:
        del site, until


if __name__ == "__main__":
    sys.exit(finish(main))
