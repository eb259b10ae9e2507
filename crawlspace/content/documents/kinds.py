"""The types of files: those that are read, and the type of a file by its bytes, because servers and file names often are wrong."""

from __future__ import annotations

import re
import zipfile
from typing import BinaryIO

from crawlspace.content.documents.compound_file import stream_names
from crawlspace.content.mime import DOCX, OFFICE_FOLDERS, OOXML, PPTX, SNIFFED_BYTES, XLSX, sniff
from crawlspace.document import essence

PDF = "application/pdf"
RTF = "application/rtf"
CSV = "text/csv"
EPUB = "application/epub+zip"
XLS = "application/vnd.ms-excel"
DOC = "application/msword"
PPT = "application/vnd.ms-powerpoint"
OPEN_DOCUMENT = "application/vnd.oasis.opendocument."
ODT, ODS, ODP = (OPEN_DOCUMENT + name for name in ("text", "spreadsheet", "presentation"))

_SPELLINGS = {
    "application/x-pdf": PDF,
    "text/rtf": RTF,
    "application/x-rtf": RTF,
    "application/csv": CSV,
    "application/vnd.ms-word.document.macroenabled.12": DOCX,
    "application/vnd.ms-excel.sheet.macroenabled.12": XLSX,
    "application/vnd.ms-powerpoint.presentation.macroenabled.12": PPTX,
    "application/vnd.ms-powerpoint.slideshow.macroenabled.12": PPTX,
    OOXML + "wordprocessingml.template": DOCX,
    OOXML + "spreadsheetml.template": XLSX,
    OOXML + "presentationml.template": PPTX,
    OOXML + "presentationml.slideshow": PPTX,
    ODT + "-template": ODT,
    ODS + "-template": ODS,
    ODP + "-template": ODP,
}
"""Other names of the types that are read."""
READ = frozenset({PDF, RTF, CSV, EPUB, XLS, DOCX, PPTX, XLSX, ODT, ODS, ODP})
"""The types with a reader."""
FILE_TYPES = READ | _SPELLINGS.keys()
FILE_EXTENSIONS = frozenset(
    "pdf rtf csv epub xls xlsx xlsm xltx docx docm dotx pptx pptm potx ppsx ppsm odt ott ods ots odp otp".split()
)
"""Extensions of URLs that count as files before they are fetched."""
FIRST_BYTES = (b"%PDF-", b"PK\3\4", b"\xd0\xcf\x11\xe0", b"{\\rtf")
"""The first bytes of files, with any declared type."""
_LATE_PDF = 1024
"""A PDF may begin with this many bytes of something else (ISO 32000, annex H, 3.4.1)."""
_HTML = re.compile(rb"\s*(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL)


def usual_type(mime: str) -> str:
    """Return the usual name of a type that has several."""
    return _SPELLINGS.get(mime, mime)


def is_html(start: bytes) -> bool:
    """Return whether the first bytes are those of an HTML page, which servers may send instead of a file."""
    return _HTML.match(start[:SNIFFED_BYTES]) is not None


def file_kind(declared: str | None, file: BinaryIO) -> str:
    """Return the type of a file: by its bytes if they show one, else as declared. The position in the file changes."""
    file.seek(0)
    start = file.read(SNIFFED_BYTES)
    if b"%PDF-" in start[:_LATE_PDF]:
        return PDF
    if start.startswith(b"{\\rtf"):
        return RTF
    declared_type = usual_type(essence(declared))
    if start.startswith(b"PK"):
        return _zip_kind(file) or declared_type
    if start.startswith(b"\xd0\xcf\x11\xe0"):
        return _compound_kind(file, declared_type)
    if is_html(start):
        return "text/html"
    return declared_type if declared_type in READ else usual_type(sniff(declared, start))


def _zip_kind(file: BinaryIO) -> str:
    """Return the type of a zip file by its members; empty if it is broken."""
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            if "mimetype" in names and archive.getinfo("mimetype").file_size < 200:
                named = archive.read("mimetype").strip().decode("ascii", "replace")
                return usual_type(essence(named))
    except Exception:  # noqa: BLE001 - zipfile, and what inflates a member, may raise anything for a broken one
        return ""
    folders = {name[: name.find("/") + 1].lower() for name in names}
    return next((kind for folder, kind in OFFICE_FOLDERS if folder in folders), "application/zip")


def _compound_kind(file: BinaryIO, declared_type: str) -> str:
    """Return the type of a file in Microsoft's older container, which encrypted OOXML files use as well."""
    names = stream_names(file)
    if "EncryptedPackage" in names:
        return declared_type if declared_type in (DOCX, PPTX, XLSX) else DOCX
    if names & {"Workbook", "Book"}:
        return XLS
    if "WordDocument" in names:
        return DOC
    return PPT if "PowerPoint Document" in names else declared_type
