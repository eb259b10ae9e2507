"""Log-ins in the browser: on pages that scripts make, with a real browser."""

from __future__ import annotations

import asyncio
import json
import signal
import ssl
import tempfile
from pathlib import Path

import psutil
import pytest

from crawlspace.runtime.browser.process import BrowserProcess
from crawlspace.settings import BrowserSettings
from tests.browser.pages import scripted
from tests.browser.test_ends import browsers_of, gone
from tests.certificates import authority
from tests.conftest import MakeProject, Project, assert_same
from tests.door import PASSWORD, USER, scripted_wiki
from tests.http import Request
from tests.integration.stored import FAST, collection, indexed, opened, statuses
from tests.sites import Answer, Server, Site, held, html, redirect, serve, status, text

TIMEOUT = 300
PAGES = 30
BOTH = [{"fill": {"#user": USER, "#password": "env:WIKI_PASSWORD"}, "click": "#go"}]
TWICE = [
    {"fill": {"#user": USER}, "click": "#go", "wait_for": "#password"},
    {"fill": {"#password": "env:WIKI_PASSWORD"}, "click": "#go"},
]
LOGGED_OUT = {"text": "Please log in to the wiki"}


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIKI_PASSWORD", PASSWORD)


def settings(server: Server, *, steps: object = BOTH, more: str = "", **login: object) -> str:
    """The settings of a collection that logs in to a server."""
    values = {"type": "browser", "url": server.url("/login"), "steps": steps, "logged_out": LOGGED_OUT, **login}
    return f"{FAST}{more}CRAWLSPACE_SITES = {{{server.netloc!r}: {{'login': {values!r}, 'allow_plain_http': True}}}}\n"


def all_pages(pages: int = PAGES) -> list[str]:
    return ["/", *(f"/{n}" for n in range(pages))]


