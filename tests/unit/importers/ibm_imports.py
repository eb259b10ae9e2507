"""What tests of the IBM importer share: the corpus, and a folder of it imported into a folder of collections."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from crawlspace import settings as defaults
from crawlspace.config.collection import Collection, load_collection, read_settings_file
from crawlspace.importers.files import ImportedCollection, write_files
from crawlspace.importers.ibm.collection import translate_ibm
from crawlspace.importers.ibm.folder import list_folder
from crawlspace.lint.collection import lint_collection
from crawlspace.lint.finding import Finding

CORPUS = Path(__file__).parent / "ibm"
DEFAULTS = {key: value for key, value in vars(defaults).items() if key.isupper()}


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


def collection(name: str, base: Path) -> Collection:
    """The collection that a folder of the corpus becomes, read as a crawl reads it."""
    return load_collection(name, _written(name, base))


def found(name: str, base: Path) -> list[Finding]:
    """What lint finds in it."""
    settings = _written(name, base)
    return lint_collection(base / name, settings, DEFAULTS, store=None)[0]


def _written(name: str, base: Path) -> dict[str, object]:
    made = imported(CORPUS / name, name)
    write_files(base / name, made.files, made.absent)
    return {**DEFAULTS, **read_settings_file(base / name), "CRAWLSPACE_COLLECTIONS_DIR": str(base)}
