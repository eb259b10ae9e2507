"""Decisions a second with 10, 1,000 and 100,000 rules of each type: `python -m benchmarks.decisions`.

A decision must cost about the same with ten rules and with a hundred thousand. Each row times a mixed list of URLs, half of which match
a rule of the type: literal, with stars at either end and inside, and thousands of patterns with one beginning. Address rules are checked
by `connect`; `static` in their rows is the cost of a decision without rules.
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
    """`ratio` is the speed of `static` (of `connect` for address rules) compared with the smallest set of the same kind."""

    rules: str
    number: int
    load_s: float
    static_per_s: float
    decide_per_s: float
    connect_per_s: float
    ratio: float


class Shape(NamedTuple):
    """A rule, and a URL that it applies to; no rule applies to the URL if its number is not among the rules'."""

    rule: str
    url: str


# Of every ten: six literal hosts, one of them for one port; two subtrees, a beginning, a star inside. The smallest set has all of them.
DOMAIN = [Shape("domain www{n}.example.com", "http://www{n}.example.com/docs/a.html")] * 5
DOMAIN += [Shape("domain www{n}.example.com:8080", "http://www{n}.example.com:8080/page?id={n}")]
DOMAIN += [Shape("domain *.dept{n}.example.com", "http://a.dept{n}.example.com/b/c/d.html")] * 2
DOMAIN += [Shape("domain intra{n}x*", "http://intra{n}x.local/")]
DOMAIN += [Shape("domain server*.site{n}.example.net", "http://server9.site{n}.example.net/x/y")]

# Of every ten: eight literal, four of them on one host; one with a star inside, one with a star in the host.
PREFIX = [Shape("prefix http://files{n}.example.com/docs/", "http://files{n}.example.com/docs/a.html")] * 4
PREFIX += [Shape("prefix http://www1.example.org/area/{n}/", "http://www1.example.org/area/{n}/a/b.html")] * 4
PREFIX += [Shape("prefix http://files{n}.example.com/*/private/", "http://files{n}.example.com/a/b/private/c.html")]
PREFIX += [Shape("prefix http://*.unit{n}.example.com/old/", "http://www.unit{n}.example.com/old/page?id={n}")]

ONE_HEAD = [Shape("prefix http://www1.example.org/*/item{n}/*.html", "http://www1.example.org/a/b/item{n}/c.html")]

NETMASKS = ("255.255.255.255", "255.255.0.255", "255.255.255.0", "255.255.255.248")
ADDRESS = [Shape(f"address {{a}}.{{b}}.{{c}}.7 {mask}", "http://www{n}.example.com/docs/a.html") for mask in NETMASKS]

KINDS: dict[str, list[list[Shape]]] = {
    "domain": [DOMAIN],
    "prefix": [PREFIX],
    "prefix, one head": [ONE_HEAD],
    "address": [ADDRESS],
    "all types": [DOMAIN, PREFIX, ADDRESS],
}


def main(sizes: Sequence[int] = SIZES, *, urls: int = 4_000, repeat: int = 3) -> list[Row]:
    """Return a row for each kind of rules and size, in this order."""
    rows: list[Row] = []
    for kind, lists in KINDS.items():
        base = 0.0
        for number in sizes:
            text = "\n".join(line for shapes in lists for line in _rules(shapes, number))
            begun = time.perf_counter()
            space = CrawlSpace(parse_crawl_rules(text, file="crawl.rules"), Limits(), [parse("http://www1.example.com/")])
            load_s = time.perf_counter() - begun
            texts = mixed_urls(lists, number, urls)
            parsed = [parse(url) for url in texts]
            static = _rate(space.decide_static, parsed, repeat)
            decide = _rate(lambda url, space=space: space.decide(url), texts, repeat)
            connect = _rate(lambda ip, space=space: space.at_connect("h", 80, ip), _addresses(number), repeat)
            measured = connect if lists == [ADDRESS] else static
            base = base or measured
            rows.append(Row(kind, number, load_s, static, decide, connect, measured / base))
    return rows


def mixed_urls(lists: Sequence[Sequence[Shape]], rules: int, count: int) -> list[str]:
    """Return URLs of all shapes; a rule of a set of that size applies to every second one."""
    chosen = random.Random(7)
    urls: list[str] = []
    for place in range(count):
        shapes = lists[(place >> 1) % len(lists)]
        number = chosen.randrange(rules)
        shape = shapes[number % len(shapes)]
        urls.append(_filled(shape.url, number if place % 2 else number + 10_000_000))
    return urls


def _rules(shapes: Sequence[Shape], count: int) -> list[str]:
    return [f"{'forbid' if n % 3 else 'allow'} {_filled(shapes[n % len(shapes)].rule, n)}" for n in range(count)]


def _filled(text: str, n: int) -> str:
    return text.format(n=n, a=n >> 16 & 255, b=n >> 8 & 255, c=n & 255)


def _addresses(rules: int) -> list[str]:
    """Return addresses; a rule applies to about half of them."""
    chosen = random.Random(7)
    return [_filled("{a}.{b}.{c}.7", chosen.randrange(2 * rules)) for _ in range(2_000)]


def _rate(decide: Callable[[Url], object] | Callable[[str], object], items: Sequence[Url] | Sequence[str], repeat: int) -> float:
    """Items a second of CPU time, the best of some runs."""
    best = float("inf")
    for _ in range(repeat):
        begun = time.process_time()
        for item in items:
            decide(item)  # type: ignore[arg-type]
        best = min(best, time.process_time() - begun)
    return len(items) / best


def _print(rows: Sequence[Row]) -> None:
    print(f"{'rules':18}{'count':>9}{'load':>9}{'static/s':>11}{'decide/s':>11}{'connect/s':>11}{'ratio':>8}")
    for row in rows:
        print(
            f"{row.rules:18}{row.number:>9,}{row.load_s:>8.2f}s{row.static_per_s:>11,.0f}{row.decide_per_s:>11,.0f}"
            f"{row.connect_per_s:>11,.0f}{row.ratio:>8.2f}"
        )


if __name__ == "__main__":
    measured = main()
    _print(measured)
    slow = [row for row in measured if row.ratio < LEAST_RATIO]
    raise SystemExit(f"slower than {LEAST_RATIO} of the smallest: {slow}" if slow else 0)
