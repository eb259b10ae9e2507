"""Files of a crawl: what is found of each, and what becomes of one that cannot be read."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from crawlspace.content.documents.kinds import CSV, PDF
from crawlspace.content.mime import DOCX
from crawlspace.document import Document
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.model import State
from tests.conftest import MakeProject, Project, assert_same
from tests.http import Connection, Reply, Request, head_of
from tests.integration.stored import FAST, collection, indexed, make_due, shared, states, statuses
from tests.sites import Answer, Server, Site, binary, page, serve
from tests.unit.content.documents.made_files import compound, docx, para, pdf, w, zipped

LARGE = docx(para("Large words"), {"word/media/image.bin": os.urandom(3_000_000).hex()[:3_000_000]})
"""A file that is more than what is kept in memory."""
assert len(LARGE) > 1_100_000
LIMIT = 4_000_000
MANY = zipped({f"word/{number}": "" for number in range(20_001)})
CONVERTED = f"{sys.executable} -c 'import sys; print(open(sys.argv[1]).read().upper())' {{file}}"
HANGS = f"{sys.executable} -c 'import signal; signal.pause()' {{file}}"
CRASHES = f"{sys.executable} -c 'import os; os.kill(os.getppid(), 11)' {{file}}"
SETTINGS = (
    FAST
    + f"CRAWLSPACE_FILE_MAXSIZE = {LIMIT}\nCRAWLSPACE_FILE_TIMEOUT = 600\n"
    + f"CRAWLSPACE_CONVERTERS = {{'application/x-shout': {CONVERTED!r}, 'application/x-crash': {CRASHES!r}}}\n"
)


class chunked:  # noqa: N801
    """A body of unknown length."""

    def __init__(self, body: bytes, content_type: str) -> None:
        self._body, self._type = body, content_type

    async def send(self, request: Request, connection: Connection) -> None:
        await connection.write(head_of(200, {"Transfer-Encoding": "chunked", "Content-Type": self._type}))
        for at in range(0, len(self._body), 100_000):
            part = self._body[at : at + 100_000]
            await connection.write(b"%x\r\n%s\r\n" % (len(part), part))
        await connection.write(b"0\r\n\r\n")


ONE = pdf(["The first words"], info="/Title (A report) /Author (Ann Author) /CreationDate (D:20240501120000Z)")
TABLE: list[tuple[str, Reply, int, str, str, dict[str, str]]] = [
    # path, what it answers, status, title, text, fields
    ("/one.pdf", binary(ONE, PDF), 200, "A report", "The first words", {"pages": "1", "author": "Ann Author", "created": "2024-05-01T12:00:00Z"}),
    ("/said-html", binary(pdf(["Second"]), "text/html"), 200, "said-html", "Second", {"pages": "1"}),
    ("/unnamed", binary(docx(para("Third")), "application/octet-stream"), 200, "The title", "Third",
        {"author": "Ann Author", "created": "2024-05-01T12:00:00Z"}),
    ("/error.pdf", binary(page("An error", text="not found").body, PDF), 200, "An error", "An error not found", {}),
    ("/download?id=1", binary(pdf(["Fourth"]), PDF, headers={"Content-Disposition": 'attachment; filename="Plan 9.pdf"'}), 200, "Plan 9.pdf", "Fourth",
        {"pages": "1"}),
    ("/download?id=2", binary(pdf(["Fifth"]), "text/pdf", headers={"Content-Disposition": "attachment; filename=no; filename*=UTF-8''Pl%C3%A4ne.pdf"}),
        200, "Pläne.pdf", "Fifth", {"pages": "1"}),
    ("/download?id=3", binary(pdf(["Sixth"]), "application/force-download"), 200, "download", "Sixth", {"pages": "1"}),
    ("/saved.html", binary(page("Saved", text="a page").body, "application/x-download"), 200, "Saved", "Saved a page", {}),
    ("/table.csv", binary(b"Name;Price\nBolt;1\n", CSV), 200, "table.csv", "Name Price Bolt 1", {}),
    ("/large.docx", binary(LARGE, DOCX), 200, "The title", "Large words", {"author": "Ann Author", "created": "2024-05-01T12:00:00Z"}),
    ("/shout", binary(b"quiet words", "application/x-shout"), 200, "shout", "QUIET WORDS", {}),
    ("/locked.docx", binary(compound("EncryptedPackage"), DOCX), 782, "locked.docx", "", {"text_status": "encrypted"}),
    ("/empty.pdf", binary(b"", PDF), 782, "empty.pdf", "", {"text_status": "damaged"}),
    ("/cut.docx", binary(docx(para("x"))[:200], DOCX), 782, "cut.docx", "", {"text_status": "damaged"}),
    ("/scan.pdf", binary(pdf([""]), PDF), 782, "scan.pdf", "", {"text_status": "no text", "pages": "1"}),
    ("/many.docx", binary(MANY, DOCX), 782, "many.docx", "", {"text_status": "over the limits"}),
    ("/crash", binary(b"y", "application/x-crash"), 782, "crash", "", {"text_status": "crashed"}),
    ("/huge.pdf", binary(bytes(LIMIT + 1), PDF), 782, "huge.pdf", "", {"text_status": "too large"}),
    ("/endless.pdf", chunked(bytes(LIMIT + 300_000), PDF), 782, "endless.pdf", "", {"text_status": "too large"}),
]  # fmt: skip


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Server, str]:
    site = Site({path: answer for path, answer, *_ in TABLE})
    site["/"] = page("Home", links=[path for path, *_ in TABLE])
    with serve(site) as server:
        project = Project(tmp_path_factory.mktemp("files"), collection(server.url("/"), settings=SETTINGS))
        run = project.crawl("demo")
        assert run.returncode == 0, run.stderr
        return project, server, run.stderr


def documents(project: Project, name: str = "demo") -> dict[str, Document]:
    """The documents in the index, by path."""
    index = EmbeddedIndex(project.data / name / "index.db", read_only=True)
    try:
        found = {url: index.get(url) for url in index.urls()}
    finally:
        index.close()
    return {"/" + url.split("/", 3)[3]: one for url, one in found.items() if one is not None}


def test_every_file_has_its_document(crawled: tuple[Project, Server, str]) -> None:
    found = documents(crawled[0])
    known = states(crawled[0])
    assert_same(
        [
            (path, known[path].status, found[path].title, found[path].text, tuple(sorted(found[path].fields.items())))
            for path, *_ in TABLE
        ],
        [(path, code, title, words, tuple(sorted(fields.items()))) for path, _, code, title, words, fields in TABLE],
    )
    assert {known[path].state for path, *_ in TABLE} == {State.DONE}


def test_each_is_requested_once(crawled: tuple[Project, Server, str]) -> None:
    assert set(crawled[1].counts().values()) == {1}


def test_nothing_is_left_on_disk(crawled: tuple[Project, Server, str]) -> None:
    assert list((crawled[0].data / "demo" / "files").iterdir()) == []


def test_the_summary_and_the_list_name_files_without_text(crawled: tuple[Project, Server, str]) -> None:
    project, _, log = crawled
    assert "without text: 8 files  (scrapy urls demo --status 782 lists" in log
    listed = project.scrapy("urls", "demo", "--status", "782", "--format", "jsonl").stdout.splitlines()
    assert len([json.loads(line)["url"] for line in listed]) == 8


def test_explain_says_why_a_file_has_no_text(crawled: tuple[Project, Server, str]) -> None:
    project, server, _ = crawled
    shown = " ".join(project.scrapy("explain", "demo", server.url("/locked.docx")).stdout.split())
    assert "status 782 a file without readable text, found by its title, name and URL: encrypted;" in shown
    answer = json.loads(project.scrapy("explain", "demo", server.url("/cut.docx"), "--json").stdout)
    assert answer["state"]["text_status"] == "damaged"


@pytest.mark.full
def test_a_file_whose_converter_hangs_is_given_up(project: MakeProject) -> None:
    hangs = f"CRAWLSPACE_FILE_TIMEOUT = 1\nCRAWLSPACE_CONVERTERS = {{'application/x-hang': {HANGS!r}}}\n"
    with serve(Site({"/hang": binary(b"x", "application/x-hang")})) as server:
        demo = project(collection(server.url("/hang"), settings=FAST + hangs))
        demo.crawl("demo").succeeded()
        assert server.counts()["/hang"] == 1
    assert statuses(demo) == {"/hang": 782}
    found = documents(demo)["/hang"]
    assert (found.title, found.text, found.fields) == ("hang", "", {"text_status": "timed out"})
    assert list((demo.data / "demo" / "files").iterdir()) == []


def crawl_again(project: Project) -> None:
    make_due(project)
    project.crawl("demo").succeeded()


def test_a_version_that_cannot_be_read_leaves_the_readable_one(project: MakeProject) -> None:
    site = Site(
        {"/": page("Home", links=["/a.pdf", "/b.pdf"]), "/a.pdf": binary(pdf(["Words"]), PDF), "/b.pdf": binary(pdf([""]), PDF)}
    )
    with serve(site) as server:
        demo = project(collection(server.url("/"), settings=FAST + f"RETRY_TIMES = 0\nCRAWLSPACE_FILE_MAXSIZE = {LIMIT}\n"))
        demo.crawl("demo").succeeded()
        for errors, broken in ((1, b""), (2, bytes(LIMIT + 1))):
            site["/a.pdf"] = site["/b.pdf"] = binary(broken, PDF)
            crawl_again(demo)
            known = states(demo)
            assert (known["/a.pdf"].state, known["/a.pdf"].status, known["/a.pdf"].errors) == (State.FAILED, 782, errors)
            assert (known["/b.pdf"].state, known["/b.pdf"].status) == (State.DONE, 782)
        assert documents(demo)["/a.pdf"].text == "Words"
        assert documents(demo)["/b.pdf"].fields == {"text_status": "too large"}
        site["/a.pdf"] = site["/b.pdf"] = binary(pdf(["New words"]), PDF)
        crawl_again(demo)
        assert {path: state.status for path, state in states(demo).items()} == {"/": 200, "/a.pdf": 200, "/b.pdf": 200}
        assert "New words" in {one.text for one in documents(demo).values()}


def test_files_without_text_are_equal_only_if_their_bytes_are(project: MakeProject) -> None:
    scans = {"/a.pdf": pdf([""]), "/b.pdf": pdf([""]), "/c.pdf": pdf(["", ""])}
    site = Site({path: binary(body, PDF) for path, body in scans.items()})
    site["/"] = page("Home", links=list(scans))
    with serve(site) as server:
        demo = project(collection(server.url("/")))
        demo.crawl("demo").succeeded()
        assert indexed(demo) == ["/", "/a.pdf", "/c.pdf"]


@pytest.mark.parametrize(("follow", "found"), [(True, ["/", "/a.pdf", "/linked"]), (False, ["/", "/a.pdf"])])
def test_links_of_files(project: MakeProject, follow: bool, found: list[str]) -> None:
    site = Site({"/": page("Home", links=["/a.pdf"]), "/linked": page("Linked")})
    with serve(site) as server:
        link = f"<< /Subtype /Link /Rect [0 0 99 99] /A << /S /URI /URI ({server.url('/linked')}) >> >>"
        site["/a.pdf"] = binary(pdf(["x"], annotations=link), PDF)
        demo = project(collection(server.url("/"), settings=FAST + f"CRAWLSPACE_FOLLOW_FILE_LINKS = {follow}\n"))
        demo.crawl("demo").succeeded()
        assert indexed(demo) == found


def test_directives_of_a_file_are_those_of_its_headers(project: MakeProject) -> None:
    site = Site(
        {"/": page("Home", links=["/a.pdf"]), "/a.pdf": Answer(200, {"Content-Type": PDF, "X-Robots-Tag": "noindex"}, ONE)}
    )
    with serve(site) as server:
        demo = project(collection(server.url("/")))
        demo.crawl("demo").succeeded()
        assert states(demo)["/a.pdf"].status == 2004


def test_a_spider_of_ones_own_gets_the_page_of_a_file(project: MakeProject) -> None:
    site = Site({"/": page("Home", links=["/one.pdf"]), "/one.pdf": binary(ONE, PDF)})
    with serve(site) as server:
        demo = project({"authors/start_urls.txt": server.url("/"), "authors/settings.py": FAST})
        demo.crawl("authors", "-s", "SPIDER_MODULES=tests.integration.own_spiders").succeeded()
        assert documents(demo, "authors")["/one.pdf"].title == "A report (Ann Author)"


def test_files_of_a_killed_crawl_are_removed(project: MakeProject, tmp_path: Path) -> None:
    with serve(Site({"/": page("Home")})) as server:
        demo = project(collection(server.url("/")))
        files = demo.data / "demo" / "files"
        (files / "999999999-converter.part").mkdir(parents=True)
        for left in ("999999999-x.part", "999999999-converter.part/file"):
            (files / left).write_bytes(b"x")
        demo.crawl("demo").succeeded()
        assert list(files.iterdir()) == []


def test_files_of_a_shared_crawl(project: MakeProject) -> None:
    site = Site({f"/{number}.pdf": binary(pdf([f"Words {number}"]), PDF) for number in range(5)})
    site["/"] = page("Home", links=list(site))
    with serve(site) as server:
        demo = shared(project(collection(server.url("/"))))
        demo.crawl("demo").succeeded()
        assert statuses(demo) == dict.fromkeys(site, 200)
        assert len(indexed(demo)) == 6


def test_zip_files_are_told_apart_by_all_that_is_in_them(project: MakeProject) -> None:
    document = {"docProps/" + "x" * 2000: "", "word/document.xml": w(para("Words"))}
    noise = os.urandom(1_500_000)
    files = {
        "/small": (zipped(document), 200),
        "/large": (zipped({**document, "word/media/x": noise}), 200),
        "/archive": (zipped({"a.txt": "x"}), 780),
        "/large-archive": (zipped({"a.bin": noise}), 780),
        "/old.xls": (compound("Workbook"), 782),
    }
    site = Site({path: binary(body, "application/octet-stream") for path, (body, _) in files.items()})
    site["/"] = page("Home", links=list(files))
    with serve(site) as server:
        demo = project(collection(server.url("/")))
        demo.crawl("demo").succeeded()
        assert statuses(demo) == {"/": 200} | {path: status for path, (_, status) in files.items()}
        assert not list((demo.data / "demo" / "files").iterdir())
