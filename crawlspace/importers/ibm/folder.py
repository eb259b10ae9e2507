"""The files of a crawler's master_config folder, told apart by their names.

IBM documents the names crawl.rules, global.rules, followindex.rules and cookies.ini, and no others. Those of the other files are
known by a word that they have in them: `start_urls.txt`, `seeds`, `SoftErrors.csv`, `httpauth.ini`, `crawler.properties`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from crawlspace.config.files import is_there
from crawlspace.errors import UsageError
from crawlspace.text import quoted


class Part(StrEnum):
    """What a file of the folder holds."""

    CRAWL_RULES = "crawl.rules"
    GLOBAL_RULES = "global.rules"
    FOLLOW_INDEX = "followindex.rules"
    START_URLS = "start URLs"
    SOFT_ERRORS = "soft error pages"
    COOKIES = "cookies"
    BASIC_LOGINS = "HTTP basic authentication"
    FORM_LOGINS = "form-based authentication"
    PROPERTIES = "properties"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class FolderFile:
    path: Path
    part: Part

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def is_xml(self) -> bool:
        return self.path.suffix.lower() == ".xml"


_NAMED = {part.value: part for part in (Part.CRAWL_RULES, Part.GLOBAL_RULES, Part.FOLLOW_INDEX)}
_TEXT = frozenset({"", ".txt", ".ini", ".cfg", ".conf", ".csv", ".tsv", ".list", ".lst", ".properties", ".rules", ".urls"})
_WORDS = (
    (re.compile(r"seed|start.*ur[li]"), Part.START_URLS),
    (re.compile(r"soft"), Part.SOFT_ERRORS),
    (re.compile(r"cookie"), Part.COOKIES),
    (re.compile(r"form.*auth|auth.*form|form.*login"), Part.FORM_LOGINS),
    (re.compile(r"auth|basic|credential|password"), Part.BASIC_LOGINS),
)
"""In the name of a file; the first that is found counts."""
_OF_PROPERTIES = re.compile(r"propert|crawler|config|setting|option")
_PROPERTIES = frozenset({".properties", ".xml", ".ini", ".cfg", ".conf"})


def part_of(name: str) -> Part:
    """Return what a file holds, by its name."""
    lower = name.lower()
    if lower in _NAMED:
        return _NAMED[lower]
    stem, dot, ending = lower.rpartition(".")
    stem, ending = (stem, dot + ending) if stem else (lower, "")
    if ending in _TEXT:
        for word, part in _WORDS:
            if word.search(lower):
                return part
    if ending in _PROPERTIES or (ending in _TEXT and _OF_PROPERTIES.search(stem)):
        return Part.PROPERTIES
    return Part.UNKNOWN


def list_folder(folder: Path, start_urls: Path | None = None) -> list[FolderFile]:
    """Return the files and folders in a folder, in the order in which they are reported.

    `start_urls` is a file with start URLs whatever its name, in the folder or elsewhere. Raises UsageError where nothing of a
    crawler is there.
    """
    if not is_there(folder):
        raise UsageError(f"there is no folder {quoted(str(folder))}: name the master_config folder of IBM's Web crawler")
    if not folder.is_dir():
        raise UsageError(
            f"{quoted(str(folder))} is a file: name the folder that it is in, the master_config of IBM's Web crawler"
        )
    if start_urls is not None and not is_there(start_urls):
        raise UsageError(f"there is no file {quoted(str(start_urls))}: name the file with the start URLs")
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise UsageError(f"{quoted(str(folder))} cannot be read: {error.strerror}") from error
    named = [] if start_urls is None else [FolderFile(start_urls, Part.START_URLS)]
    others = [path for path in entries if start_urls is None or path.absolute() != start_urls.absolute()]
    found = [*named, *(FolderFile(path, Part.UNKNOWN if path.is_dir() else part_of(path.name)) for path in others)]
    known = [file for file in found if file.part is not Part.UNKNOWN]
    if not known:
        raise UsageError(_nothing_in(folder, entries))
    return sorted(found, key=lambda file: list(Part).index(file.part))


def _nothing_in(folder: Path, entries: Sequence[Path]) -> str:
    """Return the sentence about a folder without a configuration; it names the folders in it that have one."""
    inside = [path.name for path in entries if path.is_dir() and is_there(path / Part.CRAWL_RULES)]
    if inside:
        return f"{quoted(str(folder))} has folders of crawlers in it ({', '.join(map(quoted, inside[:10]))}): import each of them"
    return f"{quoted(str(folder))} has no file of IBM's Web crawler, such as crawl.rules: name its master_config folder"
