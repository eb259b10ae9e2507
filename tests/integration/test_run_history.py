"""What is kept of each run: numbers while it crawls, its summary in the end, and what was known last of one that was killed."""

from __future__ import annotations

import json
import shutil
import signal
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from crawlspace.admin.run_changes import RunChanges
from crawlspace.admin.runs import KeptRun, kept_runs, live
from crawlspace.crawl.run_events import ENDING, read_events
from crawlspace.runtime.session.paths import OpenFile
from crawlspace.state.fetch_history import fetches
from crawlspace.state.redis.workers import workers
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.views import Crawler, Share
from crawlspace.urls import parse
from tests.conftest import MakeProject, Project
from tests.due_times import make_all_due_by
from tests.integration.killed_at_commit import MarkingSite, crawl_killed
from tests.integration.stored import collection, opened, shared
from tests.integration.workers import MakeTeam, tree
from tests.sites import Site, held, page, serve, status

PAGES = {f"/{n}": page(f"Page {n}", text=f"text {n}") for n in range(20)}
SITE = {"/": page("Home", links=[*PAGES, "/missing"]), **PAGES, "/missing": status(404)}


def runs(demo: Project) -> list[KeptRun]:
    with opened(demo) as store:
        crawlers = OpenFile(store, "demo").crawlers() if isinstance(store, SqliteStore) else []
        return kept_runs(store, crawlers)


@pytest.mark.parametrize("is_shared", [False, True], ids=["sqlite", "redis"])
def test_the_summary_and_the_numbers_of_a_run_are_kept(project: MakeProject, tmp_path: Path, *, is_shared: bool) -> None:
    with serve(Site(SITE)) as server:
        demo = project(collection(server.url("/")))
        demo = shared(demo) if is_shared else demo
        demo.crawl("demo", "--summary", str(tmp_path / "summary.json")).succeeded()
        demo.crawl("demo").succeeded()
    second, first = runs(demo)
    assert (second.run, second.outcome, second.numbers.fetched) == (2, "done", 0)
    assert (first.run, first.outcome, first.numbers.fetched, first.numbers.status) == (1, "done", 22, {200: 21, 404: 1})
    numbers = first.numbers
    assert numbers.times.count == 22
    assert [(one.site, one.count) for one in numbers.slowest] == [(server.url("/").split("/")[2], 22)]
    assert sum(sum(points) for points in numbers.series.points.values()) == 22
    assert numbers.body_bytes > 22 * 20
    assert first.ended is not None
    written = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))
    kept = first.records[0].summary
    assert kept is not None
    assert written.keys() == kept.keys()
    assert {name for name in written if written[name] != kept[name]} <= {"began", "ended", "duration_s"}


def test_a_killed_run_is_kept_as_that(project: MakeProject) -> None:
    site = Site(SITE)
    site["/7"] = seventh = held(page("Seven"))
    with serve(site) as server:
        demo = project(collection(server.url("/")))
        process = demo.start("crawl", "demo")
        demo.until(lambda: "/7" in server.paths())
        with opened(demo) as store:
            assert isinstance(store, SqliteStore)
            run = live(store, OpenFile(store, "demo").crawlers())
        assert run is not None
        assert (run.run, run.records[0].process, run.ended) == (1, process.pid, None)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert [(one.run, one.outcome) for one in runs(demo)] == [(1, "killed")]
        seventh.release()
        demo.crawl("demo").succeeded()
    assert [(one.run, one.outcome) for one in runs(demo)] == [(2, "done"), (1, "killed")]


def test_a_stopped_run(project: MakeProject) -> None:
    site = Site(SITE)
    site["/7"] = seventh = held(page("Seven"))
    with serve(site) as server:
        demo = project(collection(server.url("/")))
        process = demo.start("crawl", "demo")
        demo.until(lambda: "/7" in server.paths())
        process.send_signal(signal.SIGINT)
        demo.until(lambda: "Received SIGINT" in demo.output())
        seventh.release()
        assert process.wait() == 0
    (run,) = runs(demo)
    assert (run.outcome, run.records[0].summary["outcome"]) == ("stopped", "stopped")  # type: ignore[index]


def changed(demo: Project, first: int, second: int) -> dict[str, list[str]]:
    """The URLs that changed between the ends of two runs, by kind."""
    with opened(demo) as store, RunChanges(demo.data / "demo" / "runs", store, first=first, second=second) as changes:
        assert not changes.missing
        return {
            kind.value: sorted(f"{urlsplit(one.url).path} {one.status_before}>{one.status_after}" for one in changes.urls(kind))
            for kind in changes.totals()
        }


