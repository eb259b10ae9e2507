"""A collection made for one benchmark, in a folder that goes away, and Scrapy commands run on it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import PROJECT, SCRAPY, BenchmarkFailed, Cost, run, tail

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

    def write(self, *, start_urls: Sequence[str], rules: str, settings: Mapping[str, object]) -> None:
        """Write the collection's files. Settings are for speed on our own server unless said otherwise."""
        home = self.folder / "collections" / NAME
        home.mkdir(parents=True, exist_ok=True)
        (home / "start_urls.txt").write_text("".join(f"{url}\n" for url in start_urls), encoding="utf-8")
        (home / "crawl.rules").write_text(rules, encoding="utf-8")
        lines = {"LOG_LEVEL": "WARNING", "DOWNLOAD_DELAY": 0, **settings}
        (home / "settings.py").write_text("".join(f"{name} = {value!r}\n" for name, value in lines.items()), encoding="utf-8")

    def crawl_command(self, *options: str) -> list[str]:
        return [*SCRAPY, "crawl", NAME, "-O", str(self.items), *options]

    def crawl(self, *options: str, limit_s: float = 1800) -> Cost:
        """Crawl to the end and return the cost. Raises BenchmarkFailed with the end of the log."""
        cost = run(self.crawl_command(*options), environment=self.environment, log=self.log, limit_s=limit_s)
        if cost.status:
            raise BenchmarkFailed(f"the crawl ended with exit status {cost.status}:\n{tail(self.log)}")
        return cost

    def scrapy(self, *words: str) -> str:
        """Run another Scrapy command and return what it prints."""
        done = subprocess.run(
            [*SCRAPY, *words],
            cwd=PROJECT,
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise BenchmarkFailed(f"scrapy {' '.join(words)} ended with exit status {done.returncode}:\n{done.stderr}")
        return done.stdout

    def urls(self) -> Iterator[dict[str, object]]:
        """Yield what is known of each URL."""
        yield from map(json.loads, self.scrapy("urls", NAME, "--format", "jsonl").splitlines())
