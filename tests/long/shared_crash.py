"""Kill workers of a shared crawl at random moments: the others continue, nothing may be lost, and little be done twice.

    python -m tests.long.shared_crash --kills 40 --pages 20000 --workers 3

Each killed worker is replaced by a new one. Every third kill hits the worker that drains the outbox, the last one just before the end.
At the end each page is in the index exactly once, and a page was fetched again only if a killed worker had leased it.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.collection import PREFIX, TIMEOUT_S, BenchCollection, SharedCollection, Sites, redis_server, start_urls
from benchmarks.measure import BenchmarkFailed, Row, finish, say, stop, tail
from benchmarks.politeness import hosts
from benchmarks.serve import PageServer
from crawlspace.config.sinks import EMBEDDED
from crawlspace.model import State

_NAME = "shared crash"
_LIMIT_S = 120
_POLL_S = 0.005
_SETTLED_S = 0.1
"""Time after which the server has done everything that a worker had sent before it was killed."""
_BEFORE_THE_END = 20

Page = tuple[str, str]
"""Host and path."""


def text_of(answer: object) -> str:
    """Return the text of a value of Redis; empty for none."""
    return answer.decode() if isinstance(answer, bytes) else ""


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Kill workers of a shared crawl at random moments and see what is lost.")
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--sites", type=int, default=40)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    sites = Sites(options.pages // options.sites)
    pages = options.pages // options.sites * options.sites
    chance = random.Random(options.seed)
    moments = [*sorted(chance.sample(range(1, pages - _BEFORE_THE_END), options.kills - 1)), pages - _BEFORE_THE_END]
    held: Counter[Page] = Counter()
    most_held = 0
    with (
        tempfile.TemporaryDirectory(prefix="bench-shared-") as temp,
        redis_server() as port,
        PageServer(sites.answer, hosts(11, options.sites)) as server,
    ):
        collection = SharedCollection(BenchCollection(Path(temp)), port)
        collection.write(
            start_urls=start_urls(server.origins),
            rules=f"allow domain 127.11.*:{server.port}\nforbid domain *\n",
            settings={"CONCURRENT_REQUESTS_PER_DOMAIN": 16},
        )
        began = time.monotonic()
        with _crew(collection, options.workers) as crew:
            for number, moment in enumerate(moments, 1):
                crew.wait_for(sites, moment)
                time.sleep(chance.random() * _SETTLED_S)
                worker, of_it = crew.kill(chance, drainer=number % 3 == 0 or number == len(moments))
                held.update(of_it)
                most_held = max(most_held, len(of_it))
                say(
                    f"{time.monotonic() - began:.0f} s, {len(sites.served)} pages: kill {number}, of {worker}, which held {len(of_it)}"
                )
                crew.add()
            crew.wait_for_end()
        took_s = time.monotonic() - began
        left = collection.orders()
        if left:  # as where the one that sends them was the last to be killed
            time.sleep(TIMEOUT_S)
            collection.crawl(["at-the-next-start"])
        states, indexed, dead = collection.states(), collection.files.index_urls(), collection.evictions()
    unexplained = sites.again - held
    found = Counter(map(_page, indexed))
    known = {_page(state.url) for state in states if state.indexed and state.state is State.DONE}
    lost = [page for page in sites.served if page not in known or found[page] != 1]
    for page in lost[:10]:
        say(f"MISSING {page}")
    for page in list(unexplained)[:10]:
        say(f"TWICE   {page}")
    complete = not lost and len(states) == len(sites.served) == pages
    again, kills = sites.again.total(), options.kills
    return [
        Row(
            _NAME,
            f"pages indexed exactly once after {kills} kills",
            f"{len(sites.served) - len(lost)} of {pages}",
            "all",
            complete,
        ),
        Row(_NAME, "documents in the index", f"{len(indexed)}", f"{pages}", len(indexed) == pages),
        Row(
            _NAME,
            "pages fetched again; of them not held by one that was killed",
            f"{again}; {unexplained.total()}",
            f"<= {kills} × {most_held}; 0",
            not unexplained and again <= kills * most_held,
        ),
        Row(_NAME, "index orders left for the next start", f"{left}", "0", left == 0),
        Row(_NAME, "URLs held by those that were killed, together", f"{held.total()}"),
        Row(_NAME, "live workers that expired", f"{dead}"),
        Row(_NAME, f"seconds, {options.workers} workers, {options.sites} sites", f"{took_s:.0f}"),
    ]


@dataclass(slots=True)
class _Crew:
    """The workers that run, by the name of their logs."""

    collection: SharedCollection
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    begun: int = 0

    def add(self) -> None:
        self.begun += 1
        name = f"worker-{self.begun}"
        self.running[name] = self.collection.start(name)

    def wait_for(self, sites: Sites, pages: int) -> None:
        """Wait until so many different pages were sent. Raises BenchmarkFailed if a worker ends before, or after a timeout."""
        deadline = time.monotonic() + _LIMIT_S
        while len(sites.served) < pages:
            for name, process in self.running.items():
                if process.poll() is not None:
                    self._fail(f"{name} ended at {len(sites.served)} pages with status {process.returncode}", [name])
            if time.monotonic() > deadline:
                self._fail(f"{len(sites.served)} pages were sent in {_LIMIT_S} s, not {pages}", list(self.running))
            time.sleep(_POLL_S)

    def kill(self, chance: random.Random, *, drainer: bool) -> tuple[str, list[Page]]:
        """Kill a worker, if requested the one that drains the outbox. Returns its name, and the pages it had leased."""
        client = self.collection.client()
        by_process = {process.pid: name for name, process in self.running.items()}
        drains = text_of(client.hget(PREFIX + "drain", EMBEDDED))
        victim = by_process.get(int(drains.split(":")[1])) if drains and drainer else None
        name = victim or chance.choice(sorted(self.running))
        process = self.running.pop(name)
        process.send_signal(signal.SIGSTOP)  # else a joining worker could take over its leases before they are read
        try:
            time.sleep(_SETTLED_S)
            workers = [text_of(worker) for worker in client.zrange(PREFIX + "workers", 0, -1)]
            own = [worker for worker in workers if worker.split(":")[1] == str(process.pid)]
            role = "new" if not own else "drains" if own[0] == drains else "fetches"
            held = [page for worker in own for page in self._held(worker)]
        finally:
            stop(process, signal.SIGKILL)
        return f"{name} ({role})", held

    def wait_for_end(self) -> None:
        """Wait until each has ended by itself. Raises BenchmarkFailed if one fails, or after a timeout."""
        deadline = time.monotonic() + _LIMIT_S
        while any(process.poll() is None for process in self.running.values()):
            if time.monotonic() > deadline:
                self._fail("the crawl does not end", [name for name, one in self.running.items() if one.poll() is None])
            time.sleep(_POLL_S)
        failed = [name for name, process in self.running.items() if process.returncode]
        if failed:
            self._fail("workers failed", failed)

    def _held(self, worker: str) -> list[Page]:
        client = self.collection.client()
        number = client.hget(f"{PREFIX}worker:{worker}", "number")
        ids = [int(id) for id, lease in client.hgetall(PREFIX + "lease").items() if lease.split()[1] == number]
        store = self.collection.store()
        urls = [state.url for id in ids if (state := store.get_by_id(id)) is not None]
        store.close()
        return list(map(_page, urls))

    def _fail(self, why: str, names: Sequence[str]) -> None:
        raise BenchmarkFailed(f"{why}:\n" + "\n".join(f"{name}: {tail(self.collection.log(name))}" for name in names))


@contextmanager
def _crew(collection: SharedCollection, workers: int) -> Iterator[_Crew]:
    crew = _Crew(collection)
    try:
        for _ in range(workers):
            crew.add()
        yield crew
    finally:
        for process in crew.running.values():
            stop(process, signal.SIGKILL)


def _page(url: str) -> Page:
    parts = urlsplit(url)
    return parts.hostname or "", parts.path


if __name__ == "__main__":
    sys.exit(finish(main))
