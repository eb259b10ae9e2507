"""The archive: files, records and their offsets, and the gzip members that records are in."""

from __future__ import annotations

import gzip
import io
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import accumulate, pairwise
from pathlib import Path
from random import Random

import pytest
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker

from crawlspace.admin.archive import compact
from crawlspace.archive import members
from crawlspace.archive.files import archive_files, close_abandoned, ends_of_records, file_and_offset, open_files, place_of
from crawlspace.archive.members import faults_of, records_of
from crawlspace.clock import FakeClock
from crawlspace.document import Document
from crawlspace.errors import ArchiveError
from crawlspace.model import State
from crawlspace.outcome import BodyFile
from crawlspace.state.changes import Change
from tests.contract.conftest import NOW, new
from tests.contract.memory.store import MemoryStore
from tests.quick import some
from tests.unit.archive.conftest import Archive, fetched

LARGE = os.urandom(100_000)


def by_warcio(folder: Path) -> list[tuple[str, str, str, bytes]]:
    """Type, URL, date and payload of the records of all closed files; the digests must hold."""
    return [record for path in archive_files(folder) for record in _records(path)]


def _records(path: Path) -> Iterator[tuple[str, str, str, bytes]]:
    with path.open("rb") as file:
        for record in ArchiveIterator(file, check_digests="raise"):
            fields = record.rec_headers
            yield (
                record.rec_type,
                fields.get_header("WARC-Target-URI") or "",
                fields.get_header("WARC-Date"),
                record.content_stream().read(),
            )


def test_a_fetch_is_read_as_it_was_written(archive: Archive) -> None:
    (place,) = archive.write(fetched("/a?b=c", title="A"))
    response = archive.reader.response(place, "http://a.example/a?b=c")
    document = archive.reader.document(place, "http://a.example/a?b=c")
    assert response is not None
    assert document is not None
    assert (document.title, response.status, response.body, response.date) == (
        "A",
        200,
        b"<title>A</title>",
        "2025-06-15T15:06:40Z",
    )
    assert response.headers == [("Content-Type", "text/html"), ("X-Two", "1"), ("X-Two", "2")]
    assert [record[:2] for record in by_warcio(archive.folder)] == [
        ("warcinfo", ""),
        ("metadata", "http://a.example/a?b=c"),
        ("response", "http://a.example/a?b=c"),
        ("request", "http://a.example/a?b=c"),
    ]
    assert not any(b"secret" in content for *_, content in by_warcio(archive.folder))


def test_a_body_on_disk_is_read_as_it_was_written_and_removed(archive: Archive, tmp_path: Path) -> None:
    path = tmp_path / "body"
    path.write_bytes(LARGE)
    before, place, after = archive.write(fetched("/1", title="1"), fetched("/large", BodyFile(path, len(LARGE))), fetched("/2"))
    assert not path.exists()
    bodies = [
        archive.reader.response(one, f"http://a.example{url}") for one, url in ((before, "/1"), (place, "/large"), (after, "/2"))
    ]
    assert [response is not None and response.body for response in bodies] == [b"<title>A</title>", LARGE, b"<title>A</title>"]
    assert len(by_warcio(archive.folder)) == 1 + 3 + 2 + 2


def test_a_file_is_fit_for_warcio_check(archive: Archive, capsys: pytest.CaptureFixture[str]) -> None:
    archive.write(fetched("/", LARGE, title="A"), fetched("/b", b"", status=999), fetched("/304", b"", status=304))
    command = type("Options", (), {"inputs": [str(path) for path in archive_files(archive.folder)], "verbose": True})()
    checker = Checker(command)
    checker.process_all()
    assert checker.exit_value == 0
    assert "digest pass" in capsys.readouterr().out


