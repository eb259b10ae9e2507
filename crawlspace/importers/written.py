"""The files of an imported collection: their difference from those that are there, and writing them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

from crawlspace.config.files import is_there, read_bytes
from crawlspace.errors import ConfigError
from crawlspace.importers.report import ImportReport


@dataclass(frozen=True, slots=True)
class ImportedCollection:
    """The files of a collection, by name, and what became of each option.

    An importer writes all of its files always: one of an earlier import must not stay behind. `absent` names those that mean
    something by being there, and must not be.
    """

    files: Mapping[str, str]
    report: ImportReport
    absent: Sequence[str] = ()


def difference(folder: Path, files: Mapping[str, str], absent: Sequence[str] = ()) -> str:
    """Return what would change in a folder, as a unified diff; empty if nothing. Raises ConfigError."""
    removed = [_difference(path, "") or f"{path} is removed\n" for path in (folder / name for name in absent) if is_there(path)]
    return "".join([*(_difference(folder / name, text) for name, text in files.items()), *removed])


def write_files(folder: Path, files: Mapping[str, str], absent: Sequence[str] = ()) -> None:
    """Write the files, each replaced as a whole, and remove the absent ones. Raises ConfigError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            unfinished = folder / f".{name}.new"
            unfinished.write_text(text, encoding="utf-8")
            unfinished.replace(folder / name)
        for name in absent:
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written: {error.strerror}; it must be in a folder that can be written") from error


def _difference(path: Path, text: str) -> str:
    there = read_bytes(path).decode("utf-8", "replace") if is_there(path) else ""
    old, new = (part.splitlines(keepends=True) for part in (there, text))
    return "".join(unified_diff(old, new, f"{path} (now)", f"{path} (imported)"))
