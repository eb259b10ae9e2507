"""Exports that cannot be written, and what a crawl leaves readable for others."""

from __future__ import annotations

import csv
import gzip
import json
import stat
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

import pytest

from tests.conftest import MakeProject
from tests.http import Reply
from tests.integration.stored import FAST, collection, indexed
from tests.sites import Site, held, page, serve, text

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


OLD = '{"title": "of an earlier run"}\n'


def titles(file: Path) -> list[str]:
    return sorted(json.loads(line)["title"] for line in file.read_text(encoding="utf-8").splitlines())


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The export of an earlier run, in a folder of its own."""
    (tmp_path / "exports").mkdir()
    file = tmp_path / "exports" / "items.jsonl"
    file.write_text(OLD, encoding="utf-8")
    return file


def beside(file: Path) -> list[str]:
    return sorted(path.name for path in file.parent.iterdir() if path != file)


def test_a_file_is_replaced_at_the_end(project: MakeProject, old: Path) -> None:
    second = held(SITE["/a"])
    with serve(Site({**SITE, "/a": second})) as server:
        demo = project(collection(server.url(), settings=FAST))
        running = demo.start("crawl", "demo", "-O", str(old))
        demo.until(lambda: "/a" in server.paths())
        assert old.read_text(encoding="utf-8") == OLD
        second.release()
        demo.until(lambda: running.poll() is not None)
    assert (running.poll(), titles(old), beside(old)) == (0, ["A", "Home"], [])


def test_after_a_kill_the_old_file_is_whole_and_the_next_run_replaces_it(project: MakeProject, old: Path) -> None:
    site = Site({**SITE, "/a": held(SITE["/a"])})
    with serve(site) as server:
        demo = project(collection(server.url(), settings=FAST))
        running = demo.start("crawl", "demo", "-O", str(old))
        demo.until(lambda: "/a" in server.paths() and old.with_name("items.jsonl.part").exists())
        running.kill()
        running.wait()
        assert (old.read_text(encoding="utf-8"), beside(old)) == (OLD, ["items.jsonl.part"])
        site.update(SITE)
        demo.crawl("demo", "-O", str(old)).succeeded()
    assert "A" in titles(old)
    assert beside(old) == []


KEEPS = [
    # what the site serves; settings; what becomes of the file of an earlier run
    ({}, "", OLD),  # a crawl that failed: the only page is missing
    ({}, "FEED_STORE_EMPTY = False\n", OLD),
    ({"/": text("", headers={"X-Robots-Tag": "noindex"})}, "", ""),  # it did its work, and there is no document
    ({"/": text("", headers={"X-Robots-Tag": "noindex"})}, "FEED_STORE_EMPTY = False\n", OLD),
    (SITE, "FEED_EXPORTERS = {'jsonl': 'tests.integration.own_spiders.spiders.FullDisk'}\n", OLD),
]


@pytest.mark.parametrize(("pages", "settings", "after"), KEEPS)
def test_which_runs_leave_the_file_as_it_was(
    project: MakeProject, old: Path, pages: Mapping[str, Reply], settings: str, after: str
) -> None:
    with serve(Site(pages)) as server:
        demo = project(collection(server.url(), settings=FAST + settings))
        run = demo.crawl("demo", "-O", str(old))
    assert (old.read_text(encoding="utf-8"), beside(old)) == (after, [])
    assert "Traceback" not in run.stderr
    if "FullDisk" in settings:
        assert run.returncode == 1
        assert f"the export {old} cannot be written: No space left on device" in run.stderr


def test_a_site_that_is_down_leaves_the_file_as_it_was(project: MakeProject, old: Path) -> None:
    with serve(Site(SITE)) as server:
        start = server.url()
    demo = project(collection(start, settings=FAST + "RETRY_TIMES = 0\n"))
    run = demo.crawl("demo", "-O", str(old))
    assert (run.returncode, old.read_text(encoding="utf-8")) == (1, OLD)
    assert f"the export {old} is not written, because no document was fetched; the file of an earlier run stays" in run.stderr


def test_an_export_of_a_run_without_documents_names_the_command_that_has_all(project: MakeProject, old: Path) -> None:
    with serve(Site(SITE)) as server:
        demo = project(collection(server.url(), settings=FAST))
        demo.crawl("demo", "-O", str(old)).succeeded()
        assert titles(old) == ["A", "Home"]
        run = demo.crawl("demo", "-O", str(old)).succeeded()
    assert titles(old) == []
    hint = f"this run fetched no document: `scrapy export demo -O {old}` exports all that is in the index"
    assert f"the export {old} is empty, because {hint}" in run.stderr
    demo.scrapy("export", "demo", "-O", str(old)).succeeded()
    assert titles(old) == ["A", "Home"]


def test_two_runs_do_not_write_one_file(project: MakeProject, old: Path) -> None:
    second = held(SITE["/a"])
    with serve(Site({**SITE, "/a": second})) as server:
        files = collection(server.url(), settings=FAST)
        demo = project({**files, **{name.replace("demo/", "other/"): content for name, content in files.items()}})
        running = demo.start("crawl", "demo", "-O", str(old))
        demo.until(lambda: "/a" in server.paths())
        other = demo.crawl("other", "-O", str(old))
        assert (other.returncode, other.stderr) == (
            1,
            f"the export {old} cannot be written: another run is writing it; name a file that can (-o, -O, FEEDS)\n",
        )
        second.release()
        demo.until(lambda: running.poll() is not None)
    assert titles(old) == ["A", "Home"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_all_forms_and_batches(project: MakeProject, tmp_path: Path, *, overwrite: bool) -> None:
    own: dict[str, dict[str, object]] = {
        "items.csv": {},
        "items.xml": {},
        "items.json": {},
        "items.gz": {"format": "jsonl", "postprocessing": ["scrapy.extensions.postprocessing.GzipPlugin"]},
        "batch-%(batch_id)d.jsonl": {"batch_item_count": 1},
    }
    feeds = {str(tmp_path / "exports" / name): {**options, "overwrite": overwrite} for name, options in own.items()}
    with serve(Site(SITE)) as server:
        project(collection(server.url(), settings=f"{FAST}FEEDS = {feeds!r}\n")).crawl("demo").succeeded()
    found = {file.name: file.read_bytes() for file in (tmp_path / "exports").iterdir()}
    assert sorted(found) == ["batch-1.jsonl", "batch-2.jsonl", "items.csv", "items.gz", "items.json", "items.xml"]
    assert [row["title"] for row in csv.DictReader(StringIO(found["items.csv"].decode()))] == ["Home", "A"]
    assert [item["title"] for item in json.loads(found["items.json"])] == ["Home", "A"]
    assert [json.loads(line)["title"] for line in gzip.decompress(found["items.gz"]).splitlines()] == ["Home", "A"]
    assert found["items.xml"].count(b"<item>") == 2
    assert [json.loads(found[f"batch-{number}.jsonl"])["title"] for number in (1, 2)] == ["Home", "A"]


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


HEAD = """<meta name="author" content="Ann"><meta name="keywords" content="wells, pumps"><meta property="og:site_name" content="The Site">
<script type="application/ld+json">{"@type": "Article", "datePublished": "2024-05-01", "dateModified": "2024-06-01"}</script>"""


def test_the_fields_of_a_page_are_exported_and_found(project: MakeProject, tmp_path: Path) -> None:
    with serve(Site({"/": page("Home", head=HEAD, headers={"Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"})})) as server:
        demo = project(collection(server.url(), settings=FAST))
        demo.crawl("demo", "-O", str(tmp_path / "items.jsonl")).succeeded()
    fields = {
        "author": "Ann",
        "published": "2024-05-01",
        "keywords": ["wells", "pumps"],
        "site_name": "The Site",
        "type": "Article",
    }
    exported = json.loads((tmp_path / "items.jsonl").read_text())
    assert (exported["fields"], exported["modified"]) == (fields, "2024-06-01")
    found = demo.scrapy("search", "demo", "home", "--filter", "modified=2024-06-01", "--json").succeeded()
    assert json.loads(found.stdout)["hits"][0]["fields"] == fields
    assert (
        "author: Ann, published: 2024-05-01, keywords: wells; pumps," in demo.scrapy("search", "demo", "home").succeeded().stdout
    )
