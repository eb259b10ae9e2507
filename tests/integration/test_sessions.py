"""Log-ins that give sessions, over real HTTP: by a form, while sessions end, and where they can't be had."""

from __future__ import annotations

import base64
import json
import re
import signal
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conftest import MakeProject, assert_same
from tests.door import PASSWORD, USER, wiki
from tests.http import Reply, Request
from tests.integration.stored import FAST, collection, indexed, statuses
from tests.integration.workers import MakeTeam
from tests.quick import some
from tests.servers import another_client
from tests.sites import Answer, Route, Server, Site, binary, hang, page, redirect, serve, slow, status, text

PAGES = 60
FORM = {"type": "form", "fields": {"user": USER, "password": "env:WIKI_PASSWORD"}}


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIKI_PASSWORD", PASSWORD)


def settings(server: Server, **login: object) -> str:
    entry = {"login": {**FORM, "url": server.url("/login"), **login}, "allow_plain_http": True}
    return f"{FAST}CRAWLSPACE_SITES = {{{server.netloc!r}: {entry!r}}}\n"


def errors_of(shown: str) -> tuple[int, dict[int, int]]:
    """The number of errors in the first line of a summary, and those by status in its last ones."""
    first = re.search(r"^demo: .*\. \d+ fetched: .*?(\d+) errors?\.$", shown, re.MULTILINE)
    assert first is not None, shown
    line = re.search(r"^  errors: (.*)$", shown, re.MULTILINE)
    assert line is not None, shown
    return int(first[1]), {int(code): int(count) for count, code in re.findall(r"(\d+) × (\d+)", line[1])}


def all_pages(pages: int = PAGES) -> list[str]:
    return ["/", *(f"/{n}" for n in range(pages))]


def test_a_site_is_crawled_behind_a_form_with_one_log_in(project: MakeProject) -> None:
    door = wiki(PAGES)
    with serve(door.site) as server:
        demo = project(collection(server.url("/"), settings=settings(server)))
        crawled = demo.crawl("demo").succeeded()
        assert door.logins == 1
        assert_same(indexed(demo), all_pages())
        assert statuses(demo)["/login"] == 616
        assert errors_of(crawled.stderr) == (1, {616: 1})
        exported = demo.folder / "all.jsonl"
        demo.scrapy("export", "demo", "-O", str(exported)).succeeded()
        assert {json.loads(line)["fields"]["requires_login"] for line in exported.read_text().splitlines()} == {"true"}
        server.forget()
        demo.scrapy("recrawl", "demo", "--host", "127.0.0.1").succeeded()
        demo.crawl("demo").succeeded()
        assert set(server.paths()) - {"/robots.txt", "/login"} == set(all_pages())
        assert (door.logins, door.anonymous.total()) == (1, 0)
    assert PASSWORD not in crawled.stderr
    kept = b"".join(path.read_bytes() for path in demo.data.rglob("*") if path.is_file())
    assert PASSWORD.encode() not in kept
    assert b"Please log in" not in kept


def test_the_page_of_the_log_in_alone_refuses_nothing(project: MakeProject) -> None:
    door = wiki(3)
    with serve(door.site) as server:
        demo = project(collection(server.url("/"), settings=settings(server)))
        demo.crawl("demo").succeeded()
        demo.scrapy("recrawl", "demo", server.url("/login")).succeeded()
        crawled = demo.crawl("demo").succeeded()
        assert "is refused" not in crawled.stderr
        assert door.logins <= 2
    assert_same(indexed(demo), all_pages(3))


def test_ctrl_c_while_somebody_logs_in(project: MakeProject) -> None:
    door = wiki(3)
    door.site["/login"] = hang()
    with serve(door.site) as server:
        demo = project(collection(server.url("/"), settings=settings(server)))
        process = demo.start("crawl", "demo")
        demo.until(lambda: "/login" in server.paths())
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0
        assert "demo: stopped." in process.output()
        assert "has not answered within" not in process.output(), "nobody waits until the log-in is given up"
        assert "Traceback" not in process.output()
        assert statuses(demo) == {"/": None}


