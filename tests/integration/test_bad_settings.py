"""A rules.xml, weights and slots with mistakes: `scrapy crawl` does not start, and says where and why; `scrapy lint` lists them.

Both commands are run in this process, for neither comes as far as starting the reactor.
"""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from crawlspace import settings
from crawlspace.config.files import read_action_rules
from crawlspace.errors import ConfigError
from tests.command_line import CompletedRun
from tests.conftest import MakeProject, Project
from tests.integration.conftest import Run
from tests.integration.stored import collection


@pytest.fixture
def demo(project: MakeProject) -> Project:
    return project(collection("http://127.0.0.1:9/", rules="allow domain 127.0.0.1:9\nforbid domain *\n"))


LOL = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))

RULES_XML: list[tuple[str, str | bytes, str, str]] = [
    # a file, and what is said of it: its place, and a part of the sentence
    ("an unknown element", '<Rules>\n <Rule><Paht val="/a"/><Index/></Rule>\n</Rules>', "2:8", "Paht is not known; Rule holds"),
    ("an unknown action", '<Rules>\n <Rule><Path val="/a"/><Noindex/></Rule>\n</Rules>', "2:24", "did you mean NoIndex?"),
    ("an unknown attribute", '<Rules><Rule><Path val="/a" nrom="none"/><Index/></Rule></Rules>', "1:14", "did you mean norm?"),
    ("shift 3", '<Rules>\n <Rule><Path val="/a"/><Priority shift="3"/></Rule>\n</Rules>', "2:24", "from -2 (first) to 2 (last), not '3'"),
    ("a range the wrong way round", '<Rules>\n <Rule><Length val="[9:3]"/><Index/></Rule>\n</Rules>', "2:8", "9 is above 3, so no length is in this range"),
    ("an expression", '<Rules>\n <Rule><Path val="/a\\(b"/><Index/></Rule>\n</Rules>', "2:8", "\\( is not closed by \\)"),
    ("a bomb of entities", f"<!DOCTYPE Rules [<!ENTITY l0 'lol'>{LOL}]>\n<Rules group='&l9;'/>", "1:17", "a rules.xml has no DOCTYPE, and so no entities"),
    ("an entity from elsewhere", "<!DOCTYPE Rules [<!ENTITY x SYSTEM 'file:///etc/hostname'>]>\n<Rules group='&x;'/>", "1:17", "has no DOCTYPE"),
    ("not well-formed", '<Rules>\n <Rule><Path val="/a"/><Index></Rule>\n</Rules>', "2:33", "the file is not well-formed XML: mismatched tag"),
    ("no XML", "forbid domain *\n", "1:1", "the file is not well-formed XML: syntax error"),
    ("another file", "<html/>", "1:1", "the outermost element of a rules.xml is Rules, not html"),
    ("not UTF-8", b"<Rules>\n <Rule><Path val='/\xe4'/><Index/></Rule></Rules>", "2:20", "save the file as UTF-8, or name its encoding"),
    ("empty", b"", "1:1", "the file is not well-formed XML: no element found"),
    ("50 MB", b" " * 50 * 1024 * 1024, "1:1", "the file has 50.0 MiB, and 10.0 MiB is the most that is read"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "place", "sentence"), [row[1:] for row in RULES_XML], ids=[row[0] for row in RULES_XML])
def test_a_rules_xml_with_a_mistake(demo: Project, run: Run, content: str | bytes, place: str, sentence: str) -> None:
    (demo.collections / "demo" / "rules.xml").write_bytes(content if isinstance(content, bytes) else content.encode())
    crawl, lint = run("crawl", "demo"), run("lint", "demo")
    assert_one_sentence(crawl, f"rules.xml:{place}: ", sentence)
    assert lint.returncode == 1
    (finding,) = lint.stdout.splitlines()
    assert finding.startswith(f"rules.xml:{place}: error: ")
    assert sentence in finding
    assert list(demo.data.rglob("*.db")) == []


def folder(path: Path) -> None:
    path.mkdir()


def loop(path: Path) -> None:
    path.symlink_to(path)


def dangling(path: Path) -> None:
    path.symlink_to(path.parent / "moved.xml")


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def pipe(path: Path) -> None:
    os.mkfifo(path)


