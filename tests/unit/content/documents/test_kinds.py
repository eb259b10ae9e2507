"""The type of a file, its name where it has no title, and its converter: a command of the user's, or a Tika server."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from crawlspace.content.documents.contents import FileContents, FileLimits, TextStatus, UnreadableFile
from crawlspace.content.documents.converters import complete, convert_by_server, converter_for, is_server, run_command
from crawlspace.content.documents.kinds import CSV, DOC, EPUB, FILE_EXTENSIONS, FILE_TYPES, ODT, PDF, PPT, RTF, XLS, file_kind
from crawlspace.content.documents.page import file_name
from crawlspace.content.mime import DOCX, PPTX, XLSX
from crawlspace.rules.limits import DEFAULT_EXCLUDED_EXTENSIONS
from crawlspace.settings import SpaceLimitsSection
from tests.conftest import assert_same
from tests.unit.content.documents.made_files import broken, compound, docx, epub, open_document, para, pdf, pptx, xlsx, zipped
from tests.unit.test_docs import plain, rows

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


# --- the name of a file without a title -----------------------------------------------------------------------------


URL = "http://files.example.com/get/Plan%2010.pdf?id=1"
NAMES = (
    ("", "Plan 10.pdf"),
    ("attachment", "Plan 10.pdf"),
    ("attachment; filename=plan.pdf", "plan.pdf"),
    ('attachment; filename="Plan; \\"9\\".pdf"', 'Plan; "9".pdf'),
    # filename* comes first, wherever it stands
    ("attachment; filename=plan.pdf; filename*=UTF-8''Pl%C3%A4ne%20%E2%82%AC.pdf", "Pläne €.pdf"),
    ("attachment; filename*=utf-8'de'Pl%C3%A4ne.pdf; filename=plan.pdf", "Pläne.pdf"),
    ("attachment;FILENAME*=iso-8859-1'en'%A3.pdf", "£.pdf"),
    ("attachment; filename*=\"UTF-8''Pl%C3%A4ne.pdf\"; filename=no.pdf", "Pläne.pdf"),
    # unless it can't be read
    ("attachment; filename*=UTF-8''%E4.pdf; filename=plan.pdf", "plan.pdf"),
    ("attachment; filename*=utf-7''a.pdf; filename=plan.pdf", "plan.pdf"),
    ("attachment; filename*=plan2.pdf; filename=plan.pdf", "plan.pdf"),
    ("attachment; filename*=UTF-8''; filename=plan.pdf", "plan.pdf"),
    ("attachment; filename=\"a; filename*=UTF-8''b\"", "a; filename*=UTF-8''b"),
    # UTF-8, as it comes
    ('attachment; filename="' + "Pläne.pdf".encode().decode("latin-1") + '"', "Pläne.pdf"),
    ('attachment; filename="Pl\xe4ne.pdf"', "Pläne.pdf"),
    ("attachment; filename*=UTF-8''%0D%0Aa%20%20b", "a b"),
)


@pytest.mark.parametrize(("disposition", "name"), NAMES)
def test_the_name_of_a_file(disposition: str, name: str) -> None:
    assert file_name(URL, disposition) == name


def test_every_text_status_is_documented_with_its_sentence() -> None:
    documented = [(plain(name), sentence) for name, sentence in rows("docs/files.md", "Files without text")]
    assert_same(documented, [(status.value, status.sentence) for status in TextStatus])


# --- converters -----------------------------------------------------------------------------------------------------


CONVERTERS = {"application/msword": "antiword {file}", "image/*": "http://tika.example.com/", "image/gif": "ocr {file}"}


@pytest.mark.parametrize(
    ("mime", "converter"),
    [
        ("application/msword", "antiword {file}"),
        ("image/png", "http://tika.example.com/"),
        ("image/gif", "ocr {file}"),
        ("application/vnd.ms-powerpoint", ""),
        ("imagexyz", ""),
    ],
)
def test_converter_of_a_type(mime: str, converter: str) -> None:
    assert converter_for(mime, CONVERTERS) == converter


def python(code: str) -> str:
    return f'{sys.executable} -c "{code}" {{file}}'


PRINTED = python("import sys; print(open(sys.argv[1]).read().upper())")


@pytest.mark.parametrize(
    ("converter", "text", "is_cut"),
    [
        (PRINTED, "HELLO", False),
        (python("print('x' * 10**6)"), "x" * 100, True),
        (python("pass"), "", False),
    ],
)
def test_what_a_command_prints(tmp_path: Path, converter: str, text: str, is_cut: bool) -> None:
    assert converted(tmp_path, converter) == (text, is_cut)


@pytest.mark.parametrize(
    ("converter", "status", "detail"),
    [
        (python("raise SystemExit(3)"), TextStatus.DAMAGED, f"{sys.executable} ended with exit status 3"),
        (python("import os; os.kill(os.getpid(), 9)"), TextStatus.CRASHED, f"{sys.executable} was ended by signal 9"),
        ("/no/such/program {file}", TextStatus.NO_READER, "/no/such/program cannot be run: No such file or directory"),
        ("http://127.0.0.1:1/", TextStatus.NO_READER, "127.0.0.1 does not answer: [Errno 111] Connection refused"),
    ],
)
def test_a_converter_that_fails(tmp_path: Path, converter: str, status: TextStatus, detail: str) -> None:
    with pytest.raises(UnreadableFile) as raised:
        converted(tmp_path, converter)
    assert (raised.value.status, raised.value.detail) == (status, detail)


class Tika(BaseHTTPRequestHandler):
    """Answers with what it was sent, and the status in the path."""

    def do_PUT(self) -> None:
        body = b""
        while size := int(self.rfile.readline(), 16):  # chunked
            body += self.rfile.read(size)
            self.rfile.readline()
        answer = f"{self.headers['Accept']} {self.headers['Content-Type']} {body.decode()}".encode()
        self.send_response(int(self.path.rpartition("/")[2]))
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture(scope="module")
def tika() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Tika) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/tika/"
        server.shutdown()
        thread.join()


def test_what_a_server_returns(tmp_path: Path, tika: str) -> None:
    assert converted(tmp_path, f"{tika}200") == ("text/plain application/x hello", False)


@pytest.mark.parametrize(("answered", "status"), [(422, TextStatus.DAMAGED), (500, TextStatus.CRASHED)])
def test_a_server_that_fails(tmp_path: Path, tika: str, answered: int, status: TextStatus) -> None:
    with pytest.raises(UnreadableFile) as raised:
        converted(tmp_path, f"{tika}{answered}")
    assert (raised.value.status, raised.value.detail) == (status, f"127.0.0.1 answered {answered}")


def converted(folder: Path, converter: str) -> tuple[str, bool]:
    path = folder / "file"
    path.write_text("hello")
    contents = FileContents("application/x")
    limits = FileLimits(max_text=100)
    if is_server(converter):
        with path.open("rb") as file:
            output = convert_by_server(file, contents.kind, converter, limits=limits, timeout_s=60)
    else:
        output = run_command(str(path), converter, limits=limits, folder=str(folder))
    complete(contents, output, limits)
    return contents.text, contents.text_left_out
