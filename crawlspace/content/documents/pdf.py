"""The text of PDF files, by PDFium: page after page, with no more of the file in memory than PDFium reads."""

from __future__ import annotations

import ctypes
import re
from contextlib import suppress
from typing import BinaryIO

import pypdfium2  # type: ignore[import-untyped]
import pypdfium2.raw as pdfium  # type: ignore[import-untyped]

from crawlspace.content.dates import pdf_time
from crawlspace.content.documents.contents import FileContents, FileLimits, TextStatus, UnreadableFile
from crawlspace.content.documents.text_buffer import TextBuffer, TextFull

_HYPHEN_AT_LINE_END = re.compile("[\x02\ufffe]\\s*")
"""PDFium puts one of these signs in place of a hyphen that only ends a line."""
_MOST_ANNOTATIONS = 2_000
"""Of one page."""
_LONGEST_LANGUAGE = 200
_SAMPLE = 50
"""Characters of a page that are examined."""
_LONGEST_ANNOTATION = 200_000


def read_pdf(file: BinaryIO, contents: FileContents, limits: FileLimits) -> None:
    """Read a PDF."""
    file.seek(0)
    try:
        document = pypdfium2.PdfDocument(file)
    except pypdfium2.PdfiumError as error:
        encrypted = getattr(error, "err_code", None) in (pdfium.FPDF_ERR_PASSWORD, pdfium.FPDF_ERR_SECURITY)
        raise UnreadableFile(TextStatus.ENCRYPTED if encrypted else TextStatus.DAMAGED, str(error)) from error
    contents.title, contents.author = _metadata(document, "Title"), _metadata(document, "Author")
    contents.created, contents.modified = pdf_time(_metadata(document, "CreationDate")), pdf_time(_metadata(document, "ModDate"))
    contents.language = _language(document)
    contents.pages = len(document)
    contents.text_left_out = contents.pages > limits.max_pages
    buffer = TextBuffer(limits)
    broken = 0
    with suppress(TextFull):
        for number in range(min(contents.pages, limits.max_pages)):
            try:
                _read_page(document, number, buffer)
            except pypdfium2.PdfiumError:
                broken += 1
    buffer.complete(contents)
    if not contents.text and broken:
        raise UnreadableFile(TextStatus.DAMAGED, f"{broken} of {contents.pages} pages cannot be read")


def _metadata(document: pypdfium2.PdfDocument, key: str) -> str:
    """Return an entry of the metadata; empty if it is missing or no text."""
    with suppress(UnicodeDecodeError):
        return str(document.get_metadata_value(key))
    return ""


def _language(document: pypdfium2.PdfDocument) -> str:
    length = pdfium.FPDFCatalog_GetLanguage(document, None, 0)
    if not 2 < length <= _LONGEST_LANGUAGE:
        return ""
    value = ctypes.create_string_buffer(length)
    pdfium.FPDFCatalog_GetLanguage(document, ctypes.cast(value, ctypes.POINTER(pdfium.FPDF_WCHAR)), length)
    return _utf16(value)


def _read_page(document: pypdfium2.PdfDocument, number: int, buffer: TextBuffer) -> None:
    page = document[number]
    try:
        text_page = page.get_textpage()
        try:
            text = text_page.get_text_range()
            if not _is_without_unicode(text_page, text):
                buffer.add(_HYPHEN_AT_LINE_END.sub("", text))
        finally:
            text_page.close()
        buffer.end_word()
        for note in _annotations(page):
            buffer.add(note)
            buffer.end_word()
        for href in _links(document, page):
            buffer.add_link(href)
    finally:
        page.close()


def _is_without_unicode(text_page: pypdfium2.PdfTextPage, text: str) -> bool:
    """Return whether the text of a page is numbers of glyphs, because its fonts have no Unicode maps.

    ASCII numbers, as in old TeX files, mostly are the letters nevertheless.
    """
    letters = sum(map(str.isascii, text)) if not text.isascii() else len(text)
    if letters * 2 > len(text):
        return False
    number = text_page.count_chars()
    sample = range(0, number, max(1, number // _SAMPLE))
    errors = sum(bool(pdfium.FPDFText_HasUnicodeMapError(text_page, at) == 1) for at in sample)
    return errors * 2 > len(sample)


def _links(document: pypdfium2.PdfDocument, page: pypdfium2.PdfPage) -> list[str]:
    """Return the URLs of the links of a page."""
    found: list[str] = []
    at, link = ctypes.c_int(0), pdfium.FPDF_LINK()
    while pdfium.FPDFLink_Enumerate(page, at, link):
        action = pdfium.FPDFLink_GetAction(link)
        if not action or pdfium.FPDFAction_GetType(action) != pdfium.PDFACTION_URI:
            continue
        length = pdfium.FPDFAction_GetURIPath(document, action, None, 0)
        if 1 < length <= 10_000:
            url = ctypes.create_string_buffer(length)
            pdfium.FPDFAction_GetURIPath(document, action, url, length)
            found.append(url.value.decode("utf-8", "replace"))
    return found


def _annotations(page: pypdfium2.PdfPage) -> list[str]:
    """Return the comments of a page, and the values of its form fields."""
    found: list[str] = []
    for number in range(min(pdfium.FPDFPage_GetAnnotCount(page), _MOST_ANNOTATIONS)):
        annotation = pdfium.FPDFPage_GetAnnot(page, number)
        if not annotation:
            continue
        is_field = pdfium.FPDFAnnot_GetSubtype(annotation) == pdfium.FPDF_ANNOT_WIDGET
        text = _string(annotation, b"V" if is_field else b"Contents")
        if text:
            found.append(text)
        pdfium.FPDFPage_CloseAnnot(annotation)
    return found


def _string(annotation: object, key: bytes) -> str:
    length = pdfium.FPDFAnnot_GetStringValue(annotation, key, None, 0)
    if not 2 < length <= _LONGEST_ANNOTATION:
        return ""
    value = ctypes.create_string_buffer(length)
    pdfium.FPDFAnnot_GetStringValue(annotation, key, ctypes.cast(value, ctypes.POINTER(pdfium.FPDF_WCHAR)), length)
    return _utf16(value)


def _utf16(value: ctypes.Array[ctypes.c_char]) -> str:
    return value.raw.decode("utf-16-le", "replace").rstrip("\0")
