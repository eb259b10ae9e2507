"""The lines of a pending file: what is read, what is refused with which sentence, and which number stays."""

from __future__ import annotations

import gzip
import io
from time import process_time

import pytest

from crawlspace.admin.pending.lines import MOST_BYTES, PendingFileError, PendingLine, checked, merged, read_lines

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
