"""`scrapy crawl` of several collections, one after the other, and two at the same time in one process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import ROOT
from tests.conftest import MakeProject, Project
from tests.integration.stored import FAST, statuses
from tests.notifications import LONGEST_WAIT_S
from tests.quick import some
from tests.sites import Server, Site, held, page, serve

SITE = {"/": page("Home", links=["/a"]), "/a": page("A"), "/b": page("B")}


def three(project: MakeProject, server: Server) -> Project:
    """`broken` has a mistake in its rules and comes first; `one` and `two` can be crawled."""
    return project(
        {
            "broken/start_urls.txt": server.url("/"),
            "broken/crawl.rules": "alow domain x",
            "one/start_urls.txt": server.url("/"),
            "one/settings.py": FAST,
            "two/start_urls.txt": server.url("/b"),
            "two/settings.py": FAST,
        }
    )


def rows(shown: str) -> list[list[str]]:
    """The table at the end: name, outcome, fetched, errors and documents of each."""
    table = shown.partition("\ncollection ")[2].splitlines()[1:]
    return [line.replace("not started", "not-started").split()[:5] for line in table]


@pytest.mark.full
@pytest.mark.parametrize("arguments", some([["--all"], ["broken", "one", "two"]], 1), ids=["all", "by name"])
def test_a_fault_in_one_does_not_stop_the_next(project: MakeProject, tmp_path: Path, arguments: list[str]) -> None:
    with serve(Site(SITE)) as server:
        made = three(project, server)
        ended = made.scrapy("crawl", *arguments, "--summary", str(tmp_path / "summary"))
        assert [path for path in server.paths() if path != "/robots.txt"] == ["/", "/a", "/b"]
    assert ended.returncode == 1
    assert rows(ended.stderr) == [
        ["broken", "failed", "0", "0", "0"],
        ["one", "done", "2", "0", "2"],
        ["two", "done", "1", "0", "1"],
    ]
    assert " s   crawl.rules:1:1: expected 'allow' or 'forbid'" in ended.stderr
    assert "Traceback" not in ended.stderr
    lines = (tmp_path / "summary").read_text(encoding="utf-8").splitlines()
    assert [(one["collection"], one["outcome"]) for one in map(json.loads, lines)] == [
        ("broken", "failed"),
        ("one", "done"),
        ("two", "done"),
    ]


# an export, and the titles in each file
EXPORTS = [
    (["-o", "all.jsonl"], {"all.jsonl": ["Home", "A", "B"]}),
    (["-O", "%(name)s.jsonl"], {"one.jsonl": ["Home", "A"], "two.jsonl": ["B"]}),
]


@pytest.mark.parametrize(("export", "titles"), some(EXPORTS, 1), ids=["added", "a file for each"])
def test_options_hold_for_each(project: MakeProject, tmp_path: Path, export: list[str], titles: dict[str, list[str]]) -> None:
    option, file = export
    with serve(Site(SITE)) as server:
        made = three(project, server)
        options = (option, str(tmp_path / file), "-s", "USER_AGENT=tried", "-a", "tag=x", "-L", "WARNING")
        made.scrapy("crawl", "one", "two", *options).succeeded()
        assert {request.headers["user-agent"] for request in server.requests} == {"tried"}
    exported = {
        path.name: [json.loads(line)["title"] for line in path.read_text(encoding="utf-8").splitlines()]
        for path in tmp_path.glob("*.jsonl")
    }
    assert exported == titles


@pytest.mark.parametrize("number", some([signal.SIGINT, signal.SIGTERM], 1))
def test_ctrl_c_ends_them_all(project: MakeProject, number: signal.Signals) -> None:
    slow = held(page("A"))
    with serve(Site({**SITE, "/a": slow})) as server:
        made = three(project, server)
        process = made.start("crawl", "one", "two")
        made.until(lambda: "/a" in server.paths())
        process.send_signal(number)
        made.until(lambda: f"Received {number.name}" in made.output())
        slow.release()
        assert process.wait() == 0
        assert rows(made.output()) == [["one", "stopped", "2", "0", "2"], ["two", "not-started"]]
        assert "/b" not in server.paths()


# what is asked for -> a part of the sentence
REFUSED = [
    (["one", "gone"], "no collection 'gone'"),
    (["one", "one"], "one is named twice"),
    (["one", "--all"], "name collections or give --all, not both"),
    (["one", "two", "-O", "items.jsonl"], "-O items.jsonl would be overwritten by each of the 2 collections: write %(name)s"),
    (["one", "two", "--pdb"], "--pdb is for one collection"),
    (["one", "two", "--profile", "x"], "--profile is for one collection"),
    (["one", "endless"], "endless is crawled until it is stopped (CRAWLSPACE_CONTINUOUS)"),
    (["one", "--alll"], "there is no option --alll"),
    ([], "name a collection, as in: scrapy crawl demo"),
]


@pytest.mark.parametrize(("arguments", "sentence"), REFUSED, ids=[" ".join(row[0]) for row in REFUSED])
def test_what_several_cannot_be_asked_for(project: MakeProject, arguments: list[str], sentence: str) -> None:
    made = project(
        {
            "one/start_urls.txt": "http://127.0.0.1:1/",
            "two/start_urls.txt": "http://127.0.0.1:1/",
            "endless/start_urls.txt": "http://127.0.0.1:1/",
            "endless/settings.py": "CRAWLSPACE_CONTINUOUS = True",
        }
    )
    ended = made.scrapy("crawl", *arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert sentence in ended.stderr
    assert list(made.data.iterdir()) == []


def test_all_of_none(project: MakeProject) -> None:
    made = project({})
    ended = made.scrapy("crawl", "--all")
    sentence = f"there is no collection in {made.collections} yet: scrapy startcollection makes one\n"
    assert (ended.returncode, ended.stderr) == (2, sentence)


def test_all_of_one_is_as_that_one(project: MakeProject) -> None:
    with serve(Site(SITE)) as server:
        made = project({"one/start_urls.txt": server.url("/"), "one/settings.py": FAST})
        shown = made.scrapy("crawl", "--all").succeeded().stderr
    assert "one: done. 2 fetched" in shown
    assert rows(shown) == []


CRAWL_ALL = """
import sys
from scrapy.crawler import CrawlerProcess
from scrapy.utils.project import get_project_settings

