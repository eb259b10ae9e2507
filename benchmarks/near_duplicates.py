"""Which near duplicates are found among pages of manuals, and what a page costs among a million others: `python -m benchmarks.near_duplicates`.

Pages are those of manuals that Debian packages, in two versions where there are two. Precision: of the pairs of pages that are found, those in
which no more words differ than promised, counted by an exact comparison word by word. Recall: of pages in some of whose words a random word takes
the place of another, those that are found. The cost of a page is the time in which a store records it, with so many texts that may have near
duplicates.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from difflib import SequenceMatcher
from pathlib import Path
from statistics import median
from typing import NamedTuple

import redis

from benchmarks.collection import redis_server
from benchmarks.manuals import CACHE
from benchmarks.measure import BenchmarkFailed, Row, finish, say
from benchmarks.store import NOW, page, pending_url
from crawlspace.content.html import extract
from crawlspace.model import UrlState
from crawlspace.simhash import bands, distance, is_near, number_of, signature_of, words_of
from crawlspace.state.changes import Change
from crawlspace.state.near_duplicates import MOST_IN_BAND, NEAR_META
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.store import Store

PACKAGES = ("python3.11-doc", "apache2-doc", "postgresql-doc-15", "debian-reference-en", "debian-policy")
PROMISED = {3: 0.002, 6: 0.01}
"""By distance, the share of words that differ."""
_PRECISION, _RECALL, _RATIO = 0.99, 0.9, 1.5
_WORDS = 500
"""Of pages for the recall."""
_SAMPLE = 1_000
_ALL = (1 << 64) - 1
_RECORDED_AT_ONCE, _BATCHES = 100, 8
_LONGEST_CALL_S = 0.5


class Text(NamedTuple):
    words: list[str]
    signature: bytes


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Measure near duplicates.")
    parser.add_argument("--pages", type=Path, default=CACHE / "versions", help="folder with a folder for each package")
    parser.add_argument("--sizes", type=int, nargs=2, default=[10_000, 1_000_000], help="texts in a store")
    parser.add_argument("--only", choices=["texts", "stores"], help="one half of it")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    if options.only != "stores":
        rows += _of_texts(options.pages)
    if options.only != "texts":
        rows += _of_stores(options.sizes)
    return rows


def _of_texts(folder: Path) -> Iterator[Row]:
    bodies = [path.read_bytes() for package in PACKAGES for path in _pages(package, folder)]
    parsing = signing = 0.0
    texts: dict[str, Text] = {}
    for body in bodies:
        began = time.process_time()
        text = extract(body, url="http://manuals.example.com/").text
        parsed = time.process_time()
        signature = signature_of(text)
        parsing, signing = parsing + parsed - began, signing + time.process_time() - parsed
        if signature is not None:
            texts.setdefault(text, Text(words_of(text), signature))
    found = list(texts.values())
    yield Row("near_duplicates", "pages; with different texts of 100 words and more", f"{len(bodies):,}; {len(found):,}")
    yield Row(
        "near_duplicates",
        "processor time of a signature, as a share of parsing",
        f"{signing / parsing:.2f}",
        "< 0.5",
        signing < parsing / 2,
    )
    pairs = list(_close(found))
    for within, promised in PROMISED.items():
        near = [_differing(one.words, other.words) for one, other in pairs if is_near(one.signature, other.signature, within)]
        right = sum(share <= promised for share in near) / len(near) if near else 1.0
        yield Row(
            "near_duplicates",
            f"distance {within}: of {len(near):,} pairs found, those that differ in {promised:.1%} at most",
            f"{right:.4f}",
            f"at least {_PRECISION}",
            right >= _PRECISION,
        )
        by_simhash = sum(distance(one.signature, other.signature) <= within for one, other in pairs)
        yield Row("near_duplicates", f"distance {within}: pairs whose simhashes are as close", f"{by_simhash:,}")
        share = _recall(found, within, promised)
        yield Row(
            "near_duplicates",
            f"distance {within}: pages found again with {promised:.1%} other words",
            f"{share:.3f}",
            f"at least {_RECALL}",
            share >= _RECALL,
        )


def _close(texts: Sequence[Text]) -> Iterator[tuple[Text, Text]]:
    """Yield the pairs whose simhashes are within a distance of 6."""
    simhashes = [number_of(text.signature) & _ALL for text in texts]
    for number, simhash in enumerate(simhashes):
        others = (other for other in range(number) if (simhash ^ simhashes[other]).bit_count() <= max(PROMISED))
        yield from ((texts[number], texts[other]) for other in others)


def _differing(one: list[str], other: list[str]) -> float:
    """Return the share of the words that differ: replaced, inserted or deleted."""
    first = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    last = 0
    while last < min(len(one), len(other)) - first and one[-1 - last] == other[-1 - last]:
        last += 1
    matcher = SequenceMatcher(None, one[first : len(one) - last], other[first : len(other) - last], autojunk=False)
    changed = sum(max(a2 - a1, b2 - b1) for tag, a1, a2, b1, b2 in matcher.get_opcodes() if tag != "equal")
    return changed / max(len(one), len(other))


def _recall(texts: Sequence[Text], within: int, promised: float) -> float:
    drawn = random.Random(within)
    long = [text for text in texts if len(text.words) >= _WORDS]
    vocabulary = [word for text in drawn.sample(long, min(200, len(long))) for word in text.words]
    sample = drawn.sample(long, min(_SAMPLE, len(long)))
    found = 0
    for text in sample:
        words = list(text.words)
        for place in drawn.sample(range(len(words)), max(1, int(len(words) * promised))):
            words[place] = drawn.choice(vocabulary)
        signature = signature_of(" ".join(words))
        found += signature is not None and is_near(text.signature, signature, within)
    return found / len(sample)


def _pages(package: str, folder: Path) -> list[Path]:
    """Return the pages of the versions of a package, fetched and unpacked on first use."""
    listed = subprocess.run(["apt-cache", "madison", package], capture_output=True, text=True, check=True).stdout
    versions = sorted({line.split("|")[1].strip() for line in listed.splitlines() if "Packages" in line})[-2:]
    if not versions:
        raise BenchmarkFailed(f"apt-cache knows no {package} (apt-get update first?)")
    for version in versions:
        unpacked = folder / f"{package}_{version.replace(':', '_')}"
        if not unpacked.exists():
            folder.mkdir(parents=True, exist_ok=True)
            say(f"fetching {package} {version}")
            subprocess.run(
                ["apt-get", "-q", "download", f"{package}={version}"], cwd=folder, check=True, stdout=subprocess.DEVNULL
            )
            archive = next(folder.glob(f"{package}_*.deb"))
            subprocess.run(["dpkg", "-x", str(archive), str(unpacked)], check=True)
            archive.unlink()
    files = [path for version in versions for path in (folder / f"{package}_{version.replace(':', '_')}").rglob("*.html*")]
    return sorted(path for path in files if path.is_file() and not path.is_symlink())


def _of_stores(sizes: Sequence[int]) -> Iterator[Row]:
    for name, measured in (("SQLite", _in_sqlite), ("Redis", _in_redis)):
        costs: dict[tuple[int, int], float] = {}
        longest = 0.0
        for size in sizes:
            for within, times in measured(size).items():
                cost = costs[size, within] = median(times)
                longest = max(longest, *times)
                what = f"with {size:,} texts, distance {within}" if within else f"with {size:,} texts, a page without a signature"
                yield Row("near_duplicates", f"{name}: ms to record a page, {what}", f"{1000 * cost:.2f}")
        longest *= _RECORDED_AT_ONCE
        what = f"{name}: longest transaction of {_RECORDED_AT_ONCE} pages"
        yield Row("near_duplicates", what, f"{longest:.2f} s", f"< {_LONGEST_CALL_S}", longest < _LONGEST_CALL_S)
        for within in PROMISED:
            ratio = costs[sizes[1], within] / costs[sizes[0], within]
            yield Row(
                "near_duplicates",
                f"{name}, distance {within}: cost with {sizes[1]:,} texts against {sizes[0]:,}",
                f"{ratio:.2f}",
                f"< {_RATIO}",
                ratio < _RATIO,
            )


def _in_sqlite(size: int) -> dict[int, list[float]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.db"
        say(f"SQLite: {size:,} texts")
        with closing(SqliteStore(path)) as store, store._file.writing() as db:  # as many pages would take hours
            found = list(_random_texts(size))
            db.executemany("INSERT INTO near_text (checksum, signature) VALUES (?, ?)", found)
            rows = ((band, id, number_of(of_text)) for id, (_, of_text) in enumerate(found, 1) for band in bands(of_text))
            db.executemany("INSERT INTO near_band VALUES (?, ?, ?)", sorted(rows))
        with closing(SqliteStore.open_for_crawl(path)) as store:
            store.begin_run(None)
            return _recording(store)


def _in_redis(size: int) -> dict[int, list[float]]:
    with redis_server() as port, closing(redis.Redis(port=port)) as client, closing(RedisStore(client, "near")) as store:
        say(f"Redis: {size:,} texts")
        prefix = store.server.prefix
        before = int(client.info("memory")["used_memory"])
        entries: dict[int, bytes] = {}
        texts: dict[bytes, bytes] = {}
        for text, signature in _random_texts(size):
            texts[text] = signature
            for band in bands(signature):
                entry = signature[:8] + bytes((len(text),)) + text
                entered = entries.get(band, b"")
                if len(entered) < MOST_IN_BAND * len(entry):
                    entries[band] = entered + entry
        _fill(client, f"{prefix}near_text", texts)
        _fill(client, f"{prefix}near_band", entries)
        used = int(client.info("memory")["used_memory"]) - before
        say(f"Redis: {used / size:.0f} bytes a text for the look-up")
        return _recording(store)


def _fill(client: redis.Redis, key: str, values: dict[bytes, bytes] | dict[int, bytes]) -> None:
    pairs = list(values.items())
    for start in range(0, len(pairs), 5_000):
        client.hset(key, mapping=dict(pairs[start : start + 5_000]))  # type: ignore[arg-type]


def _recording(store: Store) -> dict[int, list[float]]:
    """Return the seconds to record a page in each transaction, by distance; 0: pages without a signature."""
    drawn = random.Random(2)
    costs: dict[int, list[float]] = {0: [], **{within: [] for within in PROMISED}}
    number = 0
    for _ in range(_BATCHES):
        for within, times in costs.items():
            store.set_meta(NEAR_META, str(within))
            urls = [pending_url(number + one) for one in range(_RECORDED_AT_ONCE)]
            number += len(urls)
            store.discover(urls, now=NOW)
            states = [state for url in urls if (state := store.get(url.url)) is not None]
            changes = [_change(state, _random_signature(drawn) if within else None) for state in states]
            began = time.perf_counter()
            store.record(changes, now=NOW)
            times.append((time.perf_counter() - began) / len(changes))
    return costs


def _change(state: UrlState, signature: bytes | None) -> Change:
    change = page(state)
    change.state.simhash = signature
    return change


def _random_texts(size: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield checksums with signatures, all of texts of one length: where lengths differ, fewer have to be compared."""
    drawn = random.Random(1)
    for _ in range(size):
        yield drawn.randbytes(16), _random_signature(drawn)


def _random_signature(drawn: random.Random) -> bytes:
    return drawn.randbytes(8) + (500).to_bytes(4, "little") + drawn.randbytes(128)


if __name__ == "__main__":
    sys.exit(finish(main))
