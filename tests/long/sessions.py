"""Sessions that end at random while a site is crawled by several workers: `python -m tests.long.sessions --runs 20 --pages 2000`.

Each session of the site ends after 5 to 50 requests, and is answered then by a redirect, by 200 with the form of the log-in, or by 401. After
each run every page must be indexed with its own text, and no page of the log-in; nothing may have been deleted, and there may be no more
log-ins than one for each lost session and for each worker. Workers share their session over Redis in every other run.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from benchmarks.measure import BenchmarkFailed, Row, finish, say
from crawlspace.config.sinks import EMBEDDED
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.state.redis.store import RedisStore
from tests.command_line import start_scrapy
from tests.door import PASSWORD, USER, wiki
from tests.servers import another_client, emptied, redis_server
from tests.sites import serve

_NAME = "sessions"
_LASTS = range(5, 51)
_SETTINGS = """\
DOWNLOAD_DELAY = 0
CRAWLSPACE_STORE_URL = "redis://127.0.0.1:{port}/0"
CRAWLSPACE_SESSION_KEY = {key!r}
CRAWLSPACE_SITES = {{"{netloc}": {{"login": {login!r}, "allow_plain_http": True}}}}
"""


def main(arguments: Sequence[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Crawl a site whose sessions end at random.")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--pages", type=int, default=2_000)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    options = parser.parse_args(arguments)
    return list(_measured(options.runs, options.pages, options.workers, options.first))


def _measured(runs: int, pages: int, workers: int, first: int) -> Iterator[Row]:
    began = time.monotonic()
    faults: list[str] = []
    lost = logins = 0
    for seed in range(first, first + runs):
        with tempfile.TemporaryDirectory(prefix="bench-sessions-") as folder:
            found = _run(Path(folder), seed, pages, workers, shares=seed % 2 == 0)
        faults += [f"seed {seed}: {fault}" for fault in found.faults]
        lost, logins = lost + found.lost, logins + found.logins
        say(f"seed {seed}: {found.lost} sessions lost, {found.logins} log-ins, {'; '.join(found.faults) or 'as it should be'}")
    yield Row(_NAME, f"runs of {pages:,} pages by {workers} workers", f"{runs}")
    yield Row(_NAME, "sessions that ended by themselves, and log-ins", f"{lost:,}, {logins:,}")
    yield Row(_NAME, "faults", "; ".join(faults) or "0", "0", not faults)
    yield Row(_NAME, "seconds", f"{time.monotonic() - began:.0f}")


class _Found:
    def __init__(self) -> None:
        self.faults: list[str] = []
        self.lost = self.logins = 0


def _run(folder: Path, seed: int, pages: int, workers: int, *, shares: bool) -> _Found:
    door, found = wiki(pages, lasts=_LASTS, seed=seed), _Found()
    emptied().close()
    demo = folder / "collections" / "demo"
    demo.mkdir(parents=True)
    with serve(door.site) as server:
        login = {"type": "form", "url": server.url("/login"), "fields": {"user": USER, "password": "env:WIKI_PASSWORD"}}
        key = "env:SESSION_KEY" if shares else ""
        values = {"port": redis_server().port, "key": key, "netloc": server.netloc, "login": login}
        (demo / "settings.py").write_text(_SETTINGS.format(**values), encoding="utf-8")
        (demo / "start_urls.txt").write_text(server.url("/") + "\n", encoding="utf-8")
        env = {"CRAWLSPACE_COLLECTIONS_DIR": str(folder / "collections"), "WIKI_PASSWORD": PASSWORD, "SESSION_KEY": "a key"}
        started = [
            start_scrapy(
                ["crawl", "demo"],
                output=folder / f"output{number}.txt",
                env={**env, "CRAWLSPACE_DATA_DIR": str(folder / f"machine{number}")},
            )
            for number in range(workers)
        ]
        for number, process in enumerate(started):
            if process.wait(timeout=1_800) != 0:
                raise BenchmarkFailed(f"worker {number} failed:\n{process.output()}")
        wanted = {server.url("/"): "the home page"} | {server.url(f"/{n}"): f"the text of page {n}" for n in range(pages)}
    found.lost, found.logins = door.lost, door.logins
    if door.logins > door.lost + (1 if shares else workers):
        found.faults.append(f"{door.logins} log-ins for {door.lost} sessions that ended")
    found.faults += _differences(folder, wanted)
    output = "".join(process.output() for process in started)
    if PASSWORD in output:
        found.faults.append("the password is in the output")
    return found


def _differences(folder: Path, wanted: dict[str, str]) -> Iterator[str]:
    """Yield what is not as it should be in the index and in the states."""
    with closing(RedisStore(another_client(), "demo", sinks=(EMBEDDED,))) as store:
        states = {state.url: state for state in store.urls()}
    indexed = {url for url, state in states.items() if state.indexed}
    if missing := sorted(wanted.keys() - indexed):
        yield f"{len(missing)} pages are not indexed, as {missing[0]}"
    if more := sorted(indexed - wanted.keys()):
        yield f"{len(more)} pages too many are indexed, as {more[0]}"
    for path in folder.glob("machine*/demo/index.db"):
        with closing(EmbeddedIndex(path, read_only=True)) as index:
            for url in index.urls():
                document = index.get(url)
                if document is None or wanted.get(url, "") not in document.text or "log in" in document.text.lower():
                    yield f"{url} has the text of another page"


if __name__ == "__main__":
    sys.exit(finish(main))
