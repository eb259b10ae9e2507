"""`scrapy export`: what the index has, as a crawl exports it."""

from __future__ import annotations

import csv
import json
import zlib
from io import StringIO
from pathlib import Path
from time import time
from typing import Any

import pytest

from crawlspace.clock import iso
from crawlspace.document import Document, IndexOrder, Op
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.urls import document_id
from tests.conftest import MakeProject, Project
from tests.integration.conftest import Run
from tests.integration.stored import ARCHIVED, FAST, collection, make_due
from tests.sites import Site, html, page, serve, status

RICH = """<html lang=de><title>Stehlampe</title><meta name=description content="Für den Boden"><h1>Große Lampe</h1><h2>Maße</h2>
<p>Sie steht.</p>"""
SITE = {
    "/": page("Home", text="all our lamps", links=["/desk", "/copy", "/floor", "/gone"]),
    "/desk": page("Desk lamp", text="for a desk", headers={"Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"}),
    "/copy": page("Desk lamp", text="for a desk"),
    "/floor": html(RICH),
    "/gone": status(404),
}
HOME = "http://www.example.com/"


@pytest.fixture
def demo(project: MakeProject) -> Project:
    return project(collection(HOME))


def lines(file: Path) -> dict[str, Any]:
    """The documents of a file of JSON lines, by URL."""
    return {item["url"]: item for item in map(json.loads, file.read_text(encoding="utf-8").splitlines())}


def fill(demo: Project, *documents: Document, owner: str = "demo") -> None:
    """Put documents into the index of demo."""
    (demo.data / "demo").mkdir(exist_ok=True)
    index = EmbeddedIndex(demo.data / "demo" / "index.db", owner=owner)
    index.send([IndexOrder(number, Op.PUSH, document.url, document) for number, document in enumerate(documents)])
    index.close()


def test_a_document_has_the_form_of_a_crawls_export(project: MakeProject, tmp_path: Path) -> None:
    crawled, exported = tmp_path / "crawled.jsonl", tmp_path / "exported.jsonl"
    with serve(Site(SITE)) as server:
        made = project(
            {
                **collection(server.url()),
                "demo/rules.xml": '<Rules><Rule><Path val="/"/><AddMeta name="dept" value="sales"/></Rule></Rules>',
            }
        )
        made.crawl("demo", "-O", str(crawled)).succeeded()
        run = made.scrapy("export", "demo", "-O", str(exported)).succeeded()
        copy = server.url("/copy")
    assert run.stderr == f"demo: 3 documents exported to {exported}\n"
    expected = lines(crawled)
    assert expected.pop(copy)["title"] == "Desk lamp", "a crawl exports equal pages, too"
    expected[copy.replace("/copy", "/desk")]["duplicates"] = [copy]
    found = lines(exported)
    for url, item in found.items():
        assert (item.pop("id"), item.pop("fetched")[:3]) == (document_id(url), "202")
    assert found == expected
    assert {item["fields"]["dept"] for item in expected.values()} == {"sales"}


def test_own_fields_of_an_item_are_among_the_fields(project: MakeProject, tmp_path: Path) -> None:
    with serve(Site({"/": page("Home", text="words")})) as server:
        made = project({"extra/start_urls.txt": server.url(), "extra/settings.py": FAST})
        made.crawl("extra", "-s", "SPIDER_MODULES=tests.integration.own_spiders").succeeded()
        made.scrapy("export", "extra", "-O", str(tmp_path / "items.jsonl")).succeeded()
        item = lines(tmp_path / "items.jsonl")[server.url()]
    assert (item["title"], item["fields"]["price"]) == ("Home", "7")


