"""Pages that scripts make: our crawl beside plain scrapy-playwright, the memory of the browser, and what `auto` renders.

    python -m benchmarks.rendering --pages 5000 --rounds 1 --playwright FOLDER

FOLDER has scrapy-playwright (`pip install --no-deps --target FOLDER scrapy-playwright`); the extra `browser` and Chromium must be there.
Processes are looked at twice a second, so that those count whose parents do not wait for them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil

from benchmarks.baselines import RENDERED_AT_ONCE
from benchmarks.collection import NAME, BenchCollection
from benchmarks.measure import SCRAPY, BenchmarkFailed, Row, finish, median_ratio, say, start, tail
from benchmarks.serve import folder_server
from crawlspace.runtime.browser.process import find_program

_LOOK_EVERY_S = 0.5
_LIMIT_S = 7_200.0
_SHELL = """<!doctype html><html><head><link rel="stylesheet" href="/style.css"><script src="/vendor.js"></script>
<script type="module" src="/app.js"></script></head><body><div id="app"></div><img src="/logo.png"></body></html>"""
_APP = """const data = await (await fetch('/data' + location.pathname.replace('.html', '.json'))).json();
document.title = data.title;
document.getElementById('app').innerHTML = `<h1>${data.title}</h1>` + data.text.map((one) => `<p>${one}</p>`).join('')
  + data.links.map((link) => `<li><a href="${link}">${link}</a></li>`).join('');
