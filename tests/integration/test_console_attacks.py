"""Attacks on the console, as tables: wrong roles at each address, forms from elsewhere, pages made of scripts; headers and streams."""

from __future__ import annotations

import errno
import os
import re
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier
from urllib.parse import quote, urlsplit

import pytest
from aiohttp import web

from crawlspace.clock import SystemClock
from crawlspace.console.assistants.http import add_mcp
from crawlspace.console.assistants.tools import AssistantTools
from crawlspace.console.guard import Access
from crawlspace.console.sending import send_lines
from crawlspace.console.sessions import COOKIE
from crawlspace.console.users import Role, Users
from crawlspace.runtime.session.project import ProjectCollections
from crawlspace.urls import document_id
from tests.conftest import MakeProject, Project
from tests.consoles import Browser, Got, console_settings, served
from tests.integration.stored import ARCHIVED, collection
from tests.sites import Answer, Site, held, page, serve, status

PASSWORD = "correct horse battery"
API = "/api/v1"


@pytest.fixture
def demo(project: MakeProject) -> Project:
    return project(collection("http://127.0.0.1:9/"))


# --- roles ---------------------------------------------------------------------------------------------------------

ROLES: Mapping[str, str] = {
    "GET /": "viewer",
    "GET /audit-log": "operator",
    "GET /c/{name}/": "viewer",
    "GET /c/{name}/deletions": "viewer",
    "GET /c/{name}/explorer": "viewer",
    "GET /c/{name}/explorer/urls": "viewer",
    "GET /c/{name}/explorer/urls.csv": "viewer",
    "GET /c/{name}/explorer/urls.jsonl": "viewer",
    "GET /c/{name}/rules": "viewer",
    "GET /c/{name}/rules/plan": "viewer",
    "GET /c/{name}/rules/version": "viewer",
    "GET /c/{name}/runs": "viewer",
    "GET /c/{name}/runs/compared": "viewer",
    "GET /c/{name}/runs/compared.csv": "viewer",
    "GET /c/{name}/runs/{run}": "viewer",
    "GET /c/{name}/search": "viewer",
    "GET /c/{name}/sinks": "viewer",
    "GET /c/{name}/sinks/{sink}/parked": "viewer",
    "GET /c/{name}/sinks/{sink}/indexes": "viewer",
    "GET /c/{name}/sites": "viewer",
    "GET /c/{name}/sites/{site}": "viewer",
    "GET /c/{name}/stored": "viewer",
    "GET /c/{name}/url": "viewer",
    "GET /content": "viewer",
    "GET /content/{id}": "viewer",
    "GET /content/{id}/link": "viewer",
    "GET /find": "anybody",
    "GET /find/document": "anybody",
    "GET /find/missing": "anybody",
    "GET /find/suggestions": "anybody",
    "GET /live": "anybody",
    "GET /login": "anybody",
    "GET /metrics": "viewer",
    "GET /ready": "anybody",
    "GET /static/{name}": "anybody",
    "POST /c/{name}/deletions/approve": "operator",
    "POST /c/{name}/deletions/discard": "operator",
    "POST /c/{name}/explorer/forget": "operator",
    "POST /c/{name}/explorer/recrawl": "operator",
    "POST /c/{name}/rules/check": "viewer",
    "POST /c/{name}/rules/lint": "viewer",
    "POST /c/{name}/rules/plan": "viewer",
    "POST /c/{name}/rules/remove": "operator",
    "POST /c/{name}/rules/restore": "operator",
    "POST /c/{name}/rules/save": "operator",
    "POST /c/{name}/rules/test": "viewer",
    "POST /c/{name}/search/dismiss": "operator",
    "POST /c/{name}/sinks/{sink}/send-again": "operator",
    "POST /c/{name}/sinks/{sink}/start": "operator",
    "POST /c/{name}/sites/pause": "operator",
    "POST /c/{name}/sites/resume": "operator",
    "POST /c/{name}/start": "operator",
    "POST /c/{name}/stop": "operator",
    "POST /c/{name}/url/forget": "operator",
    "POST /c/{name}/url/recrawl": "operator",
    "POST /find/missing": "anybody",
    "POST /login": "anybody",
    "POST /logout": "viewer",
    "POST /mcp": "viewer",
    f"GET {API}/collections": "viewer",
    f"GET {API}/collections/{{name}}/audit": "viewer",
    f"GET {API}/collections/{{name}}/deletions": "viewer",
    f"GET {API}/collections/{{name}}/documents": "viewer",
    f"GET {API}/collections/{{name}}/documents/{{id}}": "viewer",
    f"GET {API}/collections/{{name}}/explain": "viewer",
    f"GET {API}/collections/{{name}}/plan": "viewer",
    f"GET {API}/collections/{{name}}/search": "viewer",
    f"GET {API}/collections/{{name}}/sinks": "viewer",
    f"GET {API}/collections/{{name}}/sinks/{{sink}}/parked": "viewer",
    f"GET {API}/collections/{{name}}/status": "viewer",
    f"GET {API}/collections/{{name}}/urls": "viewer",
    f"GET {API}/openapi.json": "viewer",
    f"POST {API}/collections/{{name}}/add": "operator",
    f"POST {API}/collections/{{name}}/audit/repair": "operator",
    f"POST {API}/collections/{{name}}/crawl/start": "operator",
    f"POST {API}/collections/{{name}}/crawl/stop": "operator",
    f"POST {API}/collections/{{name}}/deletions/approve": "operator",
    f"POST {API}/collections/{{name}}/deletions/discard": "operator",
    f"POST {API}/collections/{{name}}/explain": "viewer",
    f"POST {API}/collections/{{name}}/recrawl": "operator",
}
"""Each address, with the least role that may ask for it."""
RANKS = ("anybody", "viewer", "operator")


