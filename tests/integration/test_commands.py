"""The commands through the command line: what they print, their exit status, and that looking changes nothing."""

from __future__ import annotations

import ast
import csv
import json
import os
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from crawlspace.clock import FakeClock
from crawlspace.config.collection import load_collection
from crawlspace.config.sinks import EMBEDDED
from crawlspace.document import Document
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.outbox import Drain
from crawlspace.model import NewUrl, Source, State
from crawlspace.rules.xml.model import ActionRuleSet
from crawlspace.rules.xml.parser import parse_rules_xml
from crawlspace.runtime.components.command import WIDTH
from crawlspace.runtime.session.paths import StateFile, collection_paths
from crawlspace.state.changes import Change
from crawlspace.state.refused_links import LETTERS, packed
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.urls import parse
from tests.command_line import ROOT, CompletedRun
from tests.conftest import MakeProject, Project
from tests.draining import drain_all
from tests.integration.conftest import Run, settings_of

NOW = 1_750_000_000
HOME = "http://www.example.com"
FILES = {
    "demo/start_urls.txt": f"{HOME}/\n",
    "demo/crawl.rules": "allow  domain www.example.com\nforbid domain *\nforbid prefix http://www.example.com/private/\n",
    "demo/settings.py": "DEPTH_LIMIT = 5\n",
}
COMMANDS = (
    "backup",
    "restore",
    "schedule",
    "startcollection",
    "explain",
    "extract",
    "history",
    "letters",
    "links",
    "lint",
    "refused",
    "status",
    "urls",
    "search",
    "export",
    "genspider",
)


@pytest.fixture
def demo(project: MakeProject) -> Project:
    return project(FILES)


def fill(store: SqliteStore) -> None:
    """Two documents, one of them with what could steer a terminal, and a page that is gone."""
    pages = {
        f"{HOME}/": Document(f"{HOME}/", title="Holidays", text="How to ask for a \x1b[31m holiday."),
        f"{HOME}/b": Document(f"{HOME}/b", title="Travel", text="Trains before planes."),
        f"{HOME}/gone": None,
    }
    for depth, (url, document) in enumerate(pages.items()):
        parsed = parse(url)
        store.discover([NewUrl(parsed.key, url, parsed.site, Source.INDEX_FOLLOW, 0, depth, 0, 1)], now=NOW)
        state = store.get(url)
        assert state is not None
        state.state, state.status = (State.DONE, 200) if document else (State.GONE, 404)
        state.fetched_at, state.next_fetch = NOW, NOW + 86_400
        state.checksum = bytes([depth]) * 16 if document else None
        state.refused = "p1" if document else None
        store.record([Change(state, document=document)], now=NOW)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_explains_itself(run: Run, command: str) -> None:
    help_text = run(command, "--help").succeeded().stdout
    assert f"scrapy {command} " in help_text
    assert "Exit status: 0" in " ".join(help_text.split())


def test_before_the_first_crawl(demo: Project, run: Run) -> None:
    assert demo.scrapy("list").succeeded().stdout == "demo\n"
    assert demo.scrapy("settings", "--get", "CRAWLSPACE_DATA_DIR").succeeded().stdout == f"{demo.data}\n"
    assert "demo has never been crawled" in demo.scrapy("status", "demo").succeeded().stdout
    assert as_json(run("status", "demo", "--json"))["index"]["documents"] == 0
    assert run("urls", "demo").succeeded().stdout == ""
    assert run("search", "demo", "holiday").succeeded().stdout.startswith("no hits: demo has never been crawled")
    assert as_json(run("explain", "demo", f"{HOME}/a", "--json"))["state"] is None
    assert list(demo.data.iterdir()) == []


def test_a_collection_made_by_command(demo: Project, run: Run) -> None:
    made = run("startcollection", "shop", "http://Shop.example:8080/a%7eb", "https://shop.example").succeeded()
    assert made.stdout.splitlines()[1:] == [
        "  scrapy lint shop",
        "  scrapy crawl shop",
        "All of shop.example is crawled. To keep to a folder, give its URL with a slash at the end, as in:",
        "  scrapy startcollection shop http://shop.example:8080/a~b/",
    ]
    shop = demo.collections / "shop"
    assert uncommented(shop / "start_urls.txt") == ["http://shop.example:8080/a~b", "https://shop.example/"]
    assert uncommented(shop / "crawl.rules") == [
        "allow  domain shop.example:8080",
        "allow  domain shop.example",
        "forbid domain *",
    ]
    assert uncommented(shop / "settings.py") == []
    assert run("lint", "shop").succeeded().stdout == "no findings\n"
    # the rules and settings that are proposed must load, too
    for file in ("crawl.rules", "settings.py"):
        lines = (shop / file).read_text(encoding="utf-8").splitlines()
        (shop / file).write_text("".join(line.removeprefix("#") + "\n" for line in lines if not line.startswith("# ")))
    assert " error" not in run("lint", "shop").stdout