# title, fetch before, fetch now -> whether there is a new version
AGAIN = [
    ("the same bytes", fetched("/", title="A"), fetched("/", title="A"), False),
    ("other bytes", fetched("/", title="A"), fetched("/", b"other", title="A"), True),
    ("the same bytes, and another document", fetched("/", title="A"), fetched("/", title="B", is_new=True), True),
    ("not modified", fetched("/", title="A"), fetched("/", b"", status=304), False),
    (
        "the same bytes, and a header that no document is made of",
        fetched("/", title="A"),
        fetched("/", title="A", headers={"Date": "now"}),
        False,
    ),
    (
        "the same bytes with directives",
        fetched("/", title="A"),
        fetched("/", title="A", headers={"X-Robots-Tag": "noindex"}),
        True,
    ),
    (
        "the same bytes of another type",
        fetched("/", title="A"),
        fetched("/", title="A", headers={"Content-Type": "text/plain"}),
        True,
    ),
    (
        "the same bytes with a link",
        fetched("/", title="A"),
        fetched("/", title="A", headers={"Link": "</b>; rel=canonical"}),
        True,
    ),
    ("the same bytes, encoded", fetched("/", title="A"), fetched("/", title="A", headers={"Content-Encoding": "gzip"}), True),
    (
        "the same bytes of another name",
        fetched("/", title="A"),
        fetched("/", title="A", headers={"Content-Disposition": "inline"}),
        True,
    ),
    ("the same bytes with another status", fetched("/", title="A"), fetched("/", title="A", status=203), True),
    ("the version before is lost", None, fetched("/", title="A"), True),
]


@pytest.mark.parametrize(("title", "before", "now", "is_new"), AGAIN, ids=[row[0] for row in AGAIN])
def test_what_came_again_is_a_revisit(archive: Archive, title: str, before: object, now: object, is_new: bool) -> None:
    first = fetched("/", title="A") if before is not None else None
    again = now
    again.is_new = title.endswith("another document")  # type: ignore[attr-defined]
    again.previous = archive.write(first)[0] if first is not None else place_of(7, 300)  # type: ignore[attr-defined]
    places = archive.write(again)  # type: ignore[arg-type]
    kinds = [kind for kind, *_ in by_warcio(archive.folder)]
    assert ("revisit" in kinds, len(places)) == (not is_new, int(is_new))


NOINDEX, OTHER = {"X-Robots-Tag": "googlebot: noindex"}, {"X-Robots-Tag": "otherbot: noindex"}
NOT_MODIFIED = [
    # title, headers before (None: the version before is lost), headers of a 304, whether directives of it are looked at, whether it is outdated
    ("the same directives", NOINDEX, NOINDEX, True, False),
    ("they have come", {}, NOINDEX, True, True),
    ("they are others", OTHER, NOINDEX, True, True),
    ("the version before is lost", None, NOINDEX, True, True),
    ("they restrict nobody", {}, {"X-Robots-Tag": "noarchive"}, False, False),
    ("there are none, as a server may leave them out", NOINDEX, {}, False, False),
]


@pytest.mark.parametrize(("title", "before", "now", "restricts", "outdated"), NOT_MODIFIED, ids=[row[0] for row in NOT_MODIFIED])
def test_a_304_with_other_directives_makes_the_version_before_outdated(
    archive: Archive, title: str, before: dict[str, str] | None, now: dict[str, str], restricts: bool, outdated: bool
) -> None:
    place = place_of(7, 300) if before is None else archive.write(fetched("/", title="A", headers=before))[0]
    again = fetched("/", b"", status=304, headers=now, previous=place, restricts_others=restricts)
    archive.write(again)
    assert again.is_outdated is outdated


def test_versions_are_listed_newest_first(archive: Archive) -> None:
    place = None
    for number in range(3):
        (place,) = archive.write(fetched("/", b"version %d" % number, title=str(number), previous=place))
    assert place is not None
    assert [found.body for found in archive.reader.versions(place, "http://a.example/")] == [
        b"version 2",
        b"version 1",
        b"version 0",
    ]


def test_files_are_rotated_between_fetches(archive: Archive) -> None:
    places = archive.write(*(fetched(f"/{n}", LARGE, title=str(n)) for n in range(40)), rotated_bytes=1_000_000)
    files = archive_files(archive.folder)
    assert len(files) > 3
    assert all(re.fullmatch(r"demo-\d{14}-[\w.-]+-\d{5}\.warc\.gz", path.name) for path in files)
    assert [archive.reader.document(place, f"http://a.example/{n}").title for n, place in enumerate(places)] == [  # type: ignore[union-attr]
        str(n) for n in range(40)
    ]
    assert len(by_warcio(archive.folder)) == 3 * 40 + len(files)


