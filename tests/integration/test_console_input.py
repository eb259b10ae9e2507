"""Input that nobody sends, and names that lead to other files: each is answered with a sentence."""

from __future__ import annotations

import socket
from urllib.parse import quote, urlsplit

import pytest

from tests.conftest import MakeProject, Project
from tests.consoles import Browser, served
from tests.integration.stored import collection

API = "/api/v1"


@pytest.fixture
def demo(project: MakeProject) -> Project:
    return project(collection("http://127.0.0.1:9/"))


# --- input that nobody sends ---------------------------------------------------------------------------------------

HUGE = "9" * 5_000
GETS = [
    ("/c/%ff/", 404),
    ("/c/%00/", 404),
    ("/c/demo%00/", 404),
    ("/c/%ed%b0%80/", 404),
    ("/c/demo/runs/%ff", 404),
    ("/c/demo/runs/%C2%B2", 404),
    ("/c/demo/sites/%00", 503),
    ("/c/demo/url?url=%ff", 200),
    ("/c/demo/url?url=%00", 200),
    (f"/c/demo/url?url=http://{'a' * 5_000}/", 400),
    ("/c/demo/url?url=http://%5B", 200),
    ("/c/demo/url?show=%ff&url=http://a.test/", 400),
    (f"/c/demo/explorer?page={HUGE}", 200),
    (f"/c/demo/deletions?after={HUGE}", 400),
    ("/c/demo/deletions?after=-1", 400),
    (f"/c/demo/runs?page={HUGE}", 400),
    ("/c/demo/runs?page=0", 400),
    ("/c/demo/runs?page=1.5", 400),
    ("/c/demo/runs?page=%C2%B2", 400),
    (f"/c/demo/search?q=x&page={HUGE}", 200),
    (f"/find?q=x&page={HUGE}", 200),
    (f"/c/demo/rules?line={HUGE}", 400),
    ("/c/demo/rules?file=%00", 400),
    (f"/content/{'0' * 32}/link?seconds={HUGE}", 404),
    ("/content?collection=%00&url=http://a.test/", 404),
    (f"{API}/collections/demo/urls?limit={HUGE}", 400),
    (f"{API}/collections/demo/search?q=%00", 200),
    (f"{API}/collections/demo/documents/%ff", 404),
    ("/static/%ff", 404),
]
"""Addresses, and their status."""


def test_addresses_that_nobody_asks_for(demo: Project) -> None:
    with served(demo, public=["demo"]) as browser:
        found = [(path, browser.get(path).status) for path, _ in GETS]
    assert found == GETS


FORM = "application/x-www-form-urlencoded"
PART = b'--x\r\nContent-Disposition: form-data; name="%s"\r\n%s\r\n%s\r\n--x--\r\n'
BODIES: list[tuple[str, bytes, int, str]] = [
    (FORM, b"url=\xff", 400, "This form cannot be read"),
    (FORM, b"\xff=1", 400, "This form cannot be read"),
    (FORM, b"url=%00", 400, "a character that no text has (NUL)"),
    (FORM, b"%00=1", 400, "a character that no text has (NUL)"),
    (FORM, b"x" * 4_100_000, 413, "This is more than 4,000,000 bytes"),
    (FORM, b"&".join(b"a%d=1" % n for n in range(20_000)), 413, "This is more than"),
    (f"{FORM}; charset=nope", b"url=x", 400, "This form cannot be read"),
    (f"{FORM}; charset=undefined", b"url=x", 400, "This form cannot be read"),
    (f"{FORM}; charset=base64", b"url=x", 400, "This form cannot be read"),
    ("multipart/form-data", b"x", 400, "This form cannot be read"),
    ("multipart/form-data; boundary=x", b"x", 400, "This form cannot be read"),
    (f"multipart/form-data; boundary={'x' * 100}", b"x", 400, "This form cannot be read"),
    ("multipart/form-data; boundary=x", b"--x\r\n\r\nv\r\n--x--\r\n", 400, "This form cannot be read"),
    ("multipart/form-data; boundary=x", PART % (b"url", b"Content-Type: text/plain; charset=nope\r\n", b"\xff"), 400, "This form cannot be read"),
    ("multipart/form-data; boundary=x", PART % (b"url", b"Content-Type: multipart/mixed; boundary=y\r\n", b"--y--"), 400, "This form cannot be read"),
    ("application/json", b"{}", 400, "This is of type application/json: send a form"),
    ("text/plain", b"url=x", 400, "This is of type text/plain: send a form"),
    ("<script>", b"url=x", 400, "send a form"),
]  # fmt: skip
"""Types and bodies of forms, their status, and a part of the sentence."""


@pytest.mark.parametrize(("content_type", "body", "code", "sentence"), BODIES)
def test_forms_that_nobody_sends(demo: Project, content_type: str, body: bytes, code: int, sentence: str) -> None:
    with served(demo) as browser:
        browser.headers["X-CSRF-Token"] = browser.csrf()
        for path in ("/c/demo/sites/pause", "/c/demo/rules/lint", "/login"):
            got = browser.post_body(path, body, content_type)
            assert (got.status, sentence in got.words) == (code, True), (path, got.words)
        del browser.headers["X-CSRF-Token"]
        assert browser.post_body("/c/demo/sites/pause", body, content_type).status in (code, 403)


def test_a_form_that_is_compressed_wrongly(demo: Project) -> None:
    with served(demo) as browser:
        browser.headers |= {"X-CSRF-Token": browser.csrf(), "Content-Encoding": "gzip"}
        assert browser.post_body("/c/demo/sites/pause", b"url=x", FORM).status == 400


