"""Pending files for tests, and their import into a store."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pytest

from crawlspace import settings as defaults
from crawlspace.admin.pending.export import pending_lines
from crawlspace.admin.pending.importing import ImportCounts, PendingImport
from crawlspace.admin.pending.lines import read_lines
from crawlspace.config.collection import load_collection
from crawlspace.crawl.admission import Admission, CandidateChecker
from crawlspace.crawl.startup import build_space
from crawlspace.state.store import Store
from tests.contract.conftest import NOW

RULES = "forbid prefix http://a.example/private/\n"
INDEXED_AT = 1_700_000_000


class Importer:
    """Imports texts into a store as the collection `demo`, in batches of some lines."""

    def __init__(self, store: Store, folder: Path, *, settings: dict[str, object] | None = None) -> None:
        (folder / "demo").mkdir(exist_ok=True)
        (folder / "demo" / "start_urls.txt").write_text("http://a.example/\n")
        (folder / "demo" / "crawl.rules").write_text(RULES)
        names = {name: value for name, value in vars(defaults).items() if name.isupper()}
        self._collection = load_collection("demo", {**names, "CRAWLSPACE_COLLECTIONS_DIR": str(folder), **(settings or {})})
        self.store = store

    def __call__(self, text: str, *, at_once: int = 1_000, crawled: bool = False, retry_errors: bool = False) -> ImportCounts:
        discovery = CandidateChecker(build_space(self._collection))
        importing = PendingImport(
            self.store,
            Admission(self._collection, discovery, self.store),
            discovery,
            collection="demo",
            file="p",
            now=NOW,
            crawled=crawled,
            retry_errors=retry_errors,
        )
        lines = list(read_lines(io.BytesIO(text.encode()), "p", now=NOW, fault=pytest.fail))
        for first in range(0, len(lines), at_once):
            importing.add(lines[first : first + at_once])
        return importing.counts

    def exported(self) -> str:
        return exported(self.store)


def exported(store: Store) -> str:
    return "".join(f"{line}\n" for line in pending_lines(store.urls(), store, collection="demo"))


def drawn(number: int, seed: int = 1) -> str:
    """A pending file of URLs in normal form, each once, with realms and times as they come."""
    chosen = random.Random(seed)
    urls = sorted({f"http://{'abc'[n % 3]}.example/{chosen.randrange(10_000)}/{n}" for n in range(number)})
    numbers = (0, 0, 2, INDEXED_AT, INDEXED_AT + 1, 3)
    realms = ("demo", "demo", "Main", "My%20Site", "%C3%84rzte")
    return "".join(f"{url} {chosen.choice(realms)} {chosen.choice(numbers)}\n" for url in urls)