@contextmanager
def whole(demo: Project) -> Iterator[tuple[Browser, web.Application]]:
    """A console with all that it can serve, and its application."""
    apps: list[web.Application] = []
    tools = AssistantTools(ProjectCollections(console_settings(demo)), ["demo"], SystemClock())

    def add(app: web.Application) -> None:
        add_mcp(app, tools)
        apps.append(app)

    with served(demo, public=["demo"], add=add) as browser:
        yield browser, apps[0]


def test_each_address_has_its_role_and_no_other_address_is_there(demo: Project) -> None:
    """What is asked for does not exist, so that nothing happens where nobody refuses it."""
    users = Users(demo.data / "console-users")
    for role in Role:
        users.set_password(role.label, PASSWORD, role)
    with whole(demo) as (browser, app):
        routes = {
            f"{route.method} {route.resource.canonical}"
            for route in app.router.routes()
            if route.resource is not None and route.method != "HEAD"
        }
        assert routes == ROLES.keys(), "name each new address, and who may ask for it"
        askers = {"anybody": Browser(browser.base)}
        programs = {}
        for role in Role:
            askers[role.label] = Browser(browser.base)
            askers[role.label].log_in(role.label, PASSWORD)
            programs[role.label] = Browser(browser.base, {"Authorization": f"Bearer {users.add_token(role.label, role)}"})
        for address, least in ROLES.items():
            for rank, who in enumerate(RANKS):
                is_allowed = rank >= RANKS.index(least)
                is_api_change = address.startswith(f"POST {API}") or address == "POST /mcp"
                if address not in ("POST /login", "POST /logout") and not (is_api_change and who != "anybody"):
                    assert is_refused(ask(askers[who], address), address) is not is_allowed, (address, who)
                if who in programs and address not in ("POST /login", "POST /logout"):
                    assert is_refused(ask(programs[who], address), address) is not is_allowed, (address, "a program", who)
        for path in ("/login", "/logout"):
            assert programs["viewer"].post(path, {"user": "viewer", "password": PASSWORD}, csrf="").status == 403
        assert [entry["action"] for entry in logged(browser) if entry["result"] == "done"] == ["login"] * len(Role)


def ask(asker: Browser, address: str) -> Got:
    method, _, path = address.partition(" ")
    path = re.sub(r"\{\w+\}", "nope", path)
    if method == "GET":
        return asker.get(path)
    if path.startswith(API) or path == "/mcp":
        return asker.post_json(path, {})
    return asker.post(path, csrf="" if "Authorization" in asker.headers else asker.csrf())


def is_refused(got: Got, address: str) -> bool:
    assert got.status != 500, address
    return got.status in (401, 403) or (urlsplit(got.url).path == "/login" and not address.endswith("/login"))


def logged(browser: Browser) -> Iterator[Mapping[str, object]]:
    assert browser.console is not None
    yield from reversed(browser.console.audit_log.last(1_000, fits=lambda entry: entry.get("result") != "begun"))


# --- forms from elsewhere ------------------------------------------------------------------------------------------


