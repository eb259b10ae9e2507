"""The text of Excel files: the cells by calamine, and for XLSX the comments and text boxes, which it leaves out."""

from __future__ import annotations

import re
from contextlib import suppress
from html import unescape
from typing import BinaryIO

import python_calamine

from crawlspace.content.documents.contents import FileContents, FileLimits, TextStatus, UnreadableFile
from crawlspace.content.documents.drawing import read_drawings
from crawlspace.content.documents.kinds import XLSX
from crawlspace.content.documents.old_properties import read_old_properties
from crawlspace.content.documents.ooxml import read_properties, relationships
from crawlspace.content.documents.package import Package
from crawlspace.content.documents.text_buffer import TextBuffer, TextFull

_BESIDE_CELLS = ("xl/comments", "xl/threadedcomments/", "xl/drawings/drawing", "xl/diagrams/data", "xl/charts/chart")


_END_OF_SHEET = 128 * 1024
"""Headers and footers stand behind the cells."""
_MARGIN = re.compile(r"<(?:\w+:)?(?:odd|even|first)(?:Header|Footer)>([^<]*)<")
_MARGIN_CODE = re.compile(r'&(?:(&)|"[^"]*"|K[0-9A-F]{6}|\d+|[A-Z])')
"""What sets fonts and fields in them (ECMA-376, 18.3.1.46)."""
_PANIC = "PanicException"
"""What pyo3 raises for a fault in Rust code. It is no Exception, and is exported by no module."""
_LARGEST_WHOLE = 1e15
"""Beyond it, a number is shown with its exponent."""


def read_spreadsheet(file: BinaryIO, contents: FileContents, limits: FileLimits) -> None:
    """Read the sheets of an XLS or XLSX file."""
    buffer = TextBuffer(limits)
    package = Package(file, limits) if contents.kind == XLSX else None
    margins: list[str] = []
    if package is None:
        read_old_properties(file, contents)
    else:
        read_properties(package, contents)
        margins = _read_around_cells(package, buffer)
    with suppress(TextFull):
        _read_cells(file, contents, limits, buffer)
        for margin in margins:
            buffer.add(margin)
            buffer.end_word()
        if package is not None:
            for beginning in _BESIDE_CELLS:
                read_drawings(package, package.names(beginning), buffer)
    buffer.complete(contents)


def _read_around_cells(package: Package, buffer: TextBuffer) -> list[str]:
    """Add the links of the sheets, and return their headers and footers. All that calamine will inflate is counted, because it has no limit."""
    for part in package.names("xl/sharedstrings"):
        for _ in package.chunks(part):
            pass
    margins: dict[str, None] = {}
    for part in package.names("xl/worksheets/sheet"):
        end = b""
        for chunk in package.chunks(part):
            end = (end + chunk)[-_END_OF_SHEET:]
        for margin in _MARGIN.findall(end.decode("utf-8", "replace")):
            margins[_MARGIN_CODE.sub(lambda code: code[1] or " ", unescape(margin))] = None
        for one in relationships(package, part).values():
            if one.kind == "hyperlink" and one.is_external:
                buffer.add_link(one.target)
    return list(margins)


def _read_cells(file: BinaryIO, contents: FileContents, limits: FileLimits, buffer: TextBuffer) -> None:
    file.seek(0)
    try:
        workbook = python_calamine.load_workbook(file)
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


def _shown(cell: object) -> str:
    """Return the text of a cell: whole numbers without a fraction, dates in ISO 8601."""
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < _LARGEST_WHOLE:
        return str(int(cell))
    return str(cell)
