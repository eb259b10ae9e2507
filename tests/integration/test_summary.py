"""The numbers that a crawl and `scrapy status` end with: they add up."""

from __future__ import annotations

import json
import re

import msgspec
import pytest

from crawlspace.crawl.rendering import RENDERING, LearnedRendering, RenderCounts
from crawlspace.state.render_learning import RenderGroup
from tests.conftest import MakeProject
from tests.integration.stored import FAST, collection, opened, shared
from tests.sites import Site, html, page, redirect, serve, status

SITE = {
    "/": page("Home", links=["/a", "/same-as-a", "/also-the-same", "/c", "/c?print", "/moved", "/missing", "/secret"]),
    "/a": page("A", text="one text"),
    "/same-as-a": page("A", text="one text"),
    "/also-the-same": page("A", text="one text"),
    "/c": page("C", text="canonical"),
    "/c?print": page("C", text="to be printed", head='<link rel="canonical" href="/c">'),
    "/moved": redirect("/a"),
    "/missing": status(404),
    "/secret": page("No", text="hidden", head='<meta name="robots" content="noindex">'),
}


@pytest.mark.parametrize("is_shared", [False, True], ids=["sqlite", "redis"])
def test_the_numbers_add_up(project: MakeProject, is_shared: bool) -> None:
    with serve(Site(SITE)) as server:
        demo = project(collection(server.url("/")))
        demo = shared(demo) if is_shared else demo
        shown = demo.crawl("demo").succeeded().stderr
    assert "demo: done. 9 fetched: 6 with a document, 1 redirected, 1 not to be indexed, 1 error.\n" in shown
    # how many were pushed depends on how many outcomes were recorded at once
    index = r"  in the index: 3 documents \(\d pushed, \d deleted in this run\); 3 more pages are duplicates of these\n"
    assert re.search(index, shown)
    numbers = json.loads(demo.scrapy("status", "demo", "--json").succeeded().stdout)
    assert (numbers["index"]["documents"], numbers["index"]["duplicates"], numbers["urls"]["done"]) == (3, 3, 6)
    table = demo.scrapy("status", "demo").succeeded().stdout
    assert re.search(r"documents +3\n +duplicates +3   pages that are in the index under another URL", table)


@pytest.mark.parametrize("keeps_cookies", [False, True])
def test_a_site_that_shows_no_page_without_its_cookie(project: MakeProject, keeps_cookies: bool) -> None:
    sets = status(302, headers={"Location": "/", "Set-Cookie": "seen=1; Path=/"})
    site = Site({"/": lambda request: page("Home") if "cookie" in request.headers else redirect("/set?u=/"), "/set": sets})
    with serve(site) as server:
        demo = project(collection(server.url("/"), settings=f"{FAST}COOKIES_ENABLED = {keeps_cookies}\n"))
        result = demo.crawl("demo")
    assert result.returncode == (0 if keeps_cookies else 1)
    loop = "demo: no page could be read, because of redirect loops: 1 × 302, 1 × 691. 2 fetched:"
    assert (loop in result.stderr) is not keeps_cookies


def test_pages_that_may_need_a_browser(project: MakeProject) -> None:
    shell = html('<title>Shop</title><div id="app"></div><script src="/app.js"></script>')
    site = Site({"/": page("Home", text="A short text", links=["/shop", "/cart"]), "/shop": shell, "/cart": shell})
    with serve(site) as server:
        demo = project(collection(server.url("/"), settings=f"{FAST}CONCURRENT_REQUESTS = 1\n"))
        shown = demo.crawl("demo").succeeded().stderr
        assert shown.count(f"{server.url('/shop')} has scripts and next to no text or links") == 1
        assert 'render = "auto" for its site in CRAWLSPACE_SITES has such pages rendered' in shown
        assert "/cart" not in shown
        line = f"  may need a browser: 2 pages with scripts and next to no text or links, such as {server.url('/shop')}"
        assert f'{line}  (CRAWLSPACE_RENDER = "auto" renders such pages)\n' in shown
        assert "refused:" not in shown
    table = demo.scrapy("status", "demo").succeeded().stdout
    assert re.search(r"need a browser\? +2   pages with scripts and next to no text or links\n", table)
    assert "Links refused" not in table
    assert json.loads(demo.scrapy("status", "demo", "--json").succeeded().stdout)["refused"] == {"needs_browser": 2}


def test_status_says_what_rendering_has_cost(project: MakeProject) -> None:
    with serve(Site({"/": page("Home", text="A short text")})) as server:
        demo = project(collection(server.url("/")))
        demo.crawl("demo").succeeded()
    assert "Rendering" not in demo.scrapy("status", "demo").succeeded().stdout
    group = RenderGroup(rendered=9, gained=8)
    counts = RenderCounts(pages=9, checks=1, failed=2, gained=8, requests=30, seconds=12.5)
    with opened(demo) as store:
        store.set_meta(RENDERING, msgspec.json.encode(LearnedRendering({"a.example:443/": group}, {}, counts)).decode())
    shown = " ".join(demo.scrapy("status", "demo").succeeded().stdout.split())
    cost = "9 pages rendered (1 as samples; 8 gained text or links), 2 failed; 30 requests, 12 s"
    assert f"Rendering in a browser, in all runs {cost} 1 folder with pages that need it" in shown
    numbers = json.loads(demo.scrapy("status", "demo", "--json").succeeded().stdout)["rendering"]
    assert (numbers["pages"], numbers["failed"], numbers["groups_needing_it"]) == (9, 2, 1)
