"""The text of Excel files: the cells, by calamine those of XLS, and for XLSX the comments and text boxes, too."""

from __future__ import annotations

from contextlib import suppress
from typing import BinaryIO

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
    return shown_number(cell) if isinstance(cell, float) else str(cell)
