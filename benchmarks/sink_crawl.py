"""What a search server costs a crawl: the same crawl with it as a further sink, and in place of others.

    python -m benchmarks.sink_crawl --pages 5000 --rounds 5 [--server URL | --real]

The server acknowledges at once, in a process of its own, so that what is measured is the crawl and not the server; `--real` starts the
OpenSearch of the tests, which shares the processors with the crawl (a JDK and Maven). Judged is the embedded index together with the
server against the embedded index alone, which is the default. A file, the least that a sink can be, against the server is shown too.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.collection import BenchCollection
from benchmarks.measure import BenchmarkFailed, Cost, Row, finish, in_turn, median_ratio, tail
from benchmarks.sink_server import emptied, is_real, number_of_documents, server_of
from benchmarks.whole_crawl import Ground, site_served

_NAME = "sink crawl"
_TARGET = 0.9
_LOCAL: Mapping[str, object] = {"type": "sqlite"}
_EMBEDDED, _BOTH, _SERVER, _FILE = "embedded index", "embedded index and server", "server", "file"
_COMPARED = ((_BOTH, _EMBEDDED), (_SERVER, _FILE), (_SERVER, _EMBEDDED))


def main(arguments: Sequence[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Compare crawls with and without a search server as a sink.")
    parser.add_argument("--pages", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--server", metavar="URL", default=os.environ.get("CRAWLSPACE_TEST_OPENSEARCH_URL"))
    parser.add_argument("--real", action="store_true", help="start the OpenSearch of the tests")
    options = parser.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory(prefix="bench-sink-crawl-") as temp,
        site_served(Path(temp), options.pages) as ground,
        server_of(options.server, is_real=options.real) as server,
    ):
        search = {"type": "opensearch", "url": server, "index": "bench", "replicas": 0}
        sinks: dict[str, dict[str, Mapping[str, object]]] = {
            _EMBEDDED: {"local": _LOCAL},
            _BOTH: {"local": _LOCAL, "search": search},
            _SERVER: {"search": search},
            _FILE: {"log": {"type": "file"}},
        }
        crawls = {name: partial(ground.checked, name, partial(_crawl, ground, server, given)) for name, given in sinks.items()}
        costs = in_turn(crawls, options.rounds)
        what = "OpenSearch" if is_real(server) else "one that acknowledges at once"
    rows = [Row(_NAME, "pages; the server", f"{options.pages:,}; {what}")]
    for name, taken in costs.items():
        rate, cpu = median(cost.pages_per_s(options.pages) for cost in taken), median(cost.cpu_s for cost in taken)
        rows.append(Row(_NAME, f"{name}: pages/s, CPU", f"{rate:.0f}/s, {cpu:.1f} s"))
    return rows + [_compared(costs, name, base) for name, base in _COMPARED]


def _compared(costs: Mapping[str, list[Cost]], name: str, base: str) -> Row:
    wall = median_ratio([cost.wall_s for cost in costs[base]], [cost.wall_s for cost in costs[name]])
    cpu = median_ratio([cost.cpu_s for cost in costs[base]], [cost.cpu_s for cost in costs[name]])
    value, is_judged = f"{wall:.2f} times (CPU {cpu:.2f} times)", name == _BOTH
    return Row(
        _NAME,
        f"{name} against {base}, pages/s",
        value,
        f">= {_TARGET:g}" if is_judged else "",
        wall >= _TARGET if is_judged else None,
    )


def _crawl(ground: Ground, server: str, sinks: Mapping[str, Mapping[str, object]]) -> Cost:
    """Crawl into a new store and empty indexes, and check that each has all documents."""
    folder = ground.folder / "crawl"
    shutil.rmtree(folder, ignore_errors=True)
    emptied(server)
    collection = BenchCollection(folder)
    configuration = ground.configuration
    configuration["settings"] = {
        **configuration["settings"],
        "CRAWLSPACE_SINKS": {name: dict(one) for name, one in sinks.items()},
    }
    collection.write(**configuration)
    cost = collection.crawl()
    found = {}
    if "local" in sinks:
        found["the embedded index"] = len(collection.index_urls())
    if "search" in sinks:
        found["the server"] = number_of_documents(server)
    for name, number in found.items():
        if number != ground.site.documents:
            raise BenchmarkFailed(f"{name} has {number} documents of {ground.site.documents}:\n{tail(collection.log)}")
    return cost


if __name__ == "__main__":
    sys.exit(finish(main))
