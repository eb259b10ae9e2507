"""The explorer of the console: hosts, folders and lists of URLs, and what is done with them."""

from __future__ import annotations

import csv
import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from crawlspace.clock import FakeClock
from crawlspace.console.users import Role, Users
from tests.conftest import MakeProject, Project
from tests.consoles import Browser, served
from tests.integration.stored import collection, shared, states
from tests.sites import Site, page, serve, status

SCRIPT = "/<script>alert(1)</script>"
EVIL = ["/%3Cscript%3Ealert(1)%3C/script%3E/x", "/{{7*7}}", "/}body{background:url(x)}", "/'onmouseover='alert(1)", '/"><b>x']


@contextmanager
def crawled(
    project: MakeProject, *, on_server: bool = False, clock: FakeClock | None = None
) -> Iterator[tuple[Project, Browser, str]]:
    """A small site that was crawled, its console with the URLs counted, and the beginning of its URLs."""
    site = Site(
        {
            "/": page(
                "Home", links=["/docs/a", "/docs/b", "/docs/deep/c", "/gone", "/moved", "http://elsewhere.example/", *EVIL]
            ),
            "/docs/a": page("A", text="one"),
            "/docs/b": page("B", text="two"),
            "/docs/deep/c": page("C", text="three"),
            "/moved": status(301, headers={"Location": "/docs/a"}),
            "/robots.txt": status(404),
        }
    )
    with serve(site) as server:
        demo = project(collection(server.url("/"), rules="forbid domain elsewhere.example\n"))
        if on_server:
            shared(demo)
        demo.crawl("demo").succeeded()
        with served(demo, clock=clock) as browser:
            browser.get_until("/c/demo/explorer", lambda got: "being counted" not in got.words)
            yield demo, browser, server.url("/")


@pytest.mark.parametrize("on_server", [False, True])
def test_hosts_folders_and_urls(project: MakeProject, *, on_server: bool) -> None:
    with crawled(project, on_server=on_server) as (_, browser, home):
        first = browser.get("/c/demo/explorer")
        assert first.status == 200
        assert "1 host" in first.words
        assert "Counted" in first.words
        of_host = browser.get(f"/c/demo/explorer?prefix={home}").words
        assert "docs/ 3 3 0 3 0 0 0 0" in of_host
        folder = browser.get(f"/c/demo/explorer?prefix={home}docs").words
        assert "deep/ 1 1 0 1 0 0 0 0" in folder, "a slash is added to what names a folder"
        assert "2 URLs in this folder itself" in folder
        assert "No known URL is here" in browser.get(f"/c/demo/explorer?prefix={home}nowhere/").words
        assert "No name here contains “zebra”" in browser.get("/c/demo/explorer?find=zebra").words
        ascending = browser.get(f"/c/demo/explorer?prefix={home}&sort=name").text
        assert 'aria-sort="ascending"' in ascending
        assert browser.get("/c/demo/explorer?sort=password").status == 400


def test_lists_by_filters(project: MakeProject) -> None:
    with crawled(project) as (_, browser, home):

        def listed(query: str) -> list[str]:
            answer = browser.get(f"/c/demo/explorer/urls.jsonl?{query}")
            assert answer.status == 200
            return [json.loads(line)["url"].removeprefix(home) for line in answer.text.splitlines()]

        everything = listed("")
        assert everything == sorted(everything)
        assert set(listed("sort=found")) == set(everything)
        assert listed("sort=-found") == listed("sort=found")[::-1]
        assert listed("status=404&prefix=" + home + "gone") == ["gone"]
        assert listed("state=redirected") == ["moved"]
        assert listed("state=errors") == listed("status=4xx")
        assert listed(f"prefix={home}docs/") == ["docs/a", "docs/b", "docs/deep/c"]
        assert listed(f"prefix={home}docs/&direct=1") == ["docs/a", "docs/b"]
        assert listed("is=indexed") == ["", "docs/a", "docs/b", "docs/deep/c"]
        assert listed("host=127.0.0.1&state=redirected") == ["moved"]
        assert listed("host=elsewhere.example") == []
        words = browser.get("/c/demo/explorer/urls?state=redirected").words
        assert "1 URL" in words
        assert "moved" in words
        assert "No known URL fits" in browser.get("/c/demo/explorer/urls?status=999").words
        for wrong in ("state=x", "status=x", "is=x", "sort=x", "page=0", "page=x", f"prefix={'x' * 5000}"):
            assert browser.get(f"/c/demo/explorer/urls?{wrong}").status == 400, wrong


def test_downloads_are_those_of_the_command(project: MakeProject) -> None:
    with crawled(project) as (demo, browser, _):
        answer = browser.get("/c/demo/explorer/urls.jsonl")
        assert answer.headers["Content-Disposition"] == 'attachment; filename="demo-urls.jsonl"'
        assert answer.text == demo.scrapy("urls", "demo", "--json").succeeded().stdout
        table = browser.get("/c/demo/explorer/urls.csv?state=errors")
        assert table.headers["Content-Type"] == "text/csv; charset=utf-8"
        assert {row["state"] for row in csv.DictReader(table.text.splitlines())} == {"gone"}


def test_refused_links(project: MakeProject) -> None:
    with crawled(project) as (_, browser, _home):
        assert "/explorer/urls?reason=domain" in browser.get("/c/demo/").text
        found = browser.get("/c/demo/explorer/urls?reason=domain").words
        assert "elsewhere.example" in found
        assert "crawl.rules:1" in found
        assert "No link is refused for this reason" in browser.get("/c/demo/explorer/urls?reason=prefix").words
        assert browser.get("/c/demo/explorer/urls?reason=bad-luck").status == 400


