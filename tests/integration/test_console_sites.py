"""The sites of the console: lists, one site with all that is known, pauses."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from crawlspace.console.users import Role, Users
from tests.conftest import MakeProject
from tests.consoles import served
from tests.integration.stored import collection, opened, shared
from tests.sites import Site, page, serve, status, text

SCRIPT = "<script>alert(1)</script>"
PASSWORD = "correct horse battery"


@pytest.mark.parametrize("on_server", [False, True])
def test_a_site_with_all_that_is_known(project: MakeProject, *, on_server: bool) -> None:
    pages = {
        "/": page("Home", links=["/a", "/gone"]),
        "/a": page("A"),
        "/robots.txt": text(f"# {SCRIPT}{{{{7*7}}}}\nUser-agent: *\n"),
    }
    with serve(Site(pages)) as server:
        demo = project(collection(server.url("/")))
        if on_server:
            shared(demo)
        site = server.url("/").split("/")[2]
        with served(demo) as browser:
            assert "Never crawled" in browser.get("/c/demo/sites").words
            assert browser.get(f"/c/demo/sites/{quote(site)}").status == 503
            demo.crawl("demo").succeeded()
            listed = browser.get("/c/demo/sites").words
            assert "1 site" in listed
            assert f"{site} 3 2 0 0 none 0 / 3" in listed
            one = browser.get(f"/c/demo/sites/{quote(site)}")
            assert "1 of the last 3 fetches found nothing (404, 410)" in one.words
            assert "none, up to" in one.words
            assert "not obeyed" not in one.words
            assert SCRIPT not in one.text
            assert f"# {SCRIPT}{{{{7*7}}}} User-agent: *" in one.words
            nowhere = browser.get(f"/c/demo/sites/{quote(SCRIPT, safe='')}")
            assert (nowhere.status, SCRIPT in nowhere.text) == (404, False)


def test_filters_and_orders(project: MakeProject) -> None:
    with serve(Site({"/": page("Home"), "/robots.txt": status(404)})) as one, serve(Site({"/": status(500)})) as other:
        demo = project(collection(f"{one.url('/')}\n{other.url('/')}"))
        demo.crawl("demo").succeeded()
        good, bad = (server.url("/").split("/")[2] for server in (one, other))
        with served(demo) as browser:

            def listed(query: str) -> set[str]:
                answer = browser.get(f"/c/demo/sites?{query}")
                assert answer.status == 200
                return {site for site in (good, bad) if f"/c/demo/sites/{quote(site, safe='')}" in answer.text}

            assert listed("") == listed("sort=name") == listed("sort=documents") == listed("host=127.0") == {good, bad}
            assert listed(f"host={quote(good)}") == {good}
            assert listed("only=errors") == {bad}
            assert listed("only=paused") == listed("only=unreachable") == listed("host=zebra") == set()
            assert listed("page=2") == set()
            assert "No site fits" in browser.get("/c/demo/sites?host=zebra").words
            for wrong in ("only=x", "sort=x", "page=0", f"host={quote('*.a b')}"):
                assert browser.get(f"/c/demo/sites?{wrong}").status == 400, wrong


def test_a_host_is_paused_and_resumed(project: MakeProject) -> None:
    with serve(Site({"/": page("Home"), "/robots.txt": status(404)})) as server:
        demo = project(collection(server.url("/")))
        demo.crawl("demo").succeeded()
        site = server.url("/").split("/")[2]
        users = Users(demo.data / "console-users")
        users.set_password("anna", PASSWORD, Role.OPERATOR)
        users.set_password("ben", PASSWORD, Role.VIEWER)
        with served(demo) as browser:
            browser.log_in("anna", PASSWORD)
            done = browser.post("/c/demo/sites/pause", {"host": "127.0.0.1", "reason": SCRIPT, "site": site})
            assert done.url.endswith(f"/c/demo/sites/{quote(site, safe='')}")
            assert "127.0.0.1 is paused: crawls leave it out." in done.words
            assert SCRIPT not in done.text
            with opened(demo) as store:
                assert {one: (pause.by, pause.reason) for one, pause in store.site_pauses().items()} == {
                    "127.0.0.1": ("anna", SCRIPT)
                }
            assert "1 host is paused Host By Since Reason Action 127.0.0.1 anna" in browser.get("/c/demo/sites?only=paused").words
            logged = [json.loads(line) for line in (demo.data / "console-audit.jsonl").read_text().splitlines()]
            assert [(one["user"], one["action"], one["details"]["host"]) for one in logged if one["action"] == "pause"] == [
                ("anna", "pause", "127.0.0.1")
            ] * 2
            done = browser.post("/c/demo/sites/resume", {"host": "127.0.0.1"})
            assert "127.0.0.1 is not paused any more" in done.words
            with opened(demo) as store:
                assert not store.site_pauses()
            for form in ({"host": "no.example"}, {"host": "/"}, {"host": "127.0.0.1", "reason": "x" * 201}, {}):
                assert browser.post("/c/demo/sites/pause", form).status == 400, form
            assert browser.post("/c/demo/sites/resume", {"host": "127.0.0.1"}).status == 400
            browser.post("/logout")
            browser.log_in("ben", PASSWORD)
            assert browser.post("/c/demo/sites/pause", {"host": "127.0.0.1"}, csrf=browser.csrf()).status == 403
