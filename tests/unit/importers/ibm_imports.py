"""The corpus of IBM's folders, and one of them, or files of a test, imported."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from crawlspace.importers.files import ImportedCollection
from crawlspace.importers.ibm.collection import translate_ibm
from crawlspace.importers.ibm.folder import list_folder
from tests.unit.importers.imports import DEFAULTS

CORPUS = Path(__file__).parent / "ibm"


def imported(folder: Path, name: str = "demo", *, logged_out: Mapping[str, str] | None = None) -> ImportedCollection:
    """A folder, under the name of a collection."""
    return translate_ibm(list_folder(folder), folder=folder.name, name=name, defaults=DEFAULTS, logged_out=logged_out)


def made_of(base: Path, **contents: str | bytes) -> ImportedCollection:
    """A folder with these files, a dot written as two low lines: `crawl__rules`."""
    folder = base / "master_config"
    folder.mkdir()
    for name, content in contents.items():
        data = content.encode() if isinstance(content, str) else content
        (folder / name.replace("__", ".")).write_bytes(data)
    return imported(folder)
