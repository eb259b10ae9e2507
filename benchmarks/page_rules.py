"""Crawls with what is taken from pages besides their text, against the same crawl without: `python -m benchmarks.page_rules`.

That is ten extraction rules for each page, the main content, Markdown, and the sections as parts.

All crawl one site in turn; the ratios are of pages a second, pair by pair.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.collection import NAME, BenchCollection
from benchmarks.measure import Cost, Row, finish, in_turn, median_ratio
from benchmarks.whole_crawl import Ground, site_served

_NOTHING, _RULES, _MAIN, _MARKDOWN, _PARTS = "nothing", "ten rules on every page", "main content", "Markdown", "parts"
_TARGETS = {_RULES: 0.7, _MAIN: 0.4, _MARKDOWN: 0.7}
_SOURCES = (
    *(
        'css = "h1"',
        'css = "p"',
        'css = "a::attr(href)"\ntake = "all"\ntype = "url"',
        'css = "p b"\ntype = "number"',
        'css = "title"',
    ),
    *('xpath = "//p[2]"', 'xpath = "count(//a)"', 'meta = "description"', 'jsonld = "offers.price"', 'url = "/([^/]+)$"'),
)


def main(arguments: Sequence[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Measure extraction rules and main content in a crawl.")
    parser.add_argument("--pages", type=int, default=6_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    rules = "".join(f'[[field]]\nname = "field_{number}"\n{source}\n' for number, source in enumerate(_SOURCES))
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, site_served(Path(folder), options.pages) as ground:
        programs = {
            _NOTHING: partial(_crawl, ground, {}, ""),
            _RULES: partial(_crawl, ground, {}, rules),
            _MAIN: partial(_crawl, ground, {"CRAWLSPACE_MAIN_CONTENT": "main"}, ""),
            _MARKDOWN: partial(_crawl, ground, {"CRAWLSPACE_MARKDOWN": True}, ""),
            _PARTS: partial(_crawl, ground, {"CRAWLSPACE_PARTS": "headings"}, ""),
        }
        costs = in_turn(programs, options.rounds)
    return [_row(name, costs, options.pages) for name in programs]


def _crawl(ground: Ground, settings: Mapping[str, object], rules: str) -> Cost:
    folder = ground.folder / "ours"
    shutil.rmtree(folder, ignore_errors=True)
    collection = BenchCollection(folder)
    configuration = ground.configuration
    configuration["settings"] = {**configuration["settings"], **settings}
    collection.write(**configuration)
    if rules:
        (folder / "collections" / NAME / "extract.toml").write_text(rules, encoding="utf-8")
    return collection.crawl()


def _row(name: str, costs: Mapping[str, Sequence[Cost]], pages: int) -> Row:
    rates = {one: [cost.pages_per_s(pages) for cost in of_one] for one, of_one in costs.items()}
    ratio = median_ratio(rates[name], rates[_NOTHING])
    shown = f"{median(rates[name]):.0f} pages/s, {ratio:.2f} of without, CPU {median(cost.cpu_s for cost in costs[name]):.1f} s"
    if name not in _TARGETS:
        return Row("page_rules", name, shown)
    return Row("page_rules", name, shown, f"at least {_TARGETS[name]}", ratio >= _TARGETS[name])


if __name__ == "__main__":
    sys.exit(finish(main))