"""
_FRAMEWORK = "/* a framework */ (() => {{ const all = []; for (let n = 0; n < 20000; n++) all.push({{n}}); }})();\n//{}".format(
    "x" * 200_000
)
_SHARE = 0.15
"""Of the pages of a site with 10 % script pages, that are rendered at most."""


def main(arguments: Sequence[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Crawl pages that scripts make, in a browser.")
    parser.add_argument("--pages", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument(
        "--auto-pages", type=int, default=2_000, help="pages of the site of which a tenth are made by scripts; 0: none"
    )
    parser.add_argument("--memory", type=int, default=1536, help="CRAWLSPACE_BROWSER_MEMORY, in MiB")
    parser.add_argument("--playwright", metavar="FOLDER", help="has scrapy-playwright; without it only ours is measured")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="bench-render-") as temp:
        if options.pages:
            with site_served(Path(temp, "all"), options.pages, every=1) as site:
                rows += _compared(site, options.rounds, memory_mib=options.memory, playwright=options.playwright)
        if options.auto_pages:
            with site_served(Path(temp, "some"), options.auto_pages, every=10) as site:
                rows += _auto(site, memory_mib=options.memory)
    return rows


@dataclass(frozen=True, slots=True)
class ScriptSite:
    """A site, of which each `every`-th page is made by a script."""

    folder: Path
    origin: str
    pages: int
    every: int
    log: Path

    def is_script(self, number: int) -> bool:
        return number % self.every == self.every - 1

    @property
    def scripts(self) -> int:
        return sum(map(self.is_script, range(self.pages)))


@dataclass(frozen=True, slots=True)
class TreeCost:
    """The cost of a program and all processes below it. `browser_mb` are those of the browser and its driver."""

    wall_s: float
    cpu_s: float
    browser_mb: float
    rest_mb: float


@contextlib.contextmanager
def site_served(folder: Path, pages: int, *, every: int) -> Iterator[ScriptSite]:
    root = folder / "site"
    for name, text in {
        "app.js": _APP,
        "vendor.js": _FRAMEWORK,
        "style.css": "p { color: black }",
        "logo.png": "x" * 20_000,
    }.items():
        _write(root / name, text)
    with folder_server(root, access_log=folder / "access.log") as origin:
        site = ScriptSite(folder, origin, pages, every, folder / "access.log")
        for number in range(pages):
            links = [
                f"/p/{other}.html" for other in (5 * number + 1, 5 * number + 2, 5 * number + 3, 5 * number + 4, 5 * number + 5)
            ]
            links = [link for link, other in zip(links, range(5 * number + 1, 5 * number + 6), strict=True) if other < pages]
            words = [
                f"{word_of(number)}: paragraph {n} of page {number}, with some words that make it long enough." for n in range(20)
            ]
            if site.is_script(number):
                _write(root / f"p/{number}.html", _SHELL)
                _write(root / f"data/p/{number}.json", json.dumps({"title": f"Page {number}", "text": words, "links": links}))
            else:
                listed = "".join(f"<p>{one}</p>" for one in words) + "".join(f'<a href="{link}">{link}</a>' for link in links)
                _write(
                    root / f"p/{number}.html",
                    f'<!doctype html><title>Page {number}</title><script src="/vendor.js"></script><h1>Page {number}</h1>{listed}',
                )
        yield site


def word_of(number: int) -> str:
    """Return a word that one page has alone."""
    return f"word{number:06d}"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _compared(site: ScriptSite, rounds: int, *, memory_mib: int, playwright: str | None) -> list[Row]:
    programs: dict[str, Callable[[], TreeCost]] = {"crawlspace": partial(_ours, site, "always", memory_mib)}
    if playwright:
        programs["scrapy-playwright"] = partial(_playwright, site, playwright)
    costs: dict[str, list[TreeCost]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, program in programs.items():
            cost = program()
            say(f"{name}: {cost}")
            costs[name].append(cost)
    rows = [
        Row(
            "rendering",
            f"{name}: pages/s, CPU a page, browser, the rest",
            f"{site.pages / cost.wall_s:.1f}/s, {1000 * cost.cpu_s / site.pages:.0f} ms, {cost.browser_mb:.0f} MB, {cost.rest_mb:.0f} MB",
        )
        for name, all_costs in costs.items()
        for cost in all_costs
    ]
    most = max(cost.browser_mb for cost in costs["crawlspace"])
    rows.append(Row("rendering", "memory of the browser", f"{most:.0f} MB", f"<= {memory_mib}", most <= memory_mib))
    if playwright:
        ours, theirs = costs["crawlspace"], costs["scrapy-playwright"]
        ratio = median_ratio([cost.wall_s for cost in theirs], [cost.wall_s for cost in ours])
        cpu = median_ratio([cost.cpu_s for cost in theirs], [cost.cpu_s for cost in ours])
        rows.append(
            Row(
                "rendering",
                f"against scrapy-playwright, pages/s of {site.pages}",
                f"{ratio:.2f} times (CPU {cpu:.2f} times)",
                ">= 1",
                ratio >= 1,
            )
        )
    return rows


def _auto(site: ScriptSite, *, memory_mib: int) -> list[Row]:
    cost = _ours(site, "auto", memory_mib)
    rendered = json.loads(_scrapy(site, "status", NAME, "--json"))["rendering"]["pages"]
    return [
        Row(
            "rendering",
            f"auto: pages/s of {site.pages}, of which {site.scripts} made by scripts",
            f"{site.pages / cost.wall_s:.1f}/s",
        ),
        Row(
            "rendering",
            "auto: pages rendered",
            f"{100 * rendered / site.pages:.1f} %",
            f"<= {100 * _SHARE:g} %",
            rendered <= _SHARE * site.pages,
        ),
    ]


def _ours(site: ScriptSite, mode: str, memory_mib: int) -> TreeCost:
    """Crawl, and check that each page is in the index with its own text."""
    folder = site.folder / "ours"
    shutil.rmtree(folder, ignore_errors=True)
    collection = BenchCollection(folder)
    settings: Mapping[str, object] = {
        "CRAWLSPACE_RENDER": mode,
        "CRAWLSPACE_BROWSER_PAGES": RENDERED_AT_ONCE,
        "CRAWLSPACE_BROWSER_MEMORY": memory_mib << 20,
    }
    collection.write(start_urls=[f"{site.origin}/p/0.html"], rules="", settings=settings)
    cost = tree_cost(collection.crawl_command(), environment=collection.environment, log=collection.log)
    _check(site, collection.items, collection.log)
    return cost


def _playwright(site: ScriptSite, folder: str) -> TreeCost:
    items, log = site.folder / "theirs.jsonl", site.folder / "theirs.log"
    command = [
        sys.executable,
        "-m",
        "benchmarks.baselines",
        "playwright",
        f"{site.origin}/p/0.html",
        str(items),
        find_program(""),
    ]
    cost = tree_cost(command, environment={"PYTHONPATH": folder}, log=log)
    _check(site, items, log)
    return cost


def _check(site: ScriptSite, items: Path, log: Path) -> None:
    """Raise BenchmarkFailed unless each page has been exported with its own word."""
    lines = map(json.loads, items.read_text(encoding="utf-8").splitlines())
    texts = {line["url"].rpartition("/")[2]: line["text"] for line in lines}
    wrong = [number for number in range(site.pages) if word_of(number) not in texts.get(f"{number}.html", "")]
    if wrong:
        raise BenchmarkFailed(f"{len(wrong)} pages of {site.pages} without their text, such as {wrong[0]}:\n{tail(log)}")


def _scrapy(site: ScriptSite, *arguments: str) -> str:
    collection = BenchCollection(site.folder / "ours")
    output = site.folder / "answer.txt"
    with output.open("wb") as file:
        process = start([*SCRAPY, *arguments], environment=collection.environment, output=file.fileno())
        if process.wait():
            raise BenchmarkFailed(tail(output))
    return output.read_text(encoding="utf-8")


def tree_cost(command: Sequence[str], *, environment: Mapping[str, str], log: Path) -> TreeCost:
    """Run a program to its end, and return what it and all processes below it have cost. Raises BenchmarkFailed."""
    with log.open("wb") as output:
        began = time.monotonic()
        process = start(command, environment=environment, output=output.fileno())
        watch = Watch(process.pid)
        watch.start()
        try:
            status = process.wait(_LIMIT_S)
        finally:
            process.kill()
            watch.end()
        wall_s = time.monotonic() - began
    if status:
        raise BenchmarkFailed(f"exit status {status}:\n{tail(log)}")
    return TreeCost(wall_s, sum(watch.cpu_s.values()), watch.browser_mb, watch.rest_mb)


class Watch(threading.Thread):
    """Looks at a tree of processes until it is ended."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._root = psutil.Process(pid)
        self._over = threading.Event()
        self.cpu_s: dict[tuple[int, float], float] = {}
        """By process, as last seen."""
        self.browser_mb = 0.0
        self.rest_mb = 0.0

    def run(self) -> None:
        while not self._over.wait(_LOOK_EVERY_S):
            browser = rest = 0.0
            with contextlib.suppress(psutil.Error):
                for one in (self._root, *self._root.children(recursive=True)):
                    with contextlib.suppress(psutil.Error):
                        times = one.cpu_times()
                        self.cpu_s[one.pid, one.create_time()] = times.user + times.system
                        used = one.memory_full_info().pss / 1e6
                        if "python" in one.name():
                            rest += used
                        else:
                            browser += used
            self.browser_mb, self.rest_mb = max(self.browser_mb, browser), max(self.rest_mb, rest)

    def end(self) -> None:
        self._over.set()
        self.join()


if __name__ == "__main__":
    sys.exit(finish(main))
