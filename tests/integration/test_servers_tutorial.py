"""docs/servers-tutorial.md, command by command: what each prints is what the page shows, on each kind of server."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.certificates import authority
from tests.command_line import ROOT
from tests.conftest import MakeProject, Project
from tests.fault_proxy import FaultProxy
from tests.integration.test_sinks import PACE
from tests.notifications import LONGEST_WAIT_S
from tests.search_server import TYPE, search_server
from tests.solr_server import REAL as REAL_SOLR
from tests.solr_server import solr_server

PAGE = ROOT / "docs" / "servers-tutorial.md"
SITE, SERVER, SECURED, CA_FILE = (
    "http://127.0.0.1:8000",
    "http://127.0.0.1:",
    "https://search.example.com:9200",
    "/etc/ssl/our-ca.pem",
)
"""What the page has in the place of the test's own."""
TITLES = {"opensearch": "OpenSearch", "elasticsearch": "Elasticsearch", "solr": "Solr"}
LEFT_OUT = (
    "was not tried by us",
    r": [\d,]+ of [\d,]+ URL",
    r"\d URLs? so far",
    "^waiting for",
    r"\[crawlspace\.runtime\.progress\]",
)
"""Lines that a page does not show."""
BEFORE = "A page changes"
RESTORED = "The server was restored from a snapshot"


@dataclass(frozen=True, slots=True)
class Step:
    """A command with what it prints, or lines for settings.py."""

    section: str
    command: str = ""
    printed: str = ""
    settings: str = ""


def steps(kind: str) -> Iterator[Step]:
    """The steps of the page for one kind of server: those that stand below the name of another one are left out."""
    for section in re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        name = section.partition("\n")[0]
        for part in re.split(r"^### ", section, flags=re.MULTILINE):
            title = part.partition("\n")[0]
            if title == name or TITLES[kind] in title:
                yield from steps_of(name, part)


def steps_of(section: str, text: str) -> Iterator[Step]:
    """The steps of a part of a page."""
    for found in re.finditer(r"^```python\n([^`]*)^```|((?:^ {4}.*\n|^\n(?= {4}))+)", text, re.MULTILINE):
        if found[1]:
            yield Step(section, settings=found[1])
            continue
        for one in re.split(r"^ {4}\$ ", found[2], flags=re.MULTILINE)[1:]:
            command, _, printed = one.partition("\n")
            yield Step(section, command, printed)


def as_shown(text: str) -> str:
    """A text without what differs between servers and days, what is shown where something takes long, and its line breaks."""
    text = re.sub(rf"^.*(?:{'|'.join(LEFT_OUT)}).*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?", "TIME", text)
    text = re.sub(r"crawlspace \d[\w.]*\.", "crawlspace VERSION.", text)
    text = re.sub(r"^ *Disk    .*(?:\n {8,}\S.*)*", "DISK", text, flags=re.MULTILINE)
    text = re.sub(r"\b(opensearch|elasticsearch|solr) \([A-Z][A-Za-z]+ [\w.-]+\)", "SERVER", text)
    return " ".join(text.split())


class Reader:
    """Types what the page says."""

    def __init__(self, project: Project, site: str, server: str, secured: str, ca_file: Path) -> None:
        self._project = project
        self._own = {SITE: site, SECURED: secured, CA_FILE: str(ca_file)}
        self._server = server
        self._clock = 0

    def follow(self, step: Step) -> None:
        if step.settings:
            with (self._project.collections / "handbook" / "settings.py").open("a", encoding="utf-8") as settings:
                settings.write(self._with_own(step.settings))
            return
        program, *arguments = shlex.split(self._with_own(step.command))
        if program == "scrapy":
            self._scrapy(step, arguments)
        elif program == "export":
            name, _, value = arguments[0].partition("=")
            self._project.env[name] = value
        elif program not in ("docker", "python3"):
            subprocess.run(self._with_own(step.command), shell=True, cwd=self._project.folder, check=True, timeout=LONGEST_WAIT_S)
            for file in (self._project.folder / "site").iterdir():  # a reader takes longer than the second that servers go by
                self._clock += 10
                os.utime(file, (1_700_000_000 + self._clock,) * 2)

    def _scrapy(self, step: Step, arguments: list[str]) -> None:
        done = self._project.scrapy(*arguments)
        if arguments[0] == "startcollection":
            self.follow(Step(step.section, settings=PACE))
        printed = (
            (done.stdout + done.stderr).replace(f"{self._project.folder}/", "").replace(self._server, "http://127.0.0.1:9200")
        )
        for shown, own in self._own.items():
            printed = printed.replace(own, shown)
        assert as_shown(printed) == as_shown(step.printed), f"$ {step.command}\n{printed}"

    def _with_own(self, text: str) -> str:
        for shown, own in self._own.items():
            text = text.replace(shown, own)
        return re.sub(r"http://127\.0\.0\.1:(9200|8983/solr)", self._server, text)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve the files of a folder."""

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """It says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def follow(
    project: MakeProject,
    kind: str,
    url: str,
    copy: Callable[[], Any],
    restore: Callable[[Any], None],
    *,
    can_search: bool = True,
) -> None:
    """Follow the page; `copy` is made of the index before a page changes, and put back for the section about that.

    `can_search`: the server is no stand-in that cannot search.
    """
    with ExitStack() as stack:
        made = project({})
        site = stack.enter_context(served(made.folder / "site"))
        ca_file, certificate = authority(made.folder)
        address = url.removesuffix("/solr")
        proxy = stack.enter_context(closing(FaultProxy(address, certificate=certificate, login="crawler:secret")))
        reader = Reader(made, site, url, f"{proxy.url}{url.removeprefix(address)}", ca_file)
        is_restored, older = False, None
        sections = set()
        for step in steps(kind):
            sections.add(step.section)
            if step.section == BEFORE and older is None:
                older = copy()
            if step.section == RESTORED and not is_restored:
                restore(older)
                is_restored = True
            if can_search or not step.command.startswith("scrapy search"):
                reader.follow(step)
        assert {BEFORE, RESTORED} <= sections


def test_opensearch_or_elasticsearch(project: MakeProject) -> None:
    with search_server() as search:
        follow(project, TYPE, search.url, search.everything, search.put_back)


@pytest.mark.full
def test_solr(project: MakeProject) -> None:
    with solr_server() as solr:
        follow(project, "solr", solr.url, solr.everything, solr.put_back, can_search=REAL_SOLR is not None)
