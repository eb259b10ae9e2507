"""A crawl of several processes has the results of a crawl of one, loses nothing when any of them is killed, and leaves none behind."""

from __future__ import annotations

import json
import os
import random
import signal
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from crawlspace.archive.reader import ArchiveReader
from crawlspace.state.sqlite.store import SqliteStore
from tests.conftest import MakeProject, Project, assert_same
from tests.integration.stored import ARCHIVED, FAST, collection, folder, indexed, opened, records
from tests.processes import children, ends_watched
from tests.sites import Server, Site, binary, held, html, page, redirect, serve, status

PAGES = 60
OF_TIME_OR_ORDER = {
    "id", "discovered_at", "fetched_at", "next_fetch", "lease_until", "depth_from", "archived", "ordered", "history",
}  # fmt: skip
"""Fields of a URL that depend on when it was found and fetched."""
OF_PAGES = "content.documents.process"
OF_INDEX = "index.process"


def site(pages: int = PAGES) -> Site:
    """Pages with links to others, and one of each kind that a reader has to tell apart."""
    made = Site({f"/{n}": page(f"Page {n}", text=f"text of page {n}", links=links_of(n, pages)) for n in range(pages)})
    special = ["/equal", "/moved", "/missing", "/hidden", "/latin", "/plain", "/odd", "/soon"]
    made["/"] = page("Home", links=["/0", *special])
    made["/equal"] = page("Page 5", text="text of page 5", links=links_of(5, pages))
    made["/moved"], made["/target"], made["/missing"] = redirect("/target"), page("Target"), status(404)
    made["/hidden"] = html("<title>x</title><meta name=robots content='noindex, nofollow'><a href=/never>x</a>hidden")
    latin = "<meta charset=iso-8859-1><title>Grüße</title><p>äöü <a href='/p?q=ü'>x</a>".encode("iso-8859-1")
    made["/latin"] = binary(latin, "text/html")
    made["/plain"] = binary(b"just text", "text/plain")
    made["/odd"] = binary(b"<title>&#xD800;</title>" + b"\xff\xfe" * 9 + b"<p>" * 500, "text/html; charset=utf-8")
    made["/soon"] = html("<title>x</title><meta http-equiv=refresh content='0; url=/2'>")
    return made


def links_of(number: int, pages: int) -> list[str]:
    return [f"/{child}" for child in range(number * 4 + 1, number * 4 + 5) if child < pages] + ["/"]


def results(project: Project, export: Path) -> dict[str, list[Any]]:
    """What a crawl has left."""
    with opened(project) as store:
        known = {state.id: state for state in store.urls()}
        reader = ArchiveReader(folder(project), store.archive_files())
    found = {
        state.url: {name: value for name, value in structs.asdict(state).items() if name not in OF_TIME_OR_ORDER}
        | {"duplicate_of": state.duplicate_of and known[state.duplicate_of].url}
        for state in known.values()
    }
    with closing(reader):
        documents = {
            state.url: reader.document(state.archived, state.url) for state in known.values() if state.archived is not None
        }
    lines = [json.loads(line) for line in export.read_text(encoding="utf-8").splitlines()]
    return {
        "states": list(found.items()),
        "index": indexed(project),
        "documents": [(url, document and replace(document, duplicates=[])) for url, document in documents.items()],
        "records": sorted((kind, url or "") for kind, url, _ in records(project) if kind != "warcinfo"),
        "export": sorted(lines, key=lambda line: str(line["url"])),
    }


@pytest.mark.full
def test_the_results_are_those_of_one_process(project: MakeProject) -> None:
    found = []
    with serve(site(1_000)) as server:  # many are still to be read when the processes have started
        demo = project(collection(server.url("/"), rules=f"allow prefix {server.url('/')}\n", settings=ARCHIVED))
        for number in (1, 2, 4):
            demo.data = demo.folder / f"data-{number}"
            demo.env["CRAWLSPACE_DATA_DIR"] = str(demo.data)
            export = demo.folder / f"items-{number}.jsonl"
            run = demo.crawl("demo", "--processes", str(number), "-O", str(export), "-s", "STATS_DUMP=True").succeeded()
            assert ("'crawlspace/pages/read_by_processes'" in run.stderr) is (number > 1)
            found.append(results(demo, export))
            assert "Grüße" in [line["title"] for line in found[-1]["export"]]
    for several in found[1:]:
        for name, one in found[0].items():
            assert_same(map(repr, several[name]), map(repr, one))


