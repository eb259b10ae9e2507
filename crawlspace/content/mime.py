"""Determine the type of a body from its Content-Type header and its first bytes.

The header decides, unless it is missing or generic, or names a text type while the first bytes are binary: then the bytes decide, by the
tables of the WHATWG MIME Sniffing standard (xtractmime). Zip files are distinguished by their first entry, because half the
office formats are zip files and servers often know none of them.
"""

from __future__ import annotations

import re

import xtractmime

from crawlspace.document import essence, is_generic

HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
SNIFFED_BYTES = 1445
"""Number of first bytes that are examined (MIME Sniffing, section 5.2)."""

_UNKNOWN = "application/octet-stream"
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_SPACE = b"\t\n\x0c\r "
_SPACES = frozenset(_SPACE[at : at + 1] for at in range(len(_SPACE)))
OOXML = "application/vnd.openxmlformats-officedocument."
DOCX = OOXML + "wordprocessingml.document"
PPTX = OOXML + "presentationml.presentation"
XLSX = OOXML + "spreadsheetml.sheet"
OFFICE_FOLDERS = (("word/", DOCX), ("xl/", XLSX), ("ppt/", PPTX))
"""Folders in the zip files of Office, with their types."""
_ENTRY_TYPE = re.compile(rb"[a-z]+/[a-z0-9.+-]+")


def sniff(declared: str | None, body_start: bytes) -> str:
    """Return the type of a body (`text/html`), given its Content-Type header and its first bytes (SNIFFED_BYTES are enough)."""
    if is_generic(declared):
        return _by_bytes(body_start[:SNIFFED_BYTES])
    kind = essence(declared)
    if not kind.startswith("text/"):
        return kind
    start = body_start[:SNIFFED_BYTES]
    if not (_BINARY.search(start) or start.startswith(b"%PDF-")):
        return kind
    if start.startswith((b"\xef\xbb\xbf", b"\xfe\xff", b"\xff\xfe")) or "utf-16" in (declared or "").lower():
        return kind
    found = _by_bytes(start)
    if found == _UNKNOWN and kind == "text/html":
        return kind  # a control character in a page; browsers show it, and no known format begins so
    return found


def _by_bytes(start: bytes) -> str:
    if start[:1] in _SPACES:  # the library skips spaces and reads beyond the end of a short text
        start = b"\n" + start.lstrip(_SPACE) + b"." * 16  # padding that ends no tag and begins no format
    found = xtractmime.extract_mime(start, content_types=None)
    kind = found.decode("ascii") if found else _UNKNOWN
    return _zip_type(start) if kind == "application/zip" else kind


def _zip_type(start: bytes) -> str:
    """Return the type of a zip file: from the first entry `mimetype` (OpenDocument, EPUB), or from its folders (Office)."""
    if start[30:38] == b"mimetype":
        match = _ENTRY_TYPE.match(start, 38)
        if match:
            # Cut at the entry's length, or the next entry's signature would be included.
            length = int.from_bytes(start[22:26], "little")
            return match[0][: length or None].decode("ascii")
    return next((kind for folder, kind in OFFICE_FOLDERS if folder.encode() in start), "application/zip")
