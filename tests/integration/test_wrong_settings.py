"""Settings that Scrapy or a library would end a crawl for with a traceback: one sentence with the setting and its value instead."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.command_line import ROOT
from tests.conftest import MakeProject, Project
from tests.integration.conftest import Run
from tests.integration.stored import collection

WRONG = [
    # settings.py, what is said
    ("DOWNLOADER_MIDDLEWARES = 5", "DOWNLOADER_MIDDLEWARES must be a table of numbers by component"),
    ("EXTENSIONS = 'x'", "EXTENSIONS must be a table of numbers by component"),
    ("ITEM_PIPELINES = ['a']", "ITEM_PIPELINES must be a table of numbers by component"),
    ("ITEM_PIPELINES = {'a.B': 'first'}", "ITEM_PIPELINES['a.B'] is 'first'; it must be a number, or None to leave it out"),
    ("SPIDER_MIDDLEWARES = {'nope.Nope': 1}", "SPIDER_MIDDLEWARES names 'nope.Nope', which cannot be imported"),
    ("DOWNLOAD_HANDLERS = {'http': 'nope.Nope'}", "DOWNLOAD_HANDLERS names 'nope.Nope', which cannot be imported"),
    ("SCHEDULER = 'nope.x'", "SCHEDULER names 'nope.x', which cannot be imported"),
    ("FEEDS = 5", "FEEDS must be a table"),
    ("FEEDS = {'x.json': 5}", "FEEDS['x.json'] is 5; it must be a table"),
    ("DEFAULT_REQUEST_HEADERS = 5", "DEFAULT_REQUEST_HEADERS must be a table"),
    ("DOWNLOAD_SLOTS = 'x'", "DOWNLOAD_SLOTS must be a table"),
    ("REDIS_PARAMS = 'x'", "REDIS_PARAMS must be a table"),
    ("COOKIES_ENABLED = 'maybe'", "COOKIES_ENABLED is 'maybe'; it must be True or False"),
    ("CONCURRENT_ITEMS = 'many'", "CONCURRENT_ITEMS is 'many'; it must be a number"),
    ("LOG_LEVEL = 5.5", "LOG_LEVEL is 5.5; it must be one of"),
    ("LOG_FILE = '/proc/nope/x'", "LOG_FILE is '/proc/nope/x', which cannot be written"),
    ("TWISTED_REACTOR = 'twisted.internet.selectreactor.SelectReactor'", "TWISTED_REACTOR is 'twisted.internet.selectreactor.SelectReactor'"),
    ("TWISTED_REACTOR = None", "TWISTED_REACTOR is None"),
    ("CRAWLSPACE_SITES = {1: {'delay': 2}}", "CRAWLSPACE_SITES has the key 1; it must be a host"),
    ("CRAWLSPACE_SITES = {'': {}}", "CRAWLSPACE_SITES has the key ''; it must be a host"),
    ("CRAWLSPACE_SITES = {'a b': {}}", "CRAWLSPACE_SITES has the key 'a b'; it must be a host"),
    ("CRAWLSPACE_SITES = {'x': 5}", "CRAWLSPACE_SITES['x'] is 5"),
    ("import sys\nsys.exit(3)", "settings.py:2: the file ends the program (SystemExit: 3)"),
]  # fmt: skip


@pytest.fixture
def demo(project: MakeProject) -> Project:
    return project(collection("http://127.0.0.1:9/"))


@pytest.mark.parametrize(("content", "sentence"), WRONG, ids=[row[0] for row in WRONG])
def test_a_wrong_setting(demo: Project, run: Run, content: str, sentence: str) -> None:
    demo.write({"demo/settings.py": content})
    crawl = run("crawl", "demo")
    assert crawl.returncode == 1
    assert sentence in crawl.stderr
    assert len(crawl.stderr.splitlines()) == 1
    lint = run("lint", "demo")
    assert lint.returncode == 1
    assert sentence.removeprefix("settings.py:2: ") in lint.stdout
    assert "Traceback" not in lint.stderr


SERVER_OPTIONS = [
    # options in the URL of the server, what is said
    ("username=a&password=SECRET&bogus=SECRET", "there is no option 'bogus'"),
    ("retry=SECRET", "an option has a value that is not of its kind ("),
]


@pytest.mark.parametrize(("options", "sentence"), SERVER_OPTIONS)
def test_a_wrong_option_of_the_server(demo: Project, run: Run, options: str, sentence: str) -> None:
    demo.store_url = f"redis://:SECRET@127.0.0.1:1/0?{options}"
    demo.write({"demo/settings.py": f"CRAWLSPACE_STORE_URL = {demo.store_url!r}\n"})
    reported = f"Redis cannot be connected to with these settings: {sentence}"
    crawl, lint = demo.scrapy("crawl", "demo", "--nolog"), run("lint", "demo")
    assert (crawl.returncode, reported in crawl.stderr, len(crawl.stderr.splitlines())) == (1, True, 1)
    assert (lint.returncode, f"settings.py:1:1: error: {reported}" in lint.stdout, lint.stderr) == (1, True, "")
    assert [line.partition(":")[0] for line in lint.stdout.splitlines()].count("settings.py") == 1
    assert "SECRET" not in crawl.stderr + lint.stdout


@pytest.mark.parametrize("command", ["crawl", "lint", "status"])
def test_a_wrong_setting_on_the_command_line(demo: Project, command: str) -> None:
    found = demo.scrapy(command, "demo", "-s", "DOWNLOADER_MIDDLEWARES=5")
    assert (found.returncode, "Traceback" in found.stderr) == (2, False)
    assert "-s: DOWNLOADER_MIDDLEWARES must be a table of numbers by component" in found.stderr


def test_a_spider_that_only_has_the_name_of_a_collection(demo: Project) -> None:
    found = demo.scrapy("crawl", "demo", "-s", "SPIDER_MODULES=tests.integration.plain_spiders")
    assert (found.returncode, "Traceback" in found.stderr) == (1, False)
    assert (
        "has the name of the collection 'demo' and cannot crawl it: derive it from spiders.collection.CollectionSpider"
        in found.stderr
    )


def test_a_name_that_is_too_long(run: Run) -> None:
    found = run("startcollection", "a" * 300, "http://127.0.0.1/")
    assert (found.returncode, len(found.stderr) < 300, "use up to 100 letters" in found.stderr) == (2, True, True)


def test_collections_are_listed_in_a_subfolder_of_the_project() -> None:
    found = subprocess.run(
        [
            sys.executable,
            "-c",
            "from crawlspace import settings; print(settings.CRAWLSPACE_COLLECTIONS_DIR, settings.CRAWLSPACE_DATA_DIR)",
        ],
        cwd=ROOT / "tests" / "integration",
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.split() == ["../../collections", "../../data"]
