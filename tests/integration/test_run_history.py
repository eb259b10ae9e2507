"""What is kept of each run: numbers while it crawls, its summary in the end, and what was known last of one that was killed."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from crawlspace.admin.runs import KeptRun, kept_runs, live
from crawlspace.runtime.session.paths import OpenFile
from crawlspace.state.redis.workers import workers
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.views import Crawler, Share
from tests.conftest import MakeProject, Project
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