# what is asked for: place and URL -> found
ASKED = [
    ("another URL has its records there", lambda place: (place, "http://a.example/b")),
    ("no record begins there", lambda place: (place + 1, "http://a.example/")),
    ("behind the end", lambda place: (place + 1_000_000, "http://a.example/")),
    ("a file that is not known", lambda place: (place_of(99, file_and_offset(place)[1]), "http://a.example/")),
]


@pytest.mark.parametrize(("title", "ask"), ASKED, ids=[row[0] for row in ASKED])
def test_what_is_not_there_is_not_found(archive: Archive, title: str, ask: object) -> None:
    (place,) = archive.write(fetched("/", title="A"))
    where, url = ask(place)  # type: ignore[operator]
    assert archive.reader.document(where, url) is None
    assert archive.reader.response(where, url) is None
    assert list(archive.reader.versions(where, url)) == []


FOLDED = [
    # the URL that was archived, one that asks for its record, whether it is folded into that by some options
    ("/a/", "http://a.example/a", True),
    ("/a", "http://a.example/a/", True),
    ("/a?utm_source=x&b=1", "http://a.example/a?b=1", True),
    ("/a?c=2&b=1", "http://a.example/a?b=1&c=2", True),
    ("/a?sid=1", "http://www.a.example/a", True),
    ("/a/#/b", "http://a.example/a#/b", True),
    ("/a#/b", "http://a.example/a", False),
    ("/a", "http://a.example/a#/b", False),
    ("/a#/b", "http://a.example/a#!b", False),
    ("/a", "http://a.example/b", False),
    ("/a?b=1", "http://a.example/a?b=2", False),
    ("/a", "http://a.example/a?b=1", False),
    ("/a", "https://a.example/a", False),
    ("/a", "http://b.example/a", False),
]  # fmt: skip


@pytest.mark.parametrize(("path", "url", "is_found"), FOLDED)
def test_a_url_has_the_record_of_one_that_was_folded_into_it(archive: Archive, path: str, url: str, is_found: bool) -> None:
    (place,) = archive.write(fetched(path, title="A"))
    document = archive.reader.document(place, url)
    assert document == (Document(url, title="A") if is_found else None)
    assert archive.reader.is_at(place, url) is is_found
    response = archive.reader.response(place, url)
    assert (response is not None and response.url) == (is_found and f"http://a.example{path}")
    assert archive.reader.original(place, url) is None, "its own response is written whole"


def test_a_file_that_was_removed_or_cut_is_missed_and_no_error(archive: Archive) -> None:
    first, second = archive.write(fetched("/1", LARGE, title="1"), fetched("/2", LARGE, title="2"))
    (path,) = archive_files(archive.folder)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - LARGE[0] - 50_000)
    assert archive.reader.response(first, "http://a.example/1") is not None
    assert archive.reader.response(second, "http://a.example/2") is None
    archive.reader.close()
    path.unlink()
    assert archive.reader.response(first, "http://a.example/1") is None


# --- files whose writer was killed ---------------------------------------------------------------------------------

KILLED = """
import os, sys
from pathlib import Path
from tests.unit.archive.conftest import Archive, fetched
archive = Archive(Path(sys.argv[1]))
writer = archive.writer()
tickets = [writer.add(fetched(f"/{n}", title=str(n))) for n in range(20)]
writer.wait(tickets)
print(*(ticket.location.offset for ticket in tickets), flush=True)
os.kill(os.getpid(), 9)
"""


def killed(folder: Path) -> list[int]:
    """Have a process archive 20 pages and be killed; return the offsets of their records."""
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder)], stdout=subprocess.PIPE, text=True, check=False)
    return list(map(int, done.stdout.split()))


