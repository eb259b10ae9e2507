"""A collection for one benchmark, in a temporary folder."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import SCRAPY, BenchmarkFailed, Cost, run, tail
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.model import UrlState
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
