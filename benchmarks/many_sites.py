"""Politeness in hard cases: a thousand slow sites, one giant among small ones, and ten thousand tiny ones.

    python -m benchmarks.many_sites slow giant tiny

The first two are compared with the maximum that their delays allow. Where ten thousand sites have three pages each, a delay need not cost
anything, because another site is always ready. So the third is compared with the same crawl without politeness: without delays, and also
without robots.txt, which means a quarter fewer requests.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median

from benchmarks.collection import BenchCollection
from benchmarks.measure import BenchmarkFailed, Cost, Row, finish, in_turn, median_ratio, tail
from benchmarks.politeness import endless_page, gap_row, hosts, rate_row, served_crawl
from benchmarks.serve import PageServer, Reply

_NAME = "many sites"
_SLOW_DELAY_S = 5.0
_DELAY_S = 1.0
_TO_GIANT, _TO_ITSELF = 20, 2
"""Links of a small site's page."""
_GIANTS_SHARE = 0.9
_TINY_PAGES = 3
_TINY_CONCURRENCY = 64
_TINY_TARGET = 0.8


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Measure polite crawls of many sites of different sizes.")
    parts: dict[str, Callable[[argparse.Namespace], list[Row]]] = {"slow": _slow, "giant": _giant, "tiny": _tiny}
    parser.add_argument("parts", nargs="*", metavar="PART", help="slow, giant or tiny; all by default")
    parser.add_argument("--seconds", type=int, default=60, help="of the crawl of slow sites, and of that with a giant")
    parser.add_argument("--slow-sites", type=int, default=1000)
    parser.add_argument("--small-sites", type=int, default=199)
    parser.add_argument("--tiny-sites", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=2, help="of the crawls of tiny sites")
    options = parser.parse_args(arguments)
    unknown = set(options.parts) - set(parts)
    if unknown:
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(parts)}")
    return [row for name in options.parts or parts for row in parts[name](options)]


def _slow(options: argparse.Namespace) -> list[Row]:
    """Measure many sites with a long delay: none may be forgotten, and each is requested on time."""
    sites = options.slow_sites
    with tempfile.TemporaryDirectory(prefix="bench-slow-") as temp, PageServer(endless_page, hosts(3, sites)) as server:
        collection = _collection(
            Path(temp), server, {"DOWNLOAD_DELAY": _SLOW_DELAY_S, "CONCURRENT_REQUESTS": sites}, options.seconds
        )
        crawl = served_crawl(collection, server, seconds=options.seconds)
    what = f"pages/s, {sites:,} sites, {_SLOW_DELAY_S:g} s delay"
    return [
        rate_row(_NAME, what, crawl.pages, sites / _SLOW_DELAY_S, start_s=2 * _SLOW_DELAY_S),
        gap_row(_NAME, crawl.pages, _SLOW_DELAY_S),
        crawl.row(_NAME),
    ]


def _giant(options: argparse.Namespace) -> list[Row]:
    """Measure one site to which most links lead: it gets its share and no more, and the small ones get theirs."""
    giant, *small = hosts(4, options.small_sites + 1)
    with tempfile.TemporaryDirectory(prefix="bench-giant-") as temp:
        links_to_giant: list[str] = []

        def answer(site: str, path: str) -> Reply:
            return endless_page(site, path) if site == giant else _page_of_small_site(site, path, links_to_giant[0])

        with PageServer(answer, [giant, *small]) as server:
            links_to_giant.append(server.origins[0])
            settings = {"DOWNLOAD_DELAY": _DELAY_S, "CONCURRENT_REQUESTS": len(small) + 1}
            collection = _collection(Path(temp), server, settings, options.seconds)
            crawl = served_crawl(collection, server, seconds=options.seconds)
            known = [state.site.rpartition(":")[0] for state in collection.states()]
    share = known.count(giant) / len(known)
    if share < _GIANTS_SHARE:
        raise BenchmarkFailed(f"the giant has {share:.1%} of all URLs only:\n{tail(collection.log)}")
    giants = [page for page in crawl.pages if page.site == giant]
    others = [page for page in crawl.pages if page.site != giant]
    return [
        rate_row(_NAME, f"pages/s, {len(small)} sites beside one with {share:.0%} of all URLs", others, len(small) / _DELAY_S),
        rate_row(_NAME, "pages/s, that one site", giants, 1 / _DELAY_S),
        gap_row(_NAME, crawl.pages, _DELAY_S),
        crawl.row(_NAME),
    ]


