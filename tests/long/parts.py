"""Exactly the parts of changed pages are pushed: `python -m tests.long.parts [--pages 5000] [--changed 30]`.

A site of pages with sections is crawled with its sections as parts; then a section is added to some pages, one is taken from others, and all are
fetched again. The orders of the second crawl, as the sink `file` writes them, must be those of the changed pages alone, and the index must have
their parts and no others.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from benchmarks.collection import NAME, BenchCollection
from benchmarks.measure import Row, finish
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.state.sqlite.store import SqliteStore
from tests.due_times import make_all_due_by
from tests.sites import Answer, Site, html, serve

_SECTIONS = 8
_LINKS = 50


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Check that a change of some pages pushes their parts and no others.")
    parser.add_argument("--pages", type=int, default=5_000)
    parser.add_argument("--changed", type=int, default=30)
    options = parser.parse_args(arguments)
    pages = range(options.pages)
    sections = {number: [f"s{at}" for at in range(_SECTIONS)] for number in pages}
    site = Site({_path(number): _page(number, sections[number], options.pages) for number in pages})
    with tempfile.TemporaryDirectory(prefix="parts-") as folder, serve(site) as server:
        collection = BenchCollection(Path(folder))
        sinks = {"local": {"type": "sqlite"}, "log": {"type": "file"}}
        collection.write(
            start_urls=[server.url("/0")],
            rules="",
            settings={"CRAWLSPACE_PARTS": "headings", "CRAWLSPACE_SINKS": sinks, "CRAWLSPACE_MAX_URLS_PER_HOST": 1_000_000},
        )
        collection.crawl()
        log = Path(folder) / "data" / NAME / "log.jsonl"
        first = log.read_bytes().count(b"\n")
        changed = set(pages[:: max(1, options.pages // options.changed)][: options.changed])
        for at, number in enumerate(sorted(changed)):
            sections[number] = [*sections[number], "new"] if at % 2 else sections[number][1:]
            site[_path(number)] = _page(number, sections[number], options.pages)
        with closing(SqliteStore(collection.store_file, sinks=("local", "log"))) as store:
            make_all_due_by(store, 0)
        collection.crawl()
        orders = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()[first:]]
        with closing(EmbeddedIndex(collection.index_file, read_only=True)) as index:
            found = {document.url: [part.key for part in document.parts] for document in index.documents(NAME)}
        expected = {server.url(_path(number)): sections[number] for number in pages}
    wrong = sum(found.get(url) != keys for url, keys in expected.items()) + len(found.keys() - expected.keys())
    pushed = sorted(order["url"] for order in orders if order["op"] == "push")
    needed = sorted(url for url in expected if int(url.rpartition("/")[2]) in changed)
    parts = sum(len(order["document"]["parts"]) for order in orders if order["op"] == "push")
    return [
        Row(
            "parts",
            f"orders of the first crawl, of {options.pages:,} pages",
            f"{first:,}",
            f"{options.pages:,}",
            first == options.pages,
        ),
        Row(
            "parts",
            f"orders after {len(changed)} pages have changed",
            f"{len(orders)}, with {parts} parts",
            f"{len(changed)}",
            pushed == needed,
        ),
        Row("parts", "pages with other parts in the index than they have", f"{wrong}", "0", not wrong),
    ]


def _path(number: int) -> str:
    return f"/{number}"


def _page(number: int, sections: list[str], pages: int) -> Answer:
    body = "".join(f"<h2 id={name}>Section {name}</h2><p>What {name} of page {number} says.</p>" for name in sections)
    links = "".join(f"<a href={_path(to)}> </a>" for to in range(number * _LINKS + 1, min((number + 1) * _LINKS + 1, pages)))
    return html(f"<title>Page {number}</title><h1 id=top>Page {number}</h1>{body}{links}")


if __name__ == "__main__":
    sys.exit(finish(main))
