"""The tests' own web server, asked by the standard library's client and by bare sockets."""

from __future__ import annotations

import gzip
import http.client
import socket
import ssl
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.command_line import ROOT, run_scrapy
from tests.conftest import MakeProject, assert_same
from tests.http import Request
from tests.notifications import LONGEST_WAIT_S
from tests.sites import (
    Answer,
    Route,
    Server,
    Site,
    binary,
    cut_short,
    drip,
    drop,
    gzip_bomb,
    hang,
    html,
    page,
    redirect,
    sequence,
    serve,
    slow,
    status,
    text,
    wrong_charset,
)


def ask(server: Server, path: str, method: str = "GET", **headers: str) -> tuple[int, str, bytes]:
    """Status, content type and body of one request."""
    client = http.client.HTTPConnection(server.host, server.port, timeout=LONGEST_WAIT_S)
    try:
        client.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        response = client.getresponse()
        return response.status, response.getheader("Content-Type", ""), response.read()
    finally:
        client.close()


HTML = "text/html; charset=utf-8"
TEXT = "text/plain; charset=utf-8"

SITE: dict[str, Route] = {
    "/text": text("ü"),
    "/html": html("<p>ü"),
    "/bytes": binary(b"%PDF", "application/pdf"),
    "/gone": status(410),
    "/own": status(503, headers={"Retry-After": "9"}, body="later"),
    "/odd": status(299),
    "/none": status(204),
    "/charset": wrong_charset("<p>ü"),
    "/query?a=1": text("one"),
    "/query": text("any"),
    "/call": lambda request: text(f"{request.method} {request.path}"),
    "/slow": slow(text("at last"), 0.01),
}

ANSWERS = [
    # path         status, content type, body
    ("/text", 200, TEXT, "ü".encode()),
    ("/html", 200, HTML, "<p>ü".encode()),
    ("/bytes", 200, "application/pdf", b"%PDF"),
    ("/gone", 410, HTML, b"<title>410</title>"),
    ("/own", 503, HTML, b"later"),
    ("/odd", 299, HTML, b"<title>299</title>"),
    ("/none", 204, HTML, b""),
    ("/charset", 200, HTML, b"<p>\xfc"),
    ("/query?a=1", 200, TEXT, b"one"),
    ("/query?a=2", 200, TEXT, b"any"),
    ("/call?x", 200, TEXT, b"GET /call?x"),
    ("/slow", 200, TEXT, b"at last"),
    ("/robots.txt", 404, HTML, b"<title>404</title>"),
]


def test_answers() -> None:
    with serve(Site(SITE)) as server:
        assert [(path, *ask(server, path)) for path, *_ in ANSWERS] == ANSWERS
        assert server.paths() == [path for path, *_ in ANSWERS]


def test_page() -> None:
    shown = page(
        "A & B", text="x < y", links=["/a?b=1&c=2", ("/d", "Dee")], head='<meta name="robots" content="noindex">', lang="de"
    ).body.decode()
    for part in (
        '<html lang="de">',
        "<title>A &amp; B</title>",
        '<meta name="robots" content="noindex">',
        "<p>x &lt; y</p>",
        '<a href="/a?b=1&amp;c=2">/a?b=1&amp;c=2</a>',
        '<a href="/d">Dee</a>',
    ):
        assert part in shown


def test_redirect() -> None:
    moved = redirect("/a", 301)
    assert (moved.code, moved.headers["Location"]) == (301, "/a")


