"""Pages that were rendered: the archive has the response as it was sent, and the DOM that document and links were made of."""

from __future__ import annotations

import gzip
import json
import random
from contextlib import closing
from pathlib import Path

import pytest
from warcio.checker import Checker
from warcio.indexer import Indexer

from crawlspace.archive.files import archive_files, close_abandoned, place_of
from crawlspace.archive.members import faults_of, records_of
from crawlspace.archive.reader import ArchiveReader
from crawlspace.archive.records import metadata
from crawlspace.archive.writer import NewDocuments
from crawlspace.clock import FakeClock
from crawlspace.document import Document
from crawlspace.outcome import BodyFile
from tests.contract.memory.store import MemoryStore
from tests.unit.archive.conftest import Archive, fetched

URL = "http://a.example/"
SHELL, OTHER_SHELL = b"<script src=app.js></script>", b"<script src=app2.js></script>"
DOM, OTHER_DOM = "<title>A</title>wörds".encode(), b"<title>A</title>other words"


def kinds(folder: Path) -> list[str]:
    """The types of the records of the newest file, behind its first."""
    return [record.kind for _, record in records_of(archive_files(folder)[-1])][1:]


NEW, NEW_RENDERED = ["metadata", "response", "request"], ["metadata", "response", "resource", "request"]

# title, shell and DOM before and now, whether the document is another one -> records, and whether the place moves to them
AGAIN = [
    ("all the same", (SHELL, DOM), (SHELL, DOM), False, ["revisit", "request"], False),
    ("another DOM", (SHELL, DOM), (SHELL, OTHER_DOM), False, NEW_RENDERED, True),
    ("another document, too", (SHELL, DOM), (SHELL, OTHER_DOM), True, NEW_RENDERED, True),
    ("another document of the same DOM", (SHELL, DOM), (SHELL, DOM), True, NEW_RENDERED, True),
    ("another shell", (SHELL, DOM), (OTHER_SHELL, DOM), False, NEW_RENDERED, True),
    ("not rendered any more", (SHELL, DOM), (SHELL, None), False, NEW, True),
    ("rendered from now on", (SHELL, None), (SHELL, DOM), False, NEW_RENDERED, True),
    ("never rendered", (SHELL, None), (SHELL, None), False, ["revisit", "request"], False),
]


@pytest.mark.parametrize(("title", "before", "now", "is_new", "written", "moves"), AGAIN, ids=[row[0] for row in AGAIN])
def test_what_came_again(
    archive: Archive,
    title: str,
    before: tuple[bytes, bytes | None],
    now: tuple[bytes, bytes | None],
    is_new: bool,
    written: list[str],
    moves: bool,
) -> None:
    (place,) = archive.write(fetched("/", before[0], dom=before[1], title="before"))
    places = archive.write(fetched("/", now[0], dom=now[1], title="now", previous=place, is_new=is_new))
    assert (kinds(archive.folder), len(places)) == (written, int(moves))
    page = archive.reader.page((places or [place])[0], URL)
    assert page is not None
    assert page.document is not None
    expected = ("now", *now) if moves else ("before", *before)
    assert (page.document.title, page.response.body, page.response.dom) == expected


# shell and DOM of a response that the place does not move to, behind one of SHELL and DOM -> records
BESIDE = [
    (SHELL, DOM, ["revisit", "request"]),
    (SHELL, OTHER_DOM, ["revisit", "resource", "request"]),
    (SHELL, None, ["revisit", "request"]),
    (OTHER_SHELL, OTHER_DOM, ["response", "resource", "request"]),
    (OTHER_SHELL, None, ["response", "request"]),
]


@pytest.mark.parametrize(("shell", "dom", "written"), BESIDE)
def test_a_document_that_stays_in_the_index_keeps_its_dom(
    archive: Archive, shell: bytes, dom: bytes | None, written: list[str]
) -> None:
    (place,) = archive.write(fetched("/", SHELL, dom=DOM, title="A"))
    archive.write(fetched("/", shell, dom=dom, previous=place, is_new=False, moves=False))
    assert kinds(archive.folder) == written
    page = archive.reader.page(place, URL)
    assert page is not None
    assert (page.response.body, page.response.dom) == (SHELL, DOM)
    found = [record.fields for path in archive_files(archive.folder) for _, record in records_of(path)]
    digests = [fields["WARC-Payload-Digest"] for fields in found if fields["WARC-Type"] == "resource"]
    assert len(digests) == len(set(digests)), "no DOM is there twice"


def test_versions_have_the_dom_that_each_was_rendered_to(archive: Archive) -> None:
    place, sequence = None, [(SHELL, None), (SHELL, DOM), (SHELL, OTHER_DOM), (OTHER_SHELL, None)]
    for number, (shell, dom) in enumerate(sequence):
        (place,) = archive.write(fetched("/", shell, dom=dom, title=str(number), previous=place, is_new=False))
    assert place is not None
    assert [(found.body, found.dom) for found in archive.reader.versions(place, URL)] == sequence[::-1]


