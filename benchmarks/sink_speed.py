"""How fast an outbox is sent to OpenSearch, against `parallel_bulk` of opensearch-py, which keeps no outbox.

    python -m benchmarks.sink_speed --documents 50000 --rounds 5 [--opensearch-py FOLDER] [--server URL | --real]

opensearch-py is no dependency: `pip install --target FOLDER opensearch-py`. Ours reads the orders out of the SQLite store, sends them
with versions, and removes what is acknowledged. The other sends the same sources, ids and versions out of a file. Both have their
defaults, run in turn, each in a process of its own and into a new index. `--real` starts the OpenSearch of the tests (a JDK and Maven);
without it, or CRAWLSPACE_TEST_OPENSEARCH_URL in the environment, a server that acknowledges at once takes its place.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measure import BenchmarkFailed, Cost, Row, finish, in_turn, median_ratio, run, say, tail
from benchmarks.sink_server import emptied, is_real, number_of_documents, server_of
from benchmarks.store import NOW, SITES, page, pending_url
from crawlspace.clock import SystemClock
from crawlspace.config.sinks import made, read_sinks
from crawlspace.document import Document, IndexOrder, Op
from crawlspace.index.opensearch.mapping import source_of
from crawlspace.index.outbox import Drain
from crawlspace.model import UrlState
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.urls import document_id
from tests.draining import drain_all

INDEX = "bench"
_NAME = "sink speed"
_SINK = "search"
_OURS, _THEIRS = "crawlspace", "parallel_bulk"
_TARGET = 0.8
_AT_ONCE = 500
_BYTES = 5_000


def main(arguments: Sequence[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Compare the sending of an outbox with opensearch-py.")
    parser.add_argument("--documents", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--opensearch-py", metavar="FOLDER", default=os.environ.get("BENCH_OPENSEARCH_PY"), help="where it is installed"
    )
    parser.add_argument("--server", metavar="URL", default=os.environ.get("CRAWLSPACE_TEST_OPENSEARCH_URL"))
    parser.add_argument("--real", action="store_true", help="start the OpenSearch of the tests")
    parser.add_argument("--send", nargs=3, metavar=("WHO", "FILE", "URL"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.send:
        who, file, url = options.send
        {_OURS: _send_ours, _THEIRS: _send_theirs}[who](Path(file), url)
        return []
    environment = {"PYTHONPATH": options.opensearch_py} if options.opensearch_py else {}
    if not options.opensearch_py and importlib.util.find_spec("opensearchpy") is None:
        raise BenchmarkFailed(
            "opensearch-py is compared with: pip install --target FOLDER opensearch-py, and --opensearch-py FOLDER or BENCH_OPENSEARCH_PY"
        )
    with tempfile.TemporaryDirectory(prefix="bench-sink-") as temp, server_of(options.server, is_real=options.real) as server:
        folder = Path(temp)
        size = _fill(folder, options.documents)
        programs = {
            _OURS: partial(_run, folder, _OURS, server, options.documents, environment),
            _THEIRS: partial(_run, folder, _THEIRS, server, options.documents, environment),
        }
        costs = in_turn(programs, options.rounds)
        return _rows(costs, options.documents, size, "OpenSearch" if is_real(server) else "a server that acknowledges at once")


def _fill(folder: Path, documents: int) -> float:
    """Write the store with its orders, and the file with the same documents; return how many bytes of JSON each has on average."""
    texts = _Texts()
    store = SqliteStore.open_for_crawl(folder / "full.db", sinks=(_SINK,))
    for start in range(0, documents, _AT_ONCE):
        store.discover([pending_url(number) for number in range(start, min(start + _AT_ONCE, documents))], now=NOW)
    leased: list[UrlState] = []
    for site in [site.site for site in store.sites()]:
        leased += store.lease(site, documents // SITES + 1, now=NOW, until=NOW + 600)
    for start in range(0, len(leased), _AT_ONCE):
        changes = [page(state) for state in leased[start : start + _AT_ONCE]]
        for change in changes:
            assert change.document is not None
            texts.fill(change.document)
        store.record(changes, now=NOW)
    size = 0
    with (folder / "documents.jsonl").open("wb") as lines:
        orders = store.orders(_SINK, documents, now=NOW, most_bytes=sys.maxsize)
        for order in orders:
            line = json.dumps([document_id(order.url), order.sequence, _source(order)]).encode() + b"\n"
            lines.write(line)
            size += len(line)
    store.close()
    if len(orders) != documents:
        raise BenchmarkFailed(f"the outbox has {len(orders)} orders of {documents}")
    say(f"{documents:,} documents of {size / documents:,.0f} bytes are in the outbox")
    return size / documents


class _Texts:
    """Texts of words as frequent as in a language."""

    def __init__(self) -> None:
        chance = random.Random(1)
        syllables = [consonant + vowel for consonant in "bdgklmnprst" for vowel in "aeiou"]
        words = ["".join(chance.choices(syllables, k=chance.randint(1, 4))) for _ in range(20_000)]
        self._stock = chance.choices(words, [1 / (rank + 2) for rank in range(len(words))], k=200_000)
        self._chance = chance

    def fill(self, document: Document) -> None:
        at = self._chance.randrange(len(self._stock) - 2_000)
        document.title = " ".join(self._stock[at : at + 6])
        document.text = " ".join(self._stock[at : at + 2_000])[:_BYTES]


def _source(order: IndexOrder) -> dict[str, object]:
    assert order.document is not None
    return source_of(order, order.document, owner="bench", now=SystemClock().now(), languages=("en", "other"))


def _run(folder: Path, who: str, server: str, documents: int, environment: dict[str, str]) -> Cost:
    """Send all into a new index in a process of its own; the time is that from the first document to the last answer."""
    file = folder / ("state.db" if who == _OURS else "documents.jsonl")
    if who == _OURS:
        shutil.copyfile(folder / "full.db", file)
    emptied(server)
    with contextlib.closing(_sink(folder, server)) as sink:  # makes the index
        sink.send([IndexOrder(1, Op.DELETE, "http://nowhere.example.com/", version=1)])
    log = folder / "log"
    cost = run(
        [sys.executable, "-m", "benchmarks.sink_speed", "--send", who, str(file), server], environment=environment, log=log
    )
    if cost.status:
        raise BenchmarkFailed(f"{who} ended with exit status {cost.status}:\n{tail(log)}")
    sent, wall_s, cpu_s = json.loads(log.read_text(encoding="utf-8").splitlines()[-1])
    there = number_of_documents(server)
    if (sent, there) != (documents, documents):
        raise BenchmarkFailed(f"{who} has sent {sent} documents of {documents}, and {there} are there")
    return Cost(wall_s, cpu_s, cost.peak_mb, cost.status)


def _send_ours(file: Path, server: str) -> None:
    store = SqliteStore.open_for_crawl(file, sinks=(_SINK,))
    with contextlib.closing(_sink(file.parent, server)) as sink:
        drain = Drain(store, sink, SystemClock())
        with _timed() as sent:
            sent.append(drain_all(drain).sent)
    store.close()


def _send_theirs(file: Path, server: str) -> None:
    from opensearchpy import OpenSearch  # type: ignore[import-not-found]
    from opensearchpy.helpers import parallel_bulk  # type: ignore[import-not-found]

    client = OpenSearch(hosts=[server], timeout=60)  # as ours; its own 10 s are short for a busy machine

    def actions() -> Iterator[dict[str, object]]:
        with file.open("rb") as lines:
            for line in lines:
                id, version, source = json.loads(line)
                yield {"_index": INDEX, "_id": id, "version": version, "version_type": "external", "_source": source}

    with _timed() as sent:
        sent.append(sum(is_ok for is_ok, _ in parallel_bulk(client, actions())))


@contextlib.contextmanager
def _timed() -> Iterator[list[int]]:
    """Print the number that the block adds to the list, with the seconds it took, and those of processor time."""
    sent: list[int] = []
    began, cpu = time.perf_counter(), time.process_time()
    yield sent
    print(json.dumps([sum(sent), time.perf_counter() - began, time.process_time() - cpu]))


def _sink(folder: Path, server: str) -> Any:
    given = {_SINK: {"type": "opensearch", "url": server, "index": INDEX, "replicas": 0}}
    (one,) = read_sinks(given, collection="bench", data_folder=folder).options
    return made(one)


def _rows(costs: dict[str, list[Cost]], documents: int, size: float, server: str) -> list[Row]:
    rows = [Row(_NAME, f"documents of {size:,.0f} bytes, into {server}", f"{documents:,}")]
    for who, taken in costs.items():
        rate = median(cost.pages_per_s(documents) for cost in taken)
        cpu, peak = median(cost.cpu_s for cost in taken), median(cost.peak_mb for cost in taken)
        rows.append(Row(_NAME, f"{who}: documents/s, CPU, peak memory", f"{rate:,.0f}/s, {cpu:.1f} s, {peak:.0f} MB"))
    wall = median_ratio([cost.wall_s for cost in costs[_THEIRS]], [cost.wall_s for cost in costs[_OURS]])
    cpu = median_ratio([cost.cpu_s for cost in costs[_THEIRS]], [cost.cpu_s for cost in costs[_OURS]])
    value = f"{wall:.2f} times (CPU {cpu:.2f} times)"
    rows.append(Row(_NAME, f"{_OURS} against {_THEIRS}, documents/s", value, f">= {_TARGET:g}", wall >= _TARGET))
    return rows


if __name__ == "__main__":
    sys.exit(finish(main))
