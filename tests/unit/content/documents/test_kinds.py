"""Of which type a file is, whatever its server says."""

from __future__ import annotations

import io

import pytest

from crawlspace.content.documents.kinds import CSV, DOC, EPUB, FILE_EXTENSIONS, FILE_TYPES, ODT, PDF, PPT, RTF, XLS, file_kind
from crawlspace.content.mime import DOCX, PPTX, XLSX
from crawlspace.rules.limits import DEFAULT_EXCLUDED_EXTENSIONS
from crawlspace.settings import SpaceLimitsSection
from tests.unit.content.documents.made_files import broken, compound, docx, epub, open_document, para, pdf, pptx, xlsx, zipped

LATE = zipped({"docProps/" + "x" * 2000 + ".xml": "x", "word/document.xml": "x"})


@pytest.mark.parametrize(
    ("declared", "body", "kind"),
    [
        ("application/pdf", pdf(["x"]), PDF),
        ("text/html", pdf(["x"]), PDF),
        (DOCX, pdf(["x"]), PDF),
        ("application/pdf", b"<!DOCTYPE html><title>Not found</title>", "text/html"),
        (DOCX, b"\n<!-- error --><html>", "text/html"),
        ("application/octet-stream", docx(para("x")), DOCX),
        (None, LATE, DOCX),
        (None, pptx([]), PPTX),
        ("application/vnd.ms-excel", xlsx([]), XLSX),
        (None, open_document("text", ""), ODT),
        (None, open_document("text-template", ""), ODT),
        (None, epub([]), EPUB),
        (None, zipped({"a.txt": "x"}), "application/zip"),
        (DOCX, b"PK\3\4 cut short", DOCX),
        (ODT, broken(open_document("text", ""), "mimetype"), ODT),
        (None, broken(open_document("text", ""), "mimetype"), ""),
        ("application/msword", rb"{\rtf1 x}", RTF),
        ("text/rtf; charset=x", b"x", RTF),
        ("application/vnd.ms-excel", compound("Workbook"), XLS),
        ("application/octet-stream", compound("WordDocument"), DOC),
        (None, compound("PowerPoint Document"), PPT),
        ("application/vnd.ms-excel.sheet.macroEnabled.12", compound("EncryptedPackage"), XLSX),
        (None, compound("EncryptedPackage"), DOCX),
        ("text/csv", b"a,b\n", CSV),
        ("image/png", b"\x89PNG\r\n\x1a\n", "image/png"),
    ],
)
def test_kind(declared: str | None, body: bytes, kind: str) -> None:
    assert file_kind(declared, io.BytesIO(body)) == kind


def test_the_default_types_are_those_that_are_read() -> None:
    assert set(SpaceLimitsSection().CRAWLSPACE_MIME_TYPES) >= FILE_TYPES


def test_no_extension_of_a_file_that_is_read_is_excluded() -> None:
    assert not FILE_EXTENSIONS & DEFAULT_EXCLUDED_EXTENSIONS
