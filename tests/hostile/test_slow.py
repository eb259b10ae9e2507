"""Servers that take their time, all at once: DOWNLOAD_TIMEOUT counts from the request to the last byte, however many come between."""

from __future__ import annotations

import socket
import ssl
from contextlib import ExitStack
from pathlib import Path

import pytest

from crawlspace.model import State
from tests.certificates import certificate
from tests.conftest import MakeProject
from tests.hostile.replies import OK, Raw, chunked
from tests.http import Reply
from tests.integration.stored import opened
from tests.sites import Site, hang, page, serve

EVERY_S = 0.1
SLOW: list[tuple[str, Reply]] = [
    # what the server does
    ("no answer",       hang()),
    ("half a header",   Raw(OK + b"X-A: a", stays_open=True)),
    ("headers",         Raw(OK, b"X-A: a\r\n", EVERY_S)),
    ("one header",      Raw(OK + b"X-A: ", b"a", EVERY_S)),
    ("interim answers", Raw(b"", b"HTTP/1.1 100 Continue\r\n\r\n", EVERY_S)),
    ("body",            Raw(OK + b"Content-Type: text/plain\r\n\r\n", b"#", EVERY_S)),
    ("chunks",          chunked(b"", endless=b"1\r\n#\r\n", every_s=EVERY_S)),
    ("trailers",        chunked(b"1\r\n#\r\n0\r\n", endless=b"X-A: a\r\n", every_s=EVERY_S)),
]  # fmt: skip
SETTINGS = "DOWNLOAD_DELAY = 0\nRETRY_TIMES = 0\nDOWNLOAD_TIMEOUT = 2.5\nDOWNLOAD_VERIFY_CERTIFICATES = False\n"
"""Nothing but what is slow is asked for: another answer might come too late, too."""


@pytest.mark.full
@pytest.mark.parametrize("is_secure", [False, True])
def test_each_ends_with_the_time_out(project: MakeProject, tmp_path: Path, *, is_secure: bool) -> None:
    context = None
    if is_secure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate(tmp_path / "certificate.pem"))
    with ExitStack() as stack:
        pages = [stack.enter_context(serve(Site({"/": slow}), tls=context)) for _, slow in SLOW]
        files = [stack.enter_context(serve(Site({"/robots.txt": slow, "/": page("Page")}), tls=context)) for _, slow in SLOW]
        mute = stack.enter_context(socket.create_server(("127.0.0.1", 0)))  # the system connects, and nobody ever says a word
        given_up_sites = f"http{'s' * is_secure}://127.0.0.1:{mute.getsockname()[1]}/"
        made = project(
            {
                **collection_of("files", [given_up_sites, *(server.url("/") for server in files)], SETTINGS),
                **collection_of("pages", [server.url("/") for server in pages], f"{SETTINGS}ROBOTSTXT_OBEY = False\n"),
            }
        )
        beside = made.start("crawl", "files")
        run = made.crawl("pages")
        beside.wait()
        assert {server.netloc: server.paths() for server in files} == {server.netloc: ["/robots.txt"] for server in files}
        assert {path for server in pages for path in server.paths()} == {"/"}
    known: dict[str, tuple[State, int | None]] = {}
    for name in ("files", "pages"):
        with opened(made, name) as store:
            known |= {state.url: (state.state, state.status) for state in store.urls()}
    assert {what: known[server.url("/")] for (what, _), server in zip(SLOW, pages, strict=True)} == {
        what: (State.FAILED, 613) for what, _ in SLOW
    }
    assert {known[server.url("/")][0] for server in files} == {State.PENDING}
    assert known[given_up_sites][0] is State.PENDING
    assert "Traceback" not in run.stderr + beside.output()


def collection_of(name: str, starts: list[str], settings: str) -> dict[str, str]:
    return {
        f"{name}/start_urls.txt": "\n".join(starts),
        f"{name}/crawl.rules": "allow address 127.0.0.0/8\n",
        f"{name}/settings.py": settings,
    }