@pytest.mark.parametrize(
    ("given", "asked", "code"),
    [
        ({"ETag": '"1"'}, {"If_None_Match": '"1"'}, 304),
        ({"ETag": '"1"'}, {"If_None_Match": '"0", "1"'}, 304),
        ({"ETag": '"2"'}, {"If_None_Match": '"1"'}, 200),
        ({"ETag": '"1"'}, {}, 200),
        ({}, {"If_None_Match": '"1"'}, 200),
        ({"Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}, {"If_Modified_Since": "Mon, 01 Jan 2024 00:00:00 GMT"}, 304),
        ({"Last-Modified": "Tue, 02 Jan 2024 00:00:00 GMT"}, {"If_Modified_Since": "Mon, 01 Jan 2024 00:00:00 GMT"}, 200),
    ],
)
def test_conditional(given: dict[str, str], asked: dict[str, str], code: int) -> None:
    with serve(Site({"/": page("Home", headers=given)})) as server:
        assert ask(server, "/", **asked)[0] == code


def test_head_has_no_body_and_keeps_the_connection() -> None:
    with serve(Site({"/": text("hello")})) as server:
        client = http.client.HTTPConnection(server.host, server.port, timeout=LONGEST_WAIT_S)
        client.request("HEAD", "/")
        response = client.getresponse()
        assert (response.getheader("Content-Length"), response.read()) == ("5", b"")
        client.request("GET", "/")
        assert client.getresponse().read() == b"hello"
        assert (server.connections, len(server.requests)) == (1, 2)
        client.close()


def test_a_request_is_recorded_completely() -> None:
    with serve(Site({}, otherwise=status(200))) as server:
        client = http.client.HTTPConnection(server.host, server.port, timeout=LONGEST_WAIT_S)
        client.request("POST", "/in?x=1", body=b"line\n", headers={"X-Thing": "a: b"})
        client.getresponse().read()
        client.close()
        (request,) = server.requests
        assert (request.method, request.path, request.body, request.headers["x-thing"]) == ("POST", "/in?x=1", b"line\n", "a: b")
        server.forget()
        assert (server.requests, server.connections) == ([], 0)


def test_a_request_came_when_it_was_sent_and_not_when_it_was_read() -> None:
    came, go_on = threading.Event(), threading.Event()

    def block(_: Request) -> Answer:
        came.set()
        go_on.wait(LONGEST_WAIT_S)
        return status(200)

    with serve(Site({"/block": block})) as server, serve(Site({"/": slow(text("later"), 0.2)})) as other:
        blocked = threading.Thread(target=ask, args=(server, "/block"))
        blocked.start()
        came.wait(LONGEST_WAIT_S)
        before = time.monotonic()
        with socket.create_connection((server.host, server.port), timeout=LONGEST_WAIT_S) as client:
            client.sendall(b"GET /late HTTP/1.1\r\n\r\n")
            after = time.monotonic()
            assert ask(other, "/")[2] == b"later"
            go_on.set()
            client.recv(100)
        blocked.join(LONGEST_WAIT_S)
        late_s = 0.02 if sys.platform == "linux" else 5.0  # other systems do not tell when data came in
        assert before - 0.02 < server.requests[1].at < after + late_s


def test_a_sequence_ends_with_its_last() -> None:
    with serve(Site({"/": sequence([status(503), status(404), text("back")])})) as server:
        assert [ask(server, "/")[0] for _ in range(4)] == [503, 404, 200, 200]
        assert server.counts() == {"/": 4}


def test_a_site_changes_while_served() -> None:
    with serve(Site({"/": text("old")})) as server:
        assert ask(server, "/")[2] == b"old"
        server.site["/"] = status(404)
        assert ask(server, "/")[0] == 404


def test_several_hosts() -> None:
    with serve(Site({"/": text("one")})) as one, serve(Site({"/": text("two")}), host="127.0.0.2", port=one.port) as two:
        assert (one.url("/x"), two.netloc) == (f"http://127.0.0.1:{one.port}/x", f"127.0.0.2:{one.port}")
        assert [ask(server, "/")[2] for server in (one, two)] == [b"one", b"two"]


def test_requests_at_once_are_counted() -> None:
    arrived = threading.Semaphore(0)

    def held(request: Request) -> hang:
        arrived.release()
        return hang()

    with serve(Site({"/": held})) as server, ExitStack() as clients:
        for _ in range(3):
            client = clients.enter_context(socket.create_connection((server.host, server.port), LONGEST_WAIT_S))
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert all(arrived.acquire(timeout=LONGEST_WAIT_S) for _ in range(3))
        assert server.most_at_once == 3


MISBEHAVIOUR = [
    # reply                  what a client meets
    (drop(), http.client.RemoteDisconnected),
    (drop(reset=True), ConnectionResetError),
    (cut_short("abc", missing=2), http.client.IncompleteRead),
]


@pytest.mark.parametrize(("reply", "meets"), MISBEHAVIOUR)
def test_misbehaviour(reply: drop | cut_short, meets: type[Exception]) -> None:
    with serve(Site({"/": reply})) as server, pytest.raises(meets):
        ask(server, "/")


def test_hang_answers_nothing_until_the_server_stops() -> None:
    with socket.socket() as client:
        with serve(Site({"/": hang()})) as server:
            client.connect((server.host, server.port))
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            client.settimeout(0.05)
            with pytest.raises(TimeoutError):
                client.recv(1)
        client.settimeout(LONGEST_WAIT_S)
        assert client.recv(1) == b""


def test_drip_never_ends() -> None:
    with serve(Site({"/": drip(b"12345", every_s=0)})) as server:
        client = http.client.HTTPConnection(server.host, server.port, timeout=LONGEST_WAIT_S)
        client.request("GET", "/")
        assert client.getresponse().read(10_000) == b"12345" * 2_000
        client.close()


@pytest.mark.parametrize("size", [1, 1 << 20, 50_000_000])
def test_gzip_bomb(size: int) -> None:
    bomb = gzip_bomb(size).body
    inside = gzip.decompress(bomb)
    assert len(inside) >= size
    assert not inside.strip()
    assert len(bomb) < len(inside) / 500


def test_tls_meets_plain_text() -> None:
    with (
        serve(Site({})) as server,
        socket.create_connection((server.host, server.port), LONGEST_WAIT_S) as client,
        pytest.raises(ssl.SSLError),
    ):
        ssl.create_default_context().wrap_socket(client, server_hostname="localhost")


def test_a_fault_in_a_reply_fails_the_test() -> None:
    def broken(request: Request) -> Answer:
        raise LookupError(request.path)

    with pytest.raises(LookupError, match="/broken"), serve(Site({"/broken": broken})) as server:
        with pytest.raises(http.client.RemoteDisconnected):
            ask(server, "/broken")


def test_assert_same_lists_what_differs() -> None:
    assert_same(["a", "b", "a"], ["b", "a", "a"])
    with pytest.raises(pytest.fail.Exception) as failed:
        assert_same(["a", "c", "c"], ["a", "a", "b"])
    assert str(failed.value).splitlines() == ["MISSING 'a'", "MISSING 'b'", "EXTRA   'c' (2 times)"]


def test_run_scrapy(tmp_path: Path) -> None:
    assert run_scrapy(["version"], tmp_path).succeeded().stdout.startswith("Scrapy ")
    with pytest.raises(AssertionError, match=r"exit status 2[\s\S]*no-such"):
        run_scrapy(["no-such"], tmp_path).succeeded()
    with pytest.raises(AssertionError, match="took longer than"):
        run_scrapy(["version"], tmp_path, timeout=0)
    assert (ROOT / "scrapy.cfg").is_file()


def test_a_project_is_where_its_commands_look(project: MakeProject) -> None:
    made = project({"demo/start_urls.txt": "http://localhost/\n"})
    assert (made.collections / "demo" / "start_urls.txt").read_text() == "http://localhost/\n"
    assert made.scrapy("settings", "--get", "CRAWLSPACE_COLLECTIONS_DIR").succeeded().stdout.strip() == str(made.collections)
    assert made.scrapy("settings", "--get", "CRAWLSPACE_DATA_DIR").succeeded().stdout.strip() == str(made.data)


def test_what_a_project_started_is_killed_with_it(project: MakeProject) -> None:
    made = project({})
    process = made.start("settings", "--get", "BOT_NAME")
    made.close()
    assert process.poll() is not None
