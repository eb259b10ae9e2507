"""A vector index of what `scrapy export` writes, in which only what has changed is embedded again: see README.md."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from hashlib import blake2b, sha256
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import NoReturn, Protocol, TypeVar

import apsw
import msgspec

from crawlspace.text import escaped, printable, printable_message
from crawlspace.urls import document_id

try:
    import sqlite_vec
except ImportError:
    sys.exit("vectors.py: the library sqlite-vec is missing: pip install sqlite-vec")

BATCH = 64
"""Texts that are embedded in one call."""
CREATE = """CREATE VIRTUAL TABLE IF NOT EXISTS entries USING vec0
(id TEXT PRIMARY KEY, vector FLOAT[{}] distance_metric=cosine, +digest TEXT, +url TEXT, +headings TEXT, +text TEXT)"""
ADD = "INSERT INTO entries (vector, digest, url, headings, text, id) VALUES (?, ?, ?, ?, ?, ?)"
REPLACE = "UPDATE entries SET vector = ?, digest = ?, url = ?, headings = ?, text = ? WHERE id = ?"
SEARCH = (
    "SELECT ifnull(distance, 1) AS distance, url, headings, text FROM entries WHERE vector MATCH ? AND k = ? ORDER BY distance"
)
Row = TypeVar("Row")


class Entry(msgspec.Struct):
    """What is embedded and found: a part of a page, or a page without parts."""

    id: str
    digest: str
    url: str
    headings: list[str]
    text: str


class Document(msgspec.Struct):
    """A line of `scrapy export NAME -O FILE.jsonl`; its other fields are ignored."""

    url: str
    title: str
    text: str
    parts: list[Entry] = []


class MarkdownFile(msgspec.Struct):
    """A line of the `manifest.jsonl` of `scrapy export NAME --markdown DIR`."""

    file: str
    url: str
    id: str
    digest: str


class Embedding(Protocol):
    def __call__(self, texts: Sequence[str], *, is_query: bool) -> Iterable[Iterable[float]]:
        """Return a vector for each text. All have the same length, and none has zeros only."""


def stop(message: str, *, status: int = 1) -> NoReturn:
    """End with a message: exit status 2 is for wrong use, as that of argparse."""
    print(f"vectors.py: {printable_message(message)}", file=sys.stderr)
    raise SystemExit(status)


def hashed_words(texts: Sequence[str], *, is_query: bool) -> list[list[float]]:  # noqa: ARG001 - words are the same in queries
    """Count the words of each text; the index of a word in the vector is made of its digest."""
    vectors = [[0.0] * 1024 for _ in texts]
    for vector, text in zip(vectors, texts, strict=True):
        for word in re.findall(r"\w+", text.lower()) or [""]:
            vector[int.from_bytes(blake2b(word.encode(), digest_size=4).digest(), "big") % len(vector)] += 1
    return vectors


def embedding_of(name: str) -> Embedding:
    """Return the function that `--embedding` names."""
    if not name:
        return hashed_words
    module, _, function = name.partition(":")
    try:
        found: Embedding = getattr(import_module(module), function)
    except Exception as error:  # noqa: BLE001 - a module of the user may raise anything
        stop(f"--embedding {name} cannot be imported: {type(error).__name__}: {error}", status=2)
    return found


def embedded(texts: Sequence[str], embedding: Embedding, *, is_query: bool) -> list[bytes]:
    """Return the vectors of texts as sqlite-vec takes them."""
    try:
        vectors = [sqlite_vec.serialize_float32(list(vector)) for vector in embedding(texts, is_query=is_query)]
    except Exception as error:  # noqa: BLE001 - a function of the user may raise anything
        stop(f"the embedding function failed: {type(error).__name__}: {error}")
    if len(vectors) != len(texts):
        stop(f"the embedding function returned {len(vectors)} vectors for {len(texts)} texts")
    return vectors


def rows(lines: Iterable[bytes], file: str, kind: type[Row]) -> Iterator[Row]:
    """Yield the lines of a file of JSON lines."""
    for number, line in enumerate(lines, 1):
        try:
            yield msgspec.json.decode(line, type=kind)
        except ValueError as error:
            stop(f"{file}:{number}: this is no line of an export: {error}")


def entries_of_documents(file: str) -> Iterator[Entry]:
    """Yield the parts of each document, or the document where it has none."""
    with sys.stdin.buffer if file == "-" else Path(file).open("rb") as lines:
        for document in rows(lines, file, Document):
            digest = sha256(msgspec.json.encode((document.title, document.text))).hexdigest()
            page = Entry(document_id(document.url), digest, document.url, [document.title], document.text)
            yield from document.parts or [page]


def entries_of_markdown(folder: Path) -> Iterator[Entry]:
    """Yield the files of an export, without the fields in front of them."""
    manifest = folder / "manifest.jsonl"
    with manifest.open("rb") as lines:
        for one in rows(lines, str(manifest), MarkdownFile):
            content = (folder / one.file).read_bytes()
            if sha256(content).hexdigest() != one.digest:
                stop(f"{folder / one.file} is not the file of the manifest: export again, and wait until it is done")
            front, _, text = content.decode().partition("\n---\n")
            title = re.search(r"^title: (.*)$", front, re.MULTILINE)
            yield Entry(one.id, one.digest, one.url, [msgspec.json.decode(title[1], type=str)] if title else [], text)


def opened(file: str, embedding: str) -> apsw.Connection:
    """Open an index, or create it. All of its vectors are made by one embedding function."""
    index = apsw.Connection(file)
    index.set_busy_timeout(5000)
    index.transaction_mode = "IMMEDIATE"
    index.enable_load_extension(True)  # noqa: FBT003
    index.load_extension(sqlite_vec.loadable_path())
    index.execute("PRAGMA journal_mode = WAL")  # a search during `fill` finds what was there before
    index.execute("CREATE TABLE IF NOT EXISTS embedding (name TEXT NOT NULL)")
    for (name,) in index.execute("SELECT name FROM embedding"):
        if name != embedding:
            needed = f"--embedding {name}" if name else "no --embedding"
            stop(f"{file} was filled with {needed}: another function needs another --index", status=2)
    return index


def changed_entries(entries: Iterable[Entry], known: dict[str, str], seen: set[str]) -> Iterator[Entry]:
    """Yield the entries whose digests are not known, and add the ids of all to `seen`."""
    for entry in entries:
        if entry.id not in seen and known.get(entry.id) != entry.digest:
            yield entry
        seen.add(entry.id)


def fill(index: apsw.Connection, entries: Iterable[Entry], name: str, *, may_empty: bool) -> str:
    """Embed what is new or has changed, delete what is gone, and return the numbers. An error leaves the index as it was."""
    embedding, seen, number = embedding_of(name), set[str](), 0
    with index:
        is_new = not index.table_exists("main", "entries")
        known: dict[str, str] = {} if is_new else dict(index.execute("SELECT id, digest FROM entries"))
        changed = changed_entries(entries, known, seen)
        while batch := list(islice(changed, BATCH)):
            headings = [" > ".join(entry.headings) for entry in batch]
            texts = [f"{above}\n\n{entry.text}" for above, entry in zip(headings, batch, strict=True)]
            vectors = embedded(texts, embedding, is_query=False)
            index.execute(CREATE.format(len(vectors[0]) // 4))
            for entry, above, vector in zip(batch, headings, vectors, strict=True):
                values = (vector, entry.digest, entry.url, above, entry.text, entry.id)
                index.execute(REPLACE if entry.id in known else ADD, values)
            number += len(batch)
        if known and not seen and not may_empty:
            stop("the export is empty: --allow-empty deletes all that is in the index", status=2)
        gone = known.keys() - seen
        index.executemany("DELETE FROM entries WHERE id = ?", [(id,) for id in gone])
        index.execute("INSERT INTO embedding SELECT ? WHERE NOT EXISTS (SELECT 1 FROM embedding)", (name,))
    return f"embedded {number}, unchanged {len(seen) - number}, deleted {len(gone)}"


def search(index: apsw.Connection, words: str, name: str, *, limit: int) -> Iterator[str]:
    """Yield the entries that are nearest to a text, the nearest first."""
    if not index.table_exists("main", "entries"):
        stop("the index has no entries: fill it first", status=2)
    (vector,) = embedded([words], embedding_of(name), is_query=True)
    for number, (distance, url, headings, text) in enumerate(index.execute(SEARCH, (vector, limit)), 1):
        beginning = printable(" ".join(text.split()), most=160)
        yield f"{number}. {printable(headings)} ({1 - distance:.2f})\n   {escaped(url)}\n   {beginning}"


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="vectors.py", description="Fill and search a vector index of a collection.")
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--index", metavar="FILE", default="vectors.sqlite", help="the index (default: %(default)s)")
    shared.add_argument(
        "--embedding", metavar="MODULE:FUNCTION", default="", help="makes vectors of texts (default: hashed words)"
    )
    commands = parser.add_subparsers(dest="command", required=True)
    filling = commands.add_parser("fill", parents=[shared], help="bring the index in step with an export")
    source = filling.add_mutually_exclusive_group(required=True)
    source.add_argument("file", nargs="?", help="of `scrapy export NAME -O FILE.jsonl`; - is the standard input")
    source.add_argument("--markdown", metavar="DIR", type=Path, help="of `scrapy export NAME --markdown DIR`")
    filling.add_argument("--allow-empty", action="store_true", help="delete all entries if the export is empty")
    searching = commands.add_parser("search", parents=[shared], help="print the nearest entries")
    searching.add_argument("words", nargs="+")
    searching.add_argument("--limit", type=int, default=5, help="how many (default: %(default)s)")
    return parser.parse_args()


def main() -> None:
    options = parsed()
    if options.command == "search" and not Path(options.index).exists():
        stop(f"there is no index {options.index}: fill it first", status=2)
    try:
        with closing(opened(options.index, options.embedding)) as index:
            if options.command == "search":
                print(*search(index, " ".join(options.words), options.embedding, limit=options.limit), sep="\n")
            else:
                entries = entries_of_markdown(options.markdown) if options.markdown else entries_of_documents(options.file)
                print(fill(index, entries, options.embedding, may_empty=options.allow_empty))
    except apsw.Error as error:
        stop(f"{options.index}: {error}")
    except OSError as error:
        stop(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
