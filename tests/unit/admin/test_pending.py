"""Pending files: their lines, their export, and their realms."""

from __future__ import annotations

import gzip
import io
import random
import tempfile
from pathlib import Path
from time import process_time

import pytest

from crawlspace.admin.pending.export import number_of, realm_of, sorted_lines
from crawlspace.admin.pending.lines import MOST_BYTES, PendingFileError, PendingLine, checked, merged, read_lines
from crawlspace.admin.pending.realms import BLOCK, NAME, NO_ORIGIN, Origin, Origins
from crawlspace.errors import ExportError, StoreDamaged
from crawlspace.model import State, UrlState
from tests.contract.memory.store import MemoryStore

NOW = 1_750_000_000
A, B = b"http://a.example/", b"http://b.example/"

# known, of the line, which stays
MERGED = [
    (0, 0, 0),
    (0, 2, 2),
    (0, 1_000, 1_000),
    (2, 0, 2),
    (2, 2, 2),
    (2, 1_000, 1_000),
    (1_000, 0, 1_000),
    (1_000, 2, 2),
    (1_000, 999, 1_000),
    (1_000, 1_001, 1_001),
]


@pytest.mark.parametrize(("known", "new", "stays"), MERGED)
def test_which_number_stays(known: int, new: int, stays: int) -> None:
    assert merged(known, new) == stays


def read(content: bytes) -> list[PendingLine]:
    return list(read_lines(io.BytesIO(content), "p", now=NOW, fault=pytest.fail))


def test_lines_are_read() -> None:
    assert read(A + b" Main 0\n" + A + b"\xc3\xa9 Main 2\n" + B + b" My%20Site 1700000000\n") == [
        PendingLine(1, "http://a.example/", "Main", 0),
        PendingLine(2, "http://a.example/é", "Main", 2),
        PendingLine(3, "http://b.example/", "My%20Site", 1_700_000_000),
    ]
    assert checked(io.BytesIO(b""), "p", now=NOW) == 0


# numbers of lines with the same URL, as they count
SAME_URL = [
    (b"0 2 1700000000 2", [0, 2, 1_700_000_000, 1_700_000_000]),
    (b"1700000000 1600000000 0", [1_700_000_000] * 3),
    (b"2 0", [2, 2]),
]


@pytest.mark.parametrize("url", [A, A + "é".encode()])
@pytest.mark.parametrize(("numbers", "count"), SAME_URL)
def test_of_lines_with_the_same_url_the_largest_number_counts(url: bytes, numbers: bytes, count: list[int]) -> None:
    found = read(b"".join(url + b" R " + number + b"\n" for number in numbers.split()) + B + b" R 0\n")
    assert [line.number for line in found] == [*count, 0]


def test_a_byte_order_mark_and_cr_lf_are_passed_over() -> None:
    plain = A + b" R 0\n" + B + b" R 2\n"
    assert read(b"\xef\xbb\xbf" + plain.replace(b"\n", b"\r\n")) == read(plain) != []


