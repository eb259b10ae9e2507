"""Read XML and lists of another crawler's configuration, at a bounded cost.

XML has no DOCTYPE, so no entities, and limits of size and depth.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path, PureWindowsPath
from typing import NamedTuple
from xml.parsers.expat import ExpatError, ParserCreate

from crawlspace.config.files import read_bytes
from crawlspace.errors import ConfigError, Mistake, RuleFileError
from crawlspace.importers.translation import Fate, ImportReport
from crawlspace.rules.xml.positions import XmlText, decode, not_well_formed
from crawlspace.text import quoted

MAX_SIZE = 20 * 1024 * 1024
"""Maximal bytes of a file."""


class XmlReading(ABC):
    """One pass over a file. Subclasses get its elements; names are `namespace name` where `separator` is a blank."""

    def __init__(self, data: bytes, *, file: str, smaller: str, max_depth: int, separator: str | None = None) -> None:
        """`smaller` is the advice for a file that is too large. Raises RuleFileError."""
        if len(data) > MAX_SIZE:
            message = f"the file has more than {MAX_SIZE // 1024 // 1024} MiB, the most that is read; {smaller}"
            raise RuleFileError([Mistake(file, 1, 1, message, "")])
        self.text = XmlText(decode(data, file=file), file=file)
        self._max_depth = max_depth
        self._depth = 0
        self._parser = ParserCreate(namespace_separator=separator)
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self.characters

    def parse(self) -> None:
        """Read the file. Raises RuleFileError."""
        try:
            self._parser.Parse(self.text.text, True)  # noqa: FBT003 - the parser's own signature
        except ExpatError as error:
            raise not_well_formed(error, self.text) from error

    @property
    def line(self) -> int:
        return self._parser.CurrentLineNumber

    @property
    def column(self) -> int:
        return self._parser.CurrentColumnNumber + 1

    def error(self, message: str) -> RuleFileError:
        """Return an error at the present position."""
        return RuleFileError([self.text.mistake(self.line, self.column, message)])

    @abstractmethod
    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Handle a start tag."""

    @abstractmethod
    def end(self, name: str) -> None:
        """Handle an end tag."""

    @abstractmethod
    def characters(self, text: str) -> None:
        """Handle text between tags."""

    def _doctype(self, name: str, system: str | None, public: str | None, has_subset: int) -> None:
        raise self.error("a crawl configuration has no DOCTYPE, and so no entities of its own; remove it")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if self._depth >= self._max_depth:
            raise self.error(
                f"more than {self._max_depth} elements are inside each other here; no configuration of that kind has so many"
            )
        self._depth += 1
        self.start(name, attributes)

    def _end(self, name: str) -> None:
        self._depth -= 1
        self.end(name)


# --- Files with one value a line that an imported configuration names, such as lists of start URLs -----------------

MAX_LIST_SIZE = 50 * 1024 * 1024
"""Maximal bytes of a list."""


class WrittenValue(NamedTuple):
    """A value, without the blanks around it, and its line."""

    text: str
    line: int


class ListFiles:
    """Finds lists by the path in the configuration, or by their name in its folder: the crawler ran on another machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read_all(self, named: Sequence[WrittenValue], report: ImportReport, name: str) -> list[WrittenValue]:
        """Return the lines of all files that the option `name` names, and report those that cannot be read."""
        found: list[WrittenValue] = []
        for value in named:
            path = self._path(value.text)
            if path is None:
                file_name = PureWindowsPath(value.text).name
                reason = f"there is no file {quoted(value.text)}, and no {quoted(file_name)} in the folder of the configuration: put it there and import again"
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
    data = read_bytes(path, most=MAX_LIST_SIZE + 1)
    if len(data) > MAX_LIST_SIZE:
        raise ConfigError(f"{path} has more than {MAX_LIST_SIZE // 1024 // 1024} MiB, the most that is read; divide it")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8; save it as UTF-8") from None
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield WrittenValue(line.strip(), number)