def test_a_document_says_when_its_page_was_fetched_and_where_it_is_archived(project: MakeProject, tmp_path: Path) -> None:
    site = Site(SITE)
    with serve(site) as server:
        demo = project(collection(server.url(), settings=ARCHIVED))
        demo.crawl("demo").succeeded()
        before = int(time())
        site |= {"/": page("Home", text="all our lamps and shades", links=["/desk", "/floor"]), "/floor": status(503)}
        make_due(demo)
        demo.crawl("demo", "-s", "RETRY_TIMES=0")
        demo.scrapy("export", "demo", "-O", str(tmp_path / "all.jsonl")).succeeded()
        found = {url.removeprefix(server.url("/")): item for url, item in lines(tmp_path / "all.jsonl").items()}
    assert {name: item.get("fetched", "") >= iso(before) for name, item in found.items()} == {
        "": True,
        "desk": True,
        "floor": False,
    }
    assert "fetched" not in found["floor"], "it fails"
    for name, words in {"": "shades", "floor": "Sie steht"}.items():
        file, _, offset = found[name]["content_place"].rpartition(":")
        (path,) = demo.data.rglob(file)
        assert words in zlib.decompressobj(wbits=31).decompress(path.read_bytes()[int(offset) :]).decode()


def test_only_what_belongs_to_the_collection_is_exported(demo: Project, run: Run) -> None:
    fill(demo, Document(HOME, title="ours"), Document(f"{HOME}a", title="taken over"))
    fill(demo, Document(f"{HOME}a", title="theirs"), Document(f"{HOME}b", title="theirs"), owner="other")
    assert [json.loads(line)["title"] for line in run("export", "demo", "-o", "-:jsonl").succeeded().stdout.splitlines()] == [
        "ours"
    ]


ROWS = [Document(HOME, title="A, B", headings=["x", "y"]), Document(f"{HOME}b", title="<C>")]
FORMS = [
    # form, settings, how it is read, what is in it
    (
        "csv",
        ["FEED_EXPORT_FIELDS=title,headings"],
        lambda text: [*csv.reader(StringIO(text))],
        [["title", "headings"], ["A, B", "x,y"], ["<C>", ""]],
    ),
    ("json", ["FEED_EXPORT_FIELDS=title"], json.loads, [{"title": "A, B"}, {"title": "<C>"}]),
    ("jsonl", ["FEED_EXPORT_FIELDS=title"], str.splitlines, ['{"title": "A, B"}', '{"title": "<C>"}']),
    (
        "xml",
        ["FEED_EXPORT_FIELDS=title"],
        str.splitlines,
        [
            '<?xml version="1.0" encoding="utf-8"?>',
            "<items>",
            "<item><title>A, B</title></item>",
            "<item><title>&lt;C&gt;</title></item>",
            "</items>",
        ],
    ),
    ("json", ["FEED_EXPORT_FIELDS=title", "FEED_EXPORT_INDENT=2"], lambda text: text.splitlines()[2], '  "title": "A, B"'),
]


@pytest.mark.parametrize(("form", "settings", "read", "expected"), FORMS)
def test_the_forms_and_settings_of_feeds(
    demo: Project, run: Run, tmp_path: Path, form: str, settings: list[str], read: Any, expected: object
) -> None:
    fill(demo, *ROWS)
    options = [argument for setting in settings for argument in ("-s", setting)]
    run("export", "demo", "-o", str(tmp_path / f"new.{form}"), *options).succeeded()
    assert read((tmp_path / f"new.{form}").read_text(encoding="utf-8")) == expected
    assert read(run("export", "demo", "-o", f"-:{form}", *options).succeeded().stdout) == expected


def test_batches(demo: Project, run: Run, tmp_path: Path) -> None:
    fill(demo, *(Document(f"{HOME}{number}", title=str(number)) for number in range(450)))
    run("export", "demo", "-O", f"{tmp_path}/%(batch_id)d.jsonl", "-s", "FEED_EXPORT_BATCH_ITEM_COUNT=100").succeeded()
    batches = [lines(tmp_path / f"{number}.jsonl") for number in range(1, 6)]
    assert [len(batch) for batch in batches] == [100, 100, 100, 100, 50]
    assert len({url for batch in batches for url in batch}) == 450