@pytest.mark.parametrize("is_shared", [False, True], ids=["sqlite", "redis"])
def test_two_runs_are_compared(project: MakeProject, *, is_shared: bool) -> None:
    three = {f"/{name}": page(name, text=f"text of {name}") for name in "abc"}
    site = Site({"/": page("Home", links=[*three]), **three})
    with serve(site) as server:
        demo = project(collection(server.url("/")))
        demo = shared(demo) if is_shared else demo
        demo.crawl("demo").succeeded()
        site["/"] = page("Home", text="now with four", links=[*three, "/d"])
        site["/a"], site["/b"], site["/d"] = page("a", text="another"), status(404), page("d", text="text of d")
        with opened(demo) as store:
            make_all_due_by(store, 1)
        demo.crawl("demo").succeeded()
        demo.write({"demo/crawl.rules": f"forbid prefix {server.url('/c')}\n"})
        demo.crawl("demo").succeeded()
    assert changed(demo, 1, 2) == {"new": ["/d None>200"], "changed": ["/ 200>200", "/a 200>200"], "gone": ["/b 200>404"]}
    assert changed(demo, 2, 3) == {"gone": ["/c 200>760"]}
    with opened(demo) as store:
        state = store.get(server.url("/a"))
    assert state is not None
    events = [
        event
        for path in sorted((demo.data / "demo" / "runs").glob(f"*{ENDING}"))
        for event in read_events(path)
        if event.key == state.key
    ]
    assert [(one.at, one.status_after, one.change.label) for one in events] == [
        (one.at, one.status, one.change.label) for one in reversed(fetches(state))
    ]
    assert [one.change.label for one in events] == ["new", "changed"]


@pytest.mark.parametrize("number", range(1, 6))
def test_kill_9_between_the_events_and_the_store(project: MakeProject, tmp_path: Path, number: int) -> None:
    """What was written of events before the transaction is repeated by the next crawl, and the comparison is right."""
    mark = tmp_path / "mark"
    with serve(MarkingSite(SITE, mark)) as server:
        demo = project(collection(server.url("/")))
        process = crawl_killed(number, output=demo.folder / "output.txt", env=demo.env, after=mark)
        assert process.wait() == -signal.SIGKILL, process.output()
        demo.crawl("demo").succeeded()
    files = sorted((demo.data / "demo" / "runs").glob(f"*{ENDING}"))
    events = [event for path in files for event in read_events(path)]
    assert len(list(files)) == 2
    assert {event.key for event in events} == {parse(server.url(path)).key for path in SITE}
    last = {event.key: event.status_after for event in events}
    assert Counter(last.values()) == {200: 21, 404: 1}


def test_no_events_are_kept(project: MakeProject) -> None:
    with serve(Site(SITE)) as server:
        demo = project(collection(server.url("/")))
        demo.crawl("demo").succeeded()
        assert len(sorted((demo.data / "demo" / "runs").glob(f"*{ENDING}"))) == 1
        demo.crawl("demo", "-s", "CRAWLSPACE_RUNS_KEPT=0").succeeded()
    assert sorted((demo.data / "demo" / "runs").glob(f"*{ENDING}")) == []
    assert [one.run for one in runs(demo)] == [2]


def test_events_that_cannot_be_written(project: MakeProject) -> None:
    with serve(Site(SITE)) as server:
        demo = project(collection(server.url("/")))
        demo.crawl("demo").succeeded()
        folder = demo.data / "demo" / "runs"
        shutil.rmtree(folder)
        folder.write_text("no folder")
        failed = demo.crawl("demo")
    assert failed.returncode == 1
    assert f"the events of the run cannot be written to {folder} (" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert [one.run for one in runs(demo)] == [1]


def test_a_crawl_that_cannot_begin_is_no_run(project: MakeProject) -> None:
    with serve(Site(SITE)) as server:
        demo = project(collection(server.url("/")))
        demo.crawl("demo").succeeded()
        demo.write({"demo/crawl.rules": "forbid domain *\n"})
        assert demo.crawl("demo").returncode == 1
    assert [one.run for one in runs(demo)] == [1]


def test_the_numbers_of_running_workers_are_in_the_store(team: MakeTeam) -> None:
    site = tree(30)
    site["/3"] = third = held(page("Three"))  # without its five links
    with serve(site) as server:
        crew = team(server.url("/"))
        worker = crew.start()

        def seen() -> KeptRun | None:
            crawlers = [Crawler(one.process, one.since, Share(one.host, 0.0, 0, 0, 0, 0, 0, 0.0)) for one in workers(crew.store)]
            return live(crew.store, crawlers)

        def is_counted() -> bool:
            run = seen()
            return run is not None and run.numbers.fetched >= 10

        crew.until_in_redis(is_counted, "meta")
        run = seen()
        assert run is not None
        assert [one.process for one in run.records] == [worker.pid]
        third.release()
        crew.wait()
    (ended,) = kept_runs(crew.store, [])
    assert (ended.outcome, ended.numbers.fetched) == ("done", 25)
