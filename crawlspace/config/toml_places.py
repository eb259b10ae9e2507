"""Where the tables and keys of a TOML file are, for messages: tomllib returns values without their places.

Only files that tomllib has read are scanned, so that what cannot be in TOML need not be recognised.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_TOKEN = re.compile(
    r'"""(?:[^"\\]++|\\.|"(?!""))*+"{3,5}'
    r"|'''(?:[^']++|'(?!''))*+'{3,5}"
    r'|"(?:[^"\\\n]++|\\.)*+"'
    r"|'[^'\n]*+'"
    r"|\#[^\n]*+|[\[\]{}=,\n]|[^\s\[\]{}=,\#\"']++",
    re.DOTALL,
)
_HEADER = re.compile(r"\[+\s*([\w-]+|\"[^\"\n]*\"|'[^'\n]*')\s*\]")


class TomlPlace(NamedTuple):
    """Both count from 1."""

    line: int
    column: int


class TomlPlaces:
    """The places of keys and values in arrays of tables, and of keys at the top; of what is written in another form, that of its table."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)
        self._line = 0
        self._tables: dict[tuple[str, int], TomlPlace] = {}
        self._keys: dict[tuple[str, int, str], TomlPlace] = {}
        self._values: dict[tuple[str, int, str], list[TomlPlace]] = {}
        self._scan(text)

    def table(self, name: str, number: int = 0) -> TomlPlace:
        """Return the place of the table with this number (from 0) of an array."""
        return self._tables.get((name, number)) or self._keys.get(("", 0, name)) or self._tables.get((name, 0), TomlPlace(1, 1))

    def key(self, table: str, number: int, key: str) -> TomlPlace:
        """Return the place of a key."""
        return self._keys.get((table, number, key)) or self.table(table, number)

    def value(self, table: str, number: int, key: str, *, item: int = 0) -> TomlPlace:
        """Return the place of a key's value, or of an item of its list."""
        found = self._values.get((table, number, key), [])
        return found[item] if item < len(found) else self.key(table, number, key)

    def written(self, line: int) -> str:
        """Return a line of the file."""
        return self._lines[line - 1] if 1 <= line <= len(self._lines) else ""

    def _scan(self, text: str) -> None:
        table, number = "", 0
        numbers: dict[str, int] = {}
        depth, key, is_value = 0, "", False
        at = 0
        while (found := _TOKEN.search(text, at)) is not None:
            token, at = found[0], found.end()
            if token.startswith("#"):
                continue
            if token == "\n":
                if not depth:
                    key, is_value = "", False
            elif token == "[" and not is_value and not key:
                header = _HEADER.match(text, found.start())
                table = _bare(header[1]) if header is not None else ""
                number = numbers[table] = numbers.get(table, -1) + 1
                self._tables[table, number] = self._place(found.start())
                end = text.find("\n", at)
                at = len(text) if end < 0 else end
            elif token == "=" and not depth:
                is_value = True
            elif not is_value:
                if not key:
                    key = _bare(token)
                    self._keys.setdefault((table, number, key), self._place(found.start()))
            elif token in "[{":
                depth += 1
            elif token in "]}":
                depth -= 1
            elif token not in ",=":
                self._values.setdefault((table, number, key), []).append(self._place(found.start()))

    def _place(self, at: int) -> TomlPlace:
        """Return the place of a character; to be called in the order of the text."""
        while self._starts[self._line + 1] <= at:
            self._line += 1
        return TomlPlace(self._line + 1, at - self._starts[self._line] + 1)


def _bare(key: str) -> str:
    return key[1:-1] if key[:1] in {'"', "'"} else key
