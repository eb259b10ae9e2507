"""The cost of the SQLite store with many pending URLs: `python -m benchmarks.store [--sizes 100000 1000000 10000000]`.

Insertions, leases and records use the store's own methods in the batches of a crawl; creating their values is not timed. A record is a page
with a document of 2 KB, 30 links and one new URL; a third of the discoveries are known already.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

from benchmarks.measure import Row, finish, say
from crawlspace.document import Document
from crawlspace.model import NewUrl, Source, State, UrlState
from crawlspace.state.changes import Change, Reclassified
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.urls import url_key

NOW = 1_750_000_000
SITES = 1_000
_DISCOVERED_AT_ONCE = 100
_LEASED_AT_ONCE = 16
_RECORDED_AT_ONCE = 100
_RECORDS = 10_000
_UNCHANGED_AT_ONCE = 128
_RECLASSIFIED_AT_ONCE = 5_000
_LINKS = 30
_TEXT = "All work and no play makes Jack a dull boy. " * 46


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Measure the SQLite store.")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000])
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    for size in options.sizes:
        with tempfile.TemporaryDirectory() as folder:
            rows += _measured(Path(folder) / "state.db", size)
    return rows


def _measured(path: Path, size: int) -> Iterator[Row]:
    store = SqliteStore.open_for_crawl(path)
    inserting = 0.0
    text_bytes = 0
    for start in range(0, size, _DISCOVERED_AT_ONCE):
        urls = [pending_url(number) for number in range(start, min(start + _DISCOVERED_AT_ONCE, size))]
        text_bytes += sum(len(url.url) for url in urls)
        inserting += _seconds(lambda urls=urls: store.discover(urls, now=NOW))
        if start % 1_000_000 == 0 and start:
            say(f"{start:,} URLs, {start / inserting:,.0f}/s")
    store.close()
    of = f"{size:,} pending URLs"
    yield Row("store", f"inserts/s, {of}", f"{size / inserting:,.0f}")
    beyond = (path.stat().st_size - text_bytes) / size
    yield Row("store", f"bytes a URL beyond its text, {of}", f"{beyond:.0f}", "< 150", beyond < 150)

    began = time.perf_counter()
    store = SqliteStore.open_for_crawl(path)
    sites = [site.site for site in store.sites()]
    resuming = time.perf_counter() - began
    yield Row("store", f"seconds to open and list {SITES:,} sites, {of}", f"{resuming:.3f}", "< 0.3", resuming < 0.3)
    counting = _seconds(store.counts)
    yield Row("store", f"seconds to count, {of}", f"{counting:.3f}", "< 1", counting < 1)

    leased: list[UrlState] = []

    def lease() -> None:
        for site in sites * (_RECORDS // _LEASED_AT_ONCE // len(sites) + 1):
            leased.extend(store.lease(site, _LEASED_AT_ONCE, now=NOW, until=NOW + 600))
            if len(leased) >= _RECORDS:
                return

    leasing = _seconds(lease)
    yield Row("store", f"leases/s, {of}", f"{len(leased) / leasing:,.0f}")

    recording = acknowledging = 0.0
    for start in range(0, len(leased), _RECORDED_AT_ONCE):
        changes = [_change(state, size) for state in leased[start : start + _RECORDED_AT_ONCE]]
        recording += _seconds(lambda changes=changes: store.record(changes, now=NOW))
        orders = store.orders("index", _RECORDED_AT_ONCE, now=NOW)
        acknowledging += _seconds(lambda orders=orders: store.acknowledge("index", orders))
    a_page = 1e6 * recording / len(leased)
    yield Row("store", f"µs a page to record, {of}", f"{a_page:.0f}", "< 120", a_page < 120)
    yield Row("store", f"µs a page to acknowledge, {of}", f"{1e6 * acknowledging / len(leased):.0f}")
    yield from _all_at_once(store, [state.id for state in leased], size, of)
    store.close()


def _all_at_once(store: SqliteStore, crawled: list[int], size: int, of: str) -> Iterator[Row]:
    """Measure operations over many URLs: scanning all, the links of many pages, and a change of the rules."""

    def scan() -> None:
        last = 0
        while page := store.scan(last, _RECLASSIFIED_AT_ONCE):
            last = page[-1].id

    def look_at_links() -> None:
        for start in range(0, len(crawled), _UNCHANGED_AT_ONCE):
            store.lost_links(crawled[start : start + _UNCHANGED_AT_ONCE])

    def reclassify(change: Callable[[Sequence[int]], Reclassified]) -> float:
        seconds = 0.0
        for start in range(0, len(crawled), _RECLASSIFIED_AT_ONCE):
            found = change(crawled[start : start + _RECLASSIFIED_AT_ONCE])
            seconds += _seconds(lambda found=found: store.reclassify(found, now=NOW))
        return 1e6 * seconds / len(crawled)

    yield Row("store", f"µs a URL to scan, {of}", f"{1e6 * _seconds(scan) / size:.1f}")
    yield Row("store", f"µs a page to look for lost links, {of}", f"{1e6 * _seconds(look_at_links) / len(crawled):.0f}")
    changes: dict[str, Callable[[Sequence[int]], Reclassified]] = {
        "held": lambda ids: Reclassified(held=ids),
        "returned": lambda ids: Reclassified(returned=ids),
        "excluded": lambda ids: Reclassified(excluded=ids),
    }
    for kind, change in changes.items():
        yield Row("store", f"µs a page to be {kind} by the rules, {of}", f"{reclassify(change):.1f}")


def pending_url(number: int, *, site: int | None = None) -> NewUrl:
    """Return one of many URLs, by default spread evenly over all sites."""
    host = f"host{number % SITES if site is None else site}.example.com"
    path = f"/section/{number // SITES % 97}/a-page-with-a-usual-name-{number}.html"
    text = f"https://{host}{path}"
    source = Source.INDEX if number % 10 == 0 else Source.INDEX_FOLLOW
    return NewUrl(url_key(text), text, f"{host}:443", source, 0, 3, 0, len(path))


def _change(state: UrlState, size: int) -> Change:
    chance = random.Random(state.id)
    found = chance.randrange(size) if state.id % 3 == 0 else size + state.id
    return page(state, pending_url(found))


def page(state: UrlState, *found: NewUrl) -> Change:
    """Return the change that records a leased URL as a page in the index."""
    chance = random.Random(state.id)
    state.state, state.status, state.next_fetch = State.DONE, 200, NOW + 86_400
    state.fetched_at, state.interval_s, state.lease_until = NOW, 86_400, None
    state.etag, state.last_modified, state.rules = f'"{state.id:x}"', "Tue, 10 Jun 2025 09:00:00 GMT", 1
    state.checksum = blake2b(state.url.encode(), digest_size=16).digest()
    document = Document(state.url, "A page with a usual name", "What it is about", "en", _TEXT, ["One", "Two"], "text/html")
    return Change(state, document, [chance.getrandbits(63) for _ in range(_LINKS)], list(found))


def _seconds(step: object) -> float:
    assert callable(step)
    began = time.perf_counter()
    step()
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(finish(main))