def test_the_rules_xml_of_a_new_collection(demo: Project, run: Run) -> None:
    run("startcollection", "shop", "http://shop.example/").succeeded()
    written = (demo.collections / "shop" / "rules.xml").read_bytes()
    assert parse_rules_xml(written, file="rules.xml") == ActionRuleSet()
    # each rule that is proposed must load, alone and with the others
    proposed = re.findall(rb"(<!--[^<>]*)(<Rule>.*?</Rule>)(\s*-->)", written, re.DOTALL)
    reported = [
        [rule.ref.text for rule in parse_rules_xml(written.replace(b"".join(parts), parts[1]), file="rules.xml").rules]
        for parts in proposed
    ]
    assert reported == [
        ["Or(Path /archive/, InQuery page=): NoIndex"],
        [r"Or(Path /calendar/\[0-9\]\{4\}/, InQuery sessionid=, Length url [500:]): Ignore"],
        ["Domain example.com: Source website, AddMeta department=sales"],
        ["Path /news/: Priority -2"],
    ]
    for before, rule, background in proposed:
        written = written.replace(before + rule + background, rule)
    assert len(parse_rules_xml(written, file="rules.xml").rules) == len(proposed)


# arguments -> a part of the sentence; nothing is made
WRONG = [
    (("startcollection", "demo", f"{HOME}/"), "exists already"),
    (("startcollection", "../out", f"{HOME}/"), "cannot name a collection"),
    (
        ("startcollection", "shop", f"{HOME}/", "shop.example/a"),
        "write http:// or https:// before the host, as in http://shop.example/a",
    ),
    (("explain", "demo"), "name a collection and a URL"),
    (("links", "demo"), "name a collection and a URL"),
    (("refused",), "name one collection"),
    (("refused", "demo", "--reason", "colour"), "invalid choice: 'colour'"),
    (("refused", "demo", "--host", "www.example.com:8080"), "is no host: write it without scheme, port and path"),
    (("explain", "demo", f"{HOME}/", "--adress", "10.0.0.1"), "there is no option --adress"),
    (("explain", "demo", f"{HOME}/", "--address", "www.example.com"), "'www.example.com' is not an IP address"),
    (("status", "dmeo"), "no collection 'dmeo'"),
    (("lint", "demo", "--all"), "not both"),
    (("urls", "demo", "--status", "abc"), "'abc' is no status code"),
    (("search", "demo"), "give a collection and search words"),
    (("search", "demo", "-x"), "there is no option -x"),
    (("search", "demo", "x", "--limit", "0"), "--limit is 0; it must be at least 1"),
    (("search", "demo", "x", "--offset", "-1"), "--offset is -1; it must be at least 0"),
    (("search", "demo", "x", "--filter", "colour=red"), "the filter 'colour=red' is none: write FIELD=VALUE"),
    (("search", "demo", "x", "--filter", "modified=soon"), "the filter 'modified=soon' has no such days"),
    (("search", "demo", "x", "--facet", "colour"), "there is no facet 'colour': there are host, language, type"),
]