# content, the sentence begins, and has this way out
FAULTY = [
    (B + b" R 0\n" + A + b" R 0\n", "p:2: 'http://a.example/' comes after 'http://b.example/'", "LC_ALL=C sort -o FILE FILE"),
    (A + b" R%2 0\n", "p:1: the realm 'R%2' is not URL-encoded", "as %XX"),
    (A + b" R%zz 0\n", "p:1: the realm 'R%zz' is not URL-encoded", "as %XX"),
    (A + b" R\xc3\xa9 0\n", "p:1: the realm 'Ré' is not URL-encoded", "as %XX"),
    (A + b" " + b"R" * 256 + b" 0\n", "p:1: the realm 'RRR", "at most 255"),
    (A + b" " + b"%20" * 100 + b" 0\n", "p:1: the realm '%20%20", "at most 255"),
    (A + b" My Site 0\n", "p:1: 'http://a.example/ My Site 0' is not `URL realm number`", "encode the realm"),
    (A + b" R 0 1700000000\n", "p:1: 'http://a.example/ R 0 1700000000' is not", "`URL realm number`"),
    (A + b" R 1\n", "p:1: the state is '1'", "write 0 (waiting), 2 (error), or the Unix time"),
    (A + b" R 1.7e9\n", "p:1: the state is '1.7e9'", "the Unix time"),
    (A + b" R " + b"9" * 15_000 + b"\n", "p:1: the state is '999", "the Unix time"),
    (A + b"a" * MOST_BYTES + b" R 0\n", f"p:1: the line is longer than {MOST_BYTES:,} bytes", "take the line out"),
    (A + b"\0 R 0\n", "p:1: 'http://a.example/\\x00 R 0' has the control character U+0000", "%XX"),
    (gzip.compress(A + b" R 0\n"), "p is compressed", "gzip -d"),
    (b"PK\x03\x04\x14\0\0\0", "p is a ZIP archive", "unpack it"),
    ((A + b" R 0\n").decode().encode("utf-16"), "p is UTF-16", "iconv -f utf-16"),
    (A + b" R -1\n", "p:1: the state is '-1'", "write 0 (waiting), 2 (error), or the Unix time"),
    (A + b" R 00\n", "p:1: the state is '00'", "write 0"),
    (A + b" R +5\n", "p:1: the state is '+5'", "write 0"),
    (A + " R ٣\n".encode(), "p:1: the state is '٣'", "write 0"),
    (A + b" R 1700000000000\n", "p:1: the state 1700000000000 is a time in the future", "in seconds"),
    (A + b" R " + b"9" * 2_000_000 + b"\n", f"p:1: the line is longer than {MOST_BYTES:,} bytes", "take the line out"),
    (A + b" R 0\r\r\n", "p:1: 'http://a.example/ R 0\\r' has the control character U+000D", "take it out"),
    (A + b"a b R 0\n", "p:1: 'http://a.example/a b R 0' is not `URL realm number`", "%20"),
    (A + b"  R 0\n", "p:1: 'http://a.example/  R 0' is not", "one space"),
    (A + b" R 0 \n", "p:1: 'http://a.example/ R 0 ' is not", "one space"),
    (A + b" 0\n", "p:1: 'http://a.example/ 0' is not", "`URL realm number`"),
    (b"\n", "p:1: '' is not", "`URL realm number`"),
    (A + b"\t R 0\n", "p:1: 'http://a.example/\\t R 0' has the control character U+0009", "%XX"),
    (A + b"\xe9 R 0\n", "p:1: byte 18 of the line, 0xE9, is not UTF-8", "iconv"),
    (A + b" R 170", "p:1: the file ends within a line, 'http://a.example/ R 170'", "use a whole copy"),
]


@pytest.mark.parametrize(("content", "beginning", "way_out"), FAULTY, ids=[row[1][:50] for row in FAULTY])
def test_what_is_wrong_is_named(content: bytes, beginning: str, way_out: str) -> None:
    with pytest.raises(PendingFileError) as raised:
        checked(io.BytesIO(content), "p", now=NOW)
    sentence, note = str(raised.value).splitlines()
    assert sentence.startswith(beginning)
    assert way_out in sentence
    assert len(sentence) < 500
    assert note == "nothing was imported"


def test_a_number_of_two_million_digits_takes_no_time() -> None:
    content = A + b" R " + b"9" * 2_000_000 + b"\n"
    began = process_time()
    for _ in range(10):
        with pytest.raises(PendingFileError):
            checked(io.BytesIO(content), "p", now=NOW)
    assert process_time() - began < 2, "int() would take seconds for each"


def test_reading_goes_on_after_a_faulty_line() -> None:
    faults: list[str] = []
    content = A + b" R " + b"9" * 3 * MOST_BYTES + b"\n" + A + b" R x\n" + B + b" R 0\n"
    found = [line.line for line in read_lines(io.BytesIO(content), "p", now=NOW, fault=faults.append)]
    assert (found, [fault[:4] for fault in faults]) == ([3], ["p:1:", "p:2:"])


