"""The files of an imported collection: their difference from those that are there, and writing them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

from crawlspace.config.files import is_there, read_bytes
from crawlspace.errors import ConfigError
from crawlspace.importers.report import ImportReport


@dataclass(frozen=True, slots=True)
class ImportedCollection:
    """The files of a collection, by name, and what became of each option.

    An importer writes all of its files always: one of an earlier import must not stay behind.
    """

    files: Mapping[str, str]
    report: ImportReport


def difference(folder: Path, files: Mapping[str, str]) -> str:
    """Return what would change in a folder, as a unified diff; empty if nothing. Raises ConfigError."""
    return "".join(_difference(folder / name, text) for name, text in files.items())


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write the files, each replaced as a whole. Raises ConfigError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            unfinished = folder / f".{name}.new"
            unfinished.write_text(text, encoding="utf-8")
            unfinished.replace(folder / name)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written: {error.strerror}; it must be in a folder that can be written") from error


def _difference(path: Path, text: str) -> str:
    there = read_bytes(path).decode("utf-8", "replace") if is_there(path) else ""
    old, new = (part.splitlines(keepends=True) for part in (there, text))
    return "".join(unified_diff(old, new, f"{path} (now)", f"{path} (imported)"))
