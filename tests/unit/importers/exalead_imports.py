"""What tests of the Exalead importer share: the corpus, and a file of it imported into a folder of collections."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from crawlspace import settings as defaults
from crawlspace.config.collection import Collection, load_collection, read_settings_file
from crawlspace.importers.exalead.collection import translate_exalead
from crawlspace.importers.exalead.xml import read_crawl_config
from crawlspace.importers.files import ImportedCollection, write_files
from crawlspace.lint.collection import lint_collection
from crawlspace.lint.finding import Finding
from crawlspace.rules.xml.model import RegexSyntax

CORPUS = Path(__file__).parent / "exalead"
DEFAULTS = {key: value for key, value in vars(defaults).items() if key.isupper()}


def imported_from(data: bytes, name: str = "demo", syntax: RegexSyntax | None = None) -> ImportedCollection:
    """The one crawler of a file."""
    [crawler] = read_crawl_config(data, file=f"{name}.xml")
    return translate_exalead(crawler, file=f"{name}.xml", name=name, defaults=DEFAULTS, syntax=syntax)


def imported(name: str, syntax: RegexSyntax | None = None) -> ImportedCollection:
    """A file of the corpus, by its name without the ending."""
    return imported_from((CORPUS / f"{name}.xml").read_bytes(), name, syntax)


def with_start(found: ImportedCollection) -> ImportedCollection:
    """An import with a start URL, if it has none: a file with rules only says nothing of them."""
    if "http" in found.files["start_urls.txt"]:
        return found
    return replace(found, files={**found.files, "start_urls.txt": "http://www.foo.com/\n"})


def collection(name: str, base: Path, found: ImportedCollection) -> Collection:
    """The collection of an import, read as a crawl reads it."""
    return load_collection(name, _written(name, base, found))


def findings(name: str, base: Path, found: ImportedCollection) -> list[Finding]:
    """What lint finds in it."""
    return lint_collection(base / name, _written(name, base, found), DEFAULTS, store=None)[0]


def _written(name: str, base: Path, found: ImportedCollection) -> dict[str, object]:
    write_files(base / name, found.files)
    return {**DEFAULTS, **read_settings_file(base / name), "CRAWLSPACE_COLLECTIONS_DIR": str(base)}