def test_of_many_faults_the_first_are_named() -> None:
    with pytest.raises(PendingFileError) as raised:
        checked(io.BytesIO((A + b" R x\n") * 250), "p", now=NOW)
    lines = str(raised.value).splitlines()
    assert (len(lines), lines[99][:6], lines[100]) == (102, "p:100:", "p: and 150 more")


# --- export ---------------------------------------------------------------------------------------------------------


# state, fetched at, imported time, number
NUMBERS = [
    (State.PENDING, None, 0, 0),
    (State.PENDING, None, 700, 700),
    (State.PENDING, 900, 700, 0),  # fetched, and pending again
    (State.DONE, 900, 0, 900),
    (State.DONE, 900, 700, 900),
    (State.DONE, 700, 900, 900),
    (State.GONE, 900, 0, 2),
    (State.GONE, None, 700, 2),
    (State.FAILED, 900, 0, 2),
    (State.REDIRECTED, 900, 0, 2),
    (State.EXCLUDED, 900, 0, 2),
]


@pytest.mark.parametrize(("state", "fetched_at", "imported", "number"), NUMBERS)
def test_the_number_of_a_url(state: State, fetched_at: int | None, imported: int, number: int) -> None:
    assert number_of(UrlState(1, 1, "http://a/", "a:80", state=state, fetched_at=fetched_at), imported) == number


def test_the_realm_of_a_collection() -> None:
    assert realm_of("hand_book-2") == "hand_book-2"


@pytest.mark.parametrize("number", [0, 1, 99, 100, 101, 1_000])
def test_lines_are_sorted_whatever_is_in_memory(number: int) -> None:
    lines = [f"http://a.example/{chr(33 + n % 90)}/{n} R 0" for n in range(number)]
    mixed = random.Random(number).sample(lines, len(lines))
    assert list(sorted_lines(mixed, at_once=100)) == sorted(lines, key=lambda line: line.split(" "))


def test_a_folder_for_sorting_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(ExportError, match="set TMPDIR"):
        list(sorted_lines(["a", "b"], at_once=1))


# --- realms ---------------------------------------------------------------------------------------------------------


def test_what_is_written_is_read() -> None:
    store = MemoryStore(sinks=())
    chosen = random.Random(7)
    kinds = [NO_ORIGIN, Origin("R"), Origin("S%20T", 5), Origin(None, 1_700_000_000)]
    wanted: dict[int, Origin] = {}
    for _ in range(40):
        first = chosen.randrange(3 * BLOCK)
        batch = dict.fromkeys(range(first, first + chosen.randrange(1, 300)), chosen.choice(kinds))
        Origins(store).write(batch)
        wanted |= batch
    origins = Origins(store)
    assert {id: origins.of(id) for id in range(5 * BLOCK)} == {id: wanted.get(id, NO_ORIGIN) for id in range(5 * BLOCK)}


def test_urls_of_one_realm_and_time_are_one_run() -> None:
    store = MemoryStore(sinks=())
    Origins(store).write(dict.fromkeys(range(BLOCK), Origin("Main", 1_700_000_000)))
    assert store.get_meta(f"{NAME}0") == f'[["Main"],[[0,{BLOCK},0,1700000000]]]'


def test_urls_that_are_not_imported_have_no_value() -> None:
    store = MemoryStore(sinks=())
    Origins(store).write({1: NO_ORIGIN, 2 * BLOCK: NO_ORIGIN})
    assert store.get_metas([f"{NAME}0", f"{NAME}2"]) == [None, None]


@pytest.mark.parametrize("value", ["x", "[]", '[["R"],[[0,1,1,0]]]', '[["R"],[[0,2000,0,0]]]', '[["R"],[[-1,1,0,0]]]'])
def test_a_damaged_value_is_named(value: str) -> None:
    store = MemoryStore(sinks=())
    store.set_meta(f"{NAME}0", value)
    with pytest.raises(StoreDamaged, match="imported:0"):
        Origins(store).of(0)
