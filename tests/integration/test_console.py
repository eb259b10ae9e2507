"""The console over HTTP: who may see and change what, and what its first pages show."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest

from crawlspace.console.guard import Access
from crawlspace.console.users import Role, Users
from tests.conftest import MakeProject, Project
from tests.consoles import Browser, served
from tests.integration.stored import collection
from tests.sites import Site, page, serve, status

PASSWORD = "correct horse battery"
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def demo(project: MakeProject) -> Project:
    return project(collection("http://127.0.0.1:9/"))


def users_of(demo: Project, **roles: Role) -> Users:
    users = Users(demo.data / "console-users")
    for name, role in roles.items():
        users.set_password(name, PASSWORD, role)
    return users


def test_a_crawl_is_started_and_watched(project: MakeProject) -> None:
    with serve(Site({"/": page("Home", links=["/a", "/gone"]), "/a": page("A"), "/robots.txt": status(404)})) as server:
        demo = project(collection(server.url("/")))
        with served(demo) as browser:
            assert "Never crawled" in browser.get("/").words
            assert "Never crawled" in browser.get("/c/demo/").words
            demo.crawl("demo").succeeded()
            found = browser.get("/c/demo/").words
            assert "2 documents in the index" in found
            assert "404 Not Found 1" in found
            row = "demo not crawling 2 under 2 min 3 0 – Nothing"
            assert row in browser.get_until("/", lambda got: "under 2 min" in got.words).words


def test_the_log_in(demo: Project) -> None:
    users_of(demo, anna=Role.VIEWER)
    with served(demo) as browser:
        first = browser.get("/c/demo/?x=1")
        assert first.url.endswith("/login?next=%2Fc%2Fdemo%2F%3Fx%3D1")
        assert "Collections" not in first.words
        before = {cookie.value for cookie in browser.cookies}
        refused = browser.log_in("anna", "wrong")
        assert (refused.status, "The name or the password is wrong." in refused.words) == (401, True)
        inside = browser.post("/login", {"user": "anna", "password": PASSWORD, "next": "/c/demo/?x=1"})
        assert inside.url.endswith("/c/demo/?x=1")
        assert "anna (viewer)" in inside.words
        after = {cookie.value for cookie in browser.cookies}
        assert not before & after, "what was known before the log-in is no session of the user"
        cookie = next(iter(browser.cookies))
        assert cookie.has_nonstandard_attr("HttpOnly")
        browser.post("/logout")
        assert browser.get("/").url.endswith("/login?next=%2F")


@pytest.mark.parametrize(
    "target", ["//evil.example/", "https://evil.example/", "/\\evil.example", "javascript:alert(1)", "\\\\x"]
)
def test_the_log_in_leads_to_no_other_place(demo: Project, target: str) -> None:
    users_of(demo, anna=Role.VIEWER)
    with served(demo) as browser:
        inside = browser.post("/login", {"user": "anna", "password": PASSWORD, "next": target})
        assert inside.url == browser.base


def test_guessing_a_password_takes_longer_and_longer(demo: Project) -> None:
    users_of(demo, anna=Role.VIEWER)
    with served(demo) as browser:
        answers = [browser.log_in("anna", f"guess {number}").status for number in range(6)]
        assert answers == [401] * 5 + [429]
        assert browser.log_in("anna", PASSWORD).status == 429, "the right one has to wait too"


def test_a_viewer_changes_nothing(demo: Project) -> None:
    users_of(demo, anna=Role.VIEWER, ben=Role.OPERATOR)
    with served(demo) as browser:
        browser.log_in("anna", PASSWORD)
        token = browser.csrf()
        for path in ("/c/demo/start", "/c/demo/stop"):
            answer = browser.post(path, csrf=token)
            assert (answer.status, "needs the role operator" in answer.words) == (403, True)
        assert browser.get("/audit-log").status == 403
        operator = Browser(browser.base)
        operator.log_in("ben", PASSWORD)
        answer = operator.post("/c/demo/stop")
        assert (answer.status, "demo is not being crawled" in answer.words) == (409, True)
        assert "ben" in operator.get("/audit-log").words


def test_forms_from_elsewhere_are_refused(demo: Project) -> None:
    with served(demo) as browser:
        token = browser.csrf()
        assert browser.post("/c/demo/stop", csrf=token).status == 409, "not crawled; but allowed"
        cases = [
            browser.post("/c/demo/stop", csrf=""),
            browser.post("/c/demo/stop", csrf="guessed"),
            Browser(browser.base).post("/c/demo/stop", csrf=token),
            browser.post("/c/demo/stop", csrf=token, headers={"Sec-Fetch-Site": "cross-site"}),
            browser.post("/c/demo/stop", csrf=token, headers={"Origin": "http://evil.example"}),
            browser.post("/c/demo/stop", csrf=token, headers={"Origin": "null"}),
        ]
        assert [answer.status for answer in cases] == [403] * len(cases)
        assert browser.get("/c/demo/stop").status == 405, "nothing is changed by a link"


@pytest.mark.parametrize(
    ("host", "is_allowed"),
    [
        ("127.0.0.1", True),
        ("localhost:8960", True),
        ("[::1]:8960", True),
        ("crawler.example", True),
        ("CRAWLER.example:443", True),
        ("evil.example", False),
        ("evil.example:127.0.0.1", False),
        ("127.0.0.1.evil.example", False),
        ("10.0.0.1", False),
        ("", False),
        ("[", False),
    ],
)
def test_the_console_answers_for_its_own_names(demo: Project, host: str, *, is_allowed: bool) -> None:
    with served(demo, hosts=frozenset({"crawler.example"})) as browser:
        assert browser.get("/", headers={"Host": host}).status == (200 if is_allowed else 421)


def test_a_proxy_logs_users_in(demo: Project) -> None:
    users = users_of(demo, anna=Role.OPERATOR)
    network = ipaddress.ip_network
    for proxies, is_known in (([network("127.0.0.0/8")], True), ([network("10.0.0.0/8")], False)):
        access = Access(users, frozenset(), user_header="X-User", proxies=proxies)
        with served(demo, access=access) as browser:
            assert ("anna (operator)" in browser.get("/", headers={"X-User": "anna"}).words) is is_known
            assert ("new (viewer)" in browser.get("/", headers={"X-User": "new"}).words) is is_known
            assert "/login" in browser.get("/").url


def test_tokens_of_programs(demo: Project) -> None:
    users = users_of(demo, anna=Role.OPERATOR)
    token = users.add_token("monitoring", Role.VIEWER)
    with served(demo) as browser:
        assert browser.get("/c/demo/", headers={"Authorization": f"Bearer {token}"}).status == 200
        assert browser.get("/c/demo/", headers={"Authorization": "Bearer wrong"}).status == 401
        assert browser.post("/c/demo/stop", csrf="", headers={"Authorization": f"Bearer {token}"}).status == 403


def test_the_headers(demo: Project) -> None:
    with served(demo) as browser:
        for path in ("/", "/nope", "/login"):
            headers = browser.get(path).headers
            policy = headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "frame-ancestors 'none'" in policy
            assert headers["X-Frame-Options"] == "DENY"
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Cache-Control"] == "no-store"
        style = browser.get("/static/console.css")
        assert "immutable" in style.headers["Cache-Control"]
        assert style.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("name", ["..%2fconsole.py", "%2e%2e/console.py", "base.html", "htmx.LICENSE", ".."])
def test_only_static_files_are_served(demo: Project, name: str) -> None:
    with served(demo) as browser:
        assert browser.get(f"/static/{name}").status == 404


@pytest.mark.parametrize("name", ["nope", "..", "%2e%2e", "a%2fb", "%3Cscript%3Ealert(1)%3C%2Fscript%3E"])
def test_collections_that_are_not_there(demo: Project, name: str) -> None:
    with served(demo) as browser:
        answer = browser.get(f"/c/{name}/")
        assert answer.status == 404
        assert SCRIPT not in answer.text


def test_a_collection_that_cannot_be_read_leaves_the_others(project: MakeProject) -> None:
    demo = project({**collection("http://127.0.0.1:9/"), "other/start_urls.txt": "x", "other/settings.py": "1/0\n"})
    with served(demo) as browser:
        words = browser.get("/").words
        assert "division by zero" in words
        assert "demo" in words
        assert browser.get("/c/other/").status == 503


def test_what_cannot_be_recorded_is_not_done(demo: Project) -> None:
    (demo.data / "console-audit.jsonl").mkdir()
    with served(demo) as browser:
        answer = browser.post("/c/demo/start")
        assert (answer.status, "so nothing is changed" in answer.words) == (503, True)
    assert not Path(demo.data / "demo").exists()
