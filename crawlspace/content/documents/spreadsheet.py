"""The text of Excel files: the cells, by calamine those of XLS, and for XLSX the comments and text boxes, too."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO

import olefile
import python_calamine

from crawlspace.content.documents.cells import Formats, SharedStrings, SheetText, shown_number
from crawlspace.content.documents.contents import FileContents, FileLimits, TextStatus, UnreadableFile
from crawlspace.content.documents.drawing import read_drawings
from crawlspace.content.documents.kinds import XLSX
from crawlspace.content.documents.old_properties import read_old_properties
from crawlspace.content.documents.ooxml import main_part, read_properties, relationships
from crawlspace.content.documents.package import Leaves, Package
from crawlspace.content.documents.text_buffer import TextBuffer, TextFull

_BESIDE_CELLS = ("xl/comments", "xl/threadedcomments/", "xl/drawings/drawing", "xl/diagrams/data", "xl/charts/chart")
_MOST_IN_GRID = 2_000_000
"""Cells between the first and the last one of an XLS sheet for which there is room: about 64 MB."""
_SHEETS = frozenset({0x0009, 0x0209, 0x0409, 0x0809})
_CELLS = frozenset({0x0002, 0x0003, 0x0004, 0x0005, 0x0006, 0x00D6, 0x00FD, 0x0203, 0x0204, 0x0205, 0x0206, 0x027E, 0x0406})
_CELLS_OF_A_ROW = 0x00BD
_COLUMNS = 256
_PANIC = "PanicException"
"""What pyo3 raises for a fault in Rust code. It is no Exception, and is exported by no module."""


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
    """Return an XLS file with its cells one behind the other, if they are far apart: calamine makes room for all in between."""
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
    except Exception:  # noqa: BLE001 - olefile may raise anything for a damaged file; calamine says what is wrong with it
        return io.BytesIO(content)
    return io.BytesIO(content)


def _cells_of(stream: bytearray) -> Iterator[tuple[int, int, int]]:
    """Yield the cells of a workbook (MS-XLS, 2.4): the number of the sheet, where row and column are, and how many cells there are in a row."""
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
    """Return how many cells are between the first and the last one of a sheet, at most."""
    most = of = 0
    for sheet, at, number in _cells_of(stream):
        row, column = struct.unpack_from("<HH", stream, at)
        if sheet != of:
            of, top, bottom, left, right = sheet, row, row, column, column
        top, bottom, left, right = min(top, row), max(bottom, row), min(left, column), max(right, column + number - 1)
        most = max(most, (bottom - top + 1) * (right - left + 1))
    return most


def _close_up(stream: bytearray) -> None:
    """Give the cells of each sheet the first places, in the order in which they are written."""
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
