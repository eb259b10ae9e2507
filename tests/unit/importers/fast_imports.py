"""The corpus of FAST's files, and one of them imported."""

from __future__ import annotations

from pathlib import Path

from crawlspace.importers.fast.collection import translate_fast
from crawlspace.importers.fast.xml import read_fast_xml
from crawlspace.importers.files import ImportedCollection
from tests.unit.importers.imports import DEFAULTS

CORPUS = Path(__file__).parent / "fast"


def imported(name: str) -> ImportedCollection:
    """A file of the corpus, by its name without the ending."""
    path = CORPUS / f"{name}.xml"
    [section] = read_fast_xml(path.read_bytes(), file=path.name)
    return translate_fast(section, file=path.name, folder=CORPUS, name=name, defaults=DEFAULTS)