def test_a_robots_txt_that_is_for_nobody_refuses_nothing(project: MakeProject) -> None:
    door = wiki(3)
    door.site["/robots.txt"] = status(403)
    with serve(door.site) as server:
        demo = project(collection(server.url("/"), settings=settings(server)))
        demo.crawl("demo").succeeded()
        assert door.logins <= 2
    assert_same(indexed(demo), all_pages(3))


@pytest.mark.parametrize("how", some(["redirect", "form", "401"], 1))
def test_sessions_that_end_cost_nothing_but_log_ins(project: MakeProject, how: str) -> None:
    door = wiki(PAGES, lasts=range(5, 15), how=[how], seed=3)
    with serve(door.site) as server:
        demo = project(collection(server.url("/"), settings=settings(server)))
        demo.crawl("demo").succeeded()
    assert door.lost >= 3
    assert door.logins <= door.lost + 1
    assert_same(indexed(demo), all_pages())
    assert {path: code for path, code in statuses(demo).items() if code != 200} == {"/login": 616}


def test_a_wrong_password_is_tried_once_and_nothing_is_deleted(project: MakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    door = wiki(5)
    with serve(door.site) as server:
        demo = project(collection(server.url("/"), settings=settings(server)))
        demo.crawl("demo").succeeded()
        door.password, door.attempts = "another", 0
        door.end_all()
        demo.scrapy("recrawl", "demo", "--host", "127.0.0.1").succeeded()
        refused = demo.crawl("demo")
        assert door.attempts == 1
        found, by_status = errors_of(refused.stderr)
        assert by_status == {616: found}
        assert "shows the form of the log-in after the log-in: is it the right user and password?" in refused.stderr
        assert_same(indexed(demo), all_pages(5))
        server.forget()
        demo.crawl("demo")
        assert server.paths() == []
        monkeypatch.setenv("WIKI_PASSWORD", "another")
        demo.crawl("demo").succeeded()
        assert door.attempts == 2
    assert_same(indexed(demo), all_pages(5))
    assert {code for path, code in statuses(demo).items() if path != "/login"} == {200}


def test_headers_of_the_entry_go_with_a_log_in_too(project: MakeProject) -> None:
    door = wiki(3)
    form = door.site["/login"]
    door.site["/login"] = lambda request: form(request) if request.headers.get("x-gate") == "open" else status(404)  # type: ignore[operator]
    with serve(door.site) as server:
        entry = {"login": {**FORM, "url": server.url("/login")}, "headers": {"X-Gate": "open"}, "allow_plain_http": True}
        demo = project(collection(server.url("/"), settings=f"{FAST}CRAWLSPACE_SITES = {{{server.netloc!r}: {entry!r}}}\n"))
        demo.crawl("demo").succeeded()
    assert_same(indexed(demo), all_pages(3))


WRONG = [
    (
        {"fields": {"mail": "a", "password": "env:WIKI_PASSWORD"}},
        "has no form with 'mail', 'password': its forms have q; csrf, user, password",
    ),
    ({"form": "#login"}, "/login has no form at '#login'"),
    ({"url": "{}/gone"}, "/gone answers 404"),
    ({"url": "{}/port"}, "it leads to 127.0.0.1:1, which is no host of the entry: name it in 'hosts' if that is right"),
    ({"url": "{}/elsewhere"}, "it leads to 127.0.0.9:1, which is no host of the entry: name it in 'hosts' if that is right"),
]


@pytest.mark.parametrize(("login", "sentence"), WRONG)
def test_what_a_log_in_cannot_go_on_with(project: MakeProject, login: dict[str, object], sentence: str) -> None:
    door = wiki(3)
    door.site["/gone"], door.site["/elsewhere"] = status(404), redirect("http://127.0.0.9:1/login")
    door.site["/port"] = redirect("http://127.0.0.1:1/login")
    with serve(door.site) as server:
        given = {key: value.format(server.url("")) if isinstance(value, str) else value for key, value in login.items()}
        given = {
            key: value.replace("//gone", "/gone").replace("//elsewhere", "/elsewhere").replace("//port", "/port")
            if isinstance(value, str)
            else value
            for key, value in given.items()
        }
        demo = project(collection(server.url("/"), settings=settings(server, **given)))
        crawled = demo.crawl("demo")
        assert sentence in crawled.stderr
        assert "Traceback" not in crawled.stderr
        assert door.attempts == 0
        assert indexed(demo) == []
        assert sentence in demo.scrapy("status", "demo").succeeded().stdout


@pytest.mark.full
def test_a_log_in_server_that_is_away_is_waited_for(project: MakeProject) -> None:
    door = wiki(3)
    form, failed = door.site["/login"], 0

    def login(request: Request) -> Reply:
        nonlocal failed
        failed += 1
        return status(503) if failed <= 2 else form(request)  # type: ignore[operator]

    door.site["/login"] = login
    with serve(door.site) as server:
        demo = project(collection(server.url("/"), settings=settings(server)))
        crawled = demo.crawl("demo").succeeded()
        assert crawled.stderr.count("/login answers 503") == 2
        assert_same(indexed(demo), all_pages(3))
        failed = -1_000_000
        door.site["/login"] = status(503)
        door.end_all()
        demo.scrapy("recrawl", "demo", "--host", "127.0.0.1").succeeded()
        crawled = demo.crawl("demo")
        assert "the URLs of its sites wait for the next run" in crawled.stderr
        waits = f"nobody could log in by CRAWLSPACE_SITES['{server.netloc}'] ({server.url('/login')} answers 503)"
        assert waits in demo.scrapy("status", "demo").succeeded().stdout
        (noted,) = json.loads(demo.scrapy("status", "demo", "--json").succeeded().stdout)["waiting_logins"]
        assert (noted["entry"], noted["why"]) == (server.netloc, f"{server.url('/login')} answers 503")
        explained = json.loads(demo.scrapy("explain", "demo", server.url("/1"), "--json").succeeded().stdout)
        assert explained["waits_for_login"].startswith(waits)
        door.site["/login"] = form
        demo.scrapy("login", "demo", server.netloc).succeeded()
        assert "nobody could log in" not in demo.scrapy("status", "demo").succeeded().stdout
    assert_same(indexed(demo), all_pages(3))


def test_a_page_that_is_not_for_this_user_costs_few_log_ins(project: MakeProject) -> None:
    door = wiki(PAGES)
    door.site["/3"] = redirect("/login?next=/3")
    door.site["/4"] = status(403)
    with serve(door.site) as server:
        demo = project(collection(server.url("/"), settings=settings(server)))
        found_errors, by_status = errors_of(demo.crawl("demo").succeeded().stderr)
    assert door.logins <= 9
    assert sum(by_status.values()) == found_errors
    found = statuses(demo)
    assert found.pop("/3") == 616
    assert found.pop("/4") in (403, 616)
    assert {code for path, code in found.items() if path != "/login"} == {200}


def test_a_first_page_that_is_not_for_this_user_refuses_no_log_in(project: MakeProject) -> None:
    """The home page of its host shows that the session is alive, where the log-in leads to no page."""
    door = wiki(3)
    door.site["/2"] = redirect("/login?next=/2")
    logs_in = door.site["/login"]
    assert callable(logs_in)

    def leads_nowhere(request: Request) -> Reply:
        answer = logs_in(request)
        assert isinstance(answer, Answer)
        return text("", headers={"Set-Cookie": answer.headers["Set-Cookie"]}) if answer.code == 302 else answer

    door.site["/login"] = leads_nowhere
    with serve(door.site) as server:
        demo = project(collection(server.url("/2"), settings=settings(server)))
        crawled = demo.crawl("demo")
    assert "is refused" not in crawled.stderr
    assert door.logins == 1
    assert statuses(demo)["/2"] == 616


def test_the_log_in_is_tried_by_a_command(project: MakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    door = wiki(3)
    with serve(door.site) as server:
        demo = project(collection(server.url("/"), settings=settings(server)))
        tried = demo.scrapy("login", "demo", server.netloc).succeeded()
        assert tried.stdout.splitlines() == [
            f"log-in       form log-in at {server.url('/login')} (CRAWLSPACE_SITES['{server.netloc}'])",
            f"             GET  {server.url('/login')}  200",
            f"             POST {server.url('/login')}  302 to /",
            f"             GET  {server.url('/')}  200",
            f"page         {server.url('/')}",
            "answer       status 200, text/html, titled Home",
        ]
        monkeypatch.setenv("WIKI_PASSWORD", "wrong")
        demo.crawl("demo")
        refused = demo.scrapy("login", "demo", server.netloc)
        assert refused.returncode == 1
        assert refused.stdout.splitlines()[-1].endswith(
            "shows the form of the log-in after the log-in: is it the right user and password?"
        )
        monkeypatch.setenv("WIKI_PASSWORD", PASSWORD)
        logins = door.logins
        assert demo.scrapy("login", "demo", server.netloc).succeeded().stdout.endswith("the next crawl continues with the site\n")
        demo.crawl("demo").succeeded()
        assert door.logins == logins + 1  # the crawl goes on with the session of the command
        assert_same(indexed(demo), all_pages(3))
        assert f"logged in to {server.netloc} since " in demo.scrapy("status", "demo").succeeded().stdout
        (one,) = json.loads(demo.scrapy("status", "demo", "--json").succeeded().stdout)["sessions"]
        assert (one["entry"], one["expires"]) == (server.netloc, None)


def test_cookies_that_are_given(project: MakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    door = wiki(5)
    door.left["abc"] = 1 << 60
    monkeypatch.setenv("WIKI_SESSION", "abc")
    with serve(door.site) as server:
        for given in ({"file": str(write_cookies(project, "abc"))}, {"cookies": {"sid": "env:WIKI_SESSION"}}):
            login = {"type": "cookies", **given, "logged_out": {"text": "Please log in"}}
            entry = f"{FAST}CRAWLSPACE_SITES = {{{server.netloc!r}: {{'login': {login!r}, 'allow_plain_http': True}}}}\n"
            demo = project(collection(server.url("/"), settings=entry))
            demo.crawl("demo").succeeded()
            assert door.attempts == 0
            assert_same(indexed(demo), all_pages(5))


def write_cookies(project: MakeProject, session: str) -> Path:
    path = project({}).folder / "cookies.txt"
    path.write_text(f"# Netscape HTTP Cookie File\n127.0.0.1\tFALSE\t/\tFALSE\t0\tsid\t{session}\n")
    return path


class TokenServer:
    """Gives tokens to a client, each good for some requests."""

    def __init__(self, pages: Mapping[str, Reply], *, most: int, lasts_s: int | None = None) -> None:
        self.given = 0
        self.left: dict[str, int] = {}
        self._most, self._lasts_s = most, lasts_s
        self.site = Site(
            {"/robots.txt": text(""), **{path: self._behind(reply) for path, reply in pages.items()}, "/token": self._token}
        )

    def _token(self, request: Request) -> Reply:
        pair = base64.b64encode(f"crawler:{PASSWORD.replace(' ', '+')}".encode()).decode()
        if request.headers.get("authorization") != f"Basic {pair}" or b"grant_type=client_credentials" not in request.body:
            return status(401, body='{"error": "invalid_client", "error_description": "no such client"}')
        self.given += 1
        token = f"token-{self.given}"
        self.left[token] = self._most
        lasts = {} if self._lasts_s is None else {"expires_in": self._lasts_s}
        return binary(json.dumps({"access_token": token, "token_type": "Bearer", **lasts}).encode(), "application/json")

    def _behind(self, reply: Reply) -> Route:
        def answer(request: Request) -> Reply:
            token = request.headers.get("authorization", "").removeprefix("Bearer ")
            if self.left.get(token, 0) <= 0:
                return status(401)
            self.left[token] -= 1
            return reply

        return answer


def test_a_token_is_renewed(project: MakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = {
        "/": page("Home", links=["/0"]),
        **{f"/{n}": page(f"Page {n}", text=f"text {n}", links=[f"/{n + 1}"]) for n in range(20)},
    }
    tokens = TokenServer(pages, most=5)
    with serve(tokens.site) as server:
        login = {"type": "oauth2", "url": server.url("/token"), "client_id": "crawler", "client_secret": "env:WIKI_PASSWORD"}
        entry = f"{FAST}CRAWLSPACE_SITES = {{{server.netloc!r}: {{'login': {login!r}, 'allow_plain_http': True}}}}\n"
        demo = project(collection(server.url("/"), settings=entry))
        crawled = demo.crawl("demo").succeeded()
        assert_same(indexed(demo), sorted(pages))
        assert 4 <= tokens.given <= 6
        monkeypatch.setenv("WIKI_PASSWORD", "wrong")
        refused = demo.scrapy("login", "demo", server.netloc)
        assert (
            refused.stdout.splitlines()[-1]
            == f"answer       none: {server.url('/token')} answers 401 (invalid_client no such client)"
        )
    assert PASSWORD not in crawled.stderr


@pytest.mark.full
@pytest.mark.parametrize("key", some(["", "env:SESSION_KEY"], 1))
def test_workers_share_a_session_that_is_encrypted_or_log_in_each(
    team: MakeTeam, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("SESSION_KEY", "a key")
    doors = [wiki(PAGES, lasts=range(10, 30), seed=number) for number in range(1)]
    with serve(doors[0].site) as server:
        shared = team(server.url("/"), settings=f"{settings(server)}CRAWLSPACE_SESSION_KEY = {key!r}\n")
        for _ in range(3):
            shared.start()
        shared.wait()
        states = shared.states()
        assert_same(
            sorted(url.removeprefix(server.url("")) for url, state in states.items() if state.indexed), sorted(all_pages())
        )
    assert doors[0].logins <= doors[0].lost + (1 if key else 3)
    found = kept_in_redis()
    # the first session; three characters may stand in what is encrypted, too
    is_readable = re.search(rb"s1-\d{4}", found) is not None
    assert (is_readable, PASSWORD.encode() in found, b'"number"' in found) == (False, False, True)


@pytest.mark.full
@pytest.mark.parametrize("key", some(["", "env:SESSION_KEY"], 1))
def test_a_wrong_password_is_tried_twice_at_most_by_all_workers(
    team: MakeTeam, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("SESSION_KEY", "a key")
    doors = [wiki(3) for _ in range(4)]
    doors[0].password = "another"
    form = doors[0].site["/login"]
    doors[0].site["/login"] = lambda request: slow(form(request), 1.0)  # type: ignore[operator]
    with ExitStack() as stack:
        servers = [stack.enter_context(serve(door.site)) for door in doors]
        entry = {"login": {**FORM, "url": servers[0].url("/login")}, "allow_plain_http": True}
        settings = f"CRAWLSPACE_SITES = {{'127.0.0.1': {entry!r}}}\nCRAWLSPACE_SESSION_KEY = {key!r}\n"
        shared = team(*(server.url("/") for server in servers), settings=settings)
        workers = [shared.start() for _ in servers]
        for worker in workers:
            worker.wait()
    assert 1 <= doors[0].attempts <= 2


def kept_in_redis() -> bytes:
    client = another_client()
    try:
        return b"".join(client.dump(key) or b"" for key in client.scan_iter())
    finally:
        client.close()