process = CrawlerProcess(get_project_settings())
for name in sys.argv[1:]:
    process.crawl(name)
process.start()
"""


@pytest.mark.parametrize("names", [("strict", "open"), ("open", "strict")])
def test_each_is_crawled_by_its_own_rules(project: MakeProject, names: tuple[str, str]) -> None:
    home, other = Site({}), Site({"/": page("Of the open one")})
    with (
        serve(home, host="127.0.0.2") as first,
        serve(other, host="127.0.0.3") as second,
        serve(Site({"/": page("Secret")}), host="127.0.0.9") as secret,
    ):
        home["/"] = page("Of the strict one", links=[secret.url()])
        settings = FAST + "ROBOTSTXT_OBEY = False\n"
        both = project(
            {
                "strict/start_urls.txt": f"{first.url()}\n",
                "strict/crawl.rules": "allow address 127.0.0.2\nforbid address 0.0.0.0/0\n",
                "strict/settings.py": settings,
                "open/start_urls.txt": f"{second.url()}\n",
                "open/crawl.rules": "allow address 127.0.0.0/8\nforbid address 127.0.0.2\n",
                "open/settings.py": settings,
            }
        )
        environment = {**os.environ, **both.env}
        command = [sys.executable, "-c", CRAWL_ALL, *names]
        subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=LONGEST_WAIT_S, check=True)
        assert (first.paths(), second.paths(), secret.paths()) == (["/"], ["/"], [])
    assert statuses(both, "strict") == {"/": 200, secret.url(): 760}
    assert statuses(both, "open") == {"/": 200}
