"""What tests of lint share: collections that are written to a folder, and what is found in them."""

from __future__ import annotations

from pathlib import Path

from crawlspace import settings as defaults
from crawlspace.config.collection import Collection, collection_names, read_settings_file
from crawlspace.lint.collection import lint_collection
from crawlspace.lint.finding import Finding
from crawlspace.model import NewUrl, Source, State
from crawlspace.state.changes import Change
from crawlspace.urls import parse
from tests.contract.memory.store import MemoryStore

DEFAULTS = {key: value for key, value in vars(defaults).items() if key.isupper()}
START = "http://www.example.com/\n"
RULES = "allow domain www.example.com\nforbid domain *\n"


def collections_of(folder: Path, files: dict[str, str]) -> list[Collection]:
    for file, content in files.items():
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(content)
    found = [reviewed(folder, name, {})[1] for name in collection_names(folder)]
    assert None not in found
    return [collection for collection in found if collection is not None]


def store_of(known: dict[str, int]) -> MemoryStore:
    """A store with URLs that were crawled: excluded ones are never due, the others are due later."""
    store = MemoryStore()
    for url, status in known.items():
        parsed = parse(url)
        store.discover([NewUrl(parsed.key, url, parsed.site, Source.INDEX_FOLLOW, 0, 1, 0, 1)], now=1)
        state = store.get(url)
        assert state is not None
        state.state, state.status = (State.DONE, status) if status == 200 else (State.EXCLUDED, status)
        state.next_fetch = 9 if status == 200 else None
        store.record([Change(state)], now=1)
    return store


def found_in(tmp_path: Path, files: dict[str, str], *, store: MemoryStore | None = None) -> list[str]:
    return [place_of(finding) for finding in reviewed(tmp_path, "demo", files, store=store)[0]]


def reviewed(
    tmp_path: Path, name: str, files: dict[str, str], *, store: MemoryStore | None = None
) -> tuple[list[Finding], Collection | None]:
    folder = tmp_path / name
    folder.mkdir(exist_ok=True)
    for file, content in files.items():
        (folder / file).write_text(content)
    settings = {**DEFAULTS, "CRAWLSPACE_COLLECTIONS_DIR": str(tmp_path)}
    settings.update(**read_settings_file(folder))
    return lint_collection(folder, settings, DEFAULTS, store=store)


def place_of(finding: Finding) -> str:
    return f"{finding.file}:{finding.line}:{finding.column} {finding.level} {finding.code}"
