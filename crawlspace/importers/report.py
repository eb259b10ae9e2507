"""What became of each option of an imported configuration: the report that all importers print."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from crawlspace.printable import printable, printable_message


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
    """What became of one option. `is_recalled`: what it means is not documented where it could be read, but known by experience."""

    line: int
    option: str
    fate: Fate
    text: str
    is_recalled: bool = False

    @property
    def sentence(self) -> str:
        ending = " (by our best knowledge)" if self.is_recalled else ""
        return printable_message(f"{_SENTENCES[self.fate]} {self.text}{ending}")

    def as_json(self) -> dict[str, object]:
        return {
            "line": self.line,
            "option": printable(self.option),
            "fate": self.fate.value,
            "text": printable_message(self.text),
            "by_best_knowledge": self.is_recalled,
        }


class ImportReport:
    """The options of one imported collection, in the order of the file."""

    def __init__(self, file: str) -> None:
        """`file` is the name in messages."""
        self.file = printable(file)
        self._options: list[ReportedOption] = []

    def add(self, line: int, option: str, fate: Fate, text: str, *, is_recalled: bool = False) -> None:
        self._options.append(ReportedOption(line, option, fate, text, is_recalled))

    @property
    def options(self) -> list[ReportedOption]:
        return sorted(self._options, key=lambda one: one.line)

    @property
    def lost(self) -> int:
        """Number of options that have no counterpart, or not yet."""
        return sum(one.fate.is_lost for one in self._options)

    def lines(self) -> Iterator[str]:
        """Yield a line for each option, and a last one with the numbers."""
        for one in self.options:
            yield f"{self.file}:{one.line}: {printable(one.option)}: {one.sentence}"
        numbers = [f"{sum(one.fate is fate for one in self._options):,} {fate.value}" for fate in Fate]
        yield f"{len(self._options):,} options: {', '.join(numbers)}"
