"""Settings of Scrapy in a collection: those with the effect that people expect, and those that nothing reads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import MakeProject, Project, assert_same
from tests.integration.conftest import Run
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


# --- what nothing reads ---------------------------------------------------------------------------------------------


MINE = "SPIDER_MODULES=tests.integration.scrapy_habits"
RULES = "allow domain 127.0.0.1\nforbid domain *\n"


@pytest.fixture
def demo(project: MakeProject) -> Project:
    return project(collection("http://127.0.0.1:9/", rules=RULES))


SETTINGS = [
    # settings.py of the collection, what lint reports
    ("DOWNLOAD_DELAY = 0", []),
    ("DEPTH_PRIORITY = 0\nREFERER_ENABLED = False\nJOBDIR = None", []),
    ("AUTOTHROTTLE_ENABLED = True\nRETRY_HTTP_CODES = [500]\nREDIRECT_ENABLED = False", []),
    ("DUPEFILTER_CLASS = 'mine.Filter'", ["settings.py:1:1: warning: DUPEFILTER_CLASS has no effect in a collection: a URL is fetched once"]),
    ("# x\nJOBDIR = 'job'", ["settings.py:2:1: warning: JOBDIR has no effect in a collection: each start continues where"]),
    ("DOWNLOAD_SLOTS = {'a.test': {'delay': 3}}", ["DOWNLOAD_SLOTS has no effect in a collection: for pages, CRAWLSPACE_SITES sets"]),
    ("DNS_TIMEOUT = 3", ["settings.py:1:1: warning: DNS_TIMEOUT has no effect here, because it is read before the collection"]),
    ("DEPHT_LIMIT = 3", ["there is no setting DEPHT_LIMIT, so it has no effect: did you mean DEPTH_LIMIT? [misspelt-setting]"]),
    ("CONCURENT_REQUESTS = 3", ["did you mean CONCURRENT_REQUESTS?"]),
    ("ROBOTS_TXT_OBEY = True", ["did you mean ROBOTSTXT_OBEY?"]),
    ("ITEM_PIPELINE = {}", ["did you mean ITEM_PIPELINES?"]),
    ("USER_AGENTS = ['a', 'b']\nUSER_AGENT_LIST = []\nPROXY_ENABLED = True\nMYSQL_HOST = 'db'\nREDIS_HOST = 'x'\nZYTE_API_KEY = 'k'", []),
    ("USER_AGENTZ = ['a', 'b']", []),
    ("RETRY_HTTP_CODES = [500]\nCRAWLSPACE_HTTP_ERRORS = {'500': 'KEEP'}", ["settings.py:1:1: warning: where RETRY_HTTP_CODES and"]),
]  # fmt: skip


@pytest.mark.parametrize(("content", "sentences"), SETTINGS, ids=[row[0] for row in SETTINGS])
def test_settings_of_a_collection(demo: Project, run: Run, content: str, sentences: list[str]) -> None:
    demo.write({"demo/settings.py": content + "\n"})
    lint = run("lint", "demo")
    found = lint.stdout.splitlines() if sentences else []
    assert (lint.returncode, lint.stdout == "no findings\n", len(found)) == (int(bool(sentences)), not sentences, len(sentences))
    assert all(sentence in line for sentence, line in zip(sentences, found, strict=True)), lint.stdout


def test_a_start_names_them_with_their_places(project: MakeProject) -> None:
    with serve(Site({"/": page("Home")})) as server:
        made = project(collection(server.url("/"), rules=RULES, settings=FAST + "DEPHT_LIMIT = 3\n"))
        crawl = made.crawl("demo", "-s", "DUPEFILTER_CLASS=mine.Filter", "-s", "JOB_DIR=x").succeeded()
    for sentence in (
        "settings.py:6: there is no setting DEPHT_LIMIT, so it has no effect: did you mean DEPTH_LIMIT?",
        "-s: DUPEFILTER_CLASS has no effect in a collection: ",
        "-s: there is no setting JOB_DIR, so it has no effect: did you mean JOBDIR?",
    ):
        assert crawl.stderr.count(sentence) == 1
    assert crawl.stderr.count("no effect") == 3
    assert indexed(made) == ["/"]


def test_a_start_logs_only_the_first_of_many(project: MakeProject) -> None:
    names = (
        "DEPTH_PRIORITY",
        "DEPTH_STATS_VERBOSE",
        "DUPEFILTER_DEBUG",
        "RETRY_PRIORITY_ADJUST",
        "SCHEDULER_DEBUG",
        "HTTPERROR_ALLOW_ALL",
        "REFERER_ENABLED",
    )
    with serve(Site({"/": page("Home")})) as server:
        made = project(collection(server.url("/"), rules=RULES, settings=FAST + "".join(f"{name} = 1\n" for name in names)))
        crawl = made.crawl("demo").succeeded()
    assert crawl.stderr.count("has no effect in a collection") == 5
    assert "and 2 more settings or attributes without effect: `scrapy lint` lists them" in crawl.stderr


def test_attributes_of_a_spider_class(project: MakeProject) -> None:
    with serve(Site({"/": page("Home")})) as server:
        made = project({"tutorial/start_urls.txt": server.url("/"), "tutorial/crawl.rules": RULES, "tutorial/settings.py": FAST})
        lint = made.scrapy("lint", "tutorial", "-s", MINE)
        crawl = made.crawl("tutorial", "-s", MINE).succeeded()
    file = "tests/integration/scrapy_habits/spiders.py"
    for name, instead in (
        ("allowed_domains", "domain rules of crawl.rules"),
        ("rules", "crawl.rules decides which URLs are crawled"),
        ("handle_httpstatus_list", "CRAWLSPACE_HTTP_ERRORS"),
        ("start_requests", "start_urls.txt"),
    ):
        (line,) = [line for line in lint.stdout.splitlines() if f"Tutorial.{name} has no effect in a collection" in line]
        assert line.startswith(f"{file}:")
        assert line.endswith("[no-effect]")
        assert instead in line
        assert f"Tutorial.{name} has no effect in a collection" in crawl.stderr
    assert (lint.returncode, len(lint.stdout.splitlines())) == (1, 4)


def test_custom_settings_rank_between_the_project_and_the_collection(project: MakeProject) -> None:
    """Of `custom_settings`, DEPTH_LIMIT is 1, above the project's 0; the collection's file decides where it has a value of its own."""
    site = Site({"/": page("Home", links=["/a"]), "/a": page("A", links=["/b"]), "/b": page("B")})
    with serve(site) as server:
        made = project(
            {"customised/crawl.rules": RULES, "customised/start_urls.txt": server.url("/"), "customised/settings.py": FAST}
        )
        explained = made.scrapy("explain", "customised", server.url("/b"), "--depth", "2", "-s", MINE)
        made.crawl("customised", "-s", MINE).succeeded()
        assert statuses(made, "customised") == {"/": 200, "/a": 200}
        assert "refused" in explained.stdout

        made.write({"customised/settings.py": FAST + "DEPTH_LIMIT = 5\n"})
        crawl = made.crawl("customised", "-s", MINE).succeeded()
        assert statuses(made, "customised") == {"/": 200, "/a": 200, "/b": 200}
        assert (
            "DEPTH_LIMIT of custom_settings has no effect: line 6 of settings.py in the collection's folder sets it too"
            in crawl.stderr
        )
        assert "[set-twice]" in made.scrapy("lint", "customised", "-s", MINE).stdout

        made.crawl("customised", "-s", MINE, "-s", "DEPTH_LIMIT=1").succeeded()
        assert statuses(made, "customised")["/b"] == 760


def test_start_urls_of_a_class_are_known_to_every_command(project: MakeProject) -> None:
    made = project({"starting/crawl.rules": "allow domain start.test\nforbid domain *\n"})
    lint = made.scrapy("lint", "starting", "-s", MINE)
    assert (lint.returncode, lint.stdout) == (0, "no findings\n")


def test_a_finding_of_the_project_is_listed_once_for_all_collections(project: MakeProject) -> None:
    files = {
        f"{name}/{file}": content
        for name in ("one", "two")
        for file, content in (
            ("start_urls.txt", f"http://{name}.test/"),
            ("crawl.rules", f"allow domain {name}.test\nforbid domain *\n"),
        )
    }
    made = project({**files, "one/settings.py": "JOBDIR = 'x'\n"})
    lint = made.scrapy("lint", "--all", "-s", "DEPHT_LIMIT=3")
    assert [line.partition(": warning")[0] for line in lint.stdout.splitlines()] == ["-s", "one/settings.py:1:1"]


def test_the_log_level_of_a_collection(project: MakeProject) -> None:
    with serve(Site({"/": page("Home")})) as server:
        made = project(collection(server.url("/"), rules=RULES, settings=FAST + "LOG_LEVEL = 'DEBUG'\n"))
        assert "DEBUG: Crawled (200)" in made.crawl("demo").succeeded().stderr
        made.write({"demo/settings.py": FAST + "STATS_DUMP = True\n"})
        assert "'crawlspace/fetched': " in made.crawl("demo").succeeded().stderr


def test_a_spider_that_cannot_be_imported_is_a_finding(project: MakeProject) -> None:
    made = project(collection("http://127.0.0.1:9/", rules=RULES))
    lint = made.scrapy("lint", "demo", "-s", "SPIDER_MODULES=nothing.there")
    assert lint.returncode == 1
    assert "spiders: error: SPIDER_MODULES is ['nothing.there'], which cannot be imported" in lint.stdout
    assert "Traceback" not in lint.stderr
