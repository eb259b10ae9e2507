"""Reading an XML configuration of another crawler with a bounded cost: no DOCTYPE, so no entities, and limits of size and depth."""

from __future__ import annotations

from abc import ABC, abstractmethod
from xml.parsers.expat import ExpatError, ParserCreate

from crawlspace.errors import Mistake, RuleFileError
from crawlspace.rules.xml.positions import XmlText, decode, not_well_formed

MAX_SIZE = 20 * 1024 * 1024
"""Maximal bytes of a file."""


class XmlReading(ABC):
    """One pass over a file. Subclasses get its elements; names are `namespace name` where `separator` is a blank."""

    def __init__(self, data: bytes, *, file: str, smaller: str, max_depth: int, separator: str | None = None) -> None:
        """`smaller` is what to do about a file that is too large. Raises RuleFileError."""
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
        """Return an error at the place that is being read."""
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
