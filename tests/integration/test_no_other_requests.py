"""No command makes a request that is not for a page: each is run with every look-up and connection beyond the loopback refused."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command_line import ROOT, start_scrapy
from tests.conftest import MakeProject, Project
from tests.door import PASSWORD, USER, wiki
from tests.integration.stored import ARCHIVED, collection, indexed
from tests.loopback_only.sitecustomize import NOTES, refuse
from tests.servers import emptied, redis_server
from tests.sites import Server, page, serve

PAGES = 3
FILE, FOLDER, URL = "{file}", "{folder}", "{url}"
COMMANDS = [
    # in this order; {file}: one that holds a little, {folder}: an empty one, {url}: a page
    ("crawl", "demo"),
    ("crawl", "demo", "-s", "COOKIES_ENABLED=1"),
    ("reindex", "demo"),
    ("reindex", "demo", "--extract", "--processes", "1"),
    ("reindex", "demo", "--extract", "--processes", "2", "-s", "COOKIES_ENABLED=1"),
    ("add", "demo", "{url}0?new"),
    ("add", "demo", "--list", URL),
    ("archive", "demo"),
    ("archive", "demo", "--verify"),
    ("archive", "demo", "--compact"),
    ("audit", "demo"),
    ("backup", "demo", f"{FOLDER}/demo.tar"),
    ("clear-errors", "demo"),
    ("content", "demo", URL),
    ("deletions", "demo"),
    ("explain", "demo", URL),
    ("export", "demo", "-O", "-:jsonl"),
    ("export", "demo", "--markdown", f"{FOLDER}/markdown"),
    ("extract", "demo", URL),
    ("genspider", "--list"),
    ("history", "demo", URL),
    ("import-exalead", FILE, "exalead"),
    ("import-fast", FILE, "fast"),
    ("import-ibm", FOLDER, FOLDER),
    ("import-pending", "demo", FILE),
    ("letters", "demo"),
    ("links", "demo", URL),
    ("lint", "--all"),
    ("login", "demo", URL),
    ("move-host", "127.0.0.1", "demo", "demo"),
    ("plan", "demo"),
    ("recrawl", "demo", "--host", "127.0.0.1"),
    ("crawl", "demo"),
    ("refused", "demo"),
    ("restore", "demo", FILE),
    ("schedule", "demo", "--every", "1h", "--crontab"),
    ("sitemaps", "demo"),
    ("sites", "demo"),
    ("console", "--token", "program"),
    ("mcp", "demo"),
    ("search", "demo", "wiki"),
    ("sinks", "demo"),
    ("startcollection", "shop", "http://shop.example.co.uk/"),
    ("status", "demo"),
    ("urls", "demo"),
    ("forget", "demo", "{url}1"),
    ("move-store", "demo", "file", "{redis}"),
]


FILES = {
    "import-exalead": '<CrawlConfig><Crawler name="c"/></CrawlConfig>',
    "import-fast": '<CrawlerConfig><DomainSpecification name="f"/></CrawlerConfig>',
    "import-pending": "{url} default 1\n",
}
"""What is in the file of a command."""
STATUSES = {
    "lint": (1,),
    "import-exalead": (0, 1),
    "import-fast": (0, 1),
    "import-ibm": (2,),
    "import-pending": (0, 1),
    "move-host": (2,),
    "restore": (1,),
}
"""Exit statuses of those that have something to say of what they are given."""


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIKI_PASSWORD", PASSWORD)


@pytest.fixture
def server() -> Iterator[Server]:
    """A site behind a form; its pages set a cookie for a domain, about which a list of public suffixes decides."""
    door = wiki(PAGES)
    cookie = page("Cookie", text="a page with a cookie", headers={"Set-Cookie": "a=1; Domain=127.0.0.1"})
    door.site["/cookie"] = cookie
    with serve(door.site) as served:
        yield served


def test_each_command_is_run() -> None:
    assert {arguments[0] for arguments in COMMANDS} == {path.stem for path in (ROOT / "crawlspace/commands").glob("[!_]*.py")}


@pytest.mark.full
def test_nothing_but_pages_is_asked_for(project: MakeProject, server: Server, tmp_path: Path) -> None:
    entry = {
        "login": {
            "type": "form",
            "fields": {"user": USER, "password": "env:WIKI_PASSWORD"},
            "url": server.url("/login"),
        },
        "allow_plain_http": True,
    }
    settings = f"{ARCHIVED}CRAWLSPACE_SITES = {{{server.netloc!r}: {entry!r}}}\n"
    start = f"{server.url('/')}\n{server.url('/cookie')}"
    demo = project(
        collection(start, rules="allow domain *.example.co.uk\nallow domain 127.0.0.1\nforbid domain *\n", settings=settings)
    )
    emptied().close()
    places = {"url": server.url("/"), "redis": f"redis://127.0.0.1:{redis_server().port}/0"}
    found = {}
    for number, arguments in enumerate(COMMANDS):
        folder = tmp_path / str(number)
        folder.mkdir()
        file = folder / "file"
        file.write_text(FILES.get(arguments[0], "").format(**places), encoding="utf-8")
        filled = [one.format(file=file, folder=folder, **places) for one in arguments]
        found[" ".join(arguments)] = asked_for(demo, filled, folder)
    assert {command: problem for command, problem in found.items() if problem} == {}
    assert {"/", "/cookie", "/0"} <= set(indexed(demo))


def test_what_is_asked_for_is_noticed(project: MakeProject, server: Server, tmp_path: Path) -> None:
    demo = project(collection("http://elsewhere.example/", settings=ARCHIVED + "RETRY_TIMES = 0\n"))
    assert "elsewhere.example" in asked_for(demo, ["crawl", "demo"], tmp_path)


def asked_for(demo: Project, arguments: list[str], folder: Path) -> str:
    """Run a command without the network and without what an earlier program may have kept of it; return what was refused, or went wrong."""
    notes, output = folder / "notes", folder / "output"
    env = {
        **demo.env,
        NOTES: str(notes),
        "PYTHONPATH": str(ROOT / "tests/loopback_only"),
        "TLDEXTRACT_CACHE": str(folder / "cache"),
        "HOME": str(folder),
        "PATH": os.environ["PATH"],
    }
    command = start_scrapy(arguments, output=output, env=env, first=refuse)
    status = command.wait()
    refused = notes.read_text(encoding="utf-8") if notes.exists() else ""
    printed = output.read_text(encoding="utf-8")
    return refused + (printed if status not in STATUSES.get(arguments[0], (0,)) or "Traceback" in printed else "")
