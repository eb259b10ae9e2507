"""Log-ins of CRAWLSPACE_SITES and credentials over real HTTP: which requests have them, and the result where they are refused."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from contextlib import ExitStack
from urllib.parse import urlsplit
from urllib.request import parse_http_list, parse_keqv_list

import pytest

from tests.command_line import ROOT
from tests.conftest import MakeProject, assert_same
from tests.http import Reply, Request
from tests.integration.stored import FAST, collection, indexed, statuses
from tests.integration.workers import MakeTeam
from tests.sites import Server, Site, page, redirect, serve, status, text

PASSWORD = "secret of the wiki"
BASIC = "Basic " + base64.b64encode(f"crawler:{PASSWORD}".encode()).decode()
REFUSED = status(401, headers={"WWW-Authenticate": 'Basic realm="wiki"'})
RULES = "allow address 127.0.0.0/8\n"
KINDS = [
    ("{'type': 'basic', 'user': 'crawler', 'password': 'env:WIKI_PASSWORD'}", BASIC),
    ("{'type': 'bearer', 'token': 'env:WIKI_PASSWORD'}", f"Bearer {PASSWORD}"),
]


def behind(expected: str, then: Reply) -> Callable[[Request], Reply]:
    return lambda request: then if request.headers.get("authorization") == expected else REFUSED


def wiki(expected: str, *, links: list[str], public: tuple[str, ...] = ()) -> Site:
    pages = {
        "/robots.txt": text(""),
        "/": page("Home", text="home", links=["/a", "/b", *links]),
        "/a": page("A", text="the page a"),
        "/b": page("B", text="the page b"),
    }
    return Site({path: reply if path in public else behind(expected, reply) for path, reply in pages.items()})


def settings(server: Server, login: str, *, more: str = "'allow_plain_http': True") -> str:
    return f"{FAST}CRAWLSPACE_SITES = {{'{server.netloc}': {{'login': {login}, {more}}}}}\n"


@pytest.mark.parametrize(("login", "expected"), KINDS, ids=["basic", "bearer"])
def test_a_site_gets_its_log_in_and_no_other_host(
    project: MakeProject, monkeypatch: pytest.MonkeyPatch, login: str, expected: str
) -> None:
    monkeypatch.setenv("WIKI_PASSWORD", PASSWORD)
    with serve(Site({"/robots.txt": text(""), "/": page("Other"), "/linked": page("Linked")}), host="127.0.0.2") as other:
        site = wiki(expected, links=["/moved", other.url("/linked")])
        site["/moved"] = behind(expected, redirect(other.url("/")))
        with serve(site) as server:
            demo = project(collection(server.url("/"), rules=RULES, settings=settings(server, login)))
            crawled = demo.crawl("demo").succeeded()
            assert {request.headers.get("authorization") for request in server.requests} == {expected}
        assert {request.headers.get("authorization") for request in other.requests} == {None}
        assert len(other.requests) == 3
    assert set(statuses(demo).values()) == {200, 302}
    for command in (("lint", "demo"), ("status", "demo"), ("explain", "demo", server.url("/a")), ("export", "demo")):
        ran = demo.scrapy(*command)
        assert PASSWORD not in ran.stdout + ran.stderr
    assert PASSWORD not in crawled.stderr
    kept = b"".join(path.read_bytes() for path in demo.data.rglob("*") if path.is_file())
    assert PASSWORD.encode() not in kept
    assert expected.encode() not in kept


def test_headers_of_a_site(project: MakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIKI_KEY", "k3y")
    site = Site({"/robots.txt": text(""), "/": page("Home", links=["/a"]), "/a": page("A")})
    with serve(site) as server:
        given = f"CRAWLSPACE_SITES = {{'{server.netloc}': {{'headers': {{'X-Wiki': 'env:WIKI_KEY', 'Accept-Language': 'de'}}, 'allow_plain_http': True}}}}\n"
        demo = project(collection(server.url("/"), settings=FAST + given))
        demo.crawl("demo").succeeded()
        assert {request.headers.get("x-wiki") for request in server.requests} == {"k3y"}
        assert {request.headers["accept-language"] for request in server.requests} == {"de"}


def test_without_https_nothing_is_sent_unless_that_is_allowed(project: MakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIKI_PASSWORD", PASSWORD)
    with serve(wiki(BASIC, links=[], public=("/robots.txt", "/", "/a", "/b"))) as server:
        demo = project(collection(server.url("/"), settings=settings(server, KINDS[0][0], more="")))
        demo.crawl("demo").succeeded()
        assert {request.headers.get("authorization") for request in server.requests} == {None}


@pytest.mark.parametrize("public", [(), ("/robots.txt",), ("/robots.txt", "/")], ids=["all", "pages", "some pages"])
def test_a_refused_log_in_is_tried_once_and_nothing_is_deleted(
    project: MakeProject, monkeypatch: pytest.MonkeyPatch, public: tuple[str, ...]
) -> None:
    monkeypatch.setenv("WIKI_PASSWORD", PASSWORD)
    with serve(wiki(BASIC, links=[], public=public)) as server:
        demo = project(collection(server.url("/"), settings=settings(server, KINDS[0][0])))
        demo.crawl("demo").succeeded()
        assert_same(indexed(demo), ["/", "/a", "/b"])
        monkeypatch.setenv("WIKI_PASSWORD", "wrong")
        server.forget()
        demo.scrapy("recrawl", "demo", "--host", "127.0.0.1").succeeded()
        refused = demo.crawl("demo")
        asked = [request for request in server.requests if request.path not in public]
        assert 1 <= len(asked) <= 2, refused.stderr
        assert refused.stderr.count("is refused by") == 1
        assert "wrong" not in refused.stderr
        assert_same(indexed(demo), ["/", "/a", "/b"])
        server.forget()
        again = demo.crawl("demo")
        assert [request for request in server.requests if request.path not in public] == []
        for run in (refused, again):
            assert (run.returncode, "nothing was due" in run.stderr) == (1, False)
            assert f"demo: {server.netloc} waits for its log-in: CRAWLSPACE_SITES['{server.netloc}'] was refused by" in run.stderr
        assert "left for the next start: pages that are due" in again.stderr
        monkeypatch.setenv("WIKI_PASSWORD", PASSWORD)
        demo.crawl("demo").succeeded()
        assert {"/", "/a", "/b"} - set(public) <= set(server.paths())
    assert_same(indexed(demo), ["/", "/a", "/b"])
    assert set(statuses(demo).values()) == {200}
    assert "is refused by" not in demo.scrapy("status", "demo").succeeded().stdout


def test_the_log_in_is_tried_by_a_command(project: MakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIKI_PASSWORD", PASSWORD)
    site = wiki(BASIC, links=[])
    with serve(site) as server:
        demo = project(collection(server.url("/"), settings=settings(server, KINDS[0][0])))
        tried = demo.scrapy("login", "demo", server.netloc).succeeded()
        assert tried.stdout == (
            f"log-in       basic log-in as 'crawler' (CRAWLSPACE_SITES['{server.netloc}'])\n"
            f"page         {server.url('/')}\n"
            "answer       status 200, text/html, titled Home\n"
        )
        site["/"] = site["/robots.txt"] = REFUSED  # the site's fault, not that of the password
        demo.crawl("demo")
        assert f"is refused by {server.netloc}" in demo.scrapy("status", "demo").succeeded().stdout
        explained = " ".join(demo.scrapy("explain", "demo", server.url("/a")).succeeded().stdout.split())
        assert f"waits the log-in of CRAWLSPACE_SITES['{server.netloc}'] is refused by {server.netloc} (" in explained
        (one,) = json.loads(demo.scrapy("status", "demo", "--json").succeeded().stdout)["refused_logins"]
        assert (one["site"], one["why"]) == (server.netloc, f"{server.url('/robots.txt')} answers 401")
        refused = demo.scrapy("login", "demo", server.netloc)
        assert (refused.returncode, refused.stdout.splitlines()[-1]) == (1, "answer       status 401, text/html, titled 401")
        site["/"], site["/robots.txt"] = page("Home", text="home"), text("")
        assert "goes on" not in demo.scrapy("login", "demo", server.netloc, "--check").succeeded().stdout
        server.forget()
        demo.crawl("demo")
        assert server.paths() == []
        assert demo.scrapy("login", "demo", server.netloc).succeeded().stdout.endswith("the next crawl continues with the site\n")
        demo.crawl("demo").succeeded()
        assert "/" in server.paths()
    assert_same(indexed(demo), ["/"])


WRONG_USE = [
    (("demo",), 2, "name a collection and a site, as in: scrapy login demo wiki.example.com\n"),
    (
        ("demo", "other.example.com"),
        2,
        "CRAWLSPACE_SITES has neither log-in nor headers nor a client certificate for other.example.com\n",
    ),
    (("demo", "a b"), 2, "'a b' is no host and no URL"),
    (
        ("demo", "wiki.example.com"),
        1,
        "CRAWLSPACE_SITES['wiki.example.com']['login']['token'] is env:NOT_SET, and the environment",
    ),
]


@pytest.mark.parametrize(("arguments", "exit_status", "sentence"), WRONG_USE)
def test_wrong_use_of_the_command(project: MakeProject, arguments: tuple[str, ...], exit_status: int, sentence: str) -> None:
    given = "CRAWLSPACE_SITES = {'wiki.example.com': {'login': {'type': 'bearer', 'token': 'env:NOT_SET'}}}\n"
    demo = project(collection("https://wiki.example.com/", settings=given))
    ran = demo.scrapy("login", *arguments)
    assert ran.returncode == exit_status
    assert ran.stderr.startswith(sentence)
    crawled = demo.crawl("demo")
    assert crawled.returncode == 1
    assert "the environment has no variable NOT_SET" in crawled.stderr
    assert "Traceback" not in crawled.stderr


@pytest.mark.full
def test_several_workers_try_a_wrong_log_in_twice_at_most(team: MakeTeam, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIKI_PASSWORD", "wrong")
    hosts = [f"127.0.0.{number}" for number in (2, 3, 4)]
    with ExitStack() as stack:
        servers = [stack.enter_context(serve(wiki(BASIC, links=[]), host=host)) for host in hosts]
        login = "{'login': {'type': 'basic', 'user': 'crawler', 'password': 'env:WIKI_PASSWORD'}, 'allow_plain_http': True}"
        given = f"CRAWLSPACE_SITES = {{{', '.join(f'{server.netloc!r}: {login}' for server in servers)}}}\n"
        shared = team(*(server.url("/") for server in servers), settings=given, rules=RULES)
        for _ in range(3):
            shared.start()
        shared.wait(statuses=(0, 1))
        assert [1 <= len(server.requests) <= 2 for server in servers] == [True] * 3
        assert not any(state.indexed for state in shared.states().values())
        monkeypatch.setenv("WIKI_PASSWORD", PASSWORD)
        shared.start()
        shared.wait(statuses=(0, 1))
        assert {urlsplit(url).path for url, state in shared.states().items() if state.indexed} == {"/", "/a", "/b"}


class DigestServer:
    """Asks for a digest log-in, with numbers that become stale."""

    def __init__(self, *, algorithm: str, most: int = 1 << 60) -> None:
        self._hash = {"MD5": hashlib.md5, "SHA-256": hashlib.sha256}[algorithm]
        self._algorithm, self._most = algorithm, most
        self.left: dict[str, int] = {}
        self.wrong = 0

    def behind(self, then: Reply) -> Callable[[Request], Reply]:
        def answer(request: Request) -> Reply:
            sent = request.headers.get("authorization", "")
            if not sent.startswith("Digest "):
                return self._asks()
            given = parse_keqv_list(parse_http_list(sent.removeprefix("Digest ")))
            secret = self._hashed("crawler", "the wiki", PASSWORD)
            what = self._hashed(request.method, request.path)
            expected = self._hashed(secret, given["nonce"], given["nc"], given["cnonce"], given["qop"], what)
            if (given["username"], given["uri"], given["response"]) != ("crawler", request.path, expected):
                self.wrong += 1
                return self._asks()
            if self.left.get(given["nonce"], 0) <= 0:
                return self._asks(", stale=true")
            self.left[given["nonce"]] -= 1
            return then

        return answer

    def _asks(self, more: str = "") -> Reply:
        nonce = f"n{len(self.left)}"
        self.left[nonce] = self._most
        asks = f'Digest realm="the wiki", nonce="{nonce}", qop="auth,auth-int", algorithm={self._algorithm}, opaque="o"{more}'
        return status(401, headers={"WWW-Authenticate": asks})

    def _hashed(self, *parts: str) -> str:
        return self._hash(":".join(parts).encode()).hexdigest()


@pytest.mark.parametrize("is_robots", [False, True], ids=["a page", "robots.txt"])
def test_a_site_that_calls_each_number_stale_refuses_the_log_in(
    project: MakeProject, monkeypatch: pytest.MonkeyPatch, is_robots: bool
) -> None:
    monkeypatch.setenv("WIKI_PASSWORD", PASSWORD)
    digests = DigestServer(algorithm="MD5", most=0)
    login = "{'type': 'digest', 'user': 'crawler', 'password': 'env:WIKI_PASSWORD'}"
    home = digests.behind(page("Home"))
    with serve(Site({"/robots.txt": digests.behind(text("")) if is_robots else text(""), "/": home})) as server:
        demo = project(collection(server.url("/"), settings=settings(server, login)))
        crawled = demo.crawl("demo")
        assert crawled.stderr.count("is refused by") == 1
        asked = ["/robots.txt"] * 3 if is_robots else ["/robots.txt", *["/"] * 3]
        assert server.paths() == asked, "without a proof, with one, and with one more"


@pytest.mark.parametrize(("algorithm", "most"), [("MD5", 1 << 60), ("SHA-256", 3), ("MD5", 1)])
def test_a_digest_log_in(project: MakeProject, monkeypatch: pytest.MonkeyPatch, algorithm: str, most: int) -> None:
    monkeypatch.setenv("WIKI_PASSWORD", PASSWORD)
    digests = DigestServer(algorithm=algorithm, most=most)
    pages = {
        "/": page("Home", links=["/0?a=b"]),
        **{f"/{n}?a=b": page(f"Page {n}", text=f"text {n}", links=[f"/{n + 1}?a=b"]) for n in range(10)},
    }
    login = "{'type': 'digest', 'user': 'crawler', 'password': 'env:WIKI_PASSWORD'}"
    with serve(Site({path: digests.behind(reply) for path, reply in {"/robots.txt": text(""), **pages}.items()})) as server:
        demo = project(collection(server.url("/"), settings=settings(server, login)))
        assert "titled Home" in demo.scrapy("login", "demo", server.netloc).succeeded().stdout
        demo.crawl("demo").succeeded()
        assert_same(indexed(demo), sorted(pages))
        assert digests.wrong == 0
        monkeypatch.setenv("WIKI_PASSWORD", "wrong")
        demo.scrapy("recrawl", "demo", "--host", "127.0.0.1").succeeded()
        refused = demo.crawl("demo")
        assert 1 <= digests.wrong <= 2
        assert refused.stderr.count("is refused by") == 1
    assert_same(indexed(demo), sorted(pages))


OFFERED = status(401, headers={"WWW-Authenticate": 'Negotiate, NTLM, Digest realm="a", nonce="n"'})


def test_a_log_in_that_is_wanted_is_named(project: MakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIKI_PASSWORD", PASSWORD)
    with serve(Site({"/robots.txt": text(""), "/": page("Home", links=["/a"]), "/a": OFFERED})) as server:
        demo = project(collection(server.url("/")))
        demo.crawl("demo").succeeded()
        sentence = f"{server.netloc} asks for a log-in (Negotiate, NTLM, Digest), and CRAWLSPACE_SITES has none for it"
        assert sentence in demo.scrapy("status", "demo").succeeded().stdout
        as_json = json.loads(demo.scrapy("status", "demo", "--json").succeeded().stdout)
        assert as_json["wanted_logins"] == {server.netloc: ["Negotiate", "NTLM", "Digest"]}
        demo.write({"demo/settings.py": settings(server, KINDS[0][0])})
        demo.scrapy("recrawl", "demo", server.url("/a")).succeeded()
        refused = demo.crawl("demo")
        assert f"({server.url('/a')} answers 401, and asks for Negotiate, NTLM, Digest)" in refused.stderr
        tried = demo.scrapy("login", "demo", server.url("/a"))
        assert "asks for     Negotiate, NTLM, Digest\n" in tried.stdout
        assert json.loads(demo.scrapy("login", "demo", server.url("/a"), "--json").stdout)["asks_for"][0] == "Negotiate"


EXPECTED = "Basic " + base64.b64encode(f"crawler:{PASSWORD}".encode()).decode()
EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "docs/security.md").read_text(encoding="utf-8"), re.DOTALL)


def behind_a_password(then: Reply) -> Callable[[Request], Reply]:
    asked = status(401, headers={"WWW-Authenticate": 'Basic realm="wiki"'})
    return lambda request: then if request.headers.get("authorization") == EXPECTED else asked


@pytest.mark.parametrize("example", EXAMPLES, ids=["one domain"])
def test_pages_behind_a_password_are_read_and_no_other_host_gets_it(
    project: MakeProject, monkeypatch: pytest.MonkeyPatch, example: str
) -> None:
    monkeypatch.setenv("WIKI_PASSWORD", PASSWORD)
    other_site = Site(
        {"/linked": page("Linked", text="linked"), "/target": page("Target", text="target"), "/robots.txt": text("")}
    )
    with serve(other_site, host="127.0.0.2") as other:
        home = page("Home", text="home", links=["/a", "/moved", other.url("/linked")])
        pages = {"/": home, "/a": page("A", text="a"), "/moved": redirect(other.url("/target")), "/robots.txt": text("")}
        with serve(Site({path: behind_a_password(reply) for path, reply in pages.items()})) as server:
            settings = FAST + example.replace("wiki.example.com", server.netloc)
            demo = project(
                {
                    "demo/start_urls.txt": server.url(),
                    "demo/crawl.rules": "allow address 127.0.0.0/8\n",
                    "demo/settings.py": settings,
                }
            )
            run = demo.crawl("demo").succeeded()
            found = demo.scrapy("lint", "demo")
            assert {request.headers.get("authorization") for request in server.requests} == {EXPECTED}
        assert_same(other.paths(), ["/robots.txt", "/linked", "/target"])
        assert {request.headers.get("authorization") for request in other.requests} == {None}
    assert set(statuses(demo).values()) == {200, 302}
    assert PASSWORD not in run.stderr + found.stdout + found.stderr


@pytest.mark.parametrize(("domain", "reported"), [("None", True), ("'wiki.example.com'", False)])
def test_a_password_for_every_host_is_a_finding(project: MakeProject, domain: str, *, reported: bool) -> None:
    settings = f"HTTPAUTH_USER = 'crawler'\nHTTPAUTH_PASS = '{PASSWORD}'\nHTTPAUTH_DOMAIN = {domain}\n"
    demo = project({"demo/start_urls.txt": "http://wiki.example.com/", "demo/settings.py": settings})
    found = demo.scrapy("lint", "demo").stdout
    assert ("settings.py:2:1: warning: HTTPAUTH_PASS is sent to every host that a link leads to" in found) is reported
    assert PASSWORD not in found


HEADERS = 'COOKIES_ENABLED = True\nDEFAULT_REQUEST_HEADERS = {"Accept-Language": "de", "Authorization": "Bearer abc"}\n'


def with_credentials(server: Server) -> set[str]:
    return {request.path for request in server.requests if request.headers.get("authorization") == "Bearer abc"}


@pytest.mark.parametrize("trusts_other", [False, True])
def test_they_follow_no_link_and_no_redirect_to_another_host(project: MakeProject, *, trusts_other: bool) -> None:
    with serve(Site({"/": page("Other"), "/linked": page("Linked"), "/robots.txt": text("")}), host="127.0.0.2") as other:
        site = Site({"/robots.txt": text(""), "/moved": redirect(other.url("/"))})
        site["/"] = page("Home", links=["/a", "/moved", other.url("/linked")], headers={"Set-Cookie": "id=1"})
        site["/a"] = page("A")
        with serve(site) as server:
            own = f'CRAWLSPACE_CREDENTIAL_HOSTS = ["127.0.0.1", "{other.netloc}"]\n' if trusts_other else ""
            made = project(collection(server.url("/"), rules="allow address 127.0.0.0/8\n", settings=FAST + HEADERS + own))
            made.crawl("demo").succeeded()
            assert with_credentials(server) == {"/robots.txt", "/", "/a", "/moved"}
            assert [request.headers.get("cookie") for request in server.requests if request.path == "/a"] == ["id=1"]
        assert set(other.paths()) == {"/robots.txt", "/", "/linked"}
        assert with_credentials(other) == (set(other.paths()) if trusts_other else set())
        assert {request.headers["accept-language"] for request in other.requests} == {"de"}
        assert set(statuses(made).values()) == {200, 302}
    run = made.scrapy("lint", "demo")
    assert ("[credential-header]" in run.stdout) is not trusts_other
    assert trusts_other or "settings.py:7:1: warning: DEFAULT_REQUEST_HEADERS has Authorization" in run.stdout
    assert "abc" not in run.stdout + run.stderr


AUTO = "{'type': 'auto', 'user': 'crawler', 'password': 'env:WIKI_PASSWORD'}"


@pytest.mark.parametrize("offers", ["basic", "digest"])
def test_a_log_in_of_the_kind_that_the_site_asks_for(offers: str, project: MakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIKI_PASSWORD", PASSWORD)
    given = f"Basic {base64.b64encode(f'crawler:{PASSWORD}'.encode()).decode()}"
    asks = status(401, headers={"WWW-Authenticate": 'Basic realm="wiki", Bearer'})
    digests = DigestServer(algorithm="SHA-256", most=1_000)

    def behind(reply: Reply) -> Reply | Callable[[Request], Reply]:
        if offers == "digest":
            return digests.behind(reply)
        return lambda request: reply if request.headers.get("authorization") == given else asks

    pages = {"/robots.txt": text(""), "/": page("Home", links=["/a"]), "/a": page("A")}
    with serve(Site({path: behind(reply) for path, reply in pages.items()})) as server:
        demo = project(collection(server.url("/"), settings=settings(server, AUTO)))
        demo.crawl("demo").succeeded()
        assert_same(indexed(demo), ["/", "/a"])
        first = server.requests[0].headers.get("authorization")
    assert first is None, "nothing is sent to a site that has not asked"
