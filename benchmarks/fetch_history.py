"""What the last ten fetches of a URL cost in each store: `python -m benchmarks.fetch_history [--urls 20000]`.

The same pages are recorded ten times with their fetches and ten times without; the growth of the file, or of the server's memory, is shown
a URL.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import apsw
import redis

from benchmarks.collection import redis_server
from benchmarks.measure import Row, finish
from benchmarks.store import NOW, page, pending_url
from crawlspace.model import UrlState
from crawlspace.state.changes import Change
from crawlspace.state.fetch_history import DocumentChange, fetches, history_after
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.store import Store

_NAME = "fetch history"
_AT_ONCE = 500
_FETCHES = 10
_DAY_S = 86_400
_MOST_BYTES = {"SQLite": 60, "Redis": 120}


def main(arguments: Sequence[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Measure what the last fetches of a URL cost.")
    parser.add_argument("--urls", type=int, default=20_000)
    urls = parser.parse_args(arguments).urls
    rows = []
    for kind, measure in (("SQLite", _file_bytes), ("Redis", _server_bytes)):
        without, with_them = (measure(urls, notes=notes) for notes in (False, True))
        grown, most = (with_them - without) / urls, _MOST_BYTES[kind]
        what = f"bytes a URL for its last {_FETCHES} fetches in {kind}, {urls:,} URLs"
        value = f"{grown:.0f} (of {with_them / urls:,.0f} in all)"
        rows.append(Row(_NAME, what, value, f"<= {most}", grown <= most))
    return rows


def _file_bytes(urls: int, *, notes: bool) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "state.db")
        store = SqliteStore.open_for_crawl(path)
        _fill(store, urls, notes=notes)
        store.close()
        with closing(
            apsw.Connection(str(path))
        ) as db:  # without pages that the documents on their way to the index have left free
            return int((db.pragma("page_count") - db.pragma("freelist_count")) * db.pragma("page_size"))


def _server_bytes(urls: int, *, notes: bool) -> int:
    with redis_server() as port:
        client = redis.Redis(port=port)
        store = RedisStore(client, "bench", sinks=("index",))
        empty = int(client.info("memory")["used_memory"])
        _fill(store, urls, notes=notes)
        used = int(client.info("memory")["used_memory"])
        store.close()
        return used - empty


def _fill(store: Store, urls: int, *, notes: bool) -> None:
    for start in range(0, urls, _AT_ONCE):
        store.discover([pending_url(number) for number in range(start, min(start + _AT_ONCE, urls))], now=NOW)
    for fetch in range(_FETCHES):
        after = 0
        while known := store.scan(after, _AT_ONCE):
            after = known[-1].id
            states = store.get_by_ids([one.id for one in known])
            store.record([_change(state, fetch, notes=notes) for state in states], now=NOW)
            store.acknowledge("index", store.orders("index", 2 * _AT_ONCE, now=NOW))
    if notes:
        assert {len(fetches(state)) for state in store.get_by_ids(range(1, _AT_ONCE))} == {_FETCHES}


def _change(state: UrlState, fetch: int, *, notes: bool) -> Change:
    history = None
    if notes:
        history = history_after(
            state, now=NOW + fetch * _DAY_S, status=200, took_s=0.1 + state.id % 7 / 3, change=DocumentChange(1 + fetch % 3)
        )
    change = page(state)
    if fetch:
        change.document, change.links = None, None
    state.history, state.fetched_at = history, NOW + fetch * _DAY_S
    return change


if __name__ == "__main__":
    sys.exit(finish(main))