@pytest.mark.parametrize("number", ["", "-1", "1e3", "²", "9" * 5_000, "0x1"])
def test_numbers_of_deletions_that_nobody_sends(demo: Project, number: str) -> None:
    with served(demo) as browser:
        got = browser.post("/c/demo/deletions/approve", {"number": number})
        assert (got.status, "the number of the deletions is missing" in got.words) == (400, True)


RAW_HEADERS = [
    ("Host: \udcff", 421),
    ("Host: [::1", 421),
    ("Authorization: Bearer \udcff", 401),
    ("Authorization: Bearer", 401),
    ("Cookie: crawlspace_console=\udcff", 200),
    ("Accept: \udcff", 200),
    ("If-None-Match: \udcff", 200),
    ("If-Modified-Since: Mon, 99 Foo 99999 00:00:00 GMT", 200),
    ("X-Forwarded-For: \udcff", 200),
    ("Sec-Fetch-Site: \udcff", 200),
    ("Content-Length: -1", 400),
    ("Transfer-Encoding: nope", 400),
    (f"X-Long: {'x' * 9_000}", 400),
]
"""Headers whose bytes beyond ASCII are written as Python reads them, and the status of a page."""


@pytest.mark.parametrize(("header", "code"), RAW_HEADERS)
def test_headers_that_nobody_sends(demo: Project, header: str, code: int) -> None:
    with served(demo) as browser:
        assert raw(browser, "GET / HTTP/1.1", header)[0] == code


def raw(browser: Browser, first: str, *headers: str) -> tuple[int, str]:
    """The status and the text of the response to a request as it is written."""
    address = urlsplit(browser.base)
    assert address.hostname is not None
    lines = [first, *headers, "Connection: close"]
    if not any(header.startswith("Host:") for header in headers):
        lines.append(f"Host: {address.netloc}")
    with socket.create_connection((address.hostname, address.port or 80)) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape"))
        parts = []
        while part := connection.recv(65_536):
            parts.append(part)
    text = b"".join(parts).decode("utf-8", "replace")
    return int(text.split(" ", 2)[1]), text


# --- names of other files ------------------------------------------------------------------------------------------

OUTSIDE = (
    "..",
    "../demo",
    "../../etc/passwd",
    "/etc/passwd",
    "demo/../demo",
    "demo/settings.py",
    ".",
    "",
    "~",
    "C:\\",
    "..\\demo",
    "demo\n",
)
"""Names that lead out of their folder where nobody refuses them."""
NAMED = (
    "/c/{}/",
    "/c/{}/rules",
    "/c/{}/explorer/urls.csv",
    "/c/demo/runs/{}",
    "/c/demo/sinks/{}/parked",
    "/c/demo/sites/{}",
    "/content/{}",
    "/content/{}/link",
    "/static/{}",
    f"{API}/collections/{{}}/status",
    f"{API}/collections/demo/documents/{{}}",
    f"{API}/collections/demo/sinks/{{}}/parked",
)
IN_QUERY = (
    "/c/demo/rules?file={}",
    "/c/demo/rules/version?file={}",
    "/c/demo/rules?version={}",
    "/c/demo/rules/plan?id={}",
    "/c/demo/runs/compared?first={}&second=1",
    "/c/demo/runs/compared.csv?first={}&second=1",
    "/content?collection={}&url=http://a.test/",
    "/find?in={}",
    "/find/document?in={}&url=http://a.test/",
)


def test_no_name_leads_to_another_file(demo: Project) -> None:
    demo.data.joinpath("secret").write_text("root:x:0:0")
    with served(demo, public=["demo"]) as browser:
        for path in NAMED:
            for name in OUTSIDE:
                got = browser.get(path.format(quote(name, safe="")))
                assert got.status in (400, 403, 404, 503), (path, name, got.status)
                assert "root:" not in got.text, (path, name)
        for path in IN_QUERY:
            for name in OUTSIDE:
                got = browser.get(path.format(quote(name, safe="")))
                assert got.status in (400, 404, 503) or not name, (path, name, got.status)
                assert "root:" not in got.text, (path, name)
        for name in OUTSIDE:
            got = browser.post("/c/demo/rules/save", {"file": name or "x", "text": "forbid domain x.test", "hash": ""})
            assert got.status == 400, name
    assert {path.name for path in demo.collections.joinpath("demo").iterdir()} == {"start_urls.txt", "crawl.rules", "settings.py"}


def test_a_collection_may_have_any_name(project: MakeProject) -> None:
    name = 'Größe "1" #a?b%2f<b>&\'c'
    files = collection("http://127.0.0.1:9/")
    demo = project({f"{name}/{file.partition('/')[2]}": text for file, text in files.items()})
    home = f"/c/{quote(name, safe='')}"
    with served(demo) as browser:
        assert quote(name, safe="") in browser.get("/").text
        for action, form in (
            ("search/dismiss", {"url": "x"}),
            ("url/recrawl", {"url": "http://127.0.0.1:9/"}),
            ("explorer/recrawl", {"host": "127.0.0.1:9"}),
            ("url/forget", {"url": "http://127.0.0.1:9/"}),
        ):
            done = browser.post(f"{home}/{action}", form)
            assert (done.status, urlsplit(done.url).path.startswith(f"{home}/")) == (200, True), (action, done.url, done.words)
            assert "<b>" not in done.text
        got = browser.get_until(f"{home}/explorer/urls.csv", lambda got: got.status == 200)
        assert got.headers["Content-Disposition"] == f"attachment; filename*=UTF-8''{quote(name, safe='')}-urls.csv"
