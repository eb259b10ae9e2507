"""Files with one value a line that an imported configuration names, such as lists of start URLs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path, PureWindowsPath
from typing import NamedTuple

from crawlspace.config.files import read_bytes
from crawlspace.errors import ConfigError
from crawlspace.importers.report import Fate, ImportReport
from crawlspace.text import quoted

MAX_SIZE = 50 * 1024 * 1024
"""Maximal bytes of a list."""


class WrittenValue(NamedTuple):
    """A value, without the blanks around it, and its line."""

    text: str
    line: int


class ListFiles:
    """Finds lists by the path in the configuration, or by their name beside it: the crawler ran on another machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read_all(self, named: Sequence[WrittenValue], report: ImportReport, name: str) -> list[WrittenValue]:
        """Return the lines of all files that the option `name` names, and report those that cannot be read."""
        found: list[WrittenValue] = []
        for value in named:
            path = self._path(value.text)
            if path is None:
                beside = PureWindowsPath(value.text).name
                reason = f"there is no file {quoted(value.text)}, and no {quoted(beside)} beside the configuration: put it there and import again"
                report.add(value.line, name, Fate.NO_COUNTERPART, reason)
                continue
            try:
                lines = list(_lines(path))
            except ConfigError as error:
                report.add(value.line, name, Fate.NO_COUNTERPART, str(error))
                continue
            report.add(
                value.line, name, Fate.TRANSLATED, f"the {len(lines):,} lines of {quoted(value.text)}, each as a value of its own"
            )
            found += lines
        return found

    def _path(self, named: str) -> Path | None:
        candidates = (self._folder / named, self._folder / PureWindowsPath(named).name)
        return next((path for path in candidates if path.is_file()), None)


def _lines(path: Path) -> Iterator[WrittenValue]:
    """Yield the lines that are neither blank nor comments. Raises ConfigError."""
    data = read_bytes(path, most=MAX_SIZE + 1)
    if len(data) > MAX_SIZE:
        raise ConfigError(f"{path} has more than {MAX_SIZE // 1024 // 1024} MiB, the most that is read; divide it")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8; save it as UTF-8") from None
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield WrittenValue(line.strip(), number)
