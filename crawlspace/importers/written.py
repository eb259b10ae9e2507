"""The files of an imported collection: their difference from those that are there, and writing them."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import unified_diff
from pathlib import Path

from crawlspace.config.files import is_there, read_bytes
from crawlspace.errors import ConfigError

FILES = ("start_urls.txt", "crawl.rules", "rules.xml", "settings.py")
"""What an importer writes, always all of them: a file of an earlier import must not stay behind."""


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
