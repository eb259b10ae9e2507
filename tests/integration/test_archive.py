"""A crawl keeps what it fetches as WARC files, and nothing is recorded without its record."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from tests.conftest import MakeProject, Project
from tests.integration.killed_at_commit import MarkingSite, crawl_killed
from tests.integration.stored import ARCHIVED, archived, collection, files, folder, indexed, make_due, records, shared, states
from tests.notifications import LONGEST_WAIT_S
from tests.sites import Site, binary, held, html, page, redirect, serve, status


def test_each_fetch_is_archived_with_its_document(project: MakeProject) -> None:
    packed = zlib.compress(b"<title>packed</title>words of a packed page")
    site = Site(
        {
            "/": page(
                "Home", text="first words", links=["/packed", "/moved", "/gone", "/picture"], headers={"Set-Cookie": "a=secret"}
            ),
            "/packed": binary(packed, "text/html", headers={"Content-Encoding": "deflate"}),
            "/moved": redirect("/"),
            "/gone": status(410),
            "/picture": binary(b"GIF89a", "image/gif"),
        }
    )
    with serve(site) as server:
        settings = f'{ARCHIVED}DEFAULT_REQUEST_HEADERS = {{"Authorization": "Basic c2VjcmV0", "X-Api-Key": "secret", "Accept": "text/*"}}'
        demo = project(collection(server.url("/"), settings=settings))
        demo.crawl("demo").succeeded()
        found = list(records(demo))
    kinds = sorted((kind, url.removeprefix(server.url("/").rstrip("/"))) for kind, url, _ in found if url)
    fetched = ("/", "/gone", "/moved", "/packed")
    assert kinds == sorted(
        [("metadata", "/"), ("metadata", "/packed"), *((kind, path) for kind in ("request", "response") for path in fetched)]
    )
    assert b"secret" not in b"".join(zlib.decompress(path.read_bytes(), 31) for path in files(demo))
    response, document = archived(demo, "/packed")
    assert response is not None
    assert document is not None
    assert (response.body, response.status) == (packed, 200)
    assert (document.title, document.text) == ("packed", "words of a packed page")
    assert states(demo)["/picture"].archived is None
    assert [path.stat().st_mode & 0o777 for path in (folder(demo), *files(demo))] == [0o700, 0o600]


def test_a_large_file_is_archived_as_it_came_and_not_left_on_disk(project: MakeProject) -> None:
    sheet = b"name;price\n" + b"".join(b"lamp %d;%d\n" % (number, number) for number in range(200_000))
    with serve(Site({"/": page("Home", links=["/lamps.csv"]), "/lamps.csv": binary(sheet, "text/csv")})) as server:
        demo = project(collection(server.url("/"), settings=ARCHIVED))
        demo.crawl("demo").succeeded()
    response, document = archived(demo, "/lamps.csv")
    assert response is not None
    assert document is not None
    assert (len(sheet) > 2_000_000, response.body == sheet, "lamp 7" in document.text) == (True, True, True)
    assert list((demo.data / "demo" / "files").iterdir()) == []


def test_what_came_again_is_a_revisit(project: MakeProject) -> None:
    etag = {"ETag": '"1"'}
    site = Site({"/": page("Home", links=["/same", "/new"], headers=etag), "/same": page("Same"), "/new": page("Old words")})
    with serve(site) as server:
        demo = project(collection(server.url("/"), settings=ARCHIVED))
        demo.crawl("demo").succeeded()
        before = {path: state.archived for path, state in states(demo).items()}
        site["/new"] = page("New words")
        make_due(demo)
        demo.crawl("demo").succeeded()
        again = [
            (kind, url.removeprefix(server.url("/").rstrip("/"))) for kind, url, _ in list(records(demo)) if kind == "revisit"
        ]
    assert sorted(again) == [("revisit", "/"), ("revisit", "/same")]
    after = {path: state.archived for path, state in states(demo).items()}
    assert (after["/"], after["/same"]) == (before["/"], before["/same"])
    assert after["/new"] != before["/new"]
    response, document = archived(demo, "/new")
    assert response is not None
    assert response.previous is not None
    assert document is not None
    assert document.title == "New words"


def test_a_page_whose_deletion_is_held_keeps_the_document_that_is_in_the_index(project: MakeProject) -> None:
    site = Site({"/": page("Home", links=["/a"]), "/a": page("A")})
    with serve(site) as server:
        demo = project(collection(server.url("/"), settings=f"{ARCHIVED}RETRY_TIMES = 0\n"))
        demo.crawl("demo").succeeded()
        site["/a"] = status(500)
        make_due(demo)
        demo.crawl("demo").succeeded()
    response, document = archived(demo, "/a")
    assert (response and response.status, document and document.title) == (200, "A")
    assert indexed(demo) == ["/", "/a"]


def test_workers_have_files_of_their_own(project: MakeProject) -> None:
    with serve(Site({"/": page("Home", links=["/a", "/b"]), "/a": page("A"), "/b": page("B")})) as server:
        demo = shared(project(collection(server.url("/"), settings=ARCHIVED)))
        demo.crawl("demo").succeeded()
        make_due(demo)
        server.site["/a"] = page("A again")
        demo.crawl("demo").succeeded()
    assert len(files(demo)) == 2
    assert [archived(demo, path)[1] and archived(demo, path)[1].title for path in ("/", "/a", "/b")] == ["Home", "A again", "B"]  # type: ignore[union-attr]


def _not_a_folder(demo: Project) -> None:
    (demo.data / "demo").mkdir()
    folder(demo).write_text("in its place")


def test_a_crawl_does_not_start_without_its_archive(project: MakeProject) -> None:
    with serve(Site({"/": page("Home")})) as server:
        demo = project(collection(server.url("/"), settings=ARCHIVED))
        _not_a_folder(demo)
        refused = demo.crawl("demo")
        said = refused.stderr
        assert refused.returncode == 1
        assert "the archive cannot be written to" in said
        assert "CRAWLSPACE_ARCHIVE_DIR" in said
        assert "Traceback" not in said
        assert server.paths() == []
        demo.crawl("demo", "-s", "CRAWLSPACE_ARCHIVE=False").succeeded()
        elsewhere = demo.folder / "elsewhere"
        make_due(demo)
        demo.crawl("demo", "-s", f"CRAWLSPACE_ARCHIVE_DIR={elsewhere}").succeeded()
        assert len(list((elsewhere / "demo").glob("*.warc.gz"))) == 1


def test_a_folder_that_goes_while_it_is_written_stops_the_crawl(project: MakeProject) -> None:
    second = held(page("A", links=["/b"]))
    with serve(Site({"/": page("Home", links=["/a"]), "/a": second, "/b": page("B")})) as server:
        demo = project(collection(server.url("/"), settings=ARCHIVED))
        crawl = demo.start("crawl", "demo")
        demo.until(lambda: "/a" in server.paths())
        shutil.rmtree(folder(demo))
        second.release()
        assert crawl.wait() == 1
        assert "was moved or removed while it was written" in demo.output()
        assert "Traceback" not in demo.output()
        assert {path: state.status for path, state in states(demo).items()} == {"/": 200, "/a": None}


@pytest.mark.full
def test_a_disk_that_fills_while_the_archive_is_written_stops_the_crawl(project: MakeProject) -> None:
    """A file size limit is met as a full disk is. What the pages are is random, so that the archive meets it first."""
    noise = random.Random(0)
    site = Site({"/": page("Home", links=[f"/{n}" for n in range(12)])})
    site.update({f"/{n}": html(f"<title>Page {n}</title><p>words<!-- {noise.randbytes(300_000).hex()} -->") for n in range(12)})
    with serve(site) as server:
        demo = project(collection(server.url("/"), settings=ARCHIVED))
        command = ["bash", "-c", 'ulimit -f 1500; exec "$@"', "-", sys.executable, "-m", "scrapy", "crawl", "demo"]
        run = subprocess.run(
            command, env={**os.environ, **demo.env}, capture_output=True, text=True, timeout=LONGEST_WAIT_S, check=False
        )
        assert run.returncode == 1
        assert "the archive cannot be written to" in run.stderr
        assert "Traceback" not in run.stderr
        fetched = {path for path, state in states(demo).items() if state.status}
        assert 0 < len(fetched) < 13
        demo.scrapy("archive", "demo", "--verify").succeeded()
        demo.crawl("demo").succeeded()
        assert len(indexed(demo)) == 13


@pytest.mark.full
def test_a_kill_at_any_transaction_leaves_no_place_without_its_record(project: MakeProject, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    site = MarkingSite({"/": page("Home", links=[f"/{n}" for n in range(6)])}, begun)
    site.update({f"/{n}": page(f"Page {n}", links=[f"/{n + 6}"] if n < 20 else []) for n in range(26)})
    recorded: list[int] = []
    with serve(site) as server:
        demo = project(collection(server.url("/"), settings=ARCHIVED))
        while True:
            crawl = crawl_killed(2 + 3 * len(recorded), output=demo.folder / "output.txt", env=demo.env, after=begun)
            status = crawl.wait()
            _all_places_lead_to_records(demo)
            recorded.append(sum(state.status is not None for state in states(demo).values()))
            if status != -signal.SIGKILL:
                break
    assert status == 0, crawl.output()
    assert recorded == sorted(recorded)
    assert any(0 < some < 27 for some in recorded), "some were killed when a part was recorded"
    assert (recorded[-1], len(states(demo))) == (27, 27)
    _all_places_lead_to_records(demo)
    assert [path for path in folder(demo).iterdir() if path not in files(demo)] == []
    assert list(records(demo)), "whole and sound"


def _all_places_lead_to_records(demo: Project) -> None:
    for path, state in states(demo).items():
        response, document = archived(demo, path)
        assert (response is not None, document is not None) == (state.status is not None, state.checksum is not None)
