"""Kill a crawl at random moments, again and again: nothing may be lost, and hardly anything be done twice.

    python -m tests.long.crash --kills 25 --pages 2000
    python -m tests.long.crash --kills 25 --pages 2000 --processes 3

At the end each page is indexed exactly once, the store passes its check, and a page was fetched again only if it was in flight when
the crawl was killed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from benchmarks.collection import BenchCollection
from benchmarks.measure import BenchmarkFailed, Row, finish, say, start, stop, tail
from benchmarks.serve import PageServer, Reply
from benchmarks.site import START_PATH, children_of, path_of
from crawlspace.errors import StoreDamaged
from crawlspace.state.sqlite.store import SqliteStore
from tests.processes import children, ends_watched

_LIMIT_S = 120
_POLL_S = 0.002
_OF_OTHERS = 0.5
"""The share of kills before which another process of the crawl is killed."""


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Kill a crawl at random moments and see what it loses.")
    parser.add_argument("--kills", type=int, default=25)
    parser.add_argument("--pages", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1, help="at most so many for a crawl; some of them are killed, too")
    options = parser.parse_args(arguments)
    pages = {path_of(number): number for number in range(options.pages)}
    chance = random.Random(options.seed)
    moments = sorted(chance.sample(range(1, options.pages), options.kills))
    served: Counter[str] = Counter()
    leased: Counter[str] = Counter()
    most_leased = 0
    with tempfile.TemporaryDirectory(prefix="bench-crash-") as temp, PageServer(_answers(pages, served)) as server:
        origin = server.origins[0]
        collection = BenchCollection(Path(temp))
        collection.write(
            start_urls=[origin + START_PATH],
            rules=f"allow domain {origin.removeprefix('http://')}\nforbid domain *\n",
            settings={"CONCURRENT_REQUESTS_PER_DOMAIN": 16},
        )
        for number, moment in enumerate(moments, 1):
            _crawl_until(collection, served, moment, chance.random() * 0.05, chance.randint(1, options.processes), chance)
            out = _leased(collection, origin)
            leased.update(out)
            most_leased = max(most_leased, len(out))
            say(f"kill {number} at {len(served)} pages, {len(out)} out for fetching")
        collection.crawl(limit_s=_LIMIT_S * 5)
        states = collection.states()
        found = Counter(url.removeprefix(origin) for url in collection.index_urls())
        sound = _sound(collection)
    indexed = {state.url.removeprefix(origin) for state in states if state.indexed}
    again = Counter({path: times - 1 for path, times in served.items() if times > 1})
    unexplained = again - leased
    lost = [path for path in pages if path not in indexed or found[path] != 1]
    for path in lost[:10]:
        say(f"MISSING {path}")
    for path in list(unexplained)[:10]:
        say(f"TWICE   {path}")
    name = "crash"
    return [
        Row(
            name,
            f"pages indexed exactly once after {options.kills} kills",
            f"{options.pages - len(lost)} of {options.pages}",
            "all",
            not lost and len(states) == options.pages,
        ),
        Row(name, "documents in the index", f"{found.total()}", f"{options.pages}", found.total() == options.pages),
        Row(
            name,
            "pages fetched again; of them not out for fetching at a kill",
            f"{again.total()}; {unexplained.total()}",
            f"<= {options.kills} × {most_leased}; 0",
            not unexplained and again.total() <= options.kills * most_leased,
        ),
        Row(name, "the store passes its check", "yes" if sound else "no", "yes", sound),
    ]


def _answers(pages: dict[str, int], served: Counter[str]) -> Callable[[str, str], Reply]:
    """Answer with a site of these pages, each reachable through a tree of links, and count what is served."""

    def answer(_: str, path: str) -> Reply:
        number = pages.get(path)
        if number is None:
            return 404, b"text/html", b"<title>404</title>"
        served[path] += 1
        links = [*children_of(number, len(pages)), 0, (number * 7919) % len(pages), (number * 104729) % len(pages)]
        anchors = "".join(f'<a href="{path_of(link)}">{link}</a> ' for link in links)
        text = f"<!doctype html><title>Page {number}</title><p>This is page {number}.</p>{anchors}"
        return 200, b"text/html; charset=utf-8", text.encode()

    return answer


def _crawl_until(
    collection: BenchCollection, served: Counter[str], pages: int, wait_s: float, processes: int, chance: random.Random
) -> None:
    """Start the crawl and kill it shortly after that many different pages have been served, sometimes after another process of it.

    None of those may be left.
    """
    with collection.log.open("wb") as output:
        process = start(
            collection.crawl_command("--processes", str(processes)), environment=collection.environment, output=output.fileno()
        )
        deadline = time.monotonic() + _LIMIT_S
        try:
            while len(served) < pages:
                if process.poll() is not None:
                    raise BenchmarkFailed(f"the crawl ended by itself with status {process.returncode}:\n{tail(collection.log)}")
                if time.monotonic() > deadline:
                    raise BenchmarkFailed(f"{pages} pages were not reached in {_LIMIT_S} s:\n{tail(collection.log)}")
                time.sleep(_POLL_S)
            time.sleep(wait_s)
            others = sorted(children(process.pid))
            if others and chance.random() < _OF_OTHERS:
                os.kill(chance.choice(others), signal.SIGKILL)
                time.sleep(wait_s)
            with ends_watched(children(process.pid)):
                stop(process, signal.SIGKILL)
        finally:
            stop(process, signal.SIGKILL)


def _leased(collection: BenchCollection, origin: str) -> list[str]:
    if not collection.store_file.exists():
        return []
    with contextlib.closing(SqliteStore(collection.store_file)) as store:
        return [state.url.removeprefix(origin) for state in store.urls(leased=True)]


def _sound(collection: BenchCollection) -> bool:
    with contextlib.closing(SqliteStore(collection.store_file)) as store:
        try:
            store.check()
        except StoreDamaged:
            return False
    return True


if __name__ == "__main__":
    sys.exit(finish(main))
