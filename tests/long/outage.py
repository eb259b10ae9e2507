"""A site that is down for a week with each kind of failure, and then returns: as before, or with most of its pages gone.

    python -m tests.long.outage --pages 5000 --real 1000

Once with the real engine and store over a simulated web, whose clock advances a month between two crawls; and once, with fewer pages, as
real crawls over HTTP, between which everything is made due.
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
from crawlspace.admin.url_changes import UrlChanges
from crawlspace.config.sinks import EMBEDDED
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.model import NewUrl, Source
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.status import Status
from crawlspace.urls import parse, url_key
from tests.due_times import make_all_due_by
from tests.http import Reply, Request
from tests.sites import Site, drop, page, serve, status
from tests.unit.crawl.test_engine import HOME, Web

_WEEK = ("503", "503", "refuses", "refuses", "refuses", "resets", "resets")
_A_HUB = 100
_AT_ONCE = 10_000
_LONG_AGO = 1_750_000_000


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="See what an outage of a week costs.")
    parser.add_argument("--pages", type=int, default=5_000, help="of the simulated web")
    parser.add_argument("--real", type=int, default=1_000, help="pages that are really served")
    parser.add_argument("--dead", type=int, default=1_000_000, help="known URLs of a site that is down for good")
    options = parser.parse_args(arguments)
    return [*_dead(options.dead), *_simulated(options.pages), *_served(options.real)]


def _dead(urls: int) -> list[Row]:
    """Measure the extra cost of a run if all known URLs are of a site that refuses connections, compared with a single one."""
    costs = []
    for many in (1, urls):
        with tempfile.TemporaryDirectory(prefix="bench-dead-") as temp:
            collection = BenchCollection(Path(temp))
            origin = f"http://127.0.0.1:{free_port()}"
            settings = {"RETRY_TIMES": 0, "CRAWLSPACE_MAX_TEMPORARY_ERRORS": 1}
            collection.write(start_urls=[f"{origin}/"], rules="", settings=settings)
            collection.store_file.parent.mkdir(parents=True)
            with contextlib.closing(SqliteStore(collection.store_file, sinks=(EMBEDDED,))) as store:
                _fill(store, origin, many)
            with contextlib.closing(EmbeddedIndex(collection.index_file)):
                pass
            say(f"a run with {many:,} known URLs of a dead site")
            collection.crawl(may_fail=True)  # the rules are applied to all URLs, once
            costs.append(min((collection.crawl(may_fail=True) for _ in range(2)), key=lambda cost: cost.cpu_s))
            with contextlib.closing(SqliteStore(collection.store_file, read_only=True)) as store:
                (row,) = store.unreachable()
                if row.runs != 3:
                    raise BenchmarkFailed(f"{row.runs} runs were counted")
    one, all_of_them = costs
    more = all_of_them.cpu_s - one.cpu_s
    label = f"{urls:,} known URLs of a dead site: seconds of CPU a run takes more"
    return [Row("outage", label, f"{more:.2f} ({all_of_them.cpu_s:.2f} in all, {all_of_them.wall_s:.2f} s)", "< 2", more < 2)]


def _fill(store: SqliteStore, origin: str, urls: int) -> None:
    """Six of ten URLs were fetched and are due; the others are pending. None has a document, which the index would miss."""
    site = parse(f"{origin}/").site
    for first in range(0, urls, _AT_ONCE):
        texts = [f"{origin}/{number}" for number in range(first, min(first + _AT_ONCE, urls))]
        store.discover([NewUrl(url_key(text), text, site, Source.INDEX_FOLLOW, 0, 1, 0, 9) for text in texts], now=_LONG_AGO)
    done = urls * 6 // 10
    with store._file.writing() as db:
        db.execute(
            "UPDATE url SET state = 1, status = 200, next_fetch = ?1, interval_s = 86400 WHERE id <= ?2",
            (_LONG_AGO, done),
        )
        for name, by in (("state 0", -done), ("state 1", done), ("status 200", done)):
            db.execute("INSERT INTO tally VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = value + ?2", (name, by))


def _simulated(pages: int) -> list[Row]:
    """The engine over SQLite, with a clock and a transport of ours."""
    codes = {"503": 503, "refuses": int(Status.CONNECT_ERROR), "resets": int(Status.CONNECT_ERROR)}
    with (
        tempfile.TemporaryDirectory(prefix="bench-outage-") as temp,
        contextlib.closing(SqliteStore(Path(temp, "state.db"), sinks=(EMBEDDED,))) as store,
    ):
        web = Web(Path(temp), store)
        names = [f"{HOME}{number}" for number in range(pages - 1)]
        well: dict[str, str | int] = {HOME: "home", **{name: name for name in names}}
        web.links = {HOME: names}
        web.pages = dict(well)
        web.crawl()
        lost = _week(web, codes, well, pages)
        held = sum(store.held_numbers().values())
        web.pages = dict(well)
        web.crawl(after=31)
        back, held_after = len(web.indexed), sum(store.held_numbers().values())
        _week(web, codes, well, pages)
        gone = set(random.Random(1).sample(names, round(0.6 * pages)))
        web.pages = {url: what for url, what in well.items() if url not in gone}
        web.crawl(after=31)
        left, waiting = pages - len(web.indexed), sum(store.held_numbers().values())
        UrlChanges(store, clock=web.clock).approve()
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
    """Run seven crawls while the site fails; return the most documents missing after one."""
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
            f"{len(gone)} pages really gone: left at once, held as too many or as most of the site",
            f"{len(left)}, {waiting}",
            f"<= {most}, the others",
            left <= gone and len(left) <= most and waiting == len(gone) - len(left),
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
        """Simulate one day."""
        say(f"a day on which the site is {how}" if how == "well" else f"a day on which the site {how}")
        if self._collection.store_file.exists():
            with contextlib.closing(SqliteStore(self._collection.store_file)) as store:
                make_all_due_by(store, 0)
        with self._answering(how):
            self._collection.crawl(may_fail=how != "well")

    @contextlib.contextmanager
    def _answering(self, how: str) -> Iterator[None]:
        if how == "refuses":
            yield
            return
        with serve(self._site if how == "well" else _failing(how), port=self._port):
            yield

    def lose(self, share: float) -> set[str]:
        """Remove a share of the pages; return their URLs."""
        gone = random.Random(1).sample(self._names, round(share * len(self._names)))
        for name in gone:
            self._site[name] = status(404)
        return {self._origin + name for name in gone}

    def indexed(self) -> set[str]:
        return set(self._collection.index_urls())

    def held(self) -> int:
        with contextlib.closing(SqliteStore(self._collection.store_file, read_only=True)) as store:
            return sum(store.held_numbers().values())

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