def test_no_form_from_elsewhere_changes_anything(demo: Project) -> None:
    with served(demo, public=["demo"]) as browser:
        stranger = Browser(browser.base)
        token, other = browser.csrf(), stranger.csrf()
        for address in ROLES:
            method, _, path = address.partition(" ")
            if method == "GET" or path == "/mcp" or path.startswith(API):
                continue
            for csrf, headers in (
                ("", {}),
                (other, {}),
                (token, {"Origin": "http://evil.example"}),
                (token, {"Origin": "null"}),
                (token, {"Sec-Fetch-Site": "cross-site"}),
                (token, {"Sec-Fetch-Site": "same-site"}),
            ):
                got = browser.post(path.replace("{name}", "demo").replace("{sink}", "embedded"), csrf=csrf, headers=headers)
                assert (got.status, "not sent by a page of this console" in got.words) == (403, True), (address, headers)
        for address in ROLES:
            method, _, path = address.partition(" ")
            if method == "POST" and path.startswith(API):  # a page elsewhere can send JSON as text, with the cookie of a session
                got = browser.post_body(path.replace("{name}", "demo"), b"{}", "text/plain")
                assert (got.status, "A change needs a token" in got.text) == (403, True), address
        assert list(logged(browser)) == []


# --- pages made of scripts -----------------------------------------------------------------------------------------

EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>{{1234567*7654321}}{% raw %}</style>*{background:url(//evil.example)}\"'><b>"
PATHS = (
    "/%3Cscript%3Ealert(1)%3C/script%3E",
    "/{{1234567*7654321}}",
    "/'onmouseover='alert(1)",
    '/"><b>x',
    "/}body{background:url(x)}",
)
SHOWN = (
    "/",
    "/audit-log",
    "/c/demo/",
    "/c/demo/deletions?host={evil}&find={evil}",
    "/c/demo/explorer?find={evil}",
    "/c/demo/explorer?prefix={start}",
    "/c/demo/explorer?prefix={evil}",
    "/c/demo/explorer/urls?prefix={start}",
    "/c/demo/explorer/urls?prefix={evil}&host={evil}",
    "/c/demo/explorer/urls?refused=1&reason=prefix&host={evil}",
    "/c/demo/rules?rule={evil}&urls={evil}",
    "/c/demo/rules?file={evil}",
    "/c/demo/rules/plan?id={evil}",
    "/c/demo/runs",
    "/c/demo/runs/1",
    "/c/demo/runs/{evil}",
    "/c/demo/runs/compared?first={evil}&second={evil}",
    "/c/demo/search?q={evil}",
    "/c/demo/search?q=pump&host={evil}",
    "/c/demo/sinks",
    "/c/demo/sinks/{evil}/parked",
    "/c/demo/sinks/{evil}/indexes",
    "/c/demo/sinks/embedded/parked?reason={evil}",
    "/c/demo/sites?host={evil}",
    "/c/demo/sites?only={evil}",
    "/c/demo/sites/{evil}",
    "/c/demo/url?url={evil}",
    "/c/demo/url?url={start}&show=links",
    "/c/demo/url?url={start}&show=in",
    "/c/demo/url?url={start}&show=page",
    "/c/demo/url?url={start}&show=text",
    "/c/demo/url?url={start}&show=document",
    "/c/demo/url?url={start}&show=source",
    "/c/demo/url?url={start}&show={evil}",
    "/c/demo/stored?url={start}",
    "/c/{evil}/",
    "/find?q={evil}",
    "/find?q=pump",
    "/find?in={evil}",
    "/find/suggestions?q=pump",
    "/find/document?url={start}",
    "/find/document?url={evil}",
    "/find/missing?q={evil}",
    "/login?next={evil}",
    "/{evil}",
)


def test_nothing_that_comes_from_elsewhere_is_markup(project: MakeProject) -> None:
    site = Site(
        {
            "/": page(EVIL, links=PATHS, text=f"a pump {EVIL}"),
            **{path.replace('"', "%22").replace("{", "%7B").replace("}", "%7D"): page(EVIL, text=EVIL) for path in PATHS},
            "/robots.txt": text_of_robots(),
        }
    )
    with serve(site) as server:
        start = server.url("/")
        demo = project(collection(start, settings=ARCHIVED, rules=f"# {EVIL}\nforbid prefix {start}no/*{EVIL.replace(' ', '')}"))
        demo.crawl("demo").succeeded()
    users = Users(demo.data / "console-users")
    users.set_password("anna", PASSWORD, Role.OPERATOR)
    with served(demo, public=["demo"]) as browser:
        browser.log_in(EVIL, EVIL)
        browser.log_in("anna", PASSWORD)
        browser.post("/c/demo/sites/pause", {"host": "127.0.0.1", "reason": EVIL})
        browser.post("/find/missing", {"url": f"http://a.test/{EVIL}", "q": EVIL, "comment": EVIL})
        browser.get_until("/c/demo/explorer", lambda got: "Indexed" in got.words)
        for path in SHOWN:
            got = browser.get(path.format(evil=quote(EVIL, safe=""), start=quote(start, safe="")))
            assert got.status not in (500, 503), (path, got.words)
            for markup in ("<script>alert", "<img src=x", "<b>", "</style>", "evil.example)}<"):
                assert markup not in got.text, (path, markup)
            assert "'onmouseover" not in got.text or "/stored" in path, (path, "where attributes end with an apostrophe")
            assert str(1234567 * 7654321) not in got.text, (path, "a template was run")


def text_of_robots() -> Answer:
    return Answer(200, {"Content-Type": "text/plain"}, f"# {EVIL}\nUser-agent: *\n".encode())


# --- headers -------------------------------------------------------------------------------------------------------


@pytest.fixture
def stored(project: MakeProject) -> Iterator[tuple[Project, str]]:
    with serve(Site({"/": page("Home", text="<script>alert(1)</script>"), "/robots.txt": status(404)})) as server:
        demo = project(collection(server.url("/"), settings=ARCHIVED))
        demo.crawl("demo").succeeded()
        yield demo, server.url("/")


def test_all_answers_have_the_headers(stored: tuple[Project, str]) -> None:
    demo, url = stored
    id = document_id(url)
    cases: list[Callable[[Browser], Got]] = [
        *(
            (lambda browser, path=path: browser.get(path))
            for path in (
                "/",
                "/nope",
                "/c/nope/",
                "/login",
                "/static/console.css",
                "/static/nope",
                "/live",
                "/ready",
                "/metrics",
                "/find?q=x",
                f"/c/demo/stored?url={quote(url)}",
                "/c/demo/explorer/urls.csv",
                f"/content/{id}",
                f"/content/{id}/link",
                "/content/nope",
                f"{API}/collections",
                f"{API}/collections/demo/urls",
                f"{API}/nope",
                f"{API}/openapi.json",
            )
        ),
        lambda browser: browser.get("/", headers={"Host": "evil.example"}),
        lambda browser: browser.get("/", headers={"Authorization": "Bearer x"}),
        lambda browser: browser.get(f"/content/{id}", headers={"Range": "bytes=0-1"}),
        lambda browser: browser.post("/c/demo/stop", csrf="x"),
        lambda browser: browser.post("/c/demo/stop"),
        lambda browser: browser.post_json("/mcp", {}),
        lambda browser: browser.get("/mcp"),
        lambda browser: browser.get("/fails"),
        lambda browser: browser.get("/raises"),
    ]
    tools = AssistantTools(ProjectCollections(console_settings(demo)), ["demo"], SystemClock())

    async def fails(_: web.Request) -> web.Response:
        raise RuntimeError

    async def raises(_: web.Request) -> web.Response:
        raise web.HTTPGone

    def add(app: web.Application) -> None:
        add_mcp(app, tools)
        app.router.add_get("/fails", fails)
        app.router.add_get("/raises", raises)

    with served(demo, public=["demo"], add=add) as browser:
        for case in cases:
            got = case(browser)
            headers, what = got.headers, (got.url, got.status)
            policy = headers["Content-Security-Policy"] or ""
            is_framed = "/stored" in got.url
            assert "default-src 'none'" in policy, what
            assert "script" not in policy.replace("script-src 'self'", ""), what
            assert ("sandbox" in policy) is (
                is_framed or ("/content/" in got.url and got.status in (200, 206) and "link" not in got.url)
            ), what
            assert f"frame-ancestors '{'self' if is_framed else 'none'}'" in policy, what
            assert headers["X-Frame-Options"] == ("SAMEORIGIN" if is_framed else "DENY"), what
            assert headers["X-Content-Type-Options"] == "nosniff", what
            assert headers["Referrer-Policy"] in ("same-origin", "no-referrer"), what
            assert headers["Cross-Origin-Resource-Policy"] == "same-origin", what
            assert headers["Server"] == "crawlspace", what
            assert headers["Access-Control-Allow-Origin"] is None, what
            assert "no-store" in headers["Cache-Control"] or "/static/" in got.url or "/content/" in got.url, what


@pytest.mark.parametrize("is_secure", [False, True])
def test_the_cookie(demo: Project, *, is_secure: bool) -> None:
    access = Access(Users(demo.data / "console-users"), frozenset(), is_secure=is_secure)
    with served(demo, access=access) as browser:
        header = browser.get("/").headers["Set-Cookie"]
        assert header.startswith(f"{COOKIE}=")
        assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= {part.strip() for part in header.split(";")}
        assert ("Secure" in header) is is_secure
        assert (browser.get("/").headers["Strict-Transport-Security"] is not None) is is_secure


# --- streams that break --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [1, 5_000])
def test_a_stream_that_breaks_is_not_taken_for_whole(demo: Project, after: int) -> None:
    def lines() -> Iterator[str]:
        yield from (f"line {number}\n" for number in range(after))
        raise OSError("the disk is gone")

    async def stream(request: web.Request) -> web.StreamResponse:
        return await send_lines(request, lines(), {"Content-Type": "text/plain"})

    def add(app: web.Application) -> None:
        app.router.add_get("/stream", stream)

    with served(demo, add=add) as browser:
        if after == 1:
            assert browser.get("/stream").status == 500, "nothing was sent yet"
            return
        address = urlsplit(browser.base)
        assert address.hostname is not None
        with socket.create_connection((address.hostname, address.port or 80)) as connection:
            connection.sendall(f"GET /stream HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n".encode())
            received = b""
            try:
                while part := connection.recv(65_536):
                    received += part
            except ConnectionResetError:
                pass
    assert b"0\r\n\r\n" not in received[-7:], "the last chunk"
    assert received.count(b"HTTP/1.1") <= 1, "no second response in the first"


# --- crawls and the audit log --------------------------------------------------------------------------------------


def test_two_starts_at_the_same_time_start_one_crawl(demo: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in demo.env.items():
        monkeypatch.setenv(name, value)
    many = 4
    together = Barrier(many)
    with served(demo) as browser:

        def start(one: Browser) -> int:
            token = one.csrf()
            together.wait()
            return one.post("/c/demo/start", csrf=token).status

        with ThreadPoolExecutor(many) as pool:
            answers = sorted(pool.map(start, [Browser(browser.base) for _ in range(many)]))
        assert browser.console is not None
        browser.console.processes["demo", "crawl"].wait()
        results = [entry["result"] for entry in logged(browser)]
    assert answers == [200] + [409] * (many - 1)
    assert sum("is being crawled already" in str(result) for result in results) == many - 1


def test_the_crawl_of_another_user_of_the_machine_is_not_stopped(project: MakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system refuses the signal, which it does not as long as root runs this test."""

    def kill(process: int, number: int) -> None:
        if number == signal.SIGINT:
            raise PermissionError(errno.EPERM, "Operation not permitted")
        real_kill(process, number)

    real_kill, home = os.kill, held(page("Home"))
    with serve(Site({"/": home, "/robots.txt": status(404)})) as server:
        demo = project(collection(server.url("/")))
        for name, value in demo.env.items():
            monkeypatch.setenv(name, value)
        with served(demo) as browser:
            assert browser.post("/c/demo/start").status == 200
            demo.until(lambda: "/" in server.paths())
            with monkeypatch.context() as patch:
                patch.setattr(os, "kill", kill)
                got = browser.post("/c/demo/stop")
            home.release()
            assert browser.console is not None
            browser.console.processes["demo", "crawl"].wait()
            entry = list(logged(browser))[-1]
    assert (got.status, "belongs to another user of this machine: stop it as that user" in got.words) == (503, True)
    assert (entry["action"], str(entry["result"]).startswith("failed: process ")) == ("stop", True)


def test_the_audit_log_has_what_fails(demo: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("a fault")

    with served(demo) as browser:
        monkeypatch.setattr("crawlspace.console.crawls.stop", fails)
        assert browser.post("/c/demo/stop").status == 500
        monkeypatch.undo()
        assert browser.post("/c/demo/stop").status == 409
        results = [entry["result"] for entry in logged(browser)]
        shown = browser.get("/audit-log")
    assert results == ["failed: RuntimeError; the log of the console has it", "failed: demo is not being crawled"]
    assert re.search(r'<time datetime="20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ">', shown.text), "shown in the zone of the reader"


def test_what_is_not_possible_now_says_so(demo: Project) -> None:
    with served(demo) as browser:
        got = browser.post("/c/demo/stop")
    assert (got.status, "<h1>Not now</h1>" in got.text) == (409, True)
