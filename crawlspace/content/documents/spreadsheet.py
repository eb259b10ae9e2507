"""The text of spreadsheets: XLSX (ECMA-376, 18) as a stream, XLS by calamine, and CSV.

The cells of an XLSX file are read in the order in which they are written, and its comments and text boxes are read, too. calamine would
allocate all cells between the first and the last one, which are 17 billion if somebody has typed into the last column and row; and its memory
for a damaged or hostile file is unbounded.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from html import unescape
from math import isfinite
from typing import BinaryIO

import olefile
import python_calamine

from crawlspace.content.charset import decode
from crawlspace.content.dates import iso_time
from crawlspace.content.documents.contents import BYTES_PER_CHARACTER, FileContents, FileLimits, TextStatus, UnreadableFile
from crawlspace.content.documents.ooxml import main_part, read_drawings, read_properties, relationships
from crawlspace.content.documents.package import Leaves, Package
from crawlspace.content.documents.text_buffer import TextBuffer, TextFull
from crawlspace.content.mime import XLSX

_BESIDE_CELLS = ("xl/comments", "xl/threadedcomments/", "xl/drawings/drawing", "xl/diagrams/data", "xl/charts/chart")
_MOST_IN_GRID = 2_000_000
"""Cells between the first and the last one of an XLS sheet that calamine may allocate: about 64 MB."""
_SHEETS = frozenset({0x0009, 0x0209, 0x0409, 0x0809})
_CELLS = frozenset({0x0002, 0x0003, 0x0004, 0x0005, 0x0006, 0x00D6, 0x00FD, 0x0203, 0x0204, 0x0205, 0x0206, 0x027E, 0x0406})
_CELLS_OF_A_ROW = 0x00BD
_COLUMNS = 256
_PANIC = "PanicException"
"""The exception of pyo3 for an error in Rust code. It is no Exception, and no module exports it."""


def read_spreadsheet(file: BinaryIO, contents: FileContents, limits: FileLimits) -> None:
    """Read the sheets of an XLS or XLSX file."""
    buffer = TextBuffer(limits)
    package = Package(file, limits) if contents.kind == XLSX else None
    if package is not None and "xl/workbook.bin" not in package:
        _read_package(package, contents, limits, buffer)
        return
    if package is None:
        read_old_properties(file, contents)
    with suppress(TextFull):
        _read_old(file, contents, limits, buffer)
    buffer.complete(contents)


def _read_package(package: Package, contents: FileContents, limits: FileLimits, buffer: TextBuffer) -> None:
    main = main_part(package, "xl/workbook.xml")
    read_properties(package, contents)
    related = relationships(package, main)
    elements = Leaves.needed(package, main).elements
    sheets = [given for name, given in elements if name == "sheet"]
    is_1904 = any(name == "workbookPr" and given.get("date1904") in ("1", "true") for name, given in elements)
    parts = {one.kind: one.target for one in related.values() if not one.is_external}
    contents.pages = len(sheets)
    contents.text_left_out = len(sheets) > limits.max_pages
    strings = SharedStrings(limits)
    is_whole = True
    has_cells = False
    read = set[str]()
    with suppress(TextFull):
        formats = Formats(is_1904=is_1904)
        package.parse_readable(parts.get("styles", "xl/styles.xml"), formats)
        is_whole &= package.parse_readable(parts.get("sharedStrings", "xl/sharedStrings.xml"), strings)
        contents.text_left_out = contents.text_left_out or strings.is_cut
        margins: dict[str, None] = {}
        for given in sheets[: limits.max_pages]:
            buffer.add(given.get("name", ""))
            buffer.end_word()
            one = related.get(given.get("id", ""))
            if one is None or one.is_external or one.target not in package or one.target in read:
                continue
            read.add(one.target)
            sheet = SheetText(buffer, strings.strings, formats)
            is_whole &= package.parse_readable(one.target, sheet)
            has_cells = has_cells or sheet.has_cells
            margins.update(sheet.margins)
            for link in relationships(package, one.target).values():
                if link.kind == "hyperlink" and link.is_external:
                    buffer.add_link(link.target)
        for margin in margins:
            buffer.add(margin)
            buffer.end_word()
        for beginning in _BESIDE_CELLS:
            read_drawings(package, package.names(beginning), buffer)
    buffer.complete(contents)
    if not (is_whole or has_cells):
        raise UnreadableFile(TextStatus.DAMAGED, "its sheets cannot be read")


def _read_old(file: BinaryIO, contents: FileContents, limits: FileLimits, buffer: TextBuffer) -> None:
    try:
        workbook = python_calamine.load_workbook(_closed_up(file))
        names = workbook.sheet_names
        contents.pages = len(names)
        for name in names[: limits.max_pages]:
            buffer.add(name)
            buffer.end_word()
            for row in workbook.get_sheet_by_name(name).iter_rows():
                for cell in row:
                    if cell != "":
                        buffer.add(_shown(cell))
                        buffer.end_word()
    except python_calamine.PasswordError as error:
        raise UnreadableFile(TextStatus.ENCRYPTED) from error
    except python_calamine.CalamineError as error:
        raise UnreadableFile(TextStatus.DAMAGED, str(error)) from error
    except BaseException as error:
        if type(error).__name__ != _PANIC:
            raise
        raise UnreadableFile(TextStatus.DAMAGED, str(error)) from error


def _closed_up(file: BinaryIO) -> BinaryIO:
    """Return an XLS file with its cells moved together, if they are far apart, because calamine allocates all in between."""
    file.seek(0)
    content = file.read()
    try:
        with olefile.OleFileIO(io.BytesIO(content), write_mode=True) as compound:
            name = next(one for one in ("Workbook", "Book") if compound.exists(one))
            stream = bytearray(compound.openstream(name).read())
            if _largest_grid(stream) > _MOST_IN_GRID:
                _close_up(stream)
                compound.write_stream(name, bytes(stream))
                return io.BytesIO(compound.fp.getvalue())
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - olefile may raise anything for a damaged file; calamine reports it
        return io.BytesIO(content)
    return io.BytesIO(content)


def _cells_of(stream: bytearray) -> Iterator[tuple[int, int, int]]:
    """Yield the cells of a workbook (MS-XLS, 2.4): the number of the sheet, the offset of row and column, and the number of cells in the row."""
    at = sheet = 0
    while at + 8 <= len(stream):
        kind, size = struct.unpack_from("<HH", stream, at)
        if kind in _SHEETS:
            sheet += 1
        elif kind in _CELLS:
            yield sheet, at + 4, 1
        elif kind == _CELLS_OF_A_ROW and 12 <= size <= 6 + 6 * _COLUMNS and at + 4 + size <= len(stream):
            yield sheet, at + 4, (size - 6) // 6
        at += 4 + size


def _largest_grid(stream: bytearray) -> int:
    """Return the largest number of cells between the first and the last one of a sheet."""
    most = of = 0
    for sheet, at, number in _cells_of(stream):
        row, column = struct.unpack_from("<HH", stream, at)
        if sheet != of:
            of, top, bottom, left, right = sheet, row, row, column, column
        top, bottom, left, right = min(top, row), max(bottom, row), min(left, column), max(right, column + number - 1)
        most = max(most, (bottom - top + 1) * (right - left + 1))
    return most


def _close_up(stream: bytearray) -> None:
    """Move the cells of each sheet to its beginning, in the order in which they are written."""
    of = place = 0
    for sheet, at, number in _cells_of(stream):
        if sheet != of:
            of, place = sheet, 0
        if place % _COLUMNS + number > _COLUMNS:
            place += -place % _COLUMNS
        row, column = divmod(place, _COLUMNS)
        struct.pack_into("<HH", stream, at, min(row, 0xFFFF), column)
        if struct.unpack_from("<H", stream, at - 4)[0] == _CELLS_OF_A_ROW:
            struct.pack_into("<H", stream, at + 4 + 6 * number, column + number - 1)
        place += number


def _shown(cell: object) -> str:
    """Return the text of a cell: whole numbers without a fraction, dates in ISO 8601."""
    if isinstance(cell, bool):
        return str(cell).upper()
    return shown_number(cell) if isinstance(cell, float) else str(cell)


_SHARED_TEXTS = 16
"""Characters of all shared strings, as a multiple of the limit of the text."""
_MARGINS = frozenset(f"{kind}{place}" for kind in ("odd", "even", "first") for place in ("Header", "Footer"))
_MARGIN_CODE = re.compile(r'&(?:(&)|"[^"]*"|K[0-9A-F]{6}|\d+|[A-Z])')
"""Codes of fonts and fields in headers and footers (18.3.1.46)."""
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
    """Collects the styles of a workbook: which of them show dates."""

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
        """Ignore text: styles have none."""

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
    """Collects the strings that cells refer to by number, up to a number of characters."""

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
    """Collects the cells of one sheet, and its headers and footers."""

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
    """Return the kind of values that a format shows: `date`, `duration`, or empty for numbers."""
    letters = _NO_CODE.sub("", unescape(code).partition(";")[0]).lower()
    if "general" in letters:
        return ""
    if "[" in letters:
        return "duration"
    return "date" if any(letter in letters for letter in "ymdhs") else ""


def _built_in(number: str) -> str:
    id = int(number) if number.isdecimal() and len(number) < 6 else 0
    return "duration" if id == _DURATION else "date" if id in _DATES else ""


_CODE_PAGES = {1200: "utf-16-le", 10000: "mac-roman", 65001: "utf-8"}
"""Code pages for which Python has another name."""


def read_old_properties(file: BinaryIO, contents: FileContents) -> None:
    """Set title, author and dates of an XLS file (MS-OLEPS), if they can be read: a file with damaged properties may have text."""
    file.seek(0)
    try:
        properties = olefile.OleFileIO(file).get_metadata()
    except Exception:  # noqa: BLE001 - it may raise anything for a damaged file
        return
    code_page = _code_page(properties.codepage)
    contents.title = _property(properties.title, code_page)
    contents.author = _property(properties.author, code_page) or _property(properties.last_saved_by, code_page)
    contents.created, contents.modified = _property_time(properties.create_time), _property_time(properties.last_saved_time)


def _property(value: object, code_page: str) -> str:
    """Return a text up to its terminator, which may be before its end."""
    text = value.decode(code_page, "replace") if isinstance(value, bytes) else value if isinstance(value, str) else ""
    return text.partition("\0")[0]


def _code_page(number: object) -> str:
    if not isinstance(number, int):
        return "cp1252"
    unsigned = number & 0xFFFF
    name = _CODE_PAGES.get(unsigned, f"cp{unsigned}")
    try:
        return codecs.lookup(name).name
    except LookupError:
        return "cp1252"


def _property_time(value: object) -> str:
    return iso_time(f"{value:%Y-%m-%dT%H:%M:%SZ}") if isinstance(value, datetime) else ""


_SAMPLE = 16 * 1024


def read_csv(file: BinaryIO, contents: FileContents, limits: FileLimits) -> None:
    """Read a CSV file; its separator is the most frequent one."""
    file.seek(0)
    body = file.read(limits.max_text * BYTES_PER_CHARACTER + 1)
    contents.text_left_out = len(body) > limits.max_text * BYTES_PER_CHARACTER
    text, _ = decode(body, None)
    del body
    buffer = TextBuffer(limits)
    with suppress(TextFull):
        for row in _rows(text):
            for cell in row:
                buffer.add(cell)
                buffer.end_word()
    buffer.complete(contents)


def _rows(text: str) -> Iterator[list[str]]:
    sample = text[:_SAMPLE]
    delimiter = max(",;\t|", key=sample.count)
    before = csv.field_size_limit(len(text) + 1)  # of the whole process
    try:
        yield from csv.reader(text.replace("\0", " ").splitlines(), delimiter=delimiter)
    finally:
        csv.field_size_limit(before)
