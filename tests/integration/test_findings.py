"""What a crawl has found besides its numbers: traps and routes behind #, in log, summary and status."""

from __future__ import annotations

import json

from tests.conftest import MakeProject
from tests.http import Reply, Request
from tests.integration.stored import FAST, collection
from tests.sites import Site, page, serve, status, text


def calendar(request: Request) -> Reply:
    """A page for each day, for ever."""
    number = request.path.removeprefix("/calendar/")
    if not number.isdigit():
        return status(404)
    return page("Calendar", text=f"Day {number}. No events.", links=[f"/calendar/{int(number) + 1}"])


def test_traps_and_routes_are_named(project: MakeProject) -> None:
    home = page("Home", text="Welcome to all of it", links=["/calendar/1", "/#/about", "/#/news", "/#top", "/app#!help"])
    site = Site({"/robots.txt": text(""), "/": home, "/app": page("App", text="the program")}, otherwise=calendar)
    limits = "DEPTH_LIMIT = 120\nRETRY_TIMES = 0\n"
    with serve(site) as server:
        demo = project(collection(server.url("/"), settings=FAST + limits))
        run = demo.crawl("demo").succeeded()
        trap = f"{server.url('/calendar/#')} may be a trap: "
        rule = f"forbid prefix {server.url('/calendar/')}"
        assert run.stderr.count(trap) == 2, "in the log and in the summary"
        assert run.stderr.count(f"this stops it: {rule}") == 2
        shown = " ".join(demo.scrapy("status", "demo").succeeded().stdout.split())
        assert "URLs that grow without new documents" in shown
        assert f"this stops it: {rule}" in shown
        assert f"{server.netloc} 3 links such as {server.url('/app#!help')}" in shown
        numbers = json.loads(demo.scrapy("status", "demo", "--json").succeeded().stdout)
        assert [(one["pattern"], one["stopped_by"]) for one in numbers["traps"]] == [(server.url("/calendar/#"), rule)]
        assert numbers["hash_routes"] == {server.netloc: {"count": 3, "example": server.url("/app#!help")}}

        (demo.collections / "demo" / "crawl.rules").write_text(f"{rule}\n")
        demo.scrapy("crawl", "demo")
        demo.scrapy("deletions", "demo", "--approve")
        assert json.loads(demo.scrapy("status", "demo", "--json").succeeded().stdout)["traps"] == [], "the rule was taken"
