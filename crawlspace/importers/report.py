"""What became of each option of an imported configuration: the report that all importers print."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from crawlspace.text import printable, printable_message


class Fate(StrEnum):
    """What became of an option."""

    TRANSLATED = "translated"
    DEFAULT = "default"
    NO_COUNTERPART = "no counterpart"
    NOT_YET = "not there yet"

    @property
    def is_lost(self) -> bool:
        """Whether the collection lacks what the option was set for."""
        return self in {Fate.NO_COUNTERPART, Fate.NOT_YET}


_SENTENCES = {
    Fate.TRANSLATED: "translated to",
    Fate.DEFAULT: "equal to the default:",
    Fate.NO_COUNTERPART: "no counterpart, because",
    Fate.NOT_YET: "not there yet:",
}


@dataclass(frozen=True, slots=True)
class ReportedOption:
    """What became of one option. `line` 0 is the whole file. `is_recalled`: what it means is known by experience, and not documented where it could be read."""

    line: int
    option: str
    fate: Fate
    text: str
    is_recalled: bool = False
    file: str = ""

    @property
    def sentence(self) -> str:
        ending = " (by our best knowledge)" if self.is_recalled else ""
        return printable_message(f"{_SENTENCES[self.fate]} {self.text}{ending}")

    def as_json(self) -> dict[str, object]:
        return {
            "file": self.file,
            "line": self.line,
            "option": printable(self.option),
            "fate": self.fate.value,
            "text": printable_message(self.text),
            "by_best_knowledge": self.is_recalled,
        }


class ImportReport:
    """The options of one imported collection, in the order of its file or files."""

    def __init__(self, file: str) -> None:
        """`file` is the name in messages, for options that name no file of their own."""
        self.file = printable(file)
        self._options: list[ReportedOption] = []

    def add(self, line: int, option: str, fate: Fate, text: str, *, is_recalled: bool = False, file: str = "") -> None:
        self._options.append(ReportedOption(line, option, fate, text, is_recalled, printable(file) if file else self.file))

    @property
    def options(self) -> list[ReportedOption]:
        files = {file: place for place, file in enumerate(dict.fromkeys(one.file for one in self._options))}
        return sorted(self._options, key=lambda one: (files[one.file], one.line))

    @property
    def lost(self) -> int:
        """Number of options that have no counterpart, or not yet."""
        return sum(one.fate.is_lost for one in self._options)

    def lines(self) -> Iterator[str]:
        """Yield a line for each option, and a last one with the numbers."""
        for one in self.options:
            place = f"{one.file}:{one.line}" if one.line else one.file
            yield f"{place}: {printable(one.option)}: {one.sentence}"
        numbers = [f"{sum(one.fate is fate for one in self._options):,} {fate.value}" for fate in Fate]
        yield f"{len(self._options):,} options: {', '.join(numbers)}"