def test_what_was_waited_for_outlives_a_kill(archive: Archive) -> None:
    offsets = killed(archive.folder)
    assert (archive_files(archive.folder), len(open_files(archive.folder))) == ([], 1)
    (name,) = (path.name.removesuffix(".open") for path in open_files(archive.folder))
    archive.reader.files[1] = name
    for closes in (False, True):
        if closes:
            assert [path.name for path in close_abandoned(archive.folder)] == [name]
        found = [archive.reader.document(place_of(1, offset), f"http://a.example/{n}") for n, offset in enumerate(offsets)]
        assert [document and document.title for document in found] == [str(n) for n in range(20)]
    assert len(by_warcio(archive.folder)) == 61


# bytes that are cut off, or added -> whole records that are left
CUT = [(0, 61), (1, 60), (500, 59), (10_000_000, 0), (-30, 61)]


@pytest.mark.parametrize(("cut", "left"), CUT)
def test_a_file_that_was_cut_ends_behind_its_last_whole_record(archive: Archive, cut: int, left: int) -> None:
    killed(archive.folder)
    (path,) = open_files(archive.folder)
    with path.open("r+b") as file:
        file.truncate(max(path.stat().st_size - max(cut, 0), 0))
        file.seek(0, os.SEEK_END)
        file.write(os.urandom(max(-cut, 0)))
    close_abandoned(archive.folder)
    assert open_files(archive.folder) == []
    assert len(by_warcio(archive.folder)) == left


@pytest.mark.parametrize("content", [bytes, os.urandom], ids=["a run of one byte", "random bytes"])
def test_records_of_any_size_are_found(content: Callable[[int], bytes]) -> None:
    sizes = (0, 1, (1 << 18) - 1, 1 << 18, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 1_500_000, 2 << 20, 5_000_000)
    records = [gzip.compress(content(size), compresslevel=1) for size in (*sizes, *reversed(sizes))]
    assert list(ends_of_records(io.BytesIO(b"".join(records)))) == list(accumulate(map(len, records)))


def test_a_file_that_is_being_written_is_left_alone(archive: Archive) -> None:
    writer = archive.writer()
    writer.wait([writer.add(fetched("/", title="A"))])
    code = f"from pathlib import Path\nfrom crawlspace.archive.files import close_abandoned\nprint(close_abandoned(Path({str(archive.folder)!r})))"
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True).stdout == "[]\n"
    writer.close()
    assert len(by_warcio(archive.folder)) == 4


# --- what cannot be written ----------------------------------------------------------------------------------------

FULL = """
import resource, sys
from pathlib import Path
from tests.unit.archive.conftest import Archive, fetched
from tests.unit.archive.test_archive import LARGE
from crawlspace.errors import ArchiveError
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
archive = Archive(Path(sys.argv[1]))
writer = archive.writer()
for n in range(9):
    try:
        writer.wait([writer.add(fetched(f"/{n}", LARGE, title=str(n)))])
    except ArchiveError as error:
        print(n, error)
"""


def test_a_disk_that_is_full_is_an_error_from_then_on(archive: Archive) -> None:
    done = subprocess.run([sys.executable, "-c", FULL, str(archive.folder)], stdout=subprocess.PIPE, text=True, check=True)
    lines = done.stdout.splitlines()
    assert [int(line.split()[0]) for line in lines] == list(range(2, 9))
    assert f"2 the archive cannot be written to {archive.folder} (File too large): free space there" in lines[0]
    assert len({line.split(maxsplit=1)[1] for line in lines}) == 1
    close_abandoned(archive.folder)
    assert [url for kind, url, *_ in by_warcio(archive.folder) if kind == "response"] == [
        "http://a.example/0",
        "http://a.example/1",
    ]


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ArchiveError, match=r"the archive cannot be written to .*file/archive \(Not a directory\)"):
        Archive(tmp_path / "file" / "archive").writer()


def test_a_file_that_was_moved_away_is_an_error(archive: Archive) -> None:
    writer = archive.writer()
    ticket = writer.add(fetched("/"))
    writer.wait([ticket])
    (path,) = open_files(archive.folder)
    path.rename(path.with_name("elsewhere"))
    with pytest.raises(ArchiveError, match="was moved or removed while it was written"):
        writer.wait([ticket])
    with pytest.raises(ArchiveError):
        writer.close()


