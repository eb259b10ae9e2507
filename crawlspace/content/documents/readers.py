"""Reads a file of any type: selects the reader, and converts errors to contents with a status."""

from __future__ import annotations

from typing import BinaryIO

from crawlspace.content.documents.contents import (
    MAX_AUTHOR,
    MAX_TITLE,
    FileContents,
    FileLimits,
    FileReader,
    TextStatus,
    UnreadableFile,
)
from crawlspace.content.documents.docx import read_docx
from crawlspace.content.documents.epub import read_epub
from crawlspace.content.documents.kinds import CSV, EPUB, ODP, ODS, ODT, PDF, RTF, XLS, file_kind
from crawlspace.content.documents.open_document import read_open_document
from crawlspace.content.documents.pdf import read_pdf
from crawlspace.content.documents.pptx import read_pptx
from crawlspace.content.documents.rtf import read_rtf
from crawlspace.content.documents.spreadsheet import read_csv, read_spreadsheet
from crawlspace.content.documents.text_buffer import has_words, one_line
from crawlspace.content.mime import DOCX, PPTX, XLSX

READERS: dict[str, FileReader] = {
    PDF: read_pdf,
    DOCX: read_docx,
    PPTX: read_pptx,
    XLSX: read_spreadsheet,
    XLS: read_spreadsheet,
    ODT: read_open_document,
    ODS: read_open_document,
    ODP: read_open_document,
    EPUB: read_epub,
    RTF: read_rtf,
    CSV: read_csv,
}


def read_file(file: BinaryIO, declared: str | None, limits: FileLimits) -> FileContents:
    """Return the contents of an open file, of any type. Never raises, except for a MemoryError while one is handled."""
    contents = FileContents(file_kind(declared, file))
    reader = READERS.get(contents.kind)
    try:
        if reader is None:
            raise UnreadableFile(TextStatus.NO_READER if not is_empty(file) else TextStatus.DAMAGED)
        if is_empty(file):
            raise UnreadableFile(TextStatus.DAMAGED, "it is empty")
        reader(file, contents, limits)
    except UnreadableFile as error:
        _fail(contents, error.status, error.detail)
    except MemoryError:
        _fail(contents, TextStatus.OVER_LIMITS, "there is not enough memory to read it")
    except RecursionError:
        _fail(contents, TextStatus.OVER_LIMITS, "it is nested too deep")
    except Exception as error:  # noqa: BLE001 - a library may raise anything for a damaged file
        _fail(contents, TextStatus.DAMAGED, f"{type(error).__name__}: {error}")
    finish(contents)
    return contents


def finish(contents: FileContents) -> None:
    """Set status and title by the text, and limit the metadata."""
    if contents.status is None and not has_words(contents.text):
        _fail(contents, TextStatus.NO_TEXT, "")
    contents.title = one_line(contents.title)[:MAX_TITLE] or next(iter(contents.headings), "")
    contents.author = one_line(contents.author)[:MAX_AUTHOR]
    contents.language = one_line(contents.language)[:35]
    contents.detail = one_line(contents.detail)[:300]


def is_empty(file: BinaryIO) -> bool:
    """Return whether a file has no bytes."""
    file.seek(0)
    return not file.read(1)


def _fail(contents: FileContents, status: TextStatus, detail: str) -> None:
    contents.status, contents.detail = status, detail
    contents.text, contents.headings, contents.hrefs = "", (), ()
    contents.text_left_out = False
