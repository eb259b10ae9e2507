"""The runs in the console: the list, one run, two compared, and the plots of the overview."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import current_thread

import pytest

from crawlspace.runtime.session.paths import OpenStore, StateFile
from tests.conftest import MakeProject, Project
from tests.consoles import Browser, Got, served
from tests.integration.stored import collection, shared
from tests.sites import Site, page, serve, status

SCRIPT = "/<script>alert(1)</script>{{7*7}}"
QUOTED = "/%3Cscript%3Ealert(1)%3C/script%3E%7B%7B7*7%7D%7D"


@contextmanager
def two_runs(project: MakeProject, *, on_server: bool = False) -> Iterator[tuple[Project, Browser]]:
    """A site that was crawled twice: a page is new, one gone, one changed, one moved."""
    site = Site(
        {
            "/": page("Home", links=["/a", "/b", "/c", SCRIPT]),
            "/a": page("A", text="one"),
            "/b": page("B", text="two"),
            "/c": status(500),
            "/robots.txt": status(404),
        }
    )
    with serve(site) as server:
        demo = project(collection(server.url("/")))
        if on_server:
            shared(demo)
        demo.crawl("demo")
        site["/a"] = page("A", text="another one")
        site["/c"] = status(404)
        site[QUOTED] = page("S", text="of a script")
        del site["/b"]
        demo.scrapy("recrawl", "demo", "--host", "127.0.0.1").succeeded()
        demo.crawl("demo")
        with served(demo) as browser:
            yield demo, browser


def is_compared(got: Got) -> bool:
    return "are being compared" not in got.words


def test_no_run_yet(project: MakeProject) -> None:
    with served(project(collection("http://127.0.0.1:9/"))) as browser:
        assert "Never crawled" in browser.get("/c/demo/runs").words
        assert browser.get("/c/demo/runs/1").status == 404
        assert browser.get("/c/demo/runs/compared?first=1&second=2").status == 404


@pytest.mark.parametrize("on_server", [False, True])
def test_the_list_and_one_run(project: MakeProject, *, on_server: bool) -> None:
    with two_runs(project, on_server=on_server) as (_, browser):
        listed = browser.get("/c/demo/runs").words
        assert "2 runs" in listed
        assert "Compare run" in listed
        one = browser.get("/c/demo/runs/1").words
        assert "Run 1 done began" in one
        assert "Outcome Fetches Part document 3 " in one
        assert "404 Not Found 1" in one
        assert "Run 2 →" in one
        assert "≤ 50 ms" in one
        assert "Compare with run 1" in browser.get("/c/demo/runs/2").words
        for wrong in ("3", "0", "x", "01", "%3Cscript%3E"):
            assert browser.get(f"/c/demo/runs/{wrong}").status == 404, wrong


@pytest.mark.parametrize("on_server", [False, True])
def test_two_runs_compared(project: MakeProject, *, on_server: bool) -> None:
    with two_runs(project, on_server=on_server) as (_, browser):
        address = "/c/demo/runs/compared?first=1&second=2"
        found = browser.get_until(address, is_compared)
        assert "1 new : documents" in found.words
        assert "1 gone : documents" in found.words
        assert "1 changed : documents" in found.words
        assert "1 moved : URLs" in found.words
        assert "gone 200 OK 404 Not Found 1" in found.words
        assert "Run 1 compared with run 2" in browser.get("/c/demo/runs/compared?first=2&second=1").words
        new = browser.get(f"{address}&kind=new")
        assert "404 200 gone done" in new.words
        assert "<script>alert" not in new.text
        assert "%7B%7B7*7%7D%7D" in new.words, "no template was run"
        of_status = browser.get(f"{address}&kind=gone&before=200&after=404").words
        assert "200 OK → 404 Not Found" in of_status
        assert "200 404 done gone" in of_status
        assert "No URL is here" in browser.get(f"{address}&kind=gone&before=200&after=410").words
        table = browser.get("/c/demo/runs/compared.csv?first=1&second=2")
        assert table.headers["Content-Disposition"] == 'attachment; filename="demo-1-2-changes.csv"'
        rows = list(csv.DictReader(table.text.splitlines()))
        assert [(row["change"], row["url"].partition("//")[2].partition("/")[2]) for row in rows] == [
            ("new", QUOTED[1:]),
            ("gone", "b"),
            ("changed", "a"),
            ("moved", "c"),
        ]
        gone = browser.get("/c/demo/runs/compared.csv?first=1&second=2&kind=gone").text
        assert [row["status_after"] for row in csv.DictReader(gone.splitlines())] == ["404"]
        for wrong, code in (("first=1&second=1", 400), ("first=1", 404), ("first=1&second=3", 404)):
            assert browser.get(f"/c/demo/runs/compared?{wrong}").status == code, wrong
        for wrong in ("kind=x", "before=x&after=1", "before=200", "page=0"):
            assert browser.get(f"{address}&{wrong}").status == 400, wrong


def test_the_plots_of_the_overview(project: MakeProject) -> None:
    with two_runs(project) as (_, browser):
        found = browser.get_until("/c/demo/", lambda got: "Documents by time since their last fetch" in got.words).words
        assert "The last run: run 2 , 5 pages in" in found
        assert "Documents in the index at the end of each run Numbers Run Documents 1 3 2 3" in found
        assert "Age Documents under 1 h 3 1–24 h 0" in found
        assert "Slowest sites Site Fetches Mean p50 p95 127.0.0.1:" in found


@pytest.mark.parametrize("path", ["/", "/c/demo/"])
def test_a_page_opens_the_store_once(project: MakeProject, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    with serve(Site({"/": page("Home"), "/robots.txt": status(404)})) as server:
        demo = project(collection(server.url("/")))
        demo.crawl("demo").succeeded()
    demo.write({"demo/crawl.rules": "forbid prefix http://a.test/"})
    opened: list[str] = []
    real = StateFile.reading

    def reading(store: StateFile) -> AbstractContextManager[OpenStore | None]:
        if not current_thread().name.startswith("snapshot"):
            opened.append(current_thread().name)
        return real(store)

    monkeypatch.setattr(StateFile, "reading", reading)
    with served(demo) as browser:
        assert "The rules have changed and are not applied yet" in browser.get(path).words
        assert len(opened) == 1
