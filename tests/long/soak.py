"""Crawl many sites for long, with an archive, extraction and a search server, and see whether anything grows, slows down or is lost.

    python -m tests.long.soak --pages 1000000 --sites 2000

Half of the kills come at random moments of the first tenth of the pages, the others in the last fiftieth. In between one process crawls,
which is measured: its memory, file descriptors and threads, and pages a second, in the last tenth of that time against the first. Some sites
answer 503 for a while. A change of the rules excludes pages that are in the index, and a later one admits them again. At the end states,
index and search server must have what the sites have.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.collection import NAME, BenchCollection
from benchmarks.measure import SCRAPY, BenchmarkFailed, Row, finish, run, say, start, stop, tail
from benchmarks.politeness import hosts
from benchmarks.serve import PageServer, Reply
from benchmarks.sink_server import acknowledging_server, number_of_documents
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.model import State

_NAME = "soak"
_FIRST, _LAST = 0.1, 0.98
"""The part of the pages that one process crawls."""
_ALLOWED = 1.05
_PACE = 0.95
"""Least pages a second of the last tenth, as a multiple of the first; for long runs, since the pace of a short one depends on its start."""
_CACHES_FULL = 400_000
"""Pages from which on the caches of a crawl are full in the first tenth of the time that is measured."""
_CACHES_MB = 100
"""Bound of what the caches still take in a shorter run: that of SQLite may have 64 MB."""
_CONNECTIONS = 32
"""Requests at a time. Connections to sites are kept, one for each: so many may differ between two moments of a short run."""
_STILL_S = 300
"""Time without any page after which a crawl does not move any more."""
_POLL_S = 0.2
_ASIDE = 25
"""Of the pages without new links, one in so many is in the folder that the rules exclude for a while; the home page links to them."""
_LARGE = 10
"""Pages below this number have 1.6 MB on the first site, all but the home page: more than is inflated of a record at once."""
_FALLING = 20
"""One site in so many does not answer for a while."""
_EXTRACTION = '[[field]]\nname = "number"\ncss = ".number::text"\n'


class _Web:
    """Sites of as many pages each, reached through a tree of links. A site that is down answers 503 for a twentieth of all pages."""

    def __init__(self, hosts: Sequence[str], pages: int) -> None:
        """`pages`: of each site."""
        self.hosts = hosts
        self.pages = pages
        self.served: Counter[tuple[str, int]] = Counter()
        self.failures = 0
        self._aside = [number for number in range(pages) if self.is_aside(number)]
        fallen = hosts[::_FALLING]
        self._down = {host: int(self.total * (0.15 + 0.6 * at / len(fallen))) for at, host in enumerate(fallen)}

    @property
    def total(self) -> int:
        return len(self.hosts) * self.pages

    def is_aside(self, number: int) -> bool:
        """Return whether a page is in that folder: some from which no page has its only link."""
        return 2 * number + 1 >= self.pages and number % _ASIDE == 0

    def path_of(self, number: int) -> str:
        return f"/{'aside/' if self.is_aside(number) else ''}{number}.html"

    def answer(self, site: str, path: str) -> Reply:
        name = path.rpartition("/")[2].removesuffix(".html")
        number = int(name) if name.isdecimal() else self.pages
        if number >= self.pages or path != self.path_of(number):
            return 404, b"text/html", b"<title>404</title>"
        since = self._down.get(site)
        if since is not None and since <= len(self.served) < since + self.total // 20:
            self.failures += 1
            return 503, b"text/html", b"<title>503</title>"
        self.served[site, number] += 1
        linked = (*range(2 * number + 1, 2 * number + 3), 0, (number * 7919) % self.pages, *(self._aside if not number else ()))
        links = [n for n in linked if n < self.pages]
        anchors = "".join(f'<a href="{self.path_of(link)}">{link}</a> ' for link in links)
        words = " ".join(f"word{(number * n) % 4001}" for n in range(1, 60))
        large = "<!-- -->" * 200_000 if site == self.hosts[0] and 0 < number < _LARGE else ""
        text = f"{large}<!doctype html><title>Page {number}</title><h1>{site}</h1><p class=number>{number}</p><p>{words}</p>{anchors}"
        return 200, b"text/html; charset=utf-8", text.encode()


@dataclass(frozen=True, slots=True)
class _Sample:
    """A process at one moment."""

    at: float
    pages: int
    rss_mb: float
    descriptors: int
    threads: int


class _Crawl:
    """The crawl of a collection by one process after the other."""

    def __init__(self, collection: BenchCollection, web: _Web, server: PageServer) -> None:
        self._collection = collection
        self._web = web
        self._server = server

    def until(self, pages: int, *, how: signal.Signals, wait_s: float = 0.0) -> list[_Sample]:
        """Crawl until so many pages were served, and end the crawl; return how it was meanwhile. It may have ended by itself."""
        samples: list[_Sample] = []
        with self._collection.log.open("ab") as output:
            process = start(_command(), environment=self._collection.environment, output=output.fileno())
        try:
            moved_at, moved = time.monotonic(), len(self._web.served)
            while (served := len(self._web.served)) < pages and process.poll() is None:
                time.sleep(_POLL_S)
                self._server.requests.clear()
                now = time.monotonic()
                if served > moved:
                    moved_at, moved = now, served
                elif now - moved_at > _STILL_S:
                    raise BenchmarkFailed(f"no page for {_STILL_S} s, after {served:,}:\n{tail(self._collection.log)}")
                if not samples or now - samples[-1].at >= 1:
                    with contextlib.suppress(OSError, KeyError):  # it has just ended
                        samples.append(_sample(process.pid, now, served))
            time.sleep(wait_s)
            if process.poll() is None:
                process.send_signal(how)
            status = process.wait(timeout=600)
        finally:
            stop(process, signal.SIGKILL)
        if status not in (0, -how):
            raise BenchmarkFailed(f"the crawl ended with exit status {status}:\n{tail(self._collection.log)}")
        return samples

    def finish(self) -> None:
        """Crawl until nothing is left."""
        for _ in range(3):  # a site that was given up is tried at the next start
            cost = run(_command(), environment=self._collection.environment, log=self._collection.log, limit_s=3_600)
            self._server.requests.clear()
            if cost.status:
                raise BenchmarkFailed(f"the crawl ended with exit status {cost.status}:\n{tail(self._collection.log)}")
            if len(self._web.served) == self._web.total:
                return


def main(arguments: Sequence[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Crawl many sites for long and see whether anything grows or is lost.")
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--sites", type=int, default=100)
    parser.add_argument("--kills", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    web = _Web(hosts(13, options.sites), options.pages // options.sites)
    chance = random.Random(options.seed)
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="bench-soak-") as temp,
        PageServer(web.answer, web.hosts) as server,
        acknowledging_server() as search,
    ):
        collection = BenchCollection(Path(temp))
        _configure(collection, web, server, search, is_narrow=False)
        crawl = _Crawl(collection, web, server)
        first, last = int(web.total * _FIRST), int(web.total * _LAST)
        for moment in sorted(chance.sample(range(1, first), -(-options.kills // 2))):
            crawl.until(moment, how=signal.SIGKILL, wait_s=chance.random())
            say(f"{time.monotonic() - began:.0f} s: killed at {len(web.served):,} pages")
        _configure(collection, web, server, search, is_narrow=True)
        aside = sum(web.is_aside(number) for _, number in web.served)
        samples = crawl.until(last, how=signal.SIGTERM)
        say(f"{time.monotonic() - began:.0f} s: {len(web.served):,} pages")
        _configure(collection, web, server, search, is_narrow=False)
        for _ in range(options.kills // 2):
            crawl.until(len(web.served) + web.total // 400, how=signal.SIGKILL, wait_s=chance.random())
            say(f"{time.monotonic() - began:.0f} s: killed at {len(web.served):,} pages")
        crawl.finish()
        took_s = time.monotonic() - began
        rows = [*_measured(samples, connections=options.sites + _CONNECTIONS), *_truth(collection, web, search)]
    return [
        *rows,
        Row(_NAME, "pages in the index that the rules excluded meanwhile", f"{aside:,}"),
        Row(_NAME, "answers 503 of sites that were down", f"{web.failures:,}", "> 0", web.failures > 0),
        Row(_NAME, "pages fetched again", f"{sum(web.served.values()) - len(web.served):,}"),
        Row(_NAME, f"seconds, {web.total:,} pages, {options.sites:,} sites, {options.kills} kills", f"{took_s:.0f}"),
    ]


def _configure(collection: BenchCollection, web: _Web, server: PageServer, search: str, *, is_narrow: bool) -> None:
    """Write the collection. `is_narrow`: its rules exclude a folder of each site."""
    aside = "".join(f"forbid prefix {origin}/aside/\n" for origin in server.origins) if is_narrow else ""
    collection.write(
        start_urls=[f"{origin}{web.path_of(0)}" for origin in server.origins],
        rules=f"{aside}allow domain 127.13.*:{server.port}\nforbid domain *\n",
        settings={
            "CONCURRENT_REQUESTS": _CONNECTIONS,
            "CRAWLSPACE_ARCHIVE": True,
            "CRAWLSPACE_SITEMAP_GUESS": False,
            "CRAWLSPACE_MAX_DELETIONS": 10_000_000,
            "CRAWLSPACE_RETRY_WAIT": 0.2,
            "CRAWLSPACE_BACKOFF_MAX": 1.0,
            "RETRY_TIMES": 100,
            "CRAWLSPACE_SINKS": {
                "local": {"type": "sqlite"},
                "search": {"type": "opensearch", "url": search, "index": "bench"},
            },
        },
    )
    (collection.folder / "collections" / NAME / "extract.toml").write_text(_EXTRACTION, encoding="utf-8")


def _measured(samples: Sequence[_Sample], *, connections: int) -> list[Row]:
    """Compare the last tenth of the pages of a process with the first."""
    if len(samples) < 20:
        raise BenchmarkFailed(f"{len(samples)} samples are too few: crawl more pages")
    begin, end = samples[0].pages, samples[-1].pages
    tenth = (end - begin) / 10
    first = [one for one in samples if begin + tenth < one.pages <= begin + 2 * tenth]
    last = [one for one in samples if one.pages > end - tenth]
    is_long = end >= _CACHES_FULL
    rows = []
    for what, grows_by, values in (
        ("RSS in MB", _CACHES_MB, [[one.rss_mb for one in part] for part in (first, last)]),
        ("file descriptors", connections, [[one.descriptors for one in part] for part in (first, last)]),
        ("threads", 1, [[one.threads for one in part] for part in (first, last)]),
    ):
        before, after = (median(part) for part in values)
        limit = before * _ALLOWED if is_long else before + grows_by
        rows.append(
            Row(
                _NAME,
                f"{what}, last tenth of the pages; the first after the warm-up",
                f"{after:.0f}; {before:.0f}: {after / before:.3f} times",
                f"<= {limit:.0f}",
                after <= limit,
            )
        )
    rates = [(part[-1].pages - part[0].pages) / max(part[-1].at - part[0].at, 1e-3) for part in (first, last)]
    rows.append(
        Row(
            _NAME,
            "pages/s, last tenth; the first after the warm-up",
            f"{rates[1]:.0f}; {rates[0]:.0f}: {rates[1] / rates[0]:.2f} times",
            f">= {_PACE * rates[0]:.0f}" if is_long else "",
            rates[1] >= _PACE * rates[0] if is_long else None,
        )
    )
    return rows


def _truth(collection: BenchCollection, web: _Web, search: str) -> list[Row]:
    """Compare states, index, search server and archive with the sites."""
    states = Counter((state.state is State.DONE and state.indexed) for state in collection.states())
    with contextlib.closing(EmbeddedIndex(collection.index_file, read_only=True)) as index:
        found = Counter(one.url.rpartition("/")[2] == f"{one.fields.get('number')}.html" for one in index.documents(NAME))
    sent = number_of_documents(search)
    verified = run(
        [*SCRAPY, "archive", NAME, "--verify"],
        environment=collection.environment,
        log=collection.folder / "verify.log",
        limit_s=3_600,
    )
    total = web.total
    return [
        Row(_NAME, "pages served", f"{len(web.served):,}", f"{total:,}", len(web.served) == total),
        Row(
            _NAME,
            "URLs that are indexed, by their state; others",
            f"{states[True]:,}; {states[False]:,}",
            f"{total:,}; 0",
            states == {True: total},
        ),
        Row(
            _NAME,
            "documents in the index with their own field; others",
            f"{found[True]:,}; {found[False]:,}",
            f"{total:,}; 0",
            found == {True: total},
        ),
        Row(_NAME, "documents of the search server", f"{sent:,}", f"{total:,}", sent == total),
        Row(_NAME, "the archive is sound", "no" if verified.status else "yes", "yes", not verified.status),
    ]


def _command() -> list[str]:
    return [*SCRAPY, "crawl", NAME]


def _sample(process: int, now: float, pages: int) -> _Sample:
    status = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines())
    descriptors = sum(1 for _ in Path(f"/proc/{process}/fd").iterdir())
    return _Sample(now, pages, int(status["VmRSS"].split()[0]) / 1024, descriptors, int(status["Threads"]))


if __name__ == "__main__":
    sys.exit(finish(main))