def _tiny(options: argparse.Namespace) -> list[Row]:
    """Measure sites that are complete quickly: the crawl with a delay compared with one without."""
    sites, pages = options.tiny_sites, options.tiny_sites * _TINY_PAGES
    unpolite = {"DOWNLOAD_DELAY": 0, "CONCURRENT_REQUESTS_PER_DOMAIN": _TINY_CONCURRENCY}
    with tempfile.TemporaryDirectory(prefix="bench-tiny-") as temp, PageServer(_page_of_tiny_site, hosts(5, sites)) as server:

        def crawl(settings: Mapping[str, object]) -> Cost:
            folder = Path(temp, "crawl")
            shutil.rmtree(folder, ignore_errors=True)
            collection = _collection(folder, server, {"CONCURRENT_REQUESTS": _TINY_CONCURRENCY, **settings})
            server.requests.clear()
            cost = collection.crawl(limit_s=600)
            asked = {(page.site, page.path) for page in server.requests if page.path != "/robots.txt"}
            if len(asked) != pages:
                raise BenchmarkFailed(f"{len(asked)} pages of {pages} were fetched:\n{tail(collection.log)}")
            return cost

        costs = in_turn(
            {
                "polite": lambda: crawl({"DOWNLOAD_DELAY": _DELAY_S}),
                "no delay": lambda: crawl(unpolite),
                "no delay, no robots.txt": lambda: crawl({**unpolite, "ROBOTSTXT_OBEY": False}),
            },
            options.rounds,
        )
    polite, *others = costs.items()
    rows = [_speed(f"{sites:,} sites of {_TINY_PAGES} pages, {_DELAY_S:g} s delay", polite[1], pages)]
    rows += [_speed(f"the same, {name}", runs, pages) for name, runs in others]
    for name, runs in others:
        ratio = median_ratio([cost.wall_s for cost in runs], [cost.wall_s for cost in polite[1]])
        cpu = median_ratio([cost.cpu_s for cost in runs], [cost.cpu_s for cost in polite[1]])
        value = f"{ratio:.2f} times (CPU {cpu:.2f} times)"
        rows.append(Row(_NAME, f"polite against {name}, pages/s", value, f">= {_TINY_TARGET:g}", ratio >= _TINY_TARGET))
    return rows


def _collection(folder: Path, server: PageServer, settings: Mapping[str, object], seconds: int | None = None) -> BenchCollection:
    """Return a collection of all sites of a server, each from its page 0; it stops itself after that time."""
    collection = BenchCollection(folder)
    collection.write(
        start_urls=[f"{origin}/0.html" for origin in server.origins],
        rules=f"allow domain 127.*:{server.port}\nforbid domain *\n",
        settings={**settings, **({} if seconds is None else {"CLOSESPIDER_TIMEOUT": seconds})},
    )
    return collection


def _speed(measure: str, costs: list[Cost], pages: int) -> Row:
    rate = median(cost.pages_per_s(pages) for cost in costs)
    cpu = median(cost.cpu_s for cost in costs)
    peak = median(cost.peak_mb for cost in costs)
    return Row(_NAME, f"{measure}: pages/s, CPU, peak memory", f"{rate:.0f}/s, {cpu:.1f} s, {peak:.0f} MB")


def _page_of_small_site(site: str, path: str, giant: str) -> Reply:
    """Return a page most of whose links lead to new pages of the giant, and a few to further pages of its own site."""
    if path == "/robots.txt":
        return 404, b"text/plain", b""
    number = int(path.strip("/").removesuffix(".html"))
    first = (int(site.replace(".", "")) * 10**7 + number) * _TO_GIANT
    links = "".join(f'<a href="{giant}/{first + n}.html">{n}</a> ' for n in range(_TO_GIANT))
    links += "".join(f'<a href="/{number * _TO_ITSELF + n}.html">next</a> ' for n in range(1, _TO_ITSELF + 1))
    text = f"<!doctype html><title>Page {number} of {site}</title><p>{number} at {site}.</p>{links}"
    return 200, b"text/html; charset=utf-8", text.encode()


def _page_of_tiny_site(site: str, path: str) -> Reply:
    if path == "/robots.txt":
        return 404, b"text/plain", b""
    links = "".join(f'<a href="/{number}.html">{number}</a> ' for number in range(_TINY_PAGES))
    text = f"<!doctype html><title>{path} of {site}</title><p>{path} at {site}, {'a page of a small site. ' * 80}</p>{links}"
    return 200, b"text/html; charset=utf-8", text.encode()


if __name__ == "__main__":
    sys.exit(finish(main))
