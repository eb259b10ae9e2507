"""Header or bytes: which decides the type of a body."""

from __future__ import annotations

import pytest

from crawlspace.content.mime import sniff

HTML = b"<!DOCTYPE html><title>x</title>"
PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


def entry(name: bytes, content: bytes) -> bytes:
    size = len(content).to_bytes(4, "little")
    header = b"PK\x03\x04\x14\0\0\0\0\0" + b"\0" * 8 + size + size + len(name).to_bytes(2, "little") + b"\0\0"
    return header + name + content + b"PK\x03\x04"


TYPES = (
    # the header decides
    ("text/html; charset=utf-8", HTML, "text/html"),
    ("Text/HTML", b"plain words", "text/html"),
    ("application/pdf", HTML, "application/pdf"),
    ("application/xhtml+xml", HTML, "application/xhtml+xml"),
    ("image/png", HTML, "image/png"),
    ("text/plain", HTML, "text/plain"),
    ("text/plain", b"", "text/plain"),
    # it is missing or generic
    (None, HTML, "text/html"),
    ("", b"words", "text/plain"),
    ("nonsense", PDF, "application/pdf"),
    ("application/octet-stream", PDF, "application/pdf"),
    ("unknown/unknown", PNG, "image/png"),
    *((kind, PDF, "application/pdf") for kind in ("text/pdf", "application/force-download", "application/x-download")),
    *((kind, HTML, "text/html") for kind in ("text/pdf", "application/download", "application/x-octet-stream")),
    ("application/force-download", b"\0\1\2", "application/octet-stream"),
    ("*/*", b"\0\1\2", "application/octet-stream"),
    ("application/octet-stream", b"", "text/plain"),
    (None, b" ", "text/plain"),
    (None, b"\n" * 2_000, "text/plain"),
    (None, b"\n \t\r\f" * 3 + b"words", "text/plain"),
    (None, b"  \n<br>", "text/html"),
    (None, b"  \n<br", "text/plain"),
    (None, b"  \n" + HTML, "text/html"),
    (None, b"\n<?xml", "text/xml"),
    (None, b" " * 20 + b"\0", "application/octet-stream"),
    (None, b"\n" + PNG, "application/octet-stream"),
    # it says text and the bytes say binary
    ("text/plain", PDF, "application/pdf"),
    ("text/plain; charset=ISO-8859-1", PNG, "image/png"),
    ("text/html", PNG, "image/png"),
    ("text/plain", b"\0\1\2", "application/octet-stream"),
    ("text/html", b"<p>\x01 stray</p>", "text/html"),
    ("text/html", HTML + b"\0", "text/html"),
    ("text/plain; charset=utf-16", "words".encode("utf-16-le"), "text/plain"),
    ("text/plain", b"\xff\xfew\0", "text/plain"),
    # zip files of the office
    (None, entry(b"mimetype", b"application/epub+zip"), "application/epub+zip"),
    (None, entry(b"mimetype", b"application/vnd.oasis.opendocument.text"), "application/vnd.oasis.opendocument.text"),
    (
        None,
        entry(b"[Content_Types].xml", b"") + b"word/document.xml",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ),
    (None, entry(b"x.txt", b"x"), "application/zip"),
)


@pytest.mark.parametrize(("declared", "start", "expected"), TYPES)
def test_sniff(declared: str | None, start: bytes, expected: str) -> None:
    assert sniff(declared, start) == expected
