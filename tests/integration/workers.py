"""Workers of one collection, each a process with a data folder of its own, as on a machine of its own; and sites for them."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path

from crawlspace.config.sinks import EMBEDDED
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.model import UrlState
from crawlspace.state.redis.store import RedisStore
from tests.command_line import CompletedRun, run_scrapy, start_scrapy
from tests.conftest import Project
from tests.http import Reply, Request
from tests.integration import stored
from tests.notifications import Running
from tests.servers import another_client, changes_reported, redis_server
from tests.sites import Server, Site, held, page

FAST = f"{stored.FAST}CRAWLSPACE_WORKER_TIMEOUT = 300\n"
"""No worker expires because its machine is busy; a test has one expire by `Team.expire`."""


class Team:
    """Workers of the collection `demo`; each is a process with data and output of its own."""

    def __init__(self, project: Project, settings: str) -> None:
        self.project = project
        self.env = {**project.env, "CRAWLSPACE_STORE": ""}
        self.store = RedisStore(another_client(), "demo", sinks=(EMBEDDED,))
        self._workers: list[Running] = []
        url = f"CRAWLSPACE_STORE_URL = 'redis://127.0.0.1:{redis_server().port}/0'\n"
        project.write({"demo/settings.py": FAST + url + settings})

    def data(self, number: int) -> Path:
        return self.project.folder / f"machine{number}"

    def start(self, *args: str, first: Callable[[], None] | None = None) -> Running:
        """`first`: what is called in its process before."""
        number = len(self._workers)
        output = self.project.folder / f"output{number}.txt"
        env = {**self.project.env, "CRAWLSPACE_DATA_DIR": str(self.data(number))}
        process = start_scrapy(["crawl", "demo", *args], output=output, env=env, first=first)
        self.project.started.append(process)
        self._workers.append(process)
        return process

    def run(self, *args: str) -> CompletedRun:
        """Run a command on the first machine."""
        return run_scrapy(args, env={**self.project.env, "CRAWLSPACE_DATA_DIR": str(self.data(0))})

    def output(self, number: int = 0) -> str:
        return self._workers[number].output()

    def wait(self, *, statuses: Collection[int] = (0,)) -> None:
        """Until all have ended; those that were not killed must have done so with one of these statuses."""
        for worker in self._workers:
            assert worker.wait() in (*statuses, -signal.SIGKILL), worker.output()

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait for a condition that a request, an output or an end may change."""
        self.project.until(holds)

    def until_in_redis(self, holds: Callable[[], bool], keys: str = "*") -> None:
        """Wait for a condition that a change of these keys of the collection may change."""
        with changes_reported(f"{{demo}}:{keys}"):
            self.until(holds)

    def expire(self, worker: Running) -> None:
        """Have a worker that was killed or stopped not have reported for too long, and wait until another one has found that."""

        def is_gone() -> bool:
            names = [name for name in self.names() if int(name.split(":")[-2]) == worker.pid]
            for name in names:
                self.store.server.command("ZADD", "workers", 0, name)  # again, if it has reported meanwhile
            return not names

        self.until_in_redis(is_gone, "workers")

    def names(self) -> list[str]:
        """The workers that the server knows, by the names that it knows them by."""
        return [name.decode() for name in self.store.server.command("ZRANGE", "workers", 0, -1)]

    def until_shared(self, *sites: int) -> None:
        """Wait until there are so many workers, each with so many sites."""
        self.until_in_redis(
            lambda: sorted(self.store.server.command("SCARD", f"owned:{name}") for name in self.names()) == [*sites], "own*"
        )

    def states(self) -> dict[str, UrlState]:
        return {state.url: state for state in self.store.urls()}

    def indexed(self, number: int = 0) -> set[str]:
        index = EmbeddedIndex(self.data(number) / "demo" / "index.db", read_only=True)
        try:
            return set(index.urls())
        finally:
            index.close()


MakeTeam = Callable[..., Team]


def tree(pages: int, *, others: list[str] | None = None) -> Site:
    """A site of so many pages, each with links to six more."""
    site = Site(
        {
            f"/{n}": page(
                f"Page {n}", text=f"text of page {n}", links=[f"/{6 * n + c}" for c in range(1, 7) if 6 * n + c < pages]
            )
            for n in range(pages)
        }
    )
    site["/"] = page("Home", text="home", links=["/0", *(others or [])])
    return site


class Growing:
    """Pages of which each leads to the next three, without end until `stop`."""

    def __init__(self) -> None:
        self._last = 0
        self._is_over = False

    def __call__(self, request: Request) -> Reply:
        number = int(request.path[1:] or 0)
        if not self._is_over:
            self._last = max(self._last, number + 3)
        links = [f"/{other}" for other in range(number + 1, number + 4) if other <= self._last]
        return page(f"Page {number}", text=f"text of page {number}", links=links)

    def stop(self) -> None:
        self._is_over = True

    @property
    def paths(self) -> set[str]:
        """All that was linked so far, and the start page."""
        return {"/", *(f"/{number}" for number in range(1, self._last + 1))}


def hold(servers: list[Server], first: int) -> Callable[[], None]:
    """Hold the pages of a tree from that number on, until the function that this returns is called: the crawl does not end before.

    Of a site there are eight requests at a time: fewer pages are to be held, or those that others do not come after.
    """
    gates = []
    for server in servers:
        for path in server.site:
            if path[1:].isdecimal() and int(path[1:]) >= first:
                server.site[path] = gate = held(server.site[path])  # type: ignore[arg-type]
                gates.append(gate)

    def release() -> None:
        for gate in gates:
            gate.release()

    return release


def all_of(servers: list[Server]) -> set[str]:
    return {server.url(path) for server in servers for path in server.site if path != "/robots.txt"}


def fetched(servers: list[Server]) -> Counter[str]:
    return Counter(
        {server.url(path): count for server in servers for path, count in server.counts().items() if path != "/robots.txt"}
    )
