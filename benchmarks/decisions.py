"""Decisions a second with 10, 1,000 and 100,000 rules of each type: `python -m benchmarks.decisions`.

A decision has to cost about the same with ten rules and with a hundred thousand. Each row times the same mixed list of URLs, half of
which meet a rule: literal hosts and paths, wildcards at either end and inside, and thousands of patterns that share one beginning.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from crawlspace.rules.crawl_rules import parse_crawl_rules
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import CrawlSpace
from crawlspace.urls import Url, parse

SIZES = (10, 1_000, 100_000)
LEAST_RATIO = 0.5
"""The largest rule set must decide at least half as fast as the smallest."""


class Row(NamedTuple):
    """`ratio` is the speed of `static` compared with the first row of the same kind of rules."""

    rules: str
    count: int
    load_s: float
    static_per_s: float
    decide_per_s: float
    connect_per_s: float
    ratio: float


def domain_rules(count: int) -> list[str]:
    """80 % literal hosts, 10 % subtrees, 5 % beginnings, 5 % with a star inside; some for one port."""
    shapes = ["www{n}.example.com"] * 14 + ["www{n}.example.com:8080"] * 2 + ["*.dept{n}.example.com"] * 2
    shapes += ["intra{n}*", "server*.site{n}.example.net"]
    return [f"{_action(n)} domain {shapes[n % len(shapes)].format(n=n)}" for n in range(count)]


def prefix_rules(count: int) -> list[str]:
    """90 % literal, 8 % with a star inside, 2 % with a star in the host."""
    shapes = ["http://www{n}.example.com/docs/"] * 25 + ["http://www1.example.com/area/{n}/"] * 20
    shapes += ["http://www{n}.example.com/*/private/"] * 4 + ["http://*.dept{n}.example.com/old/"]
    return [f"{_action(n)} prefix {shapes[n % len(shapes)].format(n=n)}" for n in range(count)]


def shared_head_rules(count: int) -> list[str]:
    """All of them with one literal beginning and a star behind it."""
    return [f"{_action(n)} prefix http://www1.example.com/*/item{n}/*.html" for n in range(count)]


def address_rules(count: int) -> list[str]:
    masks = ("255.255.255.255", "255.255.255.0", "255.255.0.0", "255.0.255.0")
    return [f"{_action(n)} address {n >> 16 & 255}.{n >> 8 & 255}.{n & 255}.7 {masks[n % 4]}" for n in range(count)]


def all_rules(count: int) -> list[str]:
    return domain_rules(count) + prefix_rules(count) + address_rules(count)


KINDS: dict[str, Callable[[int], list[str]]] = {
    "domain": domain_rules,
    "prefix": prefix_rules,
    "prefix, one head": shared_head_rules,
    "address": address_rules,
    "all types": all_rules,
}


def main(sizes: Sequence[int] = SIZES, *, urls: int = 4_000, repeat: int = 3) -> list[Row]:
    """Return a row for each kind of rules and size, in this order."""
    rows: list[Row] = []
    for kind, make in KINDS.items():
        base = 0.0
        for count in sizes:
            text = "\n".join(make(count))
            begun = time.perf_counter()
            space = CrawlSpace(parse_crawl_rules(text, file="crawl.rules"), Limits(), [parse("http://www1.example.com/")])
            load_s = time.perf_counter() - begun
            texts = mixed_urls(count, urls)
            parsed = [parse(url) for url in texts]
            static = _rate(space.decide_static, parsed, repeat)
            decide = _rate(lambda url, space=space: space.decide(url), texts, repeat)  # type: ignore[misc]
            connect = _rate(lambda ip, space=space: space.at_connect("h", 80, ip), _addresses(count), repeat)  # type: ignore[misc]
            base = base or static
            rows.append(Row(kind, count, load_s, static, decide, connect, static / base))
    return rows


def mixed_urls(rules: int, count: int) -> list[str]:
    """Half of them meet a rule of a set of that size."""
    chosen = random.Random(7)
    paths = ("/docs/a.html", "/a/private/b", "/x/item{n}/p.html", "/area/{n}/", "/other/page.html?id={n}", "/old/")
    hosts = ("www{n}.example.com", "www1.example.com", "a.dept{n}.example.com", "server9.site{n}.example.net", "intra{n}.local")
    urls: list[str] = []
    for place in range(count):
        n = chosen.randrange(rules) if place % 2 else rules + place
        urls.append(f"http://{chosen.choice(hosts).format(n=n)}{chosen.choice(paths).format(n=n)}")
    return urls


def _addresses(rules: int) -> list[str]:
    chosen = random.Random(7)
    return [f"{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}.7" for n in (chosen.randrange(2 * rules) for _ in range(2_000))]


def _rate(decide: Callable[[Url], object] | Callable[[str], object], items: Sequence[Url] | Sequence[str], repeat: int) -> float:
    """Items a second of CPU time, the best of some runs."""
    best = float("inf")
    for _ in range(repeat):
        begun = time.process_time()
        for item in items:
            decide(item)  # type: ignore[arg-type]
        best = min(best, time.process_time() - begun)
    return len(items) / best


def _action(number: int) -> str:
    return "forbid" if number % 3 else "allow"


def _print(rows: Sequence[Row]) -> None:
    print(f"{'rules':18}{'count':>9}{'load':>9}{'static/s':>11}{'decide/s':>11}{'connect/s':>11}{'ratio':>8}")
    for row in rows:
        print(
            f"{row.rules:18}{row.count:>9,}{row.load_s:>8.2f}s{row.static_per_s:>11,.0f}{row.decide_per_s:>11,.0f}"
            f"{row.connect_per_s:>11,.0f}{row.ratio:>8.2f}"
        )


if __name__ == "__main__":
    measured = main()
    _print(measured)
    slow = [row for row in measured if row.ratio < LEAST_RATIO]
    raise SystemExit(f"slower than {LEAST_RATIO} of the smallest: {slow}" if slow else 0)
