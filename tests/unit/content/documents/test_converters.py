"""Which converter a type has, and what one returns: a command of the user's, or a Tika server."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from crawlspace.content.documents.contents import FileContents, FileLimits, TextStatus, UnreadableFile
from crawlspace.content.documents.converters import complete, convert_by_server, converter_for, is_server, run_command

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
