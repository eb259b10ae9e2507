"""Title, author and dates of an Excel file of before 2007: the property set `SummaryInformation` of its compound file (MS-OLEPS)."""

from __future__ import annotations

import codecs
from datetime import datetime
from typing import BinaryIO

import olefile

from crawlspace.content.dates import iso_time
from crawlspace.content.documents.contents import FileContents

_CODE_PAGES = {1200: "utf-16-le", 10000: "mac-roman", 65001: "utf-8"}
"""Those that Python has another name for."""


def read_old_properties(file: BinaryIO, contents: FileContents) -> None:
    """Set title, author and dates, where they can be read: a file whose properties are damaged may have text."""
    file.seek(0)
    try:
        properties = olefile.OleFileIO(file).get_metadata()
    except Exception:  # noqa: BLE001 - it may raise anything for a damaged file
        return
    code_page = _code_page(properties.codepage)
    contents.title = _text(properties.title, code_page)
    contents.author = _text(properties.author, code_page) or _text(properties.last_saved_by, code_page)
    contents.created, contents.modified = _time(properties.create_time), _time(properties.last_saved_time)


def _text(value: object, code_page: str) -> str:
    """Return a text up to its end, which the length before it may be beyond."""
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


def _time(value: object) -> str:
    return iso_time(f"{value:%Y-%m-%dT%H:%M:%SZ}") if isinstance(value, datetime) else ""
