"""The corpus of Exalead's files, and one of them, or a text, imported."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from crawlspace.importers.exalead.collection import translate_exalead
from crawlspace.importers.exalead.xml import read_crawl_config
from crawlspace.importers.files import ImportedCollection
from crawlspace.rules.xml.model import RegexSyntax
from tests.unit.importers.imports import DEFAULTS

CORPUS = Path(__file__).parent / "exalead"


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