class HeldBody(BodyFile):
    """A body that is read only when `go` is set, as from a disk that is slow."""

    go: threading.Event

    def parts(self) -> Iterator[bytes]:
        assert self.go.wait(300)
        yield from super().parts()


def test_the_crawl_waits_for_records_but_not_for_a_slow_disk(archive: Archive, tmp_path: Path) -> None:
    (tmp_path / "body").write_bytes(LARGE)
    slow = HeldBody(tmp_path / "body", len(LARGE))
    slow.go = threading.Event()
    with closing(archive.writer()) as writer:
        quick = writer.add(fetched("/1"))
        assert not quick.is_written, "the thread begins when it is asked to"
        writer.begin(patience_s=60)
        assert quick.is_written
        held = writer.add(fetched("/2", slow))
        writer.begin(patience_s=0.001)
        assert not held.is_written
        slow.go.set()
        writer.wait([held])
        assert held.is_written


# --- gzip members ---------------------------------------------------------------------------------------------------


RANDOM = Random(1)
BODIES = {"stored": RANDOM.randbytes(300), "deflated": RANDOM.randbytes(700).hex().encode(), "empty": b""}


@pytest.mark.parametrize("at_once", ["_READ_AT_ONCE", "_INFLATED_AT_ONCE"])
@pytest.mark.parametrize("body", some(BODIES.values(), 2), ids=BODIES)
def test_parts_of_any_size(archive: Archive, monkeypatch: pytest.MonkeyPatch, at_once: str, body: bytes) -> None:
    (place,) = archive.write(fetched("/", body, title="A", dom=body))
    (path,) = archive_files(archive.folder)
    wrong = []
    for size in range(1, 2_500):
        monkeypatch.setattr(members, at_once, size)
        page = archive.reader.page(place, "http://a.example/")
        read = page and (page.document and page.document.title, page.response.body, page.response.dom)
        if read != ("A", body, body) or list(faults_of(path)):
            wrong.append(size)
    assert wrong == []


def test_copied_records_of_about_the_size_of_a_part(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = 600
    for name in ("_READ_AT_ONCE", "_COPIED_AT_ONCE"):
        monkeypatch.setattr(members, name, at_once)
    bodies = {f"http://a.example/{size:03}": RANDOM.randbytes(size) for size in range(150, 350)}
    store = MemoryStore()
    store.discover([new(url.removeprefix("http://")) for url in bodies], now=NOW)
    tickets = [fetched(url.removeprefix("http://a.example"), body, title=url) for url, body in bodies.items()]
    archive.write(fetched("/superseded", RANDOM.randbytes(at_once)), *tickets)
    for ticket in tickets:
        state = store.get(ticket.exchange.url)
        assert state is not None
        assert ticket.location is not None
        state.state = State.DONE
        place = place_of(store.add_archive_file(ticket.location.file), ticket.location.offset)
        store.record([Change(state, archived=place)], now=NOW)
    before = contents(archive)
    lengths = {len(record) for record in before}
    assert set(range(at_once - 30, at_once + 30)) <= lengths, "a part ends at each byte of the end of a record"

    compact(store, archive.folder, collection="demo", clock=FakeClock(NOW))

    assert contents(archive) == before[2:], "response and request of the superseded fetch have gone"
    assert [fault for path in archive_files(archive.folder) for fault in faults_of(path)] == []
    archive.reader.close()
    archive.reader.files = store.archive_files()
    pages = {state.url: archive.reader.page(state.archived or 0, state.url) for state in store.urls()}
    read = {url: (page.document and page.document.title, page.response.body) for url, page in pages.items() if page}
    assert read == {url: (url, body) for url, body in bodies.items()}


def contents(archive: Archive) -> list[bytes]:
    """The records of all files as they are, without the first of each file."""
    found = []
    for path in archive_files(archive.folder):
        ends = [record.end for _, record in records_of(path)]
        assert ends[-1] == path.stat().st_size
        found += [path.read_bytes()[begin:end] for begin, end in pairwise(ends)]
    return found
