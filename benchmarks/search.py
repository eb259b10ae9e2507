"""How well and how fast the embedded index finds: `python -m benchmarks.search [--kept] [--documents N] [--misses]`.

The documents are manuals that Debian packages, in English, German, Japanese, Chinese and Korean, an index for each; `apt-get` downloads
them once. `search_sets/queries.tsv` has queries with the one page that is right, made by `benchmarks.manuals`. Half of them are
`kept` until a change of the ranking is finished: without `--kept` only the others are asked. `search_sets/words.tsv` has words of
languages that are written without spaces; each has to find the pages that have it. Where a page has it is taken from lxml's text of the
page, not from the project's own parser.

The latency is that of the same queries in one index of `--documents` pages, each of them a part of a page of the manuals.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from statistics import median
from typing import NamedTuple

from lxml import html

from benchmarks.manuals import MANUALS, Manual, documents, pages, url_of
from benchmarks.measure import Row, finish, say
from crawlspace.document import Document, IndexOrder, Op
from crawlspace.index.embedded import EmbeddedIndex

SETS = Path(__file__).with_name("search_sets")
BATCH = 200
FIRST = 3
PART = 4_000
"""Characters of a document in the index for the latency."""


class Query(NamedTuple):
    manual: str
    kind: str
    part: str
    words: str
    path: str


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Measure what the embedded index finds, and how fast.")
    parser.add_argument("--kept", action="store_true", help="ask the queries kept for the end, not the open ones")
    parser.add_argument("--documents", type=int, default=100_000, help="documents of the index for the latency; 0: none")
    parser.add_argument("--misses", action="store_true", help="print the queries whose right page is not in the first three")
    options = parser.parse_args(arguments)
    asked = [query for query in read_queries() if (query.part == "kept") is options.kept]
    words = read_words()
    rows: list[Row] = []
    all_documents: list[Document] = []
    with tempfile.TemporaryDirectory(prefix="bench-search-") as folder:
        for manual in MANUALS:
            index = EmbeddedIndex(Path(folder) / f"{manual.name}.db")
            found = list(documents(manual))
            all_documents += found
            fill(index, found)
            rows += right_pages(index, manual, [query for query in asked if query.manual == manual.name], misses=options.misses)
            if words[manual.name]:
                rows.append(pages_of_words(index, manual, words[manual.name], misses=options.misses))
            index.close()
        if options.documents:
            rows += latency(Path(folder) / "large.db", all_documents, options.documents, [query.words for query in asked])
    return rows


def right_pages(index: EmbeddedIndex, manual: Manual, asked: Sequence[Query], *, misses: bool) -> Iterator[Row]:
    """Yield a row for each kind of queries of a manual, and one for all of them."""
    kinds: dict[str, list[int]] = defaultdict(list)
    for query in asked:
        urls = [hit.url for hit in index.search(query.words, limit=50).hits]
        right = url_of(manual, query.path)
        place = urls.index(right) + 1 if right in urls else 0
        kinds[query.kind].append(place)
        if misses and not 0 < place <= FIRST:
            say(f"{manual.name} {query.kind}: {query.words!r} wants {query.path}, place {place or 'none'}, found {urls[:FIRST]}")
    places = [place for of_kind in kinds.values() for place in of_kind]
    if places:
        share = _share(places, FIRST)
        by_kind = ", ".join(f"{kind} {_share(of_kind, FIRST):.0%}" for kind, of_kind in kinds.items())
        value = f"{share:.1%} of {len(places)} ({by_kind}); first: {_share(places, 1):.0%}"
        yield Row("search", f"right page in the first three, {manual.name}", value, ">= 95 %", share >= 0.95)


def pages_of_words(index: EmbeddedIndex, manual: Manual, words: Sequence[str], *, misses: bool) -> Row:
    """Return the row of the worst word: the least share of its pages that it finds, and the largest share of others."""
    texts = {url_of(manual, path): visible_text(body, spaced=manual.name.endswith("ko")) for path, body in pages(manual)}
    least, most, missed = 1.0, 0.0, 0
    for word in words:
        have = {url for url, text in texts.items() if word in text}
        found = {hit.url for hit in index.search(f'"{word}"', limit=len(texts)).hits}
        recall, others = len(have & found) / len(have), len(found - have) / max(len(found), 1)
        if recall < 0.9 or others > 0.05:
            missed += 1
            if misses:
                say(f"{manual.name}: {word} finds {len(have & found)} of {len(have)} pages and {len(found - have)} others")
        least, most = min(least, recall), max(most, others)
    value = f"{len(words) - missed} of {len(words)}; the worst {least:.0%} and {most:.0%}"
    return Row("search", f"words that find their pages, {manual.name}", value, ">= 90 %, others <= 5 %", missed == 0)


def latency(path: Path, pool: Sequence[Document], number: int, asked: Iterable[str]) -> Iterator[Row]:
    """Yield the rows of an index of many documents."""
    index = EmbeddedIndex(path)
    start = time.perf_counter()
    found = islice(parts(pool), number)
    while batch := list(islice(found, BATCH)):
        fill(index, batch)
    spent = time.perf_counter() - start
    yield Row("search", f"documents a second into an index of {number:,}", f"{number / spent:,.0f}/s")
    times = []
    for words in asked:
        start = time.perf_counter()
        index.search(words)
        times.append((time.perf_counter() - start) * 1000)
    index.close()
    size = path.stat().st_size / number
    times.sort()
    yield Row(
        "search", f"ms a query, median of {len(times)}, {number:,} documents", f"{median(times):.1f}", "< 50", median(times) < 50
    )
    yield Row("search", "ms a query, 95 of 100 within", f"{times[len(times) * 95 // 100]:.1f}")
    yield Row("search", "bytes a document in the index", f"{size:,.0f}")


def parts(pool: Sequence[Document]) -> Iterator[Document]:
    """Yield parts of the documents without end: each has the words of a stretch of its text."""
    chance = random.Random(1)
    while True:
        whole = chance.choice(pool)
        start = chance.randrange(max(len(whole.text) - PART, 1))
        number = chance.randrange(1 << 40)
        yield Document(
            f"{whole.url}/{number:x}",
            title=whole.title,
            language=whole.language,
            text=whole.text[start : start + PART],
            headings=whole.headings[: chance.randrange(10)],
            content_type=whole.content_type,
        )


def fill(index: EmbeddedIndex, found: Iterable[Document]) -> None:
    refused = index.send([IndexOrder(number, Op.PUSH, document.url, document) for number, document in enumerate(found)]).refused
    assert not refused, refused


def visible_text(body: bytes, *, spaced: bool) -> str:
    """Return the text of a page as lxml reads it; without spaces, unless words of the language are written with them."""
    tree = html.document_fromstring(body, html.HTMLParser(encoding=_encoding(body)))
    text = "".join(tree.xpath("//text()[not(ancestor::script or ancestor::style)]"))
    return (" " if spaced else "").join(text.split())


def read_queries() -> list[Query]:
    lines = (SETS / "queries.tsv").read_text(encoding="utf-8").splitlines()
    return [Query(*line.split("\t")) for line in lines]


def read_words() -> dict[str, list[str]]:
    words: dict[str, list[str]] = defaultdict(list)
    for line in (SETS / "words.tsv").read_text(encoding="utf-8").splitlines():
        manual, word = line.split("\t")
        words[manual].append(word)
    return words


def _share(places: Sequence[int], first: int) -> float:
    return sum(0 < place <= first for place in places) / len(places)


def _encoding(body: bytes) -> str:
    match = re.search(rb"charset=[\"']?([\w-]+)", body[:3000])
    return match[1].decode() if match else "utf-8"


if __name__ == "__main__":
    sys.exit(finish(main))