@pytest.mark.parametrize(("arguments", "sentence"), WRONG, ids=[" ".join(row[0]) for row in WRONG])
def test_wrong_use(demo: Project, run: Run, arguments: tuple[str, ...], sentence: str) -> None:
    ended = run(*arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert sentence in ended.stderr
    assert [folder.name for folder in demo.collections.iterdir()] == ["demo"]


def test_a_collection_with_a_mistake(demo: Project, run: Run) -> None:
    demo.write({"demo/crawl.rules": "alow domain a\nforbid domian b\n"})
    lint = run("lint", "demo")
    places = [line.partition(": error: ")[0] for line in lint.stdout.splitlines()]
    assert (lint.returncode, places) == (1, ["crawl.rules:1:1", "crawl.rules:2:8"])
    findings = as_json(run("lint", "--all", "--json"), status=1)
    assert [(one["file"], one["line"], one["column"], one["level"], one["code"]) for one in findings] == [
        ("demo/crawl.rules", 1, 1, "error", "syntax"),
        ("demo/crawl.rules", 2, 8, "error", "syntax"),
    ]
    explained = run("explain", "demo", f"{HOME}/")
    assert (explained.returncode, explained.stdout, explained.stderr.splitlines()[2]) == (1, "", "    ^")
    assert run("status", "demo").returncode == 0


def test_no_line_is_too_long(demo: Project, run: Run) -> None:
    demo.write({"demo/settings.py": "CRAWLSPACE_FOLLOW_OFFSITE_LINKS = False\n", "demo/crawl.rules": ""})
    (demo.data / "demo").mkdir()
    with closing(SqliteStore(demo.data / "demo" / "state.db", sinks=(EMBEDDED,))) as store:
        fill(store)
        state = next(store.urls())
        state.refused = packed(dict.fromkeys(LETTERS, 1_000_000))
        store.record([Change(state)], now=NOW)
    for shown in (run("status", "demo"), run("explain", "demo", "http://other.example/")):
        assert max(map(len, shown.succeeded().stdout.splitlines())) <= WIDTH


def test_while_it_is_crawled(demo: Project, run: Run) -> None:
    folder = demo.data / "demo"
    folder.mkdir()
    with closing(SqliteStore.open_for_crawl(folder / "state.db", clock=FakeClock(NOW), sinks=(EMBEDDED,))) as store:
        fill(store)
        with closing(EmbeddedIndex(folder / "index.db", name=EMBEDDED)) as index:
            drain_all(Drain(store, index, FakeClock(NOW)))
            looked_at(demo, run)
        store.discover([NewUrl(1, f"{HOME}/later", "www.example.com:80", Source.INDEX_FOLLOW, 0, 1, 0, 1)], now=NOW)


def looked_at(demo: Project, run: Run) -> None:
    numbers = as_json(run("status", "demo", "--json"))
    assert (numbers["crawling"], numbers["since"]) == (os.getpid(), "2025-06-15T15:06:40Z")
    assert (numbers["urls"]["done"], numbers["status"], numbers["refused"]) == (2, {"200": 2, "404": 1}, {"prefix": 2})
    assert numbers["index"]["documents"] == 2
    shown = demo.scrapy("status", "demo").succeeded().stdout
    assert f"is being crawled by process {os.getpid()}" in shown
    assert "404                          1   Not Found" in shown

    assert run("urls", "demo").succeeded().stdout.split() == [
        *("done", "200", "0", f"{HOME}/"),
        *("done", "200", "1", f"{HOME}/b"),
        *("gone", "404", "2", f"{HOME}/gone"),
    ]
    assert as_json(run("urls", "demo", "--format", "jsonl", "--status", "4xx")) == {
        "url": f"{HOME}/gone",
        "state": "gone",
        "status": 404,
        "depth": 2,
        "source": "index_follow",
        "shift": 0,
        "priority": 20,
        "errors": 0,
        "last_fetch": "2025-06-15T15:06:40Z",
        "next_fetch": "2025-06-16T15:06:40Z",
        "indexed": False,
        "indexed_at": None,
        "orphaned": False,
        "left_to_others": False,
        "lost": False,
        "held": None,
        "duplicate_of": None,
        "detail": None,
        "fetches": [{"at": "2025-06-15T15:06:40Z", "status": 404, "took_s": None, "document": None}],
    }

    table = list(csv.DictReader(run("urls", "demo", "--format", "csv").succeeded().stdout.splitlines()))
    assert [(row["url"], row["status"], row["indexed"], row["indexed_at"], row["duplicate_of"]) for row in table] == [
        (f"{HOME}/", "200", "True", "2025-06-15T15:06:40Z", ""),
        (f"{HOME}/b", "200", "True", "2025-06-15T15:06:40Z", ""),
        (f"{HOME}/gone", "404", "False", "", ""),
    ]

    found = demo.scrapy("search", "demo", "holiday").succeeded().stdout
    assert found == f"1.  Holidays\n    {HOME}/\n    How to ask for a \\x1b[31m [holiday].\n\n1 hit\n"
    hits = as_json(run("search", "demo", "trains -holiday", "--json"))
    assert (hits["total"], hits["hits"][0]["url"], hits["hits"][0]["title"]) == (1, f"{HOME}/b", "Travel")
    assert (hits["hits"][0]["snippet"], hits["hits"][0]["found"]) == ("Trains before planes.", [[0, 6]])
    assert run("search", "demo", "zebra").succeeded().stdout == "no hits\n"
    some = run("search", "demo", "holiday", "zebra", "--facet", "host", "--filter", "host=www.example.com").succeeded().stdout
    assert some == (
        f"With some of the words:\n\n1.  Holidays\n    {HOME}/\n    How to ask for a \\x1b[31m [holiday].\n\n0 hits with all words\n"
    )
    after = run("search", "demo", "trains", "--offset", "5", "--facet", "host").succeeded().stdout
    assert after == "1 hit, none after 5\n\nhost\n        1  www.example.com\n"

    explained = run("explain", "demo", "private/x", "--from", f"{HOME}/b").succeeded().stdout
    assert explained.startswith(
        f"{HOME}/private/x\nrefused      a prefix rule forbids the URL (prefix)\nby           crawl.rules:3: "
    )
    assert "404 Not Found; 2 links from a start URL" in run("explain", "demo", f"{HOME}/gone").succeeded().stdout
    assert "200 OK; 1 link from a start URL" in run("explain", "demo", f"{HOME}/b").succeeded().stdout
    assert as_json(run("explain", "demo", f"{HOME}/b", "-s", "DEPTH_LIMIT=0", "--json"))["admitted"]
    assert as_json(run("explain", "demo", f"{HOME}/b", "--depth", "6", "--json"))["reason"] == "link_depth"


@pytest.mark.full
def test_a_reader_that_has_had_enough(demo: Project) -> None:
    folder = demo.data / "demo"
    folder.mkdir()
    with closing(SqliteStore(folder / "state.db", sinks=(EMBEDDED,))) as store:
        found = [parse(f"{HOME}/{number}") for number in range(5_000)]
        store.discover([NewUrl(url.key, url.text, url.site, Source.INDEX_FOLLOW, 0, 1, 0, 1) for url in found], now=NOW)
    with subprocess.Popen(
        [sys.executable, "-m", "scrapy", "urls", "demo"],
        cwd=ROOT,
        env={**os.environ, **demo.env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("pending")
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait() == 0


def test_a_store_that_is_none(demo: Project, run: Run) -> None:
    (demo.data / "demo").mkdir()
    (demo.data / "demo" / "state.db").write_text("this is not a database, " * 100)
    for arguments in (("status", "demo"), ("urls", "demo"), ("explain", "demo", f"{HOME}/")):
        ended = run(*arguments)
        assert (ended.returncode, ended.stdout) == (1, "")
        assert "is damaged or not a state file" in ended.stderr


@pytest.mark.full
@pytest.mark.parametrize(
    "words", [["status", "demo"], ["explain", "demo", f"{HOME}/"], ["list"], ["search", "demo", "x"]], ids=" ".join
)
def test_a_command_that_only_looks_does_not_import_what_a_crawl_needs(demo: Project, words: list[str]) -> None:
    code = (
        "import sys; sys.argv[0] = 'scrapy'; from scrapy.cmdline import execute\n"
        "try: execute()\nfinally: print(*{'redis', 'aiohttp', 'pycurl', 'pypdfium2', 'scrapy.core.downloader.contextfactory',"
        " 'crawlspace.commands.console', 'crawlspace.runtime.components.scheduler'} & {*sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=ROOT,
        env={**os.environ, **demo.env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[-1] == "", done.stdout + done.stderr


@pytest.mark.full
@pytest.mark.parametrize(
    ("module", "packages"),
    [
        ("crawlspace.commands.crawl", ["crawlspace", "crawlspace.commands"]),
        ("crawlspace.runtime.session.replay_process", ["crawlspace", "crawlspace.runtime", "crawlspace.runtime.session"]),
    ],
)
def test_the_http_client_is_loaded_before_all_else(module: str, packages: list[str]) -> None:
    """As it is loaded it looks at the call stack, and that took a quarter of the start where it was imported from deep within."""
    code = f"import sys, {module}; names = list(sys.modules); print(names[:names.index('scrapy.core.downloader.contextfactory')])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert [name for name in ast.literal_eval(done.stdout) if name.startswith("crawlspace")] == packages


def test_the_files_are_those_of_the_crawl(demo: Project) -> None:
    settings = settings_of(demo)
    collection = load_collection("demo", settings)
    place = collection_paths("demo", demo.collections / "demo", settings)
    assert isinstance(place.store, StateFile)
    assert (place.store.path, place.index_file) == (collection.store_file, collection.index_file)


def as_json(run: CompletedRun, *, status: int = 0) -> Any:
    assert run.returncode == status, run.stderr
    return json.loads(run.stdout)


def uncommented(file: Path) -> list[str]:
    return [line for line in file.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
