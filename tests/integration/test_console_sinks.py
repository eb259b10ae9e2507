"""The sinks of the console: what waits, what is refused and sent again, audits."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from crawlspace.console.users import Role, Users
from crawlspace.document import Document
from tests.conftest import MakeProject, Project
from tests.consoles import Browser, served
from tests.integration.stored import FAST, collection, opened, shared
from tests.search_server import INDEX, search_server
from tests.sites import Site, page, serve, status

SCRIPT = "<script>alert(1)</script>{{7*7}}"
PASSWORD = "correct horse battery"


@contextmanager
def crawled(project: MakeProject, *, on_server: bool = False) -> Iterator[tuple[Project, Browser]]:
    pages = {"/": page("Home", links=["/a"]), "/a": page("A", text="one"), "/robots.txt": status(404)}
    with serve(Site(pages)) as server:
        demo = project(collection(server.url("/")))
        if on_server:
            shared(demo)
        demo.crawl("demo").succeeded()
        with served(demo) as browser:
            yield demo, browser


def order_all(demo: Project, *, why_refused: str = "") -> None:
    """Order all documents once more; the sink has refused them for that reason, if there is one."""
    with opened(demo) as store:
        store.push_again({state.id: Document(state.url, text="once more") for state in store.urls() if state.indexed})
        if why_refused:
            for order in store.orders("embedded", 10, now=int(time.time())):
                store.park("embedded", order, why_refused)


@pytest.mark.parametrize("on_server", [False, True])
def test_what_waits_and_what_is_refused(project: MakeProject, *, on_server: bool) -> None:
    with crawled(project, on_server=on_server) as (demo, browser):
        before = browser.get("/c/demo/sinks").words
        assert "embedded sqlite up to date" in before
        assert "Waiting 0 orders" in before
        order_all(demo)
        waiting = browser.get("/c/demo/sinks").words
        assert "behind" in waiting
        assert "Waiting 2 orders , sent by the next crawl Next order push http:/ / 127.0.0.1:" in waiting
        order_all(demo, why_refused=SCRIPT)
        assert "refuses documents" in browser.get("/c/demo/sinks").words
        parked = browser.get("/c/demo/sinks/embedded/parked")
        assert "2 documents are refused" in parked.words
        assert SCRIPT in parked.words
        assert "<script>alert" not in parked.text
        assert "0 documents for this reason" in browser.get("/c/demo/sinks/embedded/parked?reason=another").words
        assert browser.get("/c/demo/sinks/embedded/parked?page=0").status == 400
        assert browser.get("/c/demo/sinks/other/parked").status == 404


def test_refused_documents_are_sent_again(project: MakeProject) -> None:
    with crawled(project) as (demo, browser):
        order_all(demo, why_refused="too large")
        done = browser.post("/c/demo/sinks/embedded/send-again")
        assert "embedded: 2 orders sent again, 2 taken, 0 refused." in done.words
        with opened(demo) as store:
            assert (store.parked("embedded"), store.backlog("embedded")) == ([], 0)
        assert "It refuses nothing" in browser.get("/c/demo/sinks/embedded/parked").words
        assert "embedded refuses nothing any more" in browser.post("/c/demo/sinks/embedded/send-again").words
        assert browser.post("/c/demo/sinks/other/send-again").status == 404


def test_an_audit_is_a_process_of_its_own(project: MakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    with crawled(project) as (demo, browser):
        for name, value in demo.env.items():
            monkeypatch.setenv(name, value)
        begun = browser.post("/c/demo/sinks/embedded/start", {"command": "audit"})
        assert "scrapy audit begins for the index" in begun.words
        ended = browser.get_until("/c/demo/sinks", lambda got: "running" not in got.words)
        assert "2 documents" in ended.words
        for form in ({"command": "crawl"}, {}):
            assert browser.post("/c/demo/sinks/embedded/start", form).status == 400
        assert browser.post("/c/demo/sinks/--rebuild/start", {"command": "reindex"}).status == 404
        users = Users(demo.data / "console-users")
        users.set_password("ben", PASSWORD, Role.VIEWER)
        viewer = Browser(browser.base)
        viewer.log_in("ben", PASSWORD)
        for action in ("start", "send-again"):
            assert viewer.post(f"/c/demo/sinks/embedded/{action}", csrf=viewer.csrf()).status == 403
        assert "/sinks/embedded/" not in viewer.get("/c/demo/sinks").text, "a viewer has no buttons"


def test_the_indexes_of_a_server(project: MakeProject) -> None:
    with serve(Site({"/": page("Home"), "/robots.txt": status(404)})) as server, search_server() as search:
        options = {"search": {"type": "opensearch", "url": search.url, "index": INDEX}}
        demo = project(collection(server.url("/"), settings=f"{FAST}CRAWLSPACE_SINKS = {options!r}\n"))
        with served(demo) as browser:
            assert "There is none yet" in browser.get("/c/demo/sinks/search/indexes").words
        demo.crawl("demo").succeeded()
        with served(demo) as browser:
            assert "/c/demo/sinks/search/indexes" in browser.get("/c/demo/sinks").text
            found = browser.get("/c/demo/sinks/search/indexes").words
            assert re.search(rf"{INDEX}\S* searched: the alias leads here 1 0", found), found
            assert browser.get("/c/demo/sinks/other/indexes").status == 404
        options["search"]["url"] = "http://127.0.0.1:9"
        demo.write({"demo/settings.py": f"{FAST}CRAWLSPACE_SINKS = {options!r}\n"})
        with served(demo) as browser:
            failed = browser.get("/c/demo/sinks/search/indexes")
            assert (failed.status, "127.0.0.1:9" in failed.words) == (503, True)


def test_never_crawled(project: MakeProject) -> None:
    with served(project(collection("http://127.0.0.1:9/"))) as browser:
        assert "Never crawled" in browser.get("/c/demo/sinks").words
        assert browser.get("/c/demo/sinks/embedded/parked").status == 503
