"""Settings of Scrapy whose work is done by other parts in a collection: they have the effect that people know."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import MakeProject, assert_same
from tests.integration.stored import FAST, collection, indexed, statuses
from tests.quick import some
from tests.sites import Answer, Site, page, redirect, serve, slow, status, text

META_REFRESH = '<meta http-equiv="refresh" content="0; url=/next">'
ROBOTS = {"/robots.txt": status(404)}
CODES: dict[str, Answer] = {"/500": status(500), "/503": status(503), "/404": status(404)}

FETCHED = [
    # settings; how often each path is asked for; the status of each
    ("", {"/500": 3, "/503": 3, "/404": 1}),
    ("RETRY_TIMES = 1", {"/500": 2, "/503": 2, "/404": 1}),
    ("RETRY_ENABLED = False", {"/500": 1, "/503": 1, "/404": 1}),
    ("RETRY_HTTP_CODES = [503, 404]", {"/500": 1, "/503": 3, "/404": 3}),
    ("RETRY_HTTP_CODES = []", {"/500": 1, "/503": 1, "/404": 1}),
    ("RETRY_HTTP_CODES = '404, 500'", {"/500": 3, "/503": 1, "/404": 3}),
    ("RETRY_HTTP_CODES = [503, 404]\nCRAWLSPACE_HTTP_ERRORS = {'404': 'DELETE, RETRY', '500': 'DELETE:2, RETRY:1'}", {"/500": 2, "/503": 3, "/404": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "counts"), some(FETCHED, 2), ids=[row[0] for row in FETCHED])
def test_which_errors_are_tried_again(project: MakeProject, settings: str, counts: dict[str, int]) -> None:
    with serve(Site({"/": page("Home", links=list(CODES)), **CODES, **ROBOTS})) as server:
        project(collection(server.url("/"), settings=f"{FAST}{settings}\n")).crawl("demo").succeeded()
        assert {path: server.counts()[path] for path in counts} == counts


WRONG = [
    ("RETRY_HTTP_CODES = [302]", "RETRY_HTTP_CODES has 302; it may hold codes from 400 to 599"),
    ("RETRY_HTTP_CODES = 5", "RETRY_HTTP_CODES has 5; it may hold codes"),
    ("RETRY_HTTP_CODES = ['x']", "RETRY_HTTP_CODES has 'x'; it may hold codes"),
    ("METAREFRESH_ENABLED = 'no way'", "METAREFRESH_ENABLED is 'no way'; it must be True or False"),
]


@pytest.mark.parametrize(("setting", "sentence"), WRONG)
def test_a_wrong_value_is_one_sentence(project: MakeProject, setting: str, sentence: str) -> None:
    made = project(collection("http://127.0.0.1:9/", settings=setting))
    crawl = made.crawl("demo")
    assert (crawl.returncode, len(crawl.stderr.splitlines())) == (1, 1)
    assert sentence in crawl.stderr
    assert sentence in made.scrapy("lint", "demo").stdout


def test_redirects_that_are_not_followed(project: MakeProject) -> None:
    """The redirect is an outcome like any other, and its target no URL of the collection."""
    with serve(Site({"/": page("Home", links=["/old"]), "/old": redirect("/new"), "/new": page("New"), **ROBOTS})) as server:
        made = project(collection(server.url("/"), settings=FAST + "REDIRECT_ENABLED = False\n"))
        made.crawl("demo").succeeded()
    assert statuses(made) == {"/": 200, "/old": 302}
    assert "/new" not in server.paths()


def test_meta_refreshes_that_are_not_followed(project: MakeProject) -> None:
    with serve(
        Site({"/": page("Home", head=META_REFRESH, links=["/a"]), "/a": page("A"), "/next": page("Next"), **ROBOTS})
    ) as server:
        made = project(collection(server.url("/"), settings=FAST + "METAREFRESH_ENABLED = False\n"))
        made.crawl("demo").succeeded()
        assert_same(server.paths(), ["/robots.txt", "/", "/a"])
        followed = project(collection(server.url("/")))
        followed.crawl("demo").succeeded()
        assert server.counts()["/next"] == 1


@pytest.mark.full
def test_autothrottle_keeps_each_site_at_its_latency(project: MakeProject) -> None:
    """Two hosts: the delay of the slow one is never below its latency, and that of the fast one follows its own."""
    paths = [f"/{n}" for n in range(6)]
    fast = Site({"/": page("Fast", links=paths), **{path: page(path) for path in paths}, **ROBOTS})
    late = Site(
        {"/": slow(page("Late", links=paths), 0.4), **{path: slow(page(f"late {path}"), 0.4) for path in paths}, **ROBOTS}
    )
    settings = FAST + "AUTOTHROTTLE_ENABLED = True\nAUTOTHROTTLE_START_DELAY = 0.1\nAUTOTHROTTLE_DEBUG = True\n"
    with serve(fast) as one, serve(late, host="127.0.0.2") as other:
        made = project(collection(f"{one.url('/')}\n{other.url('/')}", settings=settings))
        crawl = made.crawl("demo").succeeded()
        line = r"delay (\d+) ms \(.*\), latency (\d+) ms"
        logged = [re.findall(f"{server.netloc}: {line}", crawl.stderr) for server in (one, other)]
    assert len(indexed(made)) == 14
    assert [len(found) for found in logged] == [7, 7]
    for found in logged:
        before_ms = 100.0
        for delay_ms, latency_ms in ((int(delay), int(latency)) for delay, latency in found):
            assert delay_ms == pytest.approx(
                max(latency_ms, (before_ms + latency_ms) / 2), abs=2
            )  # they are logged as whole numbers
            before_ms = delay_ms
    assert min(int(delay) for delay, _ in logged[1]) >= 400


CLOSED = [
    # a setting; Scrapy's reason; the least number of requests, where it is not a matter of the machine
    ("CLOSESPIDER_ITEMCOUNT = 2", "closespider_itemcount", 2),
    ("CLOSESPIDER_PAGECOUNT = 3", "closespider_pagecount", 2),
    ("CLOSESPIDER_ERRORCOUNT = 2", "closespider_errorcount", 2),
    ("CLOSESPIDER_TIMEOUT = 1", "closespider_timeout", 0),
    ("CLOSESPIDER_TIMEOUT_NO_ITEM = 1", "closespider_timeout_no_item", 0),
    ("CLOSESPIDER_PAGECOUNT_NO_ITEM = 2", "closespider_pagecount_no_item", 2),
]


@pytest.mark.parametrize(("setting", "reason", "least"), some(CLOSED, 2))
def test_a_crawl_is_closed_as_in_scrapy_and_continued_by_the_next_start(
    project: MakeProject, setting: str, reason: str, least: int
) -> None:
    """The class breaks on half of the pages, which are so slow that none of the limits comes too late."""
    paths = [f"/{n}" for n in range(12)]
    site = Site({"/": page("Home", links=paths), **{path: slow(page(path), 0.3) for path in paths}, **ROBOTS})
    with serve(site) as server:
        files = {
            "half/start_urls.txt": server.url("/"),
            "half/settings.py": FAST + f"CONCURRENT_REQUESTS_PER_DOMAIN = 1\n{setting}\n",
        }
        made = project(files)
        crawl = made.crawl("half", "-s", "SPIDER_MODULES=tests.integration.scrapy_habits", "-s", "STATS_DUMP=True")
        asked = len(server.paths())
    assert f"'finish_reason': '{reason}'" in crawl.stderr
    assert least <= asked < 2 + len(paths)
    assert "left for the next start" in crawl.stderr


def test_the_http_cache_answers_for_the_site(project: MakeProject) -> None:
    with serve(Site({"/": page("Home", links=["/a"]), "/a": page("A"), **ROBOTS})) as server:
        made = project(collection(server.url("/")))
        cached = ("-s", "HTTPCACHE_ENABLED=True", "-s", f"HTTPCACHE_DIR={made.folder / 'cache'}")
        made.crawl("demo", *cached).succeeded()
        server.forget()
        made.scrapy("recrawl", "demo", server.url("/a")).succeeded()
        made.crawl("demo", *cached).succeeded()
        assert server.paths() == []
    assert statuses(made) == {"/": 200, "/a": 200}


def test_feeds_take_their_options_from_scrapy(project: MakeProject, tmp_path: Path) -> None:
    """A filter, the fields and their names."""
    csv = tmp_path / "out.csv"
    feeds = {
        str(csv): {
            "format": "csv",
            "fields": {"title": "Name"},
            "item_filter": "tests.integration.scrapy_habits.spiders.OnlyShort",
        }
    }
    with serve(Site({"/": page("Home", links=["/a"]), "/a": page("A long title"), **ROBOTS})) as server:
        project(collection(server.url("/"), settings=FAST + f"FEEDS = {feeds!r}\n")).crawl("demo").succeeded()
    assert csv.read_text(encoding="utf-8").split() == ["Name", "Home"]


def test_basic_authentication_of_scrapy(project: MakeProject) -> None:
    """For HTTPAUTH_DOMAIN, which Scrapy compares with the port where the URL has one, and for no other host."""
    with serve(Site({"/": page("Home"), **ROBOTS})) as server:
        with serve(Site({"/": page("Elsewhere"), **ROBOTS}), host="127.0.0.2") as other:
            auth = f"HTTPAUTH_USER = 'me'\nHTTPAUTH_PASS = 'secret'\nHTTPAUTH_DOMAIN = '{server.netloc}'\n"
            project(collection(f"{server.url('/')}\n{other.url('/')}", settings=FAST + auth)).crawl("demo").succeeded()
    assert [request.headers.get("authorization") for request in server.requests] == ["Basic bWU6c2VjcmV0"] * 2
    assert [request.headers.get("authorization") for request in other.requests] == [None] * 2


def test_the_user_agent_of_a_class(project: MakeProject) -> None:
    """It is sent, and looked for in robots.txt."""
    robots = text("User-agent: lampbot\nDisallow: /private\n")
    with serve(Site({"/": page("Home", links=["/private"]), "/private": page("Private"), "/robots.txt": robots})) as server:
        made = project({"lamps/start_urls.txt": server.url("/"), "lamps/settings.py": FAST})
        made.crawl("lamps", "-s", "SPIDER_MODULES=tests.integration.scrapy_habits").succeeded()
    assert {request.headers["user-agent"] for request in server.requests} == {"lampbot/2.0"}
    assert statuses(made, "lamps") == {"/": 200, "/private": 740}
