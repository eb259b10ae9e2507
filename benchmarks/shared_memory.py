"""The cost of a known URL in Redis, and the time to lease a hundred of one site where a million are pending.

    python -m benchmarks.shared_memory --urls 1000000

URLs have about 60 characters. A completed page had a document of 2 KB with 30 links, and the index has it: everything stored for the page
counts, which includes no text. There must be many, because the first ones bring their parts of tables with them. Leases are timed as a
worker waits for them, including the processing of the reply.

Both sides share one processor, if the system allows it: they never work at once, and an idle virtual processor is late to wake. Only
leases undisturbed by the host are judged: on a virtual machine it may take the processors for tens of milliseconds. Leases are made in
blocks, until enough blocks have passed in which the system reports less than 10 ms taken; if there are too few in the end, all count.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import cycle
from statistics import median, quantiles

import redis

from benchmarks.collection import redis_server
from benchmarks.measure import BenchmarkFailed, Row, finish, say, taken_away_s
from benchmarks.store import NOW, page
from crawlspace.model import NewUrl, Source, UrlState
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.redis.workers import Acquired, Worker
from crawlspace.urls import url_key

_NAME = "shared memory"
_SINK = "index"
_BYTES_TARGET, _LEASE_TARGET_MS = 300, 2.0
_DISCOVERED_AT_ONCE, _RECORDED_AT_ONCE = 500, 128
_LEASED = 100
_PAGES_A_SITE = 1_000
_BLOCK = 20
"""Leases made in a row; one block takes about 30 ms."""
_FEWEST = 100
"""Number of undisturbed blocks that are enough."""


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Measure what URLs cost in Redis, and leases of them.")
    parser.add_argument("--urls", type=int, default=1_000_000, help=f"at {_PAGES_A_SITE:,} a site, then all of one site")
    parser.add_argument("--leases", type=int, default=400, help="undisturbed ones, where four times as many bring them")
    parser.add_argument("--done", type=int, default=300_000, help="pages that are recorded")
    options = parser.parse_args(arguments)
    if options.urls < _PAGES_A_SITE:
        parser.error(f"--urls: at least {_PAGES_A_SITE:,}, so that there is a site")
    rows: list[Row] = []
    with _on_one_processor():
        for sites in (options.urls // _PAGES_A_SITE, 1):
            with redis_server() as port:
                rows += _measured(redis.Redis(port=port), sites, options)
    return rows


@contextmanager
def _on_one_processor() -> Iterator[None]:
    """Keep this process, and what it starts, on one processor."""
    all_of_them: set[int] = set()
    with suppress(AttributeError, OSError):  # not every system can, nor may every process
        all_of_them = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {max(all_of_them)})
    try:
        yield
    finally:
        with suppress(AttributeError, OSError):
            os.sched_setaffinity(0, all_of_them)


@dataclass(slots=True)
class _Leases:
    """The URLs leased, the time a worker waited for each call, and the server's average time for one."""

    call_ms: list[float] = field(default_factory=list)
    undisturbed_ms: list[float] = field(default_factory=list)
    server_ms: float = 0.0
    states: list[UrlState] = field(default_factory=list)
    sites: list[str] = field(default_factory=list)

    def row(self, what: str) -> Row:
        value = f"{_spread(self.call_ms)} (the server {self.server_ms:.2f} ms on average)"
        judged = self.call_ms
        if _FEWEST <= len(self.undisturbed_ms) < len(self.call_ms):
            judged = self.undisturbed_ms
            value += f"; {len(judged)} of {len(self.call_ms)} were undisturbed: {_spread(judged)}"
        return Row(_NAME, what, value, f"< {_LEASE_TARGET_MS:g} ms", _late(judged) < _LEASE_TARGET_MS)


def _spread(call_ms: Sequence[float]) -> str:
    return f"median {median(call_ms):.2f} ms, 95% within {_late(call_ms):.2f} ms"


def _late(call_ms: Sequence[float]) -> float:
    return quantiles(call_ms, n=20)[-1]


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
    wanted = options.leases
    new = _leases(client, wanted, min(4 * wanted, sites), lambda: _take(worker, new=1))
    if sites > 1:
        yield new.row(f"a lease of {_LEASED} URLs of a new site, {where}")
    turns = cycle(new.sites)
    most = min(4 * wanted, options.urls // _LEASED - len(new.call_ms))
    held = _leases(client, wanted, most, lambda: _take(worker, refill={next(turns): _LEASED}))
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


def _leases(client: redis.Redis, wanted: int, most: int, take: Callable[[], Acquired]) -> _Leases:
    """Lease URLs of one site repeatedly, until so many times were undisturbed, and at most so often.

    Raises BenchmarkFailed if that returns fewer URLs than it should.
    """
    leases = _Leases()
    before_ms = _worked_ms(client)
    while len(leases.undisturbed_ms) < wanted and len(leases.call_ms) < most:
        block, away_s = [], taken_away_s()
        for _ in range(min(_BLOCK, most - len(leases.call_ms))):
            began = time.perf_counter()
            taken = take()
            block.append(1000 * (time.perf_counter() - began))
            if [len(one.states) for one in taken.sites] != [_LEASED]:
                raise BenchmarkFailed(
                    f"{_LEASED} URLs of one site were to be leased, not {[len(one.states) for one in taken.sites]}"
                )
            leases.states += taken.sites[0].states
            leases.sites.append(taken.sites[0].site)
        leases.call_ms += block
        if taken_away_s() == away_s:
            leases.undisturbed_ms += block
    leases.server_ms = (_worked_ms(client) - before_ms) / len(leases.call_ms)
    return leases


def _take(worker: Worker, *, refill: dict[str, int] | None = None, new: int = 0) -> Acquired:
    return worker.take(refill=refill or {}, new=new, limit=_LEASED, now=NOW, until=NOW + 600)


def _more(worker: Worker, sites: Sequence[str], wanted: int) -> list[UrlState]:
    """Lease further URLs of owned sites."""
    states: list[UrlState] = []
    while len(states) < wanted:
        taken = _take(worker, refill=dict.fromkeys(sites, _LEASED))
        if not taken.sites:
            raise BenchmarkFailed(f"there are {len(states)} URLs left to be done, not {wanted}")
        states += [state for one in taken.sites for state in one.states]
    return states


def _record(store: RedisStore, worker: Worker, states: Sequence[UrlState]) -> None:
    """Record leased URLs as pages, and acknowledge their orders."""
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
    """Return how long the server has been busy with scripts so far, in ms."""
    return float(client.info("commandstats").get("cmdstat_evalsha", {}).get("usec", 0)) / 1000


if __name__ == "__main__":
    sys.exit(finish(main))
