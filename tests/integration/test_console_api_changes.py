"""What the JSON interface of the console changes, who may do it, and what the audit log has of it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress

import pytest
from msgspec import structs

from crawlspace.clock import SystemClock
from crawlspace.console.users import Role
from crawlspace.model import Held
from crawlspace.state.changes import Change
from tests.conftest import MakeProject, Project
from tests.consoles import served
from tests.described_api import hold
from tests.integration.stored import collection, opened
from tests.integration.test_console_api import DEMO, Api, crawled, failure, post, token_of
from tests.sites import Site, held, page, serve, status


def change(api: Api, path: str, body: object = None) -> Mapping[str, object]:
    """The answer to an operator who changes the collection demo."""
    value = hold(post(api.browser, f"/collections/demo{path}", {} if body is None else body), DEMO + path, "post")
    assert isinstance(value, dict)
    return value


def logged(project: Project) -> Iterator[dict[str, object]]:
    for line in (project.data / "console-audit.jsonl").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if entry["result"] != "begun":
            yield entry


def test_urls_are_fetched_again_and_entered(project: MakeProject) -> None:
    with crawled(project, role=Role.OPERATOR) as api:
        start = api.start
        due = {"due": 1, "new": 0, "crawling": False, "refused": [], "notes": []}
        assert change(api, "/recrawl", {"urls": [f"{start}a"]}) == due
        assert change(api, "/recrawl", {"errors": True}) == due
        assert change(api, "/recrawl", {"prefix": start, "host": "other.test"}) == {**due, "due": 0}
        assert change(api, "/add", {"urls": [f"{start}new"]}) == {**due, "new": 1}
        refused = change(api, "/add", {"urls": [f"{start}no/y"]})
        assert (refused["due"], "prefix" in str(refused["refused"])) == (0, True)
        assert change(api, "/add", {"urls": [f"{start}x"], "site": True}) == {
            "due": 4, "new": 1, "crawling": False, "refused": [], "notes": [
                "1 URL waits to be fetched for the first time, in source user, and is due already"
            ],
        }  # fmt: skip
        with opened(api.project) as store:
            assert {state.url.removeprefix(start) for state in store.urls()} == {"", "a", "gone", "new", "x"}
        entries = list(logged(api.project))
        assert [(entry["user"], entry["action"], entry["result"]) for entry in entries] == [
            *[("operator", "recrawl_urls", "done")] * 3,
            *[("operator", "add_urls", "done")] * 3,
        ]
        assert entries[0]["details"] == {"urls": [f"{start}a"], **due}


def test_what_is_to_be_fetched_again_must_be_said(project: MakeProject) -> None:
    demo = project(collection("http://127.0.0.1:9/"))
    with served(demo) as browser:
        browser.headers.update(token_of(demo, Role.OPERATOR))
        cases = [
            ({}, 400, "name what is to be fetched again"),
            ({"urls": ["x y"]}, 400, "is not a valid URL"),
            ({"prefix": "www.test"}, 400, "--prefix is 'www.test'"),
            ({"urls": ["http://127.0.0.1:9/"]}, 409, "demo has never been crawled"),
        ]
        for body, code, sentence in cases:
            found = failure(post(browser, "/collections/demo/recrawl", body), f"{DEMO}/recrawl", "post")
            assert (found[0], sentence in found[1]) == (code, True), found
        assert not (demo.data / "demo").exists()
        assert str([entry["result"] for entry in logged(demo)][-1]).startswith("failed: demo has never been crawled")


def test_a_plan(project: MakeProject) -> None:
    with crawled(project) as api:
        assert api.get("/plan") == api.command("plan", "demo")
        api.project.write({"demo/crawl.rules": f"forbid prefix {api.start}a"})
        found = api.get("/plan")
        assert found == api.command("plan", "demo")
        assert isinstance(found, dict)
        assert found["by_rule"] == {"crawl.rules:1": {"excluded": 1, "deletions": 1}}


def test_an_audit_and_a_repair(project: MakeProject) -> None:
    with crawled(project, role=Role.OPERATOR) as api:
        assert api.get("/audit") == {"sinks": api.command("audit", "demo"), "notes": []}
        (api.project.data / "demo" / "index.db").unlink()
        code, error = failure(api.browser.get("/api/v1/collections/demo/audit"), f"{DEMO}/audit")
        assert (code, "there is no index" in error) == (503, True)
        api.project.scrapy("reindex", "demo")  # without an archive: documents are missing
        compared = api.command("audit", "demo")
        assert isinstance(compared, list)
        (row,) = compared
        assert api.get("/audit") == {"sinks": [row], "notes": []}
        assert change(api, "/audit/repair", {"sink": "embedded"})["sinks"] == [{**row, "fetched": row["missing"]}]
        assert change(api, "/audit/repair", {"limit": 0})["sinks"] == [{**row, "fetched": row["missing"], "differences": []}]
        code, error = failure(api.browser.get("/api/v1/collections/demo/audit?sink=x"), f"{DEMO}/audit")
        assert (code, "CRAWLSPACE_SINKS has no sink 'x'" in error) == (400, True)


@pytest.mark.parametrize(
    "path", ["/recrawl", "/add", "/crawl/start", "/crawl/stop", "/audit/repair", "/deletions/approve", "/deletions/discard"]
)
def test_a_viewer_changes_nothing(project: MakeProject, path: str) -> None:
    demo = project(collection("http://127.0.0.1:9/"))
    with served(demo) as browser:
        browser.headers.update(token_of(demo, Role.VIEWER))
        found = failure(post(browser, f"/collections/demo{path}", {}), DEMO + path, "post")
        assert found == (403, "viewer is a viewer; this needs the role operator.")
    assert not (demo.data / "console-audit.jsonl").exists()


def test_a_crawl_is_started_and_stopped(project: MakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    home = held(page("Home"))
    with serve(Site({"/": home, "/robots.txt": status(404)})) as server:
        demo = project(collection(server.url("/")))
        for name, value in demo.env.items():
            monkeypatch.setenv(name, value)
        with served(demo) as browser:
            browser.headers.update(token_of(demo, Role.OPERATOR))
            api = Api(browser, demo, server.url("/"))
            found = failure(post(browser, "/collections/demo/crawl/stop", {}), f"{DEMO}/crawl/stop", "post")
            assert found == (409, "demo is not being crawled")
            begun = change(api, "/crawl/start")
            demo.until(lambda: "/" in server.paths())
            running = api.get("/status")
            assert isinstance(running, dict)
            code, error = failure(post(browser, "/collections/demo/crawl/start", {}), f"{DEMO}/crawl/start", "post")
            assert (code, error) == (409, f"demo is being crawled already, by process {running['crawling']}")
            assert change(api, "/crawl/stop")["processes"] == [running["crawling"]]
            home.release()
            with suppress(ChildProcessError):  # it has ended, and the console has noticed
                os.waitid(os.P_PID, running["crawling"], os.WEXITED | os.WNOWAIT)
            assert "Home" in json.dumps(api.get("/search?q=home"))
            assert (demo.data / "demo" / "logs" / str(begun["log"])).exists()


def test_held_deletions_are_listed_and_decided(project: MakeProject) -> None:
    with crawled(project, role=Role.OPERATOR) as api:
        nothing = {"total": 0, "by_reason": {}, "deletions": [], "next": ""}
        assert api.get("/deletions") == nothing
        code, error = failure(post(api.browser, "/collections/demo/deletions/approve", {}), f"{DEMO}/deletions/approve", "post")
        assert (code, error) == (409, "no deletion of demo is held")
        hold_deletions(api.project)
        first = api.get("/deletions?limit=1")
        assert isinstance(first, dict)
        assert (first["total"], first["by_reason"], first["next"]) == (2, {"many": 2}, api.start)
        second = api.get(f"/deletions?limit=1&after={first['next']}")
        assert isinstance(second, dict)
        assert [row["url"] for page in (first, second) for row in page["deletions"]] == [api.start, f"{api.start}a"]
        assert second["next"] == ""
        assert api.get("/deletions?reason=rules") == nothing
        assert api.get("/deletions?host=other.test") == nothing
        assert change(api, "/deletions/discard", {"host": "127.0.0.1", "reason": "many"}) == {
            "changed": 2,
            "fetched_now": 0,
            "notes": [],
        }
        hold_deletions(api.project)
        assert change(api, "/deletions/approve")["changed"] == 2
        assert api.get("/search?q=leave") == {"total": 0, "hits": [], "facets": {}}
        actions = [(entry["action"], entry["result"]) for entry in logged(api.project)]
        assert actions[-2:] == [("discard_deletions", "done"), ("approve_deletions", "done")]


def hold_deletions(demo: Project) -> None:
    """Hold the deletion of each document, as a run does that has deleted too many."""
    with opened(demo) as store:
        ids = [state.id for state in store.urls() if state.indexed]
        store.revise(ids, lambda state: Change(structs.replace(state, held=Held.MANY)), now=state_now())


def state_now() -> int:
    return int(SystemClock().now())