def crawling(demo: Project, server: Server, *, after: int, processes: int = 2) -> tuple[Any, dict[int, str]]:
    """Start a crawl; return it with its processes, once it has requested so many pages and has both kinds of them."""
    process = demo.start("crawl", "demo", "--processes", str(processes))
    found: dict[int, str] = {}

    def has_all() -> bool:
        found.update(children(process.pid))
        kinds = {kind for kind in (OF_PAGES, OF_INDEX) for command in found.values() if kind in command}
        return len(server.requests) >= after and len(kinds) == 2

    demo.until(has_all)
    return process, found


@pytest.mark.full
def test_no_process_is_left_of_a_killed_crawl(project: MakeProject) -> None:
    with serve(site(400)) as server:
        demo = project(collection(server.url("/"), settings=FAST + "CONCURRENT_REQUESTS_PER_DOMAIN = 2\n"))
        process, started = crawling(demo, server, after=40, processes=3)
        assert len(started) == 3
        with ends_watched(list(started)):
            process.send_signal(signal.SIGKILL)
            process.wait()
        demo.crawl("demo", "--processes", "2").succeeded()
        assert_same([path for path in indexed(demo) if path[1:].isdigit()], [f"/{n}" for n in range(400)])


@pytest.mark.full
@pytest.mark.parametrize("kind", [OF_PAGES, OF_INDEX])
def test_a_killed_process_costs_nothing(project: MakeProject, kind: str) -> None:
    chance = random.Random(3)
    with serve(site(400)) as server:
        demo = project(collection(server.url("/"), settings=FAST))
        after = chance.randint(20, 60)
        process, started = crawling(demo, server, after=after)
        for pid, command in started.items():
            if kind in command:
                os.kill(pid, signal.SIGKILL)
        assert process.wait() == 0, process.output()
        assert "ERROR" not in process.output()
        assert max(server.counts().values()) == 1, "nothing is fetched again"
        assert_same([path for path in indexed(demo) if path[1:].isdigit()], [f"/{n}" for n in range(400)])
    with closing(SqliteStore(demo.data / "demo" / "state.db")) as store:
        store.check()


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_leaves_no_process_and_loses_nothing(project: MakeProject, times: int) -> None:
    made = site()
    made["/9"] = last = held(page("Page 9", text="text of page 9", links=links_of(9, PAGES)))
    with serve(made) as server:
        demo = project(collection(server.url("/")))
        process, started = crawling(demo, server, after=5)
        demo.until(lambda: "/9" in server.paths())
        with ends_watched(list(started)):
            process.send_signal(signal.SIGINT)
            demo.until(lambda: "Received SIGINT" in demo.output())
            if times == 2:
                process.send_signal(signal.SIGINT)
            else:
                last.release()
            process.wait()
        assert "Traceback" not in demo.output()
        if times == 2:
            last.release()
        demo.crawl("demo", "--processes", "2").succeeded()
        assert_same([path for path in indexed(demo) if path[1:].isdigit()], [f"/{n}" for n in range(PAGES)])


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (("--processes", "0"), 2, "--processes is 0; write a number from 1 to 32"),
        (("--processes", "33"), 2, "--processes is 33; write a number from 1 to 32"),
        (("--processes", "two"), 2, "argument --processes: invalid int value: 'two'"),
        (("-s", "CRAWLSPACE_PROCESSES=0"), 1, "CRAWLSPACE_PROCESSES"),
    ],
)
def test_wrong_numbers(project: MakeProject, arguments: tuple[str, ...], status: int, sentence: str) -> None:
    run = project(collection("http://127.0.0.1:9/")).crawl("demo", *arguments)
    assert (run.returncode, sentence in run.stderr, "Traceback" in run.stderr) == (status, True, False)