def test_an_index_without_documents(demo: Project, run: Run, tmp_path: Path) -> None:
    fill(demo)
    (tmp_path / "old.jsonl").write_text("old")
    kept = run("export", "demo", "-O", str(tmp_path / "old.jsonl"), "-s", "FEED_STORE_EMPTY=False").succeeded()
    assert (kept.stderr, (tmp_path / "old.jsonl").read_text()) == (
        "demo has no documents in the index; nothing was written, for FEED_STORE_EMPTY is off\n",
        "old",
    )
    emptied = run("export", "demo", "-O", str(tmp_path / "old.jsonl")).succeeded()
    assert (emptied.stderr, (tmp_path / "old.jsonl").read_text()) == (f"demo: 0 documents exported to {tmp_path}/old.jsonl\n", "")


REFUSED = [
    # arguments; exit status, and what is said of FILE, which exists
    ([], 2, "name a file to export to, as in: scrapy export demo -O demo.jsonl"),
    (["-o", "FILE"], 2, "FILE exists already: -O replaces it"),
    (["-o", "FILE", "-O", "FILE"], 2, "Please use only one of -o/--output and -O/--overwrite-output"),
    (["-O", "FILE:nope"], 2, "Unrecognized output format 'jsonl:nope'"),
    (["-O", "/proc/nope/x.jsonl"], 1, "the export /proc/nope/x.jsonl cannot be written: No such file or directory"),
    (["-O", "/dev/full:jsonl"], 1, "the export /dev/full cannot be written: No space left on device"),
    (["-O", "nope://x/y:jsonl"], 1, "the exports in FEEDS cannot be made: Unknown feed storage scheme: nope"),
    (
        ["-O", "FILE", "-s", "FEED_EXPORT_ENCODING=klingon", "-s", "FEED_EXPORT_INDENT=1"],
        1,
        "document 1 cannot be exported: LookupError: unknown encoding: klingon",
    ),
    (
        ["-O", "FILE", "-s", 'FEED_EXPORTERS={"jsonl": "tests.integration.own_spiders.spiders.FullDisk"}'],
        1,
        "the export FILE cannot be written: No space left on device",
    ),
]


@pytest.mark.parametrize(("arguments", "exit_status", "sentence"), REFUSED)
def test_refusals_leave_the_file_as_it_was(
    demo: Project, run: Run, tmp_path: Path, arguments: list[str], exit_status: int, sentence: str
) -> None:
    (tmp_path / "exports").mkdir()
    file = tmp_path / "exports" / "items.jsonl"
    file.write_text("old")
    fill(demo, *ROWS)
    ended = run("export", "demo", *(argument.replace("FILE", str(file)) for argument in arguments))
    assert ended.returncode == exit_status
    assert sentence.replace("FILE", str(file)) in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert [(path.name, path.read_text()) for path in file.parent.iterdir()] == [("items.jsonl", "old")]


def test_a_collection_that_was_never_crawled(demo: Project, run: Run, tmp_path: Path) -> None:
    ended = run("export", "demo", "-O", str(tmp_path / "items.jsonl"))
    assert (ended.returncode, ended.stderr) == (
        1,
        "demo has never been crawled, so there is nothing to export: `scrapy crawl demo` does\n",
    )
    assert not (tmp_path / "items.jsonl").exists()


def test_it_shows_the_index_as_it_was_at_the_start(demo: Project) -> None:
    fill(demo, *ROWS)
    index = EmbeddedIndex(demo.data / "demo" / "index.db", read_only=True)
    documents = index.documents("demo")
    first = next(documents)
    fill(demo, Document(f"{HOME}b", title="newer"), Document(f"{HOME}c", title="added"))
    assert [first.title, *(document.title for document in documents)] == ["A, B", "<C>"]
    assert [document.title for document in index.documents("demo")] == ["A, B", "newer", "added"]
    index.close()
