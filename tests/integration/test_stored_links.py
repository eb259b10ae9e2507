"""After a change that loosens a check, the links of archived pages are judged again, and the pages are not requested."""

from __future__ import annotations

import json
import shutil
import signal

import pytest

from tests.conftest import MakeProject, Project
from tests.integration.killed_at_commit import crawl_killed
from tests.integration.stored import ARCHIVED, collection, folder, indexed, make_due, shared, states
from tests.sites import Site, binary, page, serve

PLAIN = [f"/{number}" for number in range(20)]
CLOSED = [f"/closed/{number}" for number in range(12)]
LINKING = [f"/leads/{number}" for number in range(12)]


def site() -> Site:
    """A start page, 20 pages without a link that was refused, and 12 with one each."""
    pages = {"/": page("Home", links=[*PLAIN, *LINKING]), **{path: page(path) for path in (*PLAIN, *CLOSED)}}
    return Site(pages | {path: page(path, links=[to, "/0"]) for path, to in zip(LINKING, CLOSED, strict=True)})


def loosen(demo: Project) -> None:
    (demo.collections / "demo" / "crawl.rules").write_text("", encoding="utf-8")


def crawled(project: MakeProject, start: str, *, is_shared: bool = False, settings: str = "") -> Project:
    demo = project(collection(start, rules=f"forbid prefix {start}closed/\n", settings=ARCHIVED + settings))
    if is_shared:
        shared(demo)
    demo.crawl("demo").succeeded()
    return demo


@pytest.mark.parametrize("is_shared", [False, True])
def test_only_what_comes_into_reach_is_requested(project: MakeProject, *, is_shared: bool) -> None:
    with serve(site()) as server:
        demo = crawled(project, server.url("/"), is_shared=is_shared)
        before = states(demo)
        loosen(demo)
        shown = json.loads(demo.scrapy("plan", "demo", "--json").succeeded().stdout)
        assert (shown["due"], shown["judged"]) == (1, 12)
        words = demo.scrapy("plan", "demo").succeeded().stdout.split()
        assert "1 due at once, because" in " ".join(words)
        assert "12 with links to be judged again from the archive, without a request" in " ".join(words)
        server.forget()
        said = demo.crawl("demo").succeeded().stderr
        assert sorted(server.paths()) == sorted(["/", *CLOSED])
        assert "the links of 12 pages were judged again from the archive, without a request: 12 URLs found" in said
        after = states(demo)
        for path in LINKING:
            assert (after[path].fetched_at, after[path].next_fetch) == (before[path].fetched_at, before[path].next_fetch)
            assert (before[path].refused, after[path].refused) == ("p1", None)
        assert set(CLOSED) <= set(indexed(demo))
        assert json.loads(demo.scrapy("plan", "demo", "--json").succeeded().stdout)["judged"] == 0
        server.forget()
        demo.crawl("demo").succeeded()
        assert server.paths() == []


@pytest.mark.full
def test_crawls_that_are_killed_go_on_where_they_were(project: MakeProject) -> None:
    with serve(site()) as server:
        demo = crawled(project, server.url("/"))
        loosen(demo)
        server.forget()
        left: list[int] = []
        while True:
            process = crawl_killed(9 + len(left), output=demo.folder / "output.txt", env=demo.env, judged_at_once=1)
            status = process.wait()
            found = states(demo)
            left.append(sum(found[path].refused is not None for path in LINKING))
            assert len(set(CLOSED) & set(found)) == len(LINKING) - left[-1]
            if status != -signal.SIGKILL:
                break
        assert status == 0, process.output()
        assert left == sorted(left, reverse=True)
        assert len(set(left)) > 2, "some were killed when the links of a part were judged"
        assert set(CLOSED) <= set(indexed(demo))
        assert set(server.paths()) == {"/", *CLOSED}


def test_pages_that_the_archive_has_not_are_requested(project: MakeProject) -> None:
    with serve(site()) as server:
        demo = crawled(project, server.url("/"))
        shutil.rmtree(folder(demo))
        loosen(demo)
        server.forget()
        said = demo.crawl("demo").succeeded().stderr
        assert sorted(server.paths()) == sorted(["/", *LINKING, *CLOSED])
        assert (
            "0 pages were judged again from the archive, without a request: 0 URLs found; 12 pages not in the archive, or changed meanwhile: to be fetched"
            in said
        )


def test_a_damaged_archive_costs_requests_and_no_page(project: MakeProject) -> None:
    with serve(site()) as server:
        demo = crawled(project, server.url("/"))
        for file in folder(demo).glob("*.warc.gz"):
            file.write_bytes(b"\x1f\x8b" + b"damaged " * (file.stat().st_size // 8))
        loosen(demo)
        server.forget()
        demo.crawl("demo").succeeded()
        assert sorted(server.paths()) == sorted(["/", *LINKING, *CLOSED])


def test_without_an_archive_pages_are_requested(project: MakeProject) -> None:
    with serve(site()) as server:
        demo = crawled(project, server.url("/"))
        loosen(demo)
        server.forget()
        demo.crawl("demo", "-s", "CRAWLSPACE_ARCHIVE=0").succeeded()
        assert sorted(server.paths()) == sorted(["/", *LINKING, *CLOSED])


def test_a_file_with_links_is_requested(project: MakeProject) -> None:
    table = binary(b"name,at\nlamp,/closed/0\n", "text/csv")
    with serve(Site({"/": page("Home", links=["/t.csv"]), "/t.csv": table, "/closed/0": page("0")})) as server:
        demo = crawled(project, server.url("/"), settings="CRAWLSPACE_FOLLOW_FILE_LINKS = True\n")
        loosen(demo)
        demo.crawl("demo").succeeded()
        assert states(demo)["/t.csv"].status == 200


@pytest.mark.parametrize("headers", [{}, {"ETag": '"1"'}])
def test_links_are_not_judged_against_a_nofollow_that_came_later(project: MakeProject, headers: dict[str, str]) -> None:
    pages = {path: page(path, links=[f"/closed{path}"], headers=headers) for path in ("/a", "/b")}
    with serve(Site({"/": page("Home", links=list(pages)), **pages}, otherwise=page("Closed"))) as server:
        demo = crawled(project, server.url("/"), settings="CRAWLSPACE_META_ROBOTS = False\n")
        server.site["/a"] = page("/a", links=["/closed/a"], headers={**headers, "X-Robots-Tag": "nofollow"})
        make_due(demo)
        demo.crawl("demo").succeeded()
        loosen(demo)
        server.forget()
        demo.crawl("demo", "-s", "CRAWLSPACE_META_ROBOTS=1").succeeded()
        assert "/closed/b" in server.paths()
        assert "/closed/a" not in server.paths()
