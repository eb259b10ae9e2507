"""The cells of XLSX sheets in the order in which they are written (ECMA-376, 18), read as a stream.

calamine would make room for all cells between the first and the last one, which are 17 billion where somebody has typed into the last
column and row; and what it needs for a damaged or hostile file has no bounds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from html import unescape
from math import isfinite

from crawlspace.content.documents.contents import FileLimits
from crawlspace.content.documents.text_buffer import TextBuffer

_SHARED_TEXTS = 16
"""Characters of all shared strings, as a multiple of those of the text."""
_MARGINS = frozenset(f"{kind}{place}" for kind in ("odd", "even", "first") for place in ("Header", "Footer"))
_MARGIN_CODE = re.compile(r'&(?:(&)|"[^"]*"|K[0-9A-F]{6}|\d+|[A-Z])')
"""What sets fonts and fields in them (18.3.1.46)."""
_DATES = frozenset((*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)))
"""Numbers of built-in formats (18.8.30)."""
_DURATION = 46
_NO_CODE = re.compile(r'"[^"]*"?|\\.|_.|\*.|\[(?!h+\]|m+\]|s+\])[^\]]*\]?', re.IGNORECASE)
"""Parts of a format that hold no letters of dates: quoted text, colours, conditions, languages."""
_LARGEST_WHOLE = 1e15
"""Beyond it, a number is shown with its exponent."""
_LAST_DAY = 2_958_466
"""The serial number of 10000-01-01."""


class Formats:
    """Takes the styles of a workbook: which of them show dates."""

    def __init__(self, *, is_1904: bool) -> None:
        self._epoch = datetime(1904, 1, 1, tzinfo=UTC) if is_1904 else datetime(1899, 12, 30, tzinfo=UTC)
        self._is_1904 = is_1904
        self._of_style: list[str] = []
        self._codes: dict[str, str] = {}
        self._in_cells = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "numFmt":
            self._codes[attributes.get("numFmtId", "")] = _kind(attributes.get("formatCode", ""))
        elif name == "cellXfs":
            self._in_cells = True
        elif name == "xf" and self._in_cells:
            number = attributes.get("numFmtId", "0")
            self._of_style.append(self._codes[number] if number in self._codes else _built_in(number))

    def end(self, name: str) -> None:
        if name == "cellXfs":
            self._in_cells = False

    def text(self, text: str) -> None:
        """Styles have none."""

    def shown(self, value: str, style: str) -> str:
        """Return the text of a number: whole ones without a fraction, dates in ISO 8601."""
        try:
            number = float(value)
        except ValueError:
            return value
        if not isfinite(number):
            return value
        if style.isdecimal() and len(style) < 6 and int(style) < len(self._of_style) and (kind := self._of_style[int(style)]):
            return self._time(number, kind)
        return shown_number(number)

    def _time(self, number: float, kind: str) -> str:
        if not 0 <= number < _LAST_DAY:
            return shown_number(number)
        if kind == "duration":
            return str(timedelta(seconds=round(number * 86_400)))
        day = number if self._is_1904 or number >= 60 else number + 1  # 1900 has a 29th of February there
        when = (self._epoch + timedelta(seconds=round(day * 86_400, 3))).replace(tzinfo=None)
        if number < 1:
            return str(when.time())
        return str(when.date() if number.is_integer() else when)


class SharedStrings:
    """Takes the strings that cells refer to by number, up to a number of characters."""

    def __init__(self, limits: FileLimits) -> None:
        self.strings: list[str] = []
        self.is_cut = False
        self._left = limits.max_text * _SHARED_TEXTS
        self._parts: list[str] = []
        self._phonetic = self._in_text = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "t":
            self._in_text = not self._phonetic
        elif name == "rPh":
            self._phonetic = True

    def end(self, name: str) -> None:
        if name == "t":
            self._in_text = False
        elif name == "rPh":
            self._phonetic = False
        elif name == "si":
            text, self._parts = "".join(self._parts), []
            self._left -= len(text)
            self.is_cut = self.is_cut or self._left < 0
            self.strings.append("" if self.is_cut else text)

    def text(self, text: str) -> None:
        if self._in_text and self._left >= 0:
            self._parts.append(text)


class SheetText:
    """Takes the cells of one sheet, and its headers and footers."""

    def __init__(self, buffer: TextBuffer, strings: Sequence[str], formats: Formats) -> None:
        self._buffer, self._strings, self._formats = buffer, strings, formats
        self.margins: dict[str, None] = {}
        self.has_cells = False
        self._type = self._style = ""
        self._parts: list[str] = []
        self._is_taken = self._phonetic = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "c":
            self._type, self._style, self._parts = attributes.get("t", "n"), attributes.get("s", ""), []
        elif name == "v" or (name == "t" and not self._phonetic):
            self._is_taken = True
        elif name == "rPh":
            self._phonetic = True
        elif name in _MARGINS:
            self._is_taken, self._parts = True, []

    def end(self, name: str) -> None:
        self._is_taken = False
        if name == "c":
            if self._parts:
                self._add("".join(self._parts))
        elif name == "rPh":
            self._phonetic = False
        elif name in _MARGINS:
            self.margins[_MARGIN_CODE.sub(lambda code: code[1] or " ", "".join(self._parts))] = None

    def text(self, text: str) -> None:
        if self._is_taken:
            self._parts.append(text)

    def _add(self, value: str) -> None:
        kind = self._type
        if kind == "s":
            number = value.strip()
            is_one = number.isdecimal() and len(number) < 10 and int(number) < len(self._strings)
            value = self._strings[int(number)] if is_one else ""
        elif kind == "n":
            value = self._formats.shown(value.strip(), self._style)
        elif kind == "d":
            value = value.replace("T", " ")
        elif kind == "e":
            value = ""
        elif kind == "b":
            value = {"0": "FALSE", "1": "TRUE"}.get(value.strip(), value)
        if value:
            self.has_cells = True
            self._buffer.add(value)
            self._buffer.end_word()


def shown_number(number: float) -> str:
    """Return the text of a number: a whole one without a fraction."""
    return str(int(number)) if number.is_integer() and abs(number) < _LARGEST_WHOLE else str(number)


def _kind(code: str) -> str:
    """Return what a format shows: `date`, `duration`, or nothing for a number."""
    letters = _NO_CODE.sub("", unescape(code).partition(";")[0]).lower()
    if "general" in letters:
        return ""
    if "[" in letters:
        return "duration"
    return "date" if any(letter in letters for letter in "ymdhs") else ""


def _built_in(number: str) -> str:
    id = int(number) if number.isdecimal() and len(number) < 6 else 0
    return "duration" if id == _DURATION else "date" if id in _DATES else ""