def stored(demo: Project) -> bytes:
    return b"".join(path.read_bytes() for path in demo.folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(("asks", "steps"), [("once", BOTH), ("twice", TWICE)])
def test_a_site_is_crawled_behind_a_form_that_a_script_makes(
    project: MakeProject, monkeypatch: pytest.MonkeyPatch, asks: str, steps: object
) -> None:
    door = scripted_wiki(PAGES, asks=asks)
    with serve(door.site) as server, tempfile.TemporaryDirectory() as temporary:  # a long path is none that Chromium can have
        demo = project(collection(server.url("/"), settings=settings(server, steps=steps)))
        monkeypatch.setenv("TMPDIR", temporary)
        crawled = demo.crawl("demo", timeout=TIMEOUT).succeeded()
        assert (door.logins, door.attempts) == (1, 1)
        assert_same(indexed(demo), all_pages())
        assert not [path for path in Path(temporary).rglob("*") if path.is_file()]
        server.forget()
        demo.scrapy("recrawl", "demo", "--host", "127.0.0.1").succeeded()
        demo.crawl("demo", timeout=TIMEOUT).succeeded()
        assert (door.logins, door.anonymous.total()) == (1, 0)  # with the session of the run before
    assert PASSWORD not in crawled.stderr + crawled.stdout
    assert PASSWORD.encode() not in stored(demo)


@pytest.mark.parametrize(("away", "attempts"), [(False, 1), (True, 2)])
def test_a_wrong_password_is_tried_twice_at_most_and_nothing_is_deleted(
    project: MakeProject, monkeypatch: pytest.MonkeyPatch, away: bool, attempts: int
) -> None:
    """Once where the page shows that it is wrong."""
    door = scripted_wiki(5, away=away)
    with serve(door.site) as server:
        demo = project(collection(server.url("/"), settings=settings(server)))
        demo.crawl("demo", timeout=TIMEOUT).succeeded()
        door.password, door.attempts = "another", 0
        door.end_all()
        demo.scrapy("recrawl", "demo", "--host", "127.0.0.1").succeeded()
        refused = demo.crawl("demo", timeout=TIMEOUT)
        assert door.attempts == attempts
        assert "× 616" in refused.stderr
        assert ("after the log-in: is it the right user and password?" in refused.stderr) == (not away)
        assert_same(indexed(demo), all_pages(5))
        server.forget()
        demo.crawl("demo")
        assert server.paths() == []
        monkeypatch.setenv("WIKI_PASSWORD", "another")
        demo.crawl("demo", timeout=TIMEOUT).succeeded()
        assert door.attempts == attempts + 1
    assert_same(indexed(demo), all_pages(5))
    assert {code for path, code in statuses(demo).items() if path != "/login"} == {200}


def test_sessions_that_end_are_renewed_also_while_pages_are_rendered(project: MakeProject) -> None:
    """Two browsers at a time: the end of one is none of the other."""
    door = scripted_wiki(PAGES, lasts=range(8, 15), seed=3)
    with serve(door.site) as server:
        rendered = settings(server, more='CRAWLSPACE_RENDER = "always"\n')
        demo = project(collection(server.url("/"), settings=rendered))
        crawled = demo.crawl("demo", timeout=TIMEOUT).succeeded()
    assert door.lost >= 2
    assert door.logins <= door.lost + 1
    assert_same(indexed(demo), all_pages())
    assert "browser has ended" not in crawled.stderr


def test_the_log_in_is_tried_by_a_command_that_shows_its_steps(project: MakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    door = scripted_wiki(3, asks="twice")
    with serve(door.site) as server:
        demo = project(collection(server.url("/"), settings=settings(server, steps=TWICE)))
        tried = demo.scrapy("login", "demo", server.netloc, timeout=TIMEOUT).succeeded()
        assert tried.stdout.splitlines() == [
            f"log-in       browser log-in at {server.url('/login')} (CRAWLSPACE_SITES['{server.netloc}'])",
            f"             GET  {server.url('/login')}  200",
            "             fill '#user'",
            "             click '#go'",
            f"             POST {server.url('/login')}  200",
            f"             GET  {server.url('/password')}  200",
            "             found '#password'",
            "             fill '#password'",
            "             click '#go'",
            f"             POST {server.url('/login')}  200",
            f"             GET  {server.url('/')}  200",
            f"page         {server.url('/')}",
            "answer       status 200, text/html, titled Home",
        ]
        monkeypatch.setenv("WIKI_PASSWORD", "s3cret of nobody")
        refused = demo.scrapy("login", "demo", server.netloc, "--json", timeout=TIMEOUT)
        assert refused.returncode == 1
        assert "s3cret" not in refused.stdout + refused.stderr
        assert json.loads(refused.stdout)["failed"] == (
            f"{server.url('/password')} shows the text 'Please log in to the wiki' after the log-in: is it the right user and password?"
        )


def test_ctrl_c_while_somebody_logs_in(project: MakeProject) -> None:
    door = scripted_wiki(3)
    form, gate = door.site["/login"], held(status(401))
    door.site["/login"] = lambda request: gate if request.method == "POST" else form(request)  # type: ignore[operator]
    with serve(door.site) as server:
        demo = project(collection(server.url("/"), settings=settings(server)))
        crawl = demo.start("crawl", "demo")
        demo.until(lambda: any(request.method == "POST" for request in server.requests))
        processes = browsers_of(crawl.pid)
        browser = next(one for one in processes if "chrom" in one.name())
        assert not [one for one in processes if any(PASSWORD in part for part in one.cmdline())]
        assert PASSWORD not in browser.environ().values()
        targets = {one.raddr.port for each in processes for one in each.net_connections("inet") if one.raddr}
        assert targets <= {one.laddr.port for one in psutil.Process(crawl.pid).net_connections("inet")}
        crawl.send_signal(signal.SIGINT)
        assert crawl.wait() == 0
        assert gone(processes)
        gate.release()
        assert "demo: stopped." in crawl.output()
        assert "Traceback" not in crawl.output()
        assert statuses(demo) == {"/": None}


POP_UPS = [
    ("/closing", [*BOTH, {"wait_for": "h1"}]),
    ("/closing", [{**BOTH[0], "wait_for": "h1"}]),
    ("/late", [*BOTH, {"click": "h1"}]),
    ("/asking", [*BOTH, {"click": "#back", "wait_for": "h1"}]),
]


@pytest.mark.parametrize(("leads_to", "steps"), POP_UPS)
def test_a_pop_up_that_closes_itself(project: MakeProject, leads_to: str, steps: list[object]) -> None:
    door = scripted_wiki(3)
    door.leads_to = leads_to
    door.site["/start"] = html("<button id=sso onclick=\"window.open('/login')\">Log in at your provider</button>")
    door.site["/closing"] = html("<script>opener.location = '/'; close()</script>")
    door.site["/late"] = html("<script>setTimeout(() => { opener.location = '/'; close() }, 2000)</script>")
    door.site["/asking"] = html("<button id=back onmousedown=\"opener.location = '/'; window.close()\">Go on</button>")
    with serve(door.site) as server:
        values = settings(server, url=server.url("/start"), steps=[{"click": "#sso"}, *steps])
        demo = project(collection(server.url("/"), settings=values))
        tried = demo.scrapy("login", "demo", server.netloc, timeout=TIMEOUT).succeeded()
    assert tried.stdout.splitlines()[-1] == "answer       status 200, text/html, titled Home"


def odd_site(other: Server) -> Site:
    """Log-in pages that are not as expected."""
    button = '<button id=go onclick="{}">x</button>'
    return Site(
        {
            "/": text("home"),
            "/away": redirect(other.url("/login")),
            "/leads": html(button.format(f"location.href = '{other.url('/login')}'")),
            "/cdn": html(f"<script src={other.url('/lib.js')}></script><p>Nothing yet"),
            "/no-cookie": html(button.format("localStorage.token = 1")),
            "/dialog": html(button.format("alert('Really?'); confirm('Yes?'); document.cookie = 'sid=1'")),
            "/broken": html(button.format("fetch('/api', {method: 'POST', body: document.title})") + "<input id=user>"),
            "/api": status(503),
            "/later": status(503),
            "/form": html(button.format("") + "<input id=user>"),
            "/banner": html(button.format("document.cookie = 'sid=1'") + "<p id=banner>Log in"),
            "/denied": html(button.format("location.href = '/forbidden'")),
            "/forbidden": status(403),
            "/gone": status(404, body="<p>gone"),
        }
    )


GO = [{"click": "#go"}]
ODD = [
    ("/away", GO, "it leads to 127.0.0.2:", True),
    ("/leads", GO, "it leads to 127.0.0.2:", True),
    (
        "/cdn",
        GO,
        (
            "the page at {}/cdn has nothing that '#go' selects; it was refused to load from 127.0.0.2: name in 'hosts' what the log-in"
            " needs"
        ),
        True,
    ),
    ("/gone", GO, "the page at {}/gone (status 404) has nothing that '#go' selects", True),
    ("/no-cookie", GO, "no cookie was set for the hosts of the entry: a session that a site keeps otherwise", True),
    ("/broken", [{"fill": {"#user": "u"}, "click": "#go"}], "{}/api answers 503", False),
    ("/later", GO, "{}/later answers 503", False),
    ("/form", GO, "{}/form shows the address {}/form after the log-in", True),
    ("/form?x", [{"fill": {"#user": "u"}, "click": "#go"}], "/form?… shows the form of the log-in after the log-in", True),
    ("/banner", GO, "{}/banner shows what '#banner' selects after the log-in", True),
    ("/denied", GO, "{}/forbidden shows status 403 after the log-in", True),
    ("/no-cookie", [{"fill": {"#go": "s3cret"}}], "has what '#go' selects, but it cannot be filled in", True),
]


@pytest.mark.parametrize(("path", "steps", "sentence", "is_refused"), ODD)
def test_pages_that_are_not_as_expected(project: MakeProject, path: str, steps: object, sentence: str, is_refused: bool) -> None:
    with serve(Site({}, otherwise=text("x")), host="127.0.0.2") as other, serve(odd_site(other)) as server:
        signs = {"redirect": server.url("/nowhere" if "?" in path else "/form"), "selector": "#banner"}
        values = settings(server, url=server.url(path), steps=steps, logged_out=signs, more='CRAWLSPACE_RETRY_WAIT = "1h"\n')
        demo = project(collection(server.url("/"), settings=values))
        crawl = demo.start("crawl", "demo")
        place = server.url("").rstrip("/")
        demo.until(lambda: sentence.format(place, place) in crawl.output())
        assert ("is refused by" in crawl.output()) == is_refused
        assert "s3cret" not in crawl.output()
        assert other.paths() == []


def test_dialogs_are_dismissed(project: MakeProject) -> None:
    with serve(Site({}, otherwise=text("x")), host="127.0.0.2") as other, serve(odd_site(other)) as server:
        demo = project(collection(server.url("/"), settings=settings(server, url=server.url("/dialog"), steps=GO)))
        demo.scrapy("login", "demo", server.netloc, timeout=TIMEOUT).succeeded()


def test_cookies_are_kept_as_the_browser_has_them(project: MakeProject) -> None:
    def login(request: Request) -> Answer:
        code = "document.cookie = 'own=2; path=/p; max-age=1000'; document.cookie = 'safe=3; secure'; document.body.append('in')"
        return scripted(code, body=f"<p id=agent>{request.headers['user-agent']}</p>")

    site = Site({"/": text("home"), "/login": login, "/p": lambda request: text(request.headers.get("cookie", ""))})
    with serve(site) as server:
        more = 'USER_AGENT = "our crawler"\n'
        steps = [{"wait_for": "#agent"}]
        demo = project(collection(server.url("/"), settings=settings(server, steps=steps, more=more)))
        demo.crawl("demo", timeout=TIMEOUT).succeeded()
        assert server.requests[0].headers["user-agent"] == "our crawler"
        with opened(demo) as store:
            (session,) = json.loads(store.get_meta("sessions") or "{}").values()
    rows = {row[0]: row for row in json.loads(session["content"])}
    assert rows["own"][1:6] == ["2", "127.0.0.1", False, "/p", False]
    assert rows["own"][6] > session["since"]


@pytest.mark.parametrize("verifies", [True, False])
def test_certificates_are_verified_unless_the_collection_does_not(project: MakeProject, tmp_path: Path, verifies: bool) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(authority(tmp_path)[1])
    door = scripted_wiki(3)
    with serve(door.site, tls=tls) as server:
        more = f"DOWNLOAD_VERIFY_CERTIFICATES = {verifies}\n"
        demo = project(collection(server.url("/"), settings=settings(server, more=more)))
        tried = demo.scrapy("login", "demo", server.netloc, timeout=TIMEOUT)
    sentence = (
        f"the page at {server.url('/login')} cannot be loaded: its certificate cannot be trusted (ERR_CERT_AUTHORITY_INVALID)"
    )
    assert (sentence in tried.stdout, tried.returncode, door.logins) == ((True, 1, 0) if verifies else (False, 0, 1))


@pytest.mark.parametrize(("hosts", "is_sent"), [([], True), (["127.0.0.2"], False)])
def test_headers_of_the_entry_go_to_no_host_but_its_own(project: MakeProject, hosts: list[str], is_sent: bool) -> None:
    door = scripted_wiki(3)
    with serve(door.site) as server:
        values = {"type": "browser", "url": server.url("/login"), "steps": BOTH, "hosts": hosts}
        entry = {"login": values, "headers": {"X-Gate": "open"}, "allow_plain_http": True}
        demo = project(collection(server.url("/"), settings=f"{FAST}CRAWLSPACE_SITES = {{{server.netloc!r}: {entry!r}}}\n"))
        tried = demo.scrapy("login", "demo", server.netloc, timeout=TIMEOUT).succeeded()
        *of_log_in, of_page = ["x-gate" in request.headers for request in server.requests]
    assert (set(of_log_in), of_page) == ({is_sent}, True)
    assert ("without X-Gate: the log-in leads to hosts that are none of the entry" in tried.stdout) == (not is_sent)


async def test_the_end_of_one_browser_is_none_of_another() -> None:
    settings = BrowserSettings(executable="", pages=1, timeout_s=1.0, max_pages=1, memory_bytes=1 << 30)
    first, second = await asyncio.gather(*(BrowserProcess.start(settings, proxy="http://127.0.0.1:9") for _ in range(2)))
    first.kill()
    await first.close()
    assert (first.is_running, second.is_running) == (False, True)
    assert second.memory() > 0
    await second.close()
    assert not second.is_running


def test_without_a_browser_no_crawl_starts(project: MakeProject) -> None:
    with serve(scripted_wiki(3).site) as server:
        missing = settings(server, more='CRAWLSPACE_BROWSER = "no-such-browser"\n')
        demo = project(collection(server.url("/"), settings=missing))
        for command in (["crawl", "demo"], ["login", "demo", server.netloc]):
            found = demo.scrapy(*command)
            assert found.returncode == 1
            assert "has a log-in in the browser, and CRAWLSPACE_BROWSER is 'no-such-browser', which is no program" in found.stderr
        assert server.paths() == []
