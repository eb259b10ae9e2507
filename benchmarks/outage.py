"""A site that is down for a week, kind after kind of failure, and then returns: as it was, and with most of its pages really gone.

    python -m benchmarks.outage --pages 5000 --real 1000

Once with the real engine and store over a simulated web, whose clock goes on a month between two crawls; and once, with fewer pages, as
real crawls over HTTP, between which everything is made due, as its interval would.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.collection import NAME, BenchCollection
from benchmarks.measure import PROJECT, SCRAPY, BenchmarkFailed, Row, finish, say
from benchmarks.serve import free_port
from crawlspace.engine import SINK
from crawlspace.model import Status
from crawlspace.state.sqlite import SqliteStore
from crawlspace.upkeep import Upkeep
from tests.sites import Reply, Request, Site, drop, page, serve, status
from tests.unit.test_engine_life import HOME, Web

_WEEK = ("503", "503", "refuses", "refuses", "refuses", "resets", "resets")
_A_HUB = 100


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="See what an outage of a week costs.")
    parser.add_argument("--pages", type=int, default=5_000, help="of the simulated web")
    parser.add_argument("--real", type=int, default=1_000, help="pages that are really served")
    options = parser.parse_args(arguments)
    return [*_simulated(options.pages), *_served(options.real)]


def _simulated(pages: int) -> list[Row]:
    """The engine over SQLite, with a clock and a transport of ours."""
    codes = {"503": 503, "refuses": int(Status.CONNECT_ERROR), "resets": int(Status.CONNECT_ERROR)}
    with (
        tempfile.TemporaryDirectory(prefix="bench-outage-") as temp,
        contextlib.closing(SqliteStore(Path(temp, "state.db"), sinks=(SINK,))) as store,
    ):
        web = Web(Path(temp), store)
        names = [f"{HOME}{number}" for number in range(pages - 1)]
        well: dict[str, str | int] = {HOME: "home", **{name: name for name in names}}
        web.links = {HOME: names}
        web.pages = dict(well)
        web.crawl()
        lost = _week(web, codes, well, pages)
        held = store.counts().held
        web.pages = dict(well)
        web.crawl(after=31)
        back, held_after = len(web.indexed), store.counts().held
        _week(web, codes, well, pages)
        gone = set(random.Random(1).sample(names, round(0.6 * pages)))
        web.pages = {url: what for url, what in well.items() if url not in gone}
        web.crawl(after=31)
        left, waiting = pages - len(web.indexed), store.counts().held
        Upkeep(store, clock=web.clock).approve()
        web.crawl()
        finally_left = {HOME + name for name in {url.removeprefix(HOME) for url in well} - web.indexed}
    benchmark, most = "outage", max(100, pages // 10)
    return [
        Row(benchmark, "simulated: pages; a week of 503, refusals and resets", str(pages)),
        Row(benchmark, "documents lost during the week", str(lost), "0", lost == 0),
        Row(benchmark, "deletions held at its end", str(held)),
        Row(
            benchmark,
            "documents lost, held after the return",
            f"{pages - back}, {held_after}",
            "0, 0",
            (back, held_after) == (pages, 0),
        ),
        Row(
            benchmark,
            f"{len(gone)} pages really gone: left at once, held as too many",
            f"{left}, {waiting}",
            f"{most}, {len(gone) - most}",
            (left, waiting) == (most, len(gone) - most),
        ),
        Row(
            benchmark,
            "left when approved: gone pages, others",
            f"{len(finally_left & gone)}, {len(finally_left - gone)}",
            f"{len(gone)}, 0",
            finally_left == gone,
        ),
    ]


def _week(web: Web, codes: dict[str, int], well: dict[str, str | int], pages: int) -> int:
    """Seven crawls while the site fails; return the most documents that were missing after one."""
    lost = 0
    for how in _WEEK:
        web.pages = dict.fromkeys(well, codes[how])
        web.crawl(after=31)
        lost = max(lost, pages - len(web.indexed))
    return lost


def _served(pages: int) -> list[Row]:
    """Real crawls over HTTP."""
    with tempfile.TemporaryDirectory(prefix="bench-outage-") as temp:
        run = _Outage(BenchCollection(Path(temp)), pages)
        run.crawl("well")
        everything = run.indexed()
        if len(everything) != pages:
            raise BenchmarkFailed(f"{len(everything)} of {pages} pages were indexed")
        lost = 0
        for how in _WEEK:
            run.crawl(how)
            lost = max(lost, pages - len(run.indexed()))
        held = run.held()
        run.crawl("well")
        back, held_after = run.indexed(), run.held()
        for how in _WEEK:
            run.crawl(how)
        gone = run.lose(0.6)
        run.crawl("well")
        left = everything - run.indexed()
        most = max(100, pages // 10)
        waiting = run.held()
        run.command("deletions", NAME, "--approve")
        finally_left = everything - run.indexed()
    benchmark = "outage"
    exact = left <= gone and len(left) == most and waiting == len(gone) - most
    return [
        Row(benchmark, "served: pages; a week of 503, refusals and resets", str(pages)),
        Row(benchmark, "documents lost during the week", str(lost), "0", lost == 0),
        Row(benchmark, "deletions held at its end", str(held)),
        Row(
            benchmark,
            "documents lost, held after the return",
            f"{len(everything - back)}, {held_after}",
            "0, 0",
            (back, held_after) == (everything, 0),
        ),
        Row(
            benchmark,
            f"{len(gone)} pages really gone: left at once, held as too many",
            f"{len(left)}, {waiting}",
            f"{most}, {len(gone) - most}",
            exact,
        ),
        Row(
            benchmark,
            "left when approved: gone pages, others",
            f"{len(finally_left & gone)}, {len(finally_left - gone)}",
            f"{len(gone)}, 0",
            finally_left == gone,
        ),
    ]


class _Outage:
    """A site, the collection that crawls it, and how the site answers at present."""

    def __init__(self, collection: BenchCollection, pages: int) -> None:
        self._collection = collection
        self._port = free_port()
        self._origin = f"http://127.0.0.1:{self._port}"
        self._site = Site({"/robots.txt": status(404)})
        hubs = [f"/hub/{number}" for number in range(-(-(pages - 1) // _A_HUB))]
        names = [f"/page/{number}" for number in range(pages - 1 - len(hubs))]
        self._site["/"] = page("Home", text="home", links=hubs)
        for number, hub in enumerate(hubs):
            own = names[number :: len(hubs)]
            self._site[hub] = page(f"Hub {number}", text=hub, links=own)
        for name in names:
            self._site[name] = page(f"Page {name}", text=f"words of {name}", headers={"ETag": f'"{name}"'})
        self._names = names
        collection.write(
            start_urls=[f"{self._origin}/"],
            rules=f"allow domain 127.0.0.1:{self._port}\nforbid domain *\n",
            settings={"RETRY_TIMES": 1, "CRAWLSPACE_RETRY_WAIT": 0.2, "CONCURRENT_REQUESTS_PER_DOMAIN": 16},
        )

    def crawl(self, how: str) -> None:
        """One simulated day."""
        say(f"a day on which the site is {how}" if how == "well" else f"a day on which the site {how}")
        if self._collection.store_file.exists():
            with contextlib.closing(SqliteStore(self._collection.store_file)) as store:
                store.hasten(0)
        with self._answering(how):
            self._collection.crawl()

    @contextlib.contextmanager
    def _answering(self, how: str) -> Iterator[None]:
        if how == "refuses":
            yield
            return
        with serve(self._site if how == "well" else _failing(how), port=self._port):
            yield

    def lose(self, share: float) -> set[str]:
        """Have a share of the pages be gone; return their URLs."""
        gone = random.Random(1).sample(self._names, round(share * len(self._names)))
        for name in gone:
            self._site[name] = status(404)
        return {self._origin + name for name in gone}

    def indexed(self) -> set[str]:
        return set(self._collection.index_urls())

    def held(self) -> int:
        with contextlib.closing(SqliteStore(self._collection.store_file, read_only=True)) as store:
            return store.counts().held

    def command(self, *words: str) -> None:
        done = subprocess.run(
            [*SCRAPY, *words],
            cwd=PROJECT,
            env={**os.environ, **self._collection.environment},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise BenchmarkFailed(f"scrapy {' '.join(words)} ended with {done.returncode}: {done.stderr}")


def _failing(how: str) -> Site:
    reply: Reply = status(503) if how == "503" else drop(reset=True)

    def answer(request: Request) -> Reply:
        return status(404) if request.path == "/robots.txt" else reply

    return Site({}, otherwise=answer)


if __name__ == "__main__":
    sys.exit(finish(main))