UNREADABLE: list[tuple[str, Callable[[Path], None], str]] = [
    # what stands in the place of the file, a part of the sentence
    ("a folder", folder, "rules.xml is not a regular file but a directory"),
    ("a link to itself", loop, "rules.xml cannot be read: Too many levels of symbolic links"),
    ("a link that leads nowhere", dangling, "rules.xml cannot be read: No such file or directory"),
    ("a file without end", endless, "rules.xml is not a regular file but a device"),
    (
        "a pipe that nobody writes to",
        pipe,
        "rules.xml is not a regular file but a pipe; put a text file in its place, or remove it",
    ),
]


@pytest.mark.parametrize(("make", "sentence"), [row[1:] for row in UNREADABLE], ids=[row[0] for row in UNREADABLE])
def test_a_rules_xml_that_cannot_be_read(demo: Project, run: Run, make: Callable[[Path], None], sentence: str) -> None:
    make(demo.collections / "demo" / "rules.xml")
    crawl, lint = run("crawl", "demo"), run("lint", "demo")
    assert_one_sentence(crawl, "rules.xml", sentence)
    assert (lint.returncode, len(lint.stdout.splitlines()), sentence in lint.stdout) == (1, 1, True)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "rules.xml").open("wb") as file:
        file.truncate(2_000_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(ConfigError, match=r"the file has 1,907\.3 MiB"):
            read_action_rules(tmp_path, vars(settings))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


SETTINGS: list[tuple[str, str, list[str]]] = [
    # setting, value, parts of the sentence: the value, what is wrong with it, the way out
    ("CRAWLSPACE_VARIABLE_DELAY", '{"Mon-Fri 9-17": 20, "Wed 16:30-18:00": 5}',
     ["'Mon-Fri 9-17' and 'Wed 16:30-18:00' overlap, as at Wed 16:30", "only one of them can apply"]),
    ("CRAWLSPACE_VARIABLE_DELAY", '{"Mom 9-17": 20}', ["['Mom 9-17'] has an unknown day 'Mom'", "did you mean 'Mon'?"]),
    ("CRAWLSPACE_VARIABLE_DELAY", '{"Mon 25:00-26:00": 20}', ["'25:00', which is no time of a day", "from 00:00 to 23:59"]),
    ("CRAWLSPACE_VARIABLE_DELAY", '{"Mon 9-17": "never"}', ["['Mon 9-17'] is 'never'", '"suspend" for no requests at all']),
    ("CRAWLSPACE_VARIABLE_DELAY", '["Mon 9-17"]', ["is ['Mon 9-17']; it must be like {"]),
    ("CRAWLSPACE_TIMEZONE", '"Europe/Berlni"', ["'Europe/Berlni', an unknown time zone", "did you mean 'Europe/Berlin'?"]),
    ("CRAWLSPACE_TIMEZONE", "2", ["is 2; it must be the name of a time zone"]),
    ("CRAWLSPACE_SOURCE_WEIGHTS", '{"refresh": -1}', ["['refresh'] is -1", "from 0 (paused) to 1,000,000"]),
    ("CRAWLSPACE_SOURCE_WEIGHTS", '{"refresh": 0.5}', ["['refresh'] is 0.5", "a weight is a whole number"]),
    ("CRAWLSPACE_SOURCE_WEIGHTS", '{"refresh": "1"}', ["['refresh'] is '1'", "a weight is a whole number"]),
    ("CRAWLSPACE_SOURCE_WEIGHTS", '{"refesh": 1}', ["an unknown source 'refesh'", "did you mean 'refresh'?"]),
    ("CRAWLSPACE_SOURCE_WEIGHTS", '{7: 1}', ["an unknown source 7", "there are user, redir, index, index_follow, follow, refresh"]),
    ("CRAWLSPACE_SOURCE_WEIGHTS", '["refresh", 1]', ["is ['refresh', 1]; it must be like {\"refresh\": 10, \"follow\": 0}"]),
    ("CRAWLSPACE_SOURCE_WEIGHTS", "[]", ["is []; it must be like {\"refresh\": 10, \"follow\": 0}"]),
    ("CRAWLSPACE_SOURCE_WEIGHTS", "0", ["is 0; it must be like {\"refresh\": 10, \"follow\": 0}"]),
    ("CRAWLSPACE_SOURCE_WEIGHTS", """'refresh=0'""", ["is 'refresh=0'; it must be like {\"refresh\": 10, \"follow\": 0}"]),
    ("CRAWLSPACE_SOURCE_WEIGHTS", """'{"refresh": -1}'""", ["['refresh'] is -1", "from 0 (paused) to 1,000,000"]),
    ("CRAWLSPACE_SOURCE_WEIGHTS", "10", ["is 10; it must be like {\"refresh\": 10, \"follow\": 0}"]),
    ("CRAWLSPACE_SOURCE_WEIGHTS", 'dict.fromkeys(["user", "redir", "index", "index_follow", "follow", "refresh"], 0)',
     ["pauses every source", "give one of them a weight above 0"]),
    ("CRAWLSPACE_MAX_SITES", "0", ["is 0; it must be at least 1"]),
    ("CRAWLSPACE_BACKOFF_MAX", '"soon"', ["is 'soon'; it must be seconds, or text like"]),
    ("CRAWLSPACE_MAX_SITE_FAILURES", "2", ["is 2; it must be at least 3"]),
    ("CRAWLSPACE_ROBOTS_DELAY_MAX", "-1", ["is -1; it must be at least 0 s"]),
    ("CRAWLSPACE_METADATA_ALONG_LINKS", '"two links"', ["is 'two links'; it must be True or False"]),
    ("CRAWLSPACE_DEFAULT_INDEX", '"perhaps"', ["is 'perhaps'; it must be True or False"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "reported"), SETTINGS, ids=[f"{row[0][11:]} {row[1][:30]}" for row in SETTINGS])
def test_a_setting_with_a_mistake(demo: Project, run: Run, name: str, value: str, reported: list[str]) -> None:
    demo.write({"demo/settings.py": f"DEPTH_LIMIT = 3\n{name} = {value}\n"})
    crawl, lint = run("crawl", "demo"), run("lint", "demo")
    assert_one_sentence(crawl, name, *reported)
    assert lint.returncode == 1
    (finding,) = lint.stdout.splitlines()
    assert finding.startswith(f"settings.py:2:1: error: {name}")
    assert [part for part in reported if part not in finding] == []


def test_lint_reports_all_files_at_once(demo: Project, run: Run) -> None:
    demo.write(
        {
            "demo/crawl.rules": "alow domain a\n",
            "demo/rules.xml": "<Rules><rule/><Rules val=''/></Rules>",
            "demo/settings.py": "CRAWLSPACE_GLOBAL_RULES = 'none.rules'\nCRAWLSPACE_SOURCE_WEIGHT = {}\n",
        }
    )
    places = [finding.partition(" ")[0] for finding in run("lint", "demo").stdout.splitlines()]
    assert places == ["crawl.rules:1:1:", "rules.xml:1:8:", "rules.xml:1:15:", "settings.py:1:1:", "settings.py:2:1:"]


def test_the_command_line_as_it_is_run(demo: Project) -> None:
    demo.write({"demo/rules.xml": "<Rules><Rule/></Rules>"})
    reported = demo.crawl("demo")
    assert (reported.returncode, reported.stderr.splitlines()[0].partition(";")[0]) == (1, "rules.xml:1:8: this Rule is empty")
    weights = demo.scrapy("lint", "demo", "-s", "CRAWLSPACE_SOURCE_WEIGHTS={")
    assert (weights.returncode, "Traceback" in weights.stderr) == (1, False)


def assert_one_sentence(run: CompletedRun, *parts: str) -> None:
    """One line reports it, with what is needed to fix it; the two that may follow show the line of the file and the place in it."""
    assert run.returncode == 1
    assert run.stdout == ""
    sentence, *shown = run.stderr.splitlines()
    assert [part for part in parts if part not in sentence] == []
    assert [line for line in shown if not line.startswith("    ")] == []
    assert len(shown) in {0, 2}


def test_the_collections_are_in_no_folder(demo: Project, tmp_path: Path) -> None:
    """In a process of its own: it is the spider loader that ends the command."""
    (tmp_path / "a file").write_text("")
    for command in (["list"], ["crawl", "demo"], ["lint", "demo"]):
        reported = demo.scrapy(*command, "-s", f"CRAWLSPACE_COLLECTIONS_DIR={tmp_path / 'a file'}")
        assert reported.returncode in (1, 2)
        assert reported.stdout == ""
        assert "a file, where the collections are, cannot be read: Not a directory" in reported.stderr
        assert "Traceback" not in reported.stderr
