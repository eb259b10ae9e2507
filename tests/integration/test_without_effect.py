"""What people set in Scrapy's way and nothing in a collection reads: lint and the start say so, and name what to use instead."""

from __future__ import annotations

import pytest

from tests.conftest import MakeProject, Project
from tests.integration.conftest import Run
from tests.integration.stored import FAST, collection, indexed, statuses
from tests.sites import Site, page, serve

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
