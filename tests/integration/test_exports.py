"""Exports that cannot be written, and what a crawl leaves readable for others."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from tests.conftest import MakeProject
from tests.integration.stored import FAST, collection, indexed
from tests.sites import Site, page, serve

SITE = {"/": page("Home", text="home", links=["/a"]), "/a": page("A", text="a page")}


def a_folder(path: Path) -> str:
    (path / "folder.jsonl").mkdir()
    return str(path / "folder.jsonl")


BEFORE = [
    # where to export to, what is said
    (lambda path: "/proc/nope/x.jsonl", "the export /proc/nope/x.jsonl cannot be written: No such file or directory"),
    (a_folder, "folder.jsonl cannot be written: Is a directory"),
]


@pytest.mark.parametrize(("where", "sentence"), BEFORE, ids=["no such folder", "a folder"])
def test_an_export_that_cannot_be_written_is_an_error_before_anything_is_fetched(
    project: MakeProject, tmp_path: Path, where: object, sentence: str
) -> None:
    with serve(Site(SITE)) as server:
        demo = project(collection(server.url(), settings=FAST))
        assert callable(where)
        run = demo.crawl("demo", "-O", where(tmp_path))
        assert (run.returncode, server.paths()) == (1, [])
        assert sentence in run.stderr
        assert len(run.stderr.splitlines()) == 1


def test_an_export_on_a_full_disk_ends_the_crawl_with_a_sentence(project: MakeProject) -> None:
    with serve(Site(SITE)) as server:
        demo = project(collection(server.url(), settings=FAST))
        run = demo.crawl("demo", "-O", "/dev/full:jsonl")
        assert run.returncode == 1
        assert "the export /dev/full cannot be written: No space left on device" in run.stderr
        assert "Traceback" not in run.stderr
        demo.crawl("demo").succeeded()
        assert indexed(demo) == ["/", "/a"], "what was not exported is indexed all the same"


def test_an_export_of_an_unknown_kind_is_an_error(project: MakeProject) -> None:
    demo = project(collection("http://127.0.0.1:9/", settings=FAST + "FEEDS = {'nope://x/y': {'format': 'jsonlines'}}\n"))
    run = demo.crawl("demo")
    assert run.returncode == 1
    assert "the exports in FEEDS cannot be made" in run.stderr
    assert "Traceback" not in run.stderr


def test_exports_work(project: MakeProject, tmp_path: Path) -> None:
    file = tmp_path / "below" / "items.jsonl"
    with serve(Site(SITE)) as server:
        demo = project(collection(server.url(), settings=FAST))
        demo.crawl("demo", "-O", str(file)).succeeded()
        assert sorted(json.loads(line)["title"] for line in file.read_text(encoding="utf-8").splitlines()) == ["A", "Home"]


def test_only_the_user_may_read_what_a_crawl_keeps(project: MakeProject) -> None:
    with serve(Site(SITE)) as server:
        demo = project(collection(server.url(), settings=FAST))
        demo.crawl("demo").succeeded()
        demo.scrapy("recrawl", "demo", server.url()).succeeded()
    kept = [demo.data / "demo", *(demo.data / "demo").iterdir()]
    assert {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in kept} == {
        path.name: "0o700" if path.is_dir() else "0o600" for path in kept
    }


def test_nothing_is_printed_with_nolog(project: MakeProject) -> None:
    with serve(Site(SITE)) as server:
        demo = project(collection(server.url(), settings=FAST))
        for option in (["--nolog"], ["-L", "ERROR"]):
            run = demo.crawl("demo", *option).succeeded()
            assert (run.stdout, run.stderr) == ("", "")


def test_a_search_without_its_index_is_an_error(project: MakeProject) -> None:
    with serve(Site(SITE)) as server:
        demo = project(collection(server.url(), settings=FAST))
        demo.crawl("demo").succeeded()
    for file in (demo.data / "demo").glob("index.db*"):
        file.unlink()
    run = demo.scrapy("search", "demo", "home")
    assert (run.returncode, "has never been crawled" in run.stderr + run.stdout) == (1, False)
    assert "there is no index at" in run.stderr


def test_parse_shows_the_item_and_the_links_of_a_page(project: MakeProject) -> None:
    with serve(Site(SITE)) as server:
        demo = project(collection(server.url(), settings=FAST))
        run = demo.scrapy("parse", server.url(), "--spider", "demo", "--nolog").succeeded()
        assert "'title': 'Home'" in run.stdout
        assert f"<GET {server.url('/a')}>" in run.stdout
        assert "Traceback" not in run.stderr
