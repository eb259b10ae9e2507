"""Workers of one collection, each a process with a data folder of its own, as on a machine of its own; and sites for them."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from crawlspace.config.sinks import EMBEDDED
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.model import UrlState
from crawlspace.state.redis.store import RedisStore
from tests.command_line import CompletedRun, run_scrapy, start_scrapy
from tests.conftest import Project
from tests.integration import stored
from tests.notifications import Running
from tests.servers import another_client, changes_reported, redis_server
from tests.sites import Server, Site, page

FAST = f"{stored.FAST}CRAWLSPACE_WORKER_TIMEOUT = 5\n"


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

    def start(self, *args: str) -> Running:
        number = len(self._workers)
        output = self.project.folder / f"output{number}.txt"
        env = {**self.project.env, "CRAWLSPACE_DATA_DIR": str(self.data(number))}
        process = start_scrapy(["crawl", "demo", *args], output=output, env=env)
        self.project.started.append(process)
        self._workers.append(process)
        return process

    def run(self, *args: str) -> CompletedRun:
        """Run a command on the first machine."""
        return run_scrapy(args, env={**self.project.env, "CRAWLSPACE_DATA_DIR": str(self.data(0))})

    def output(self, number: int = 0) -> str:
        return self._workers[number].output()

    def wait(self) -> None:
        """Until all have ended; those that were not killed must have succeeded."""
        for worker in self._workers:
            assert worker.wait() in (0, -signal.SIGKILL), worker.output()

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait for a condition that a request, an output or an end may change."""
        self.project.until(holds)

    def until_in_redis(self, holds: Callable[[], bool], keys: str = "*") -> None:
        """Wait for a condition that a change of these keys of the collection may change."""
        with changes_reported(f"{{demo}}:{keys}"):
            self.until(holds)

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


def all_of(servers: list[Server]) -> set[str]:
    return {server.url(path) for server in servers for path in server.site if path != "/robots.txt"}


def fetched(servers: list[Server]) -> Counter[str]:
    return Counter(
        {server.url(path): count for server in servers for path, count in server.counts().items() if path != "/robots.txt"}
    )
