"""`scrapy reindex` sends what is archived again, without a request."""

from __future__ import annotations

import shutil

import pytest

from tests.conftest import MakeProject, Project
from tests.integration.stored import ARCHIVED, collection, files, folder, indexed, shared, states
from tests.sites import Site, held, page, serve

SITE = {"/": page("Home", links=["/a", "/b", "/c"]), "/a": page("A"), "/b": page("B", text="same"), "/c": page("B", text="same")}


def lose_index(demo: Project) -> None:
    for file in (demo.data / "demo").glob("index.db*"):
        file.unlink()


@pytest.mark.parametrize("is_shared", [False, True])
def test_an_index_that_was_lost_is_made_again(project: MakeProject, *, is_shared: bool) -> None:
    with serve(Site(SITE)) as server:
        demo = project(collection(server.url("/"), settings=ARCHIVED))
        if is_shared:
            shared(demo)
        demo.crawl("demo").succeeded()
        before, asked = indexed(demo), len(server.paths())
        found = demo.scrapy("export", "demo", "-O", "-:jsonl").succeeded().stdout
        lose_index(demo)
        refused = demo.scrapy("search", "demo", "same")
        assert refused.returncode == 1
        assert is_shared or "`scrapy reindex demo` rebuilds it" in refused.stderr
        assert demo.scrapy("reindex", "demo").succeeded().stdout == "demo: 3 documents were sent again\n"
        assert indexed(demo) == before
        assert sorted(demo.scrapy("export", "demo", "-O", "-:jsonl").succeeded().stdout) == sorted(found)
        assert demo.scrapy("reindex", "demo").succeeded().stdout == "demo: 3 documents were sent again\n"
        again = demo.crawl("demo").succeeded()
        assert "fetched and sent again" not in again.stderr
        assert len(server.paths()) == asked


def test_a_start_without_the_index_names_the_way_without_requests(project: MakeProject) -> None:
    with serve(Site(SITE)) as server:
        demo = project(collection(server.url("/"), settings=ARCHIVED))
        demo.crawl("demo").succeeded()
        lose_index(demo)
        said = demo.crawl("demo").succeeded().stderr
    assert "3 documents are fetched and sent again; `scrapy reindex demo` sends without fetching what the archive has" in said


def test_an_older_index_has_afterwards_what_the_store_has(project: MakeProject) -> None:
    with serve(Site(SITE)) as server:
        demo = project(collection(server.url("/"), settings=ARCHIVED))
        demo.crawl("demo").succeeded()
        shutil.copy(demo.data / "demo/index.db", demo.folder / "older.db")
        demo.scrapy("forget", "demo", server.url("/a")).succeeded()
        lose_index(demo)
        shutil.copy(demo.folder / "older.db", demo.data / "demo/index.db")
        demo.scrapy("reindex", "demo").succeeded()
        assert indexed(demo) == ["/", "/b"]


def test_what_has_no_record_is_fetched_by_the_next_crawl(project: MakeProject) -> None:
    with serve(Site(SITE)) as server:
        demo = project(collection(server.url("/"), settings=ARCHIVED))
        demo.crawl("demo").succeeded()
        shutil.rmtree(folder(demo))
        listed = demo.scrapy("urls", "demo", "--not-archived").succeeded().stdout.split()
        assert listed[3::4] == [server.url(path) for path in ("/", "/a", "/b", "/c")]
        lose_index(demo)
        done = demo.scrapy("reindex", "demo")
        assert done.returncode == 1
        assert done.stdout == (
            "demo: 1 document was sent again; 2 have no record in the archive: the next crawl fetches and sends them"
            " (`scrapy urls demo --not-archived`)\n"
        ), "the store has the text that two pages share"
        demo.crawl("demo").succeeded()
        assert indexed(demo) == ["/", "/a", "/b"]
        assert len(demo.scrapy("urls", "demo", "--not-archived").succeeded().stdout.splitlines()) == 2
        assert demo.scrapy("reindex", "demo").succeeded().stdout == "demo: 3 documents were sent again\n"


def test_a_crawl_that_runs_sends_them(project: MakeProject) -> None:
    """A chain of pages: when the last one is asked for, those before it are recorded."""
    slow = held(page("A"))
    with serve(Site({"/": page("Home", links=["/b"]), "/b": page("B", links=["/a"]), "/a": slow})) as server:
        demo = project(collection(server.url("/"), settings=ARCHIVED))
        demo.start("crawl", "demo")
        demo.until(lambda: "/a" in server.paths())
        assert demo.scrapy("reindex", "demo").succeeded().stdout == "demo: 2 documents were sent again\n"
        slow.release()
        demo.until(lambda: demo.started[-1].poll() == 0)
        assert indexed(demo) == ["/", "/a", "/b"]
        assert all(state.status == 200 for state in states(demo).values())
        assert len(files(demo)) == 1


def test_without_an_archive_nothing_is_lost(project: MakeProject) -> None:
    with serve(Site(SITE)) as server:
        demo = project(collection(server.url("/")))
        assert demo.scrapy("reindex", "demo").returncode == 1
        demo.crawl("demo").succeeded()
        before = indexed(demo)
        assert demo.scrapy("reindex", "demo").returncode == 1
        assert indexed(demo) == before
