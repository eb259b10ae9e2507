"""The tables of docs/scale.md: figures that were measured, each with the row that has it, and what follows from them for many URLs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

SIZES = {"10 million": 10_000_000, "100 million": 100_000_000, "1 billion": 1_000_000_000}


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured figure: `shown` is how the row says it; `page` has the row in the section `section`, in which `row` stands."""

    what: str
    shown: str
    section: str
    row: str
    page: str = "benchmarks.md"


@dataclass(frozen=True, slots=True)
class Projection:
    """What follows for a number of URLs: that many times `bytes_each` or `seconds_each`."""

    what: str
    each: str
    bytes_each: float = 0
    seconds_each: float = 0


FIGURES = (
    Figure("one process, one site, no delay", "865/s", "whole_crawl", "crawlspace: pages/s, CPU, peak memory"),
    Figure("its memory", "201 MB", "whole_crawl", "crawlspace: pages/s, CPU, peak memory"),
    Figure("one process, 10,000 sites, a delay of 1 s", "378/s", "many_sites", "10,000 sites of 3 pages,"),
    Figure("of the pages that the delays allow", "98.4%", "politeness", "pages/s, 200 sites, 1 s delay"),
    Figure("one process, a refresh where nothing has changed", "1285/s", "recrawl", "refresh: pages/s, CPU"),
    Figure("one worker over Redis, sites that answer after 50 ms", "294/s", "shared_speed", "one worker: pages/s, CPU, peak memory, CPU of Redis"),
    Figure("two workers on two cores", "561/s", "shared_speed", "two workers: pages/s, CPU, peak memory, CPU of Redis"),
    Figure("processor time of Redis for 5,000 pages", "1.3 s", "shared_speed", "over Redis: pages/s, CPU, peak memory, CPU of Redis"),
    Figure("bytes of a pending URL in the file, beyond its text", "99", "frontier_scale", "bytes a URL beyond its text, 10,000,000 URLs, 1,000 sites"),
    Figure("bytes of the text of a URL", "65", "shared_memory", "bytes a URL, 1,000,000 pending URLs of 1,000 sites"),
    Figure("bytes of a pending URL in Redis, with its text", "245", "shared_memory", "bytes a URL, 1,000,000 pending URLs of 1,000 sites"),
    Figure("bytes of a page that is done in Redis, with its 30 links", "954", "shared_memory", "bytes a URL that is done, 320,000 of them"),
    Figure("bytes of a document in the embedded index", "7,538", "search", "bytes a document in the index"),
    Figure("ms of a query of it among 100,000 documents, median", "15.7", "search", "ms a query, median of 486, 100,000 documents"),
    Figure("bytes of a page in the archive", "7392", "recrawl", "bytes archived a page"),
    Figure("bytes of a document in OpenSearch, with 3.8 KB of text", "3,923", "Size and shards", "20,000 parts of manuals in five languages, 1 shard", "searching-servers.md"),
    Figure("seconds of a start with ten million URLs, after a kill", "0.882", "frontier_scale", "seconds to resume after a kill, 10,000,000 URLs, 1,000 sites"),
    Figure("MB of a process with ten million pending URLs", "137", "frontier_scale", "MB resident at most, inserting 10,000,000 URLs, 1,000 sites"),
    Figure("seconds of a change of the rules, with a million known URLs", "9.3", "reconcile", "seconds, reconcile, 1,000,000 known URLs"),
)  # fmt: skip

PROJECTIONS = (
    Projection("each page once: one process", "÷ 378/s", seconds_each=1 / 378),
    Projection("two workers on two cores", "÷ 561/s", seconds_each=1 / 561),
    Projection("as many workers as one Redis serves", "× 1.3 s ÷ 5,000", seconds_each=1.3 / 5_000),
    Projection("a refresh where nothing has changed: one process", "÷ 1285/s", seconds_each=1 / 1285),
    Projection("a change of the rules", "× 9.3 s ÷ 1,000,000", seconds_each=9.3 / 1_000_000),
    Projection("pending URLs in a file", "× (99 + 65) bytes", bytes_each=99 + 65),
    Projection("pending URLs in Redis", "× 245 bytes", bytes_each=245),
    Projection("pages that are done, in Redis", "× 954 bytes", bytes_each=954),
    Projection("embedded index", "× 7,538 bytes", bytes_each=7_538),
    Projection("index of OpenSearch, without replicas", "× 3,923 bytes", bytes_each=3_923),
    Projection("archive", "× 7,392 bytes", bytes_each=7_392),
)


def figure_rows() -> Iterator[Sequence[str]]:
    yield ("what", "measured", "source")
    for one in FIGURES:
        anchor = one.section.lower().replace(" ", "-")
        yield (one.what, one.shown, f"[{one.section}]({one.page}#{anchor}): {one.row}")


def projection_rows() -> Iterator[Sequence[str]]:
    yield ("what", "URLs …", *SIZES)
    for one in PROJECTIONS:
        yield (one.what, one.each, *(_shown(one, size) for size in SIZES.values()))


def _shown(one: Projection, size: int) -> str:
    if one.bytes_each:
        size_bytes = one.bytes_each * size
        return f"{_rounded(size_bytes / 1e12)} TB" if size_bytes >= 1e12 else f"{_rounded(size_bytes / 1e9)} GB"
    seconds = one.seconds_each * size
    units = (("days", 86_400, 172_800), ("hours", 3_600, 7_200), ("minutes", 60, 120), ("seconds", 1, 0))
    name, unit = next((name, unit) for name, unit, least in units if seconds >= least)
    return f"{_rounded(seconds / unit)} {name}"


def _rounded(amount: float) -> str:
    """Return an amount with two digits that count."""
    return f"{float(f'{amount:.2g}'):,g}"
