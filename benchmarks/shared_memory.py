"""What a known URL costs in Redis, and how long it takes to lease a hundred of one site where a million are pending.

    python -m benchmarks.shared_memory --urls 1000000

URLs are of about 60 characters. A page that is done has had a document of 2 KB with 30 links, and the index has it: all that is kept of
the page counts, which is no text. There have to be many, because the first ones bring their parts of tables with them. Leases are timed
as the worker waits for them, what it makes of the answer included.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from statistics import median, quantiles

import redis

from benchmarks.measure import BenchmarkFailed, Row, finish, say
from benchmarks.shared_crawl import redis_server
from benchmarks.store import NOW, page
from crawlspace.model import NewUrl, Source, UrlState
from crawlspace.state.redis import RedisStore
from crawlspace.state.redis_workers import Taken, Worker
from crawlspace.urls import url_key

_NAME = "shared memory"
_SINK = "index"
_BYTES_TARGET, _LEASE_TARGET_MS = 300, 2.0
_DISCOVERED_AT_ONCE, _RECORDED_AT_ONCE = 500, 128
_LEASED = 100
_PAGES_A_SITE = 1_000


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Measure what URLs cost in Redis, and leases of them.")
    parser.add_argument("--urls", type=int, default=1_000_000, help=f"at {_PAGES_A_SITE:,} a site, then all of one site")
    parser.add_argument("--leases", type=int, default=400, help="of sites that are held, and at most as many of new ones")
    parser.add_argument("--done", type=int, default=300_000, help="pages that are recorded")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    for sites in (options.urls // _PAGES_A_SITE, 1):
        with redis_server() as port:
            rows += _measured(redis.Redis(port=port), sites, options)
    return rows


@dataclass(slots=True)
class _Leases:
    """What was taken, how long a worker waited for each call, and how long the server worked for one on average."""

    call_ms: list[float] = field(default_factory=list)
    server_ms: float = 0.0
    states: list[UrlState] = field(default_factory=list)
    sites: list[str] = field(default_factory=list)

    def row(self, what: str) -> Row:
        middle, late = median(self.call_ms), quantiles(self.call_ms, n=20)[-1]
        value = f"median {middle:.2f} ms, 95% within {late:.2f} ms (the server {self.server_ms:.2f} ms on average)"
        return Row(_NAME, what, value, f"< {_LEASE_TARGET_MS:g} ms", late < _LEASE_TARGET_MS)


def _measured(client: redis.Redis, sites: int, options: argparse.Namespace) -> Iterator[Row]:
    store = RedisStore(client, "bench", sinks=(_SINK,))
    where = f"{options.urls:,} pending URLs of {f'{sites:,} sites' if sites > 1 else 'one site'}"
    pending, characters = _filled(client, store, sites, options.urls)
    value = f"{pending:.0f} (their text {characters:.0f})"
    yield Row(_NAME, f"bytes a URL, {where}", value, f"< {_BYTES_TARGET}", pending < _BYTES_TARGET)

    before = _used(client)
    worker = Worker(store, timeout_s=3600, sources=[Source.INDEX_FOLLOW])
    worker.begin("")
    worker.ready()
    new = _leases(client, min(options.leases, sites), lambda: _take(worker, new=1))
    if sites > 1:
        yield new.row(f"a lease of {_LEASED} URLs of a new site, {where}")
    turns = cycle(new.sites)
    held = _leases(client, options.leases, lambda: _take(worker, refill={next(turns): _LEASED}))
    yield held.row(f"a lease of {_LEASED} URLs of a site that is held, {where}")

    pages = new.states + held.states
    if sites > 1:
        pages += _more(worker, new.sites, options.done - len(pages))
        began = time.perf_counter()
        _record(store, worker, pages)
        say(f"{len(pages):,} pages recorded and acknowledged, {1e6 * (time.perf_counter() - began) / len(pages):.0f} µs each")
        done = pending + (_used(client) - before) / len(pages)
        yield Row(_NAME, f"bytes a URL that is done, {len(pages):,} of them", f"{done:.0f}")
    store.close()


def _filled(client: redis.Redis, store: RedisStore, sites: int, urls: int) -> tuple[float, float]:
    """Discover URLs; return how many bytes the server needs for each, and how many characters each has."""
    empty = _used(client)
    began, text_bytes = time.perf_counter(), 0
    for start in range(0, urls, _DISCOVERED_AT_ONCE):
        found = [_pending(number, sites) for number in range(start, min(start + _DISCOVERED_AT_ONCE, urls))]
        text_bytes += sum(len(url.url) for url in found)
        store.discover(found, now=NOW)
    say(f"{urls:,} URLs discovered, {1e6 * (time.perf_counter() - began) / urls:.0f} µs each")
    return (_used(client) - empty) / urls, text_bytes / urls


def _leases(client: redis.Redis, times: int, take: Callable[[], Taken]) -> _Leases:
    """Take URLs of one site again and again. Raises BenchmarkFailed where that brings less than it should."""
    leases = _Leases()
    before_ms = _worked_ms(client)
    for _ in range(times):
        began = time.perf_counter()
        taken = take()
        leases.call_ms.append(1000 * (time.perf_counter() - began))
        if [len(one.states) for one in taken.sites] != [_LEASED]:
            raise BenchmarkFailed(f"{_LEASED} URLs of one site were to be leased, not {[len(one.states) for one in taken.sites]}")
        leases.states += taken.sites[0].states
        leases.sites.append(taken.sites[0].site)
    leases.server_ms = (_worked_ms(client) - before_ms) / times
    return leases


def _take(worker: Worker, *, refill: dict[str, int] | None = None, new: int = 0) -> Taken:
    return worker.take(refill=refill or {}, new=new, limit=_LEASED, now=NOW, until=NOW + 600)


def _more(worker: Worker, sites: Sequence[str], wanted: int) -> list[UrlState]:
    """Take further URLs of sites that are held."""
    states: list[UrlState] = []
    while len(states) < wanted:
        taken = _take(worker, refill=dict.fromkeys(sites, _LEASED))
        if not taken.sites:
            raise BenchmarkFailed(f"there are {len(states)} URLs left to be done, not {wanted}")
        states += [state for one in taken.sites for state in one.states]
    return states


def _record(store: RedisStore, worker: Worker, states: Sequence[UrlState]) -> None:
    """Make pages of what is leased, and have the index have them."""
    for start in range(0, len(states), _RECORDED_AT_ONCE):
        worker.record([page(state) for state in states[start : start + _RECORDED_AT_ONCE]], now=NOW)
        store.acknowledge(_SINK, store.orders(_SINK, _RECORDED_AT_ONCE, now=NOW))
    if left := store.backlog(_SINK):
        raise BenchmarkFailed(f"{left} orders are left")


def _pending(number: int, sites: int) -> NewUrl:
    host = f"host{number % sites}.example.com"
    path = f"/section/{number // sites % 97}/page-of-a-name-{number}.html"
    url = f"https://{host}{path}"
    return NewUrl(url_key(url), url, f"{host}:443", Source.INDEX_FOLLOW, 0, 3, 0, len(path))


def _used(client: redis.Redis) -> int:
    return int(client.info("memory")["used_memory"])


def _worked_ms(client: redis.Redis) -> float:
    """How long the server has been busy with scripts so far."""
    return float(client.info("commandstats").get("cmdstat_evalsha", {}).get("usec", 0)) / 1000


if __name__ == "__main__":
    sys.exit(finish(main))
