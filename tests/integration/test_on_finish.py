"""The command of CRAWLSPACE_ON_FINISH: when it runs, what it gets, and what becomes of the crawl when it fails."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import MakeProject, Project
from tests.integration.stored import FAST, collection
from tests.quick import some
from tests.sites import Server, Site, held, page, serve, status

SITE = {"/": page("Home", links=["/a", "/missing"]), "/a": page("A"), "/missing": status(404)}
KEEP = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text(sys.stdin.read()); print('kept', *sys.argv[2:])"
WAIT = "import signal, sys; sys.stdin.read(); print('waiting', flush=True); signal.pause()"


def with_command(demo: Project, command: list[str] | str, more: str = "") -> None:
    demo.write({"demo/settings.py": f"{FAST}CRAWLSPACE_ON_FINISH = {command!r}\n{more}"})


def kept(folder: Path) -> Any:
    return json.loads((folder / "kept.json").read_text(encoding="utf-8"))


@pytest.fixture
def keeping(project: MakeProject, tmp_path: Path) -> Project:
    """A project whose collection keeps each summary in a file."""
    demo = project(collection("http://127.0.0.1:1/"))
    with_command(demo, [sys.executable, "-c", KEEP, str(tmp_path / "kept.json"), "two words"])
    return demo


def crawled(demo: Project, server: Server, *options: str, exit_status: int = 0) -> str:
    demo.write({"demo/start_urls.txt": f"{server.url('/')}\n"})
    ended = demo.crawl("demo", *options)
    assert ended.returncode == exit_status, ended.stderr
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr
    return ended.stderr


def test_it_gets_the_summary(keeping: Project, tmp_path: Path) -> None:
    with serve(Site(SITE)) as server:
        shown = crawled(keeping, server, "--summary", str(tmp_path / "summary.json"))
    assert shown.endswith("kept two words\n")
    summary = kept(tmp_path)
    assert (tmp_path / "summary.json").read_text(encoding="utf-8") == json.dumps(summary) + "\n"
    told = {name: summary[name] for name in ("collection", "outcome", "exit_status", "faults", "fetched", "pending", "status")}
    assert told == {
        "collection": "demo",
        "outcome": "done",
        "exit_status": 0,
        "faults": [],
        "fetched": 3,
        "pending": 0,
        "status": {"200": 2, "404": 1},
    }
    assert sum(summary["outcomes"].values()) == 3
    assert summary["index"] == {"documents": 2, "duplicates": 0, "pushed": 2, "deleted": 0, "outbox": 0, "parked": 0}


@pytest.mark.full
def test_it_hears_of_a_crawl_that_failed(keeping: Project, tmp_path: Path) -> None:
    ended = keeping.crawl("demo")
    assert ended.returncode == 1
    summary = kept(tmp_path)
    assert (summary["outcome"], summary["exit_status"], summary["unreachable_sites"]) == ("failed", 1, 1)
    assert summary["faults"] == ["no start site could be reached: 127.0.0.1:1 (connection refused)"]
    assert summary["unreachable"][0]["site"] == "127.0.0.1:1"


# what keeps a crawl from beginning -> a part of the fault
NOT_BEGUN = [
    ({"demo/crawl.rules": "alow domain x\n"}, "crawl.rules:1:1: "),
    ({"demo/start_urls.txt": "\n"}, "start URL"),
    ({"demo/start_urls.txt": "http://user:secret@127.0.0.1:1/\n"}, "start_urls.txt:1"),
]


@pytest.mark.parametrize(("files", "fault"), NOT_BEGUN)
def test_it_hears_of_a_crawl_that_could_not_begin(keeping: Project, tmp_path: Path, files: dict[str, str], fault: str) -> None:
    keeping.write(files)
    ended = keeping.crawl("demo")
    assert ended.returncode == 1
    summary = kept(tmp_path)
    assert (summary["outcome"], summary["fetched"], summary["index"]["documents"]) == ("failed", 0, 0)
    assert fault in summary["faults"][0]
    assert "secret" not in json.dumps(summary)


def test_it_hears_of_ctrl_c(keeping: Project, tmp_path: Path) -> None:
    slow = held(page("A"))
    with serve(Site({**SITE, "/a": slow})) as server:
        keeping.write({"demo/start_urls.txt": f"{server.url('/')}\n"})
        process = keeping.start("crawl", "demo")
        keeping.until(lambda: "/a" in server.paths())
        process.send_signal(signal.SIGINT)
        keeping.until(lambda: "Received SIGINT" in keeping.output())
        slow.release()
        assert process.wait() == 0
    assert kept(tmp_path)["outcome"] == "stopped"


FAILURES: list[tuple[str, list[str] | str, int, str]] = [
    # the command, its time-out in seconds, how it fails
    ("exit", [sys.executable, "-c", "raise SystemExit(3)"], 600, "ended with exit status 3"),
    ("it takes no input", "true", 600, ""),
    ("no shell", ["true", "| false"], 600, ""),
    ("it takes too long", [sys.executable, "-c", WAIT], 1, "was ended, because it took longer than 1 s (CRAWLSPACE_ON_FINISH_TIMEOUT)"),
    ("its children, too", ["sh", "-c", f'"$0" -c "{WAIT}"; true', sys.executable], 1, "was ended, because it took longer than 1 s (CRAWLSPACE_ON_FINISH_TIMEOUT)"),
    ("a signal", ["sh", "-c", "kill -9 $$"], 600, "was ended by the signal 9"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "command", "timeout_s", "sentence"), some(FAILURES, 2), ids=[row[0] for row in FAILURES])
def test_its_failure_is_a_sentence(
    project: MakeProject, what: str, command: list[str] | str, timeout_s: int, sentence: str
) -> None:
    demo = project(collection(""))
    with_command(demo, command, f"CRAWLSPACE_ON_FINISH_TIMEOUT = {timeout_s}\n")
    with serve(Site(SITE)) as server:
        shown = crawled(demo, server)
    program = command if isinstance(command, str) else command[0]
    found = [line.partition("ERROR: ")[2] for line in shown.splitlines() if "ERROR" in line]
    assert found == ([f"CRAWLSPACE_ON_FINISH of demo: {program} {sentence}"] if sentence else [])


# value -> a part of the sentence
WRONG: list[tuple[object, str]] = [
    ("no-such-program --password secret", "CRAWLSPACE_ON_FINISH begins with 'no-such-program', which is not found in PATH"),
    ("/etc/passwd secret", "CRAWLSPACE_ON_FINISH begins with '/etc/passwd', which is no program that can be run"),
    ("report 'secret", "CRAWLSPACE_ON_FINISH cannot be split into words (No closing quotation)"),
    (["report", 1], 'CRAWLSPACE_ON_FINISH must be a command, as in "bin/report --mail"'),
    ([""], "CRAWLSPACE_ON_FINISH must be a command"),
    (7, "CRAWLSPACE_ON_FINISH must be a command"),
]


@pytest.mark.parametrize(("value", "sentence"), WRONG, ids=[str(row[0]) for row in WRONG])
def test_a_wrong_command_is_found_before_anything_is_fetched(project: MakeProject, value: Any, sentence: str) -> None:
    demo = project(collection(""))
    with_command(demo, value)
    with serve(Site(SITE)) as server:
        shown = crawled(demo, server, exit_status=1)
        assert server.paths() == []
    assert shown.startswith(sentence)
    linted = demo.scrapy("lint", "demo")
    assert linted.returncode == 1
    assert f": error: {sentence}" in linted.stdout
    assert "settings.py:6:1: " in linted.stdout
    assert "secret" not in shown + linted.stdout


def test_a_time_limit_that_is_none(project: MakeProject) -> None:
    demo = project(collection("http://127.0.0.1:1/", settings="CRAWLSPACE_ON_FINISH_TIMEOUT = 0"))
    assert "CRAWLSPACE_ON_FINISH_TIMEOUT is 0; it must be at least 1 s" in demo.crawl("demo").stderr


def test_a_summary_that_cannot_be_written(project: MakeProject, tmp_path: Path) -> None:
    ended = project(collection("http://127.0.0.1:1/")).crawl("demo", "--summary", str(tmp_path))
    assert (ended.returncode, ended.stderr) == (
        1,
        f"the summary {tmp_path} cannot be written: Is a directory; name a file that can\n",
    )
