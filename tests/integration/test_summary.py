"""The numbers, findings and details of errors that a crawl and `scrapy status` show, and a crawl that does not end."""

from __future__ import annotations

import json
import re
import signal

import msgspec
import pytest

from crawlspace.crawl.rendering import RENDERING, LearnedRendering, RenderCounts
from crawlspace.state.render_learning import RenderGroup
from tests.conftest import MakeProject, assert_same
from tests.hostile.replies import HTML, OK, Raw, headers
from tests.http import Reply, Request
from tests.integration.stored import FAST, collection, indexed, opened, shared
from tests.sites import Site, cut_short, drop, html, page, redirect, serve, status, text

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


LARGE = page("Large", text="word " * 5_000)
# path, answer, status, what is told of it
TABLE: list[tuple[str, Reply, int, str]] = [
    ("/no-http",     Raw(b"SSH-2.0-OpenSSH\r\n\r\n"),                                          611, "what the server sends is not HTTP ("),
    ("/not-gzip",    headers(b"Content-Encoding: gzip", body=b"this is not gzip"),             611, "the body is not encoded as its headers say (BadGzipFile: "),
    ("/reset",       drop(reset=True),                                                         612, "the connection was reset before the answer was complete"),
    ("/closed",      drop(),                                                                   612, "the server closed the connection without an answer"),
    ("/cut",         cut_short(),                                                              615, "the answer was cut short"),
    ("/announced",   LARGE,                                                                    615, "bytes is larger than 4,096 bytes"),
    ("/unannounced", Raw(OK + HTML + b"Connection: close\r\n\r\n" + b"<p>word" * 5_000),       615, "the answer is larger than DOWNLOAD_MAXSIZE"),
    ("/headers",     Raw(OK + b"X-A: a\r\n" * 2_000 + b"\r\n"),                                615, "the headers are over the bounds: more than 1,000 lines, or 256 KiB"),
]  # fmt: skip
LIMITS = f"{FAST}RETRY_TIMES = 0\nDOWNLOAD_MAXSIZE = 4096\n"


@pytest.mark.parametrize("store", ["sqlite", "redis"])
def test_each_error_has_its_detail_until_it_answers_again(project: MakeProject, store: str) -> None:
    site = Site({"/robots.txt": text(""), "/": page("Home", links=[path for path, *_ in TABLE])})
    site.update({path: answer for path, answer, *_ in TABLE})
    with serve(site) as server:
        demo = project(collection(server.url("/"), settings=LIMITS))
        if store == "redis":
            shared(demo)
        run = demo.crawl("demo").succeeded()
        listed = [json.loads(line) for line in demo.scrapy("urls", "demo", "--json").succeeded().stdout.splitlines()]
        found = {one["url"]: (one["status"], one["detail"]) for one in listed}
        for path, _, code, told in TABLE:
            status, detail = found[server.url(path)]
            assert (status, told in detail) == (code, True), (path, status, detail)
        assert found[server.url("/")] == (200, None)
        assert f"    615: {server.url('')}" in run.stderr, "an example in the summary"
        explained = " ".join(demo.scrapy("explain", "demo", server.url("/reset")).succeeded().stdout.split())
        assert "the connection was reset before the answer was complete" in explained

        site["/reset"], site["/closed"] = page("Again", text="an answer"), drop(reset=True)
        demo.scrapy("recrawl", "demo", server.url("/reset"), server.url("/closed")).succeeded()
        demo.crawl("demo").succeeded()
        listed = [json.loads(line) for line in demo.scrapy("urls", "demo", "--json").succeeded().stdout.splitlines()]
        now = {one["url"]: (one["status"], one["detail"]) for one in listed}
        assert now[server.url("/reset")] == (200, None)
        assert now[server.url("/closed")] == (612, "the connection was reset before the answer was complete")
        examples = json.loads(demo.scrapy("status", "demo", "--json").succeeded().stdout)["errors"]
        assert {one["status"] for one in examples} == {611, 612, 615}


PAGES = {
    "/": page("Home", links=["/b"]),
    "/b": page("B", text="b", links=["/a"]),
    "/a": page("A", text="a", links=["/last"]),
    "/last": page("Last", text="last"),
    "/c": page("C", text="c"),
}


def test_commands_beside_a_crawl_that_goes_on(project: MakeProject) -> None:
    with serve(Site(PAGES)) as server:
        demo = project(collection(server.url(), settings=FAST + "CRAWLSPACE_CONTINUOUS = True\n"))
        process = demo.start("crawl", "demo")
        demo.until(lambda: "/last" in server.paths())  # the pages that lead to it are recorded
        demo.scrapy("recrawl", "demo", server.url("/a"), server.url("/c")).succeeded()
        demo.until(lambda: server.counts()["/a"] == 2 and server.counts()["/c"] == 1)
        demo.scrapy("forget", "demo", server.url("/b")).succeeded()
        assert f"is being crawled by process {process.pid}" in demo.scrapy("status", "demo").stdout
        assert "is being crawled by process" in demo.crawl("demo").stderr, "there is one crawl at a time"
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0
        assert "demo: stopped." in demo.output()
        demo.crawl("demo", "-s", "CRAWLSPACE_CONTINUOUS=False").succeeded()
        assert_same(indexed(demo), ["/", "/a", "/c", "/last"])
