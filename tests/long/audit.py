"""What `scrapy audit` costs with a million documents on an OpenSearch, and whether it finds what differs: `python -m tests.long.audit`.

The server of the tests is started (a JDK and Maven), unless CRAWLSPACE_TEST_OPENSEARCH_URL or --server names one. Store and index are filled
without being counted; the index gets small documents with the versions of their orders. A hundred differences are planted. The comparison
and the repair run in a process of their own, and so does a second comparison, which must find nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import urllib.request
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from benchmarks.measure import BenchmarkFailed, Row, finish, run, say, tail
from benchmarks.sink_server import ask, server_of
from benchmarks.store import NOW, SITES, page, pending_url
from crawlspace.admin.audit import Audit, DifferenceKind, Repair
from crawlspace.clock import SystemClock
from crawlspace.config.sinks import made, read_sinks
from crawlspace.document import Document, IndexOrder, Op
from crawlspace.index.outbox import Drain
from crawlspace.index.sink import Inventory, Sink
from crawlspace.index.versions import Versions
from crawlspace.model import UrlState
from crawlspace.state.changes import Change
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.urls import document_id
from tests.draining import drain_all

_INDEX, SINK, _OWNER = "bench", "search", "bench"
_NAME = "audit"
_MB = 200
_PLANTED = {DifferenceKind.MISSING: 40, DifferenceKind.OUTDATED: 30, DifferenceKind.EXTRA: 30}
_AT_ONCE = 1_000


def main(arguments: Sequence[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Measure the comparison of an index with the stored state.")
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--server", metavar="URL", default=os.environ.get("CRAWLSPACE_TEST_OPENSEARCH_URL"))
    parser.add_argument("--audit", nargs=2, metavar=("FILE", "URL"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.audit:
        audit(Path(options.audit[0]), options.audit[1])
        return []
    with tempfile.TemporaryDirectory(prefix="bench-audit-") as temp, server_of(options.server, is_real=True) as server:
        file = Path(temp) / "state.db"
        _fill_store(file, options.documents)
        _fill_index(file, server)
        rows = []
        for what, expected in (("finds what differs and mends it", _PLANTED), ("finds nothing afterwards", {})):
            log = Path(temp) / "log"
            cost = run([sys.executable, "-m", "tests.long.audit", "--audit", str(file), server], log=log)
            if cost.status:
                raise BenchmarkFailed(f"the comparison ended with exit status {cost.status}:\n{tail(log)}")
            found = {kind: number for kind, number in json.loads(log.read_text().splitlines()[-1]).items() if number}
            if found != {kind.value: number for kind, number in expected.items()}:
                raise BenchmarkFailed(f"planted were {dict(_PLANTED)}, and found {found}")
            of = f"{options.documents:,} documents: {what}"
            rows += [
                Row(_NAME, of, f"{cost.wall_s:,.0f} s, CPU {cost.cpu_s:,.0f} s"),
                Row(_NAME, f"memory, {of}", f"{cost.peak_mb:,.0f} MB", f"under {_MB} MB", cost.peak_mb < _MB),
            ]
        return rows


def _fill_store(file: Path, documents: int) -> None:
    with closing(SqliteStore.open_for_crawl(file, sinks=(SINK,))) as store:
        for start in range(0, documents, _AT_ONCE):
            store.discover([pending_url(number) for number in range(start, min(start + _AT_ONCE, documents))], now=NOW)
        done = 0
        for site in [site.site for site in store.sites()]:
            while leased := store.lease(site, _AT_ONCE, now=NOW, until=NOW + 600):
                store.record([_recorded(state) for state in leased], now=NOW)
                done += len(leased)
            store.withdraw(SINK, deletes=True)
        if done != documents:
            raise BenchmarkFailed(f"{done} of {documents} URLs were recorded ({SITES} sites)")
    say(f"the store has {documents:,} documents")


def _recorded(state: UrlState) -> Change:
    change = page(state)
    change.archived = 1
    change.links = []
    return change


def _fill_index(file: Path, server: str) -> None:
    ask(server, "DELETE", f"/{_INDEX}*")
    with closing(SqliteStore(file, sinks=(SINK,))) as store, closing(sink_of(file.parent, server)) as sink:
        sink.send([IndexOrder(1, Op.DELETE, "http://nowhere.example.com/", version=1)])  # makes the index
        versions = Versions(store, SINK, SystemClock())
        versions.of([])
        known = sum(store.counts().by_state.values())
        chosen = random.Random(1).sample(
            range(1, known + 1), _PLANTED[DifferenceKind.MISSING] + _PLANTED[DifferenceKind.OUTDATED]
        )
        missing, outdated = set(chosen[: _PLANTED[DifferenceKind.MISSING]]), set(chosen[_PLANTED[DifferenceKind.MISSING] :])
        after = 0
        while urls := store.scan(after, 5 * _AT_ONCE):
            after = urls[-1].id
            _write(
                server,
                [(one.url, versions.least(one.ordered) - (one.id in outdated)) for one in urls if one.id not in missing],
            )
        extra = [f"http://extra.example.com/{number}" for number in range(_PLANTED[DifferenceKind.EXTRA])]
        _write(server, [(url, versions.least(1)) for url in extra])
    say("so has the index, but for what was planted")


def _write(server: str, documents: Sequence[tuple[str, int]]) -> None:
    lines = []
    for url, version in documents:
        id = document_id(url)
        lines.append(json.dumps({"index": {"_id": id, "version": version, "version_type": "external"}}))
        lines.append(json.dumps({"id": id, "url": url, "collection": _OWNER}))
    body = "\n".join([*lines, ""]).encode()
    request = urllib.request.Request(f"{server}/{_INDEX}/_bulk", body, {"Content-Type": "application/x-ndjson"})
    with urllib.request.urlopen(request, timeout=600) as answer:
        if json.load(answer)["errors"]:
            raise BenchmarkFailed("the server has refused documents")


def sink_of(folder: Path, server: str) -> Sink:
    options = {"type": "opensearch", "url": server, "index": _INDEX, "replicas": 0}
    return made(read_sinks({SINK: options}, collection=_OWNER, data_folder=folder).options[0])


class _Archive:
    """Has a document of every URL."""

    def document(self, place: int, url: str) -> Document | None:
        return Document(url, "A page with a usual name", text="its text")


def audit(file: Path, server: str) -> None:
    """Compare and mend; print what was found."""
    clock = SystemClock()
    found: Counter[str] = Counter()
    with closing(SqliteStore(file, sinks=(SINK,))) as store, closing(sink_of(file.parent, server)) as sink:
        assert isinstance(sink, Inventory)
        repair = Repair(store, _Archive(), SINK, int(clock.now()))
        for differences in Audit(store, SINK, sink, Versions(store, SINK, clock), _OWNER).differences():
            found.update(one.kind.value for one in differences)
            repair.order(differences)
        drain_all(Drain(store, sink, clock))
        if store.backlog(SINK) or repair.fetched:
            raise BenchmarkFailed(f"{store.backlog(SINK)} orders wait, and {repair.fetched} documents are to be fetched")
    say(json.dumps(found))


if __name__ == "__main__":
    sys.exit(finish(main))