def test_the_record_of_a_dom_is_as_warc_has_it(archive: Archive, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    large = random.Random(0).randbytes(100_000)
    (tmp_path / "body").write_bytes(large)
    body = BodyFile(tmp_path / "body", len(large))
    places = archive.write(
        fetched("/", SHELL, dom=DOM, title="A"), fetched("/2", body, dom=large), fetched("/3", dom=b""), fetched("/4", SHELL)
    )
    stored = [
        archive.reader.response(place, url) for place, url in zip(places, (URL, *(f"{URL}{n}" for n in (2, 3, 4))), strict=True)
    ]
    assert [one and (one.body, one.dom) for one in stored] == [
        (SHELL, DOM),
        (large, large),
        (b"<title>A</title>", b""),
        (SHELL, None),
    ]
    (path,) = archive_files(archive.folder)
    _, document, response, dom, request = [record.fields for _, record in records_of(path)][:5]
    assert (dom["WARC-Type"], dom["WARC-Target-URI"], dom["Content-Type"]) == ("resource", URL, "text/html; charset=utf-8")
    assert (dom["WARC-Date"], dom["WARC-Payload-Digest"]) == (response["WARC-Date"], response["Crawlspace-DOM-Digest"])
    id = response["WARC-Record-ID"]
    assert (dom["WARC-Concurrent-To"], request["WARC-Concurrent-To"], document["WARC-Refers-To"]) == (id, id, id)
    checker = Checker(type("Options", (), {"inputs": [str(path)], "verbose": True})())
    checker.process_all()
    assert checker.exit_value == 0
    assert capsys.readouterr().out.count("digest pass") == 4 + 3
    Indexer(["warc-type", "http:status"], [str(path)], str(tmp_path / "index")).process_all()
    lines = [json.loads(line) for line in (tmp_path / "index").read_text().splitlines()]
    assert [line.get("http:status") for line in lines if line["warc-type"] == "response"] == ["200"] * 4
    assert sum(line["warc-type"] == "resource" for line in lines) == 3


def test_a_file_that_was_cut_has_no_response_without_its_dom(archive: Archive, tmp_path: Path) -> None:
    """As a kill leaves it: at any byte of the last records."""
    places = archive.write(*(fetched(f"/{n}", SHELL * 40, dom=DOM * (n + 40), title=str(n)) for n in range(2)))
    (path,) = archive_files(archive.folder)
    content, whole = path.read_bytes(), set()
    ends = [record.end for _, record in records_of(path)]
    cuts = {0, *(end + beside for end in ends for beside in (-1, 0, 1)), *range(ends[4], len(content), 7)}
    for cut in sorted(cuts):
        folder = tmp_path / f"cut at {cut}"
        folder.mkdir()
        (folder / f"{path.name}.open").write_bytes(content[:cut])
        close_abandoned(folder)
        with closing(ArchiveReader(folder, {1: path.name})) as reader:
            found = [reader.page(place, f"{URL}{n}") for n, place in enumerate(places)]
            for n, page in enumerate(found):
                assert page is None or (page.response.body, page.response.dom) == (SHELL * 40, DOM * (n + 40))
            whole.add(sum(page is not None for page in found))
        assert not any(fault for closed in archive_files(folder) for fault in faults_of(closed))
    assert whole == {0, 1, 2}


def test_a_document_made_again_has_response_and_dom_behind_it(archive: Archive) -> None:
    place, other = archive.write(fetched("/", SHELL, dom=DOM, title="A"), fetched("/plain", SHELL, title="B"))
    store = MemoryStore()
    store.add_archive_file(archive_files(archive.folder)[0].name)
    for at, url, dom in ((place, URL, DOM), (other, f"{URL}plain", None)):
        page = archive.reader.page(at, url)
        assert page is not None
        record = metadata(Document(url, title="again"), url=url, of=page.id, date=page.response.date)
        made = NewDocuments(archive.folder, store, archive.reader, collection="demo", clock=FakeClock(1_750_000_001))
        with closing(made):
            new = made.add(record, page.location, url)
        archive.reader.files.update(store.archive_files())
        again = archive.reader.page(new, url)
        assert again is not None
        assert again.document is not None
        assert (again.document.title, again.response.body, again.response.dom) == ("again", SHELL, dom)
        assert kinds(archive.folder) == (NEW if dom is None else NEW_RENDERED)


# what becomes of the record of the DOM -> the fault
DAMAGED = [
    (lambda parts: [*parts[:3], *parts[4:]], "the DOM of http://a.example/, at byte"),
    (lambda parts: [*parts[:3], parts[7], *parts[4:]], "the DOM of http://a.example/, at byte"),
]


@pytest.mark.parametrize(("change", "fault"), DAMAGED)
def test_a_response_without_its_dom_is_none(archive: Archive, change: object, fault: str) -> None:
    place, other = archive.write(fetched("/", SHELL, dom=DOM, title="A"), fetched("/2", SHELL, dom=OTHER_DOM, title="B"))
    (path,) = archive_files(archive.folder)
    content, parts = path.read_bytes(), [(offset, record.end) for offset, record in records_of(path)]
    assert list(faults_of(path)) == []
    changed = change([content[first:end] for first, end in parts])  # type: ignore[operator]
    path.write_bytes(b"".join(changed))
    archive.reader.close()
    assert archive.reader.response(place, URL) is None
    assert archive.reader.page(place, URL) is None
    assert archive.reader.document(place, URL) is not None
    assert [fault in found for found in faults_of(path)] == [True]
    moved = len(b"".join(changed)) - len(content)
    assert archive.reader.response(place_of(1, (other & 0xFFFFFFFF) + moved), f"{URL}2") is not None


def test_a_dom_whose_digest_does_not_hold_is_a_fault(archive: Archive) -> None:
    archive.write(fetched("/", SHELL, dom=b"D" * 50))
    (path,) = archive_files(archive.folder)
    _, (first, record), _ = list(records_of(path))[1:]
    content = path.read_bytes()
    member = _damaged(content[first : record.end])
    path.write_bytes(content[:first] + member + content[record.end :])
    assert [found.endswith("does not hold") for found in faults_of(path)] == [True]


def _damaged(member: bytes) -> bytes:
    return gzip.compress(gzip.decompress(member).replace(b"D" * 50, b"E" * 50))
