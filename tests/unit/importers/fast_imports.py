"""What tests of the FAST importer share: the corpus, and a file of it imported into a folder of collections."""

from __future__ import annotations

from pathlib import Path

from crawlspace import settings as defaults
from crawlspace.config.collection import Collection, load_collection, read_settings_file
from crawlspace.importers.fast.collection import translate_fast
from crawlspace.importers.fast.xml import read_fast_xml
from crawlspace.importers.files import ImportedCollection, write_files
from crawlspace.lint.collection import lint_collection
from crawlspace.lint.finding import Finding

CORPUS = Path(__file__).parent / "fast"
DEFAULTS = {key: value for key, value in vars(defaults).items() if key.isupper()}


def imported(name: str) -> ImportedCollection:
    """A file of the corpus, by its name without the ending."""
    path = CORPUS / f"{name}.xml"
    [section] = read_fast_xml(path.read_bytes(), file=path.name)
    return translate_fast(section, file=path.name, folder=CORPUS, name=name, defaults=DEFAULTS)


def collection(name: str, base: Path) -> Collection:
    """The collection that a file of the corpus becomes, read as a crawl reads it."""
    settings = _written(name, base)
    return load_collection(name, settings)


def found(name: str, base: Path) -> list[Finding]:
    """What lint finds in it."""
    settings = _written(name, base)
    return lint_collection(base / name, settings, DEFAULTS, store=None)[0]


def _written(name: str, base: Path) -> dict[str, object]:
    write_files(base / name, imported(name).files)
    return {**DEFAULTS, **read_settings_file(base / name), "CRAWLSPACE_COLLECTIONS_DIR": str(base)}