def test_a_folder_is_fetched_again_and_forgotten(project: MakeProject) -> None:
    with crawled(project) as (demo, browser, home):
        answer = browser.post("/c/demo/explorer/recrawl", {"prefix": f"{home}docs/", "from": "folder"})
        assert "3 URLs are due now: the next crawl fetches them." in answer.words
        assert "/c/demo/explorer?prefix=" in answer.url
        requested = {path for path, state in states(demo).items() if state.requested_by}
        assert requested == {"/docs/a", "/docs/b", "/docs/deep/c"}
        answer = browser.post("/c/demo/explorer/forget", {"status": "4xx"})
        assert "forgotten" in answer.words
        assert not [url for url, state in states(demo).items() if state.status == 404]
        before = states(demo)
        for form in ({}, {"state": "done"}, {"is": "indexed", "prefix": home}, {"prefix": home, "direct": "1"}, {"sort": "-url"}):
            assert browser.post("/c/demo/explorer/forget", form).status == 400, "what is selected by more than is sent"
        assert states(demo) == before
        assert '"action": "recrawl"' in (demo.data / "console-audit.jsonl").read_text()


def test_viewers_see_and_change_nothing(project: MakeProject) -> None:
    with crawled(project) as (demo, browser, home):
        before = states(demo)
        Users(demo.data / "console-users").set_password("anna", "correct horse battery", Role.VIEWER)
        browser.log_in("anna", "correct horse battery")
        shown = browser.get(f"/c/demo/explorer?prefix={home}docs/")
        assert "2 URLs in this folder itself" in shown.words
        assert "Forget" not in shown.words
        token = browser.csrf()
        for path in ("explorer/recrawl", "explorer/forget", "url/recrawl", "url/forget"):
            assert browser.post(f"/c/demo/{path}", {"prefix": home, "url": home}, csrf=token).status == 403
        assert states(demo) == before


def test_urls_are_text(project: MakeProject) -> None:
    """URLs of hostile pages, in lists and typed in."""
    with crawled(project) as (_, browser, home):
        for path in (f"explorer?prefix={home}", "explorer/urls", "explorer?find=%3Cscript%3E", f"explorer?prefix={SCRIPT}"):
            shown = browser.get(f"/c/demo/{path}")
            assert shown.status == 200
            assert "<script>alert" not in shown.text
            assert ">49<" not in shown.text
            assert "onmouseover='alert" not in shown.text
            assert 'href="http' not in shown.text, "no link leads out of the console"
        assert "{{7*7}}" in browser.get(f"/c/demo/explorer?prefix={home}").words.replace("%7B", "{").replace("%7D", "}")


def test_a_collection_that_was_never_crawled(project: MakeProject) -> None:
    demo = project(collection("http://127.0.0.1:9/"))
    with served(demo) as browser:
        for path in ("explorer", "explorer/urls", "explorer/urls?reason=domain"):
            assert "No URL is known before the first crawl" in browser.get(f"/c/demo/{path}").words
        assert browser.get("/c/demo/explorer/urls.csv").status == 503
        assert "was never crawled" in browser.get("/c/demo/url?url=http://127.0.0.1:9/").words
    assert not (demo.data / "demo").exists(), "nothing is made by looking"


def test_numbers_follow_a_change(project: MakeProject) -> None:
    clock = FakeClock(time.time())
    with crawled(project, clock=clock) as (demo, browser, home):
        assert "0 waiting" in browser.get("/c/demo/explorer").words
        demo.scrapy("add", "demo", f"{home}new").succeeded()
        assert "0 waiting" in browser.get("/c/demo/explorer").words, "a pass begins only some time after the last one"
        assert "1 URL" in browser.get("/c/demo/explorer/urls?status=301").words
        demo.scrapy("forget", "demo", f"{home}moved").succeeded()
        assert (
            "1 URL of this page has changed since the count, and is left out"
            in browser.get("/c/demo/explorer/urls?status=301").words
        )
        clock.advance(3600)
        found = browser.get_until("/c/demo/explorer", lambda got: "1 waiting" in got.words)
        assert "0 redirected" in found.words


def test_a_snapshot_that_cannot_be_written(project: MakeProject) -> None:
    """The page says why, and no other pass begins with the next request, but some time later."""
    clock = FakeClock(time.time())
    with serve(Site({"/": page("Home"), "/robots.txt": status(404)})) as server:
        demo = project(collection(server.url("/")))
        demo.crawl("demo").succeeded()
        (demo.data / "demo/console.db/x").mkdir(parents=True)
        with served(demo, clock=clock) as browser:
            failed = browser.get_until("/c/demo/explorer", lambda got: "cannot be counted" in got.words)
            assert "console.db cannot be written" in failed.words
            (demo.data / "demo/console.db/x").rmdir()
            (demo.data / "demo/console.db").rmdir()
            assert "cannot be counted" in browser.get("/c/demo/explorer").words
            clock.advance(600)
            browser.get_until("/c/demo/explorer", lambda got: "1 host" in got.words)


def test_a_shared_store_without_a_folder_here(project: MakeProject) -> None:
    with crawled(project, on_server=True) as (demo, browser, _):
        shutil.rmtree(demo.data / "demo")
        assert "1 host" in browser.get_until("/c/demo/explorer", lambda got: "being counted" not in got.words).words
