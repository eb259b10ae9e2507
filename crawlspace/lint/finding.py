"""A finding of lint: its place, level, code and message.

A finding of level `error` keeps a crawl from starting or from finding anything; a `warning` needs judgement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from crawlspace.config.sentences import setting_named, where_set
from crawlspace.errors import MOST_SHOWN, ConfigError, RuleFileError, SettingError
from crawlspace.text import escaped, printable_message

Level: TypeAlias = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """`line` and `column` count from 1; 0 means no place. `code` is stable, `message` is not."""

    file: str
    line: int
    column: int
    level: Level
    code: str
    message: str

    @property
    def order(self) -> tuple[str, int, int, str]:
        """The key by which findings are sorted."""
        return self.file, self.line, self.column, self.code

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{escaped(place)}: {self.level}: {printable_message(self.message)} [{self.code}]"

    def as_json(self) -> dict[str, object]:
        return {**asdict(self), "message": printable_message(self.message)}


def bounded(findings: Sequence[Finding]) -> list[Finding]:
    """Return the first MOST_SHOWN findings of each file; a last one (`more`) has the number of the others."""
    by_file: dict[str, list[Finding]] = {}
    for finding in findings:
        by_file.setdefault(finding.file, []).append(finding)
    shown: list[Finding] = []
    for file, found in by_file.items():
        shown += found[:MOST_SHOWN]
        if beyond := found[MOST_SHOWN:]:
            level = max((one.level for one in beyond), key=("warning", "error").index)
            shown.append(Finding(file, 0, 0, level, "more", f"and {len(beyond):,} more"))
    return shown


def of_setting(folder: Path, setting: str, code: str, message: str, *, level: Level = "warning") -> Finding:
    """Return a finding at the line of a collection's settings.py that has the setting; without a line if it is set elsewhere."""
    line, column = where_set(folder, setting) if setting else (0, 0)
    return Finding("settings.py" if line else "settings", line, column, level, code, message)


def findings_of(error: ConfigError, folder: Path) -> Iterator[Finding]:
    """Yield the findings of a ConfigError, with their places."""
    if isinstance(error, RuleFileError):
        for mistake in error.mistakes:
            yield Finding(mistake.file, mistake.line, mistake.column, "error", "syntax", mistake.message)
    elif isinstance(error, SettingError):
        yield of_setting(folder, setting_named(error), "setting", str(error), level="error")
    elif at := _AT_LINE.match(str(error)):
        yield Finding(Path(at["file"]).name, int(at["line"]), 1, "error", "setting", at["message"])
    else:
        yield Finding(folder.name, 0, 0, "error", "collection", str(error))


_AT_LINE = re.compile(r"(?P<file>.*settings\.py):(?P<line>\d+): (?P<message>.*)", re.DOTALL)
