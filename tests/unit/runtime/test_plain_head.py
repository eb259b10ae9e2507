"""The head of an answer read in one go: what Twisted and Scrapy make of the same bytes, or nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.runtime.http.plain_head import MOST_BYTES, MOST_LINES, plain_head
from tests.heads import as_read_in_one_go, as_twisted_reads, differs

OK = b"HTTP/1.1 200 OK\r\n"
END = b"Content-Length: 3\r\n\r\n"


PLAIN = [
    OK + END,
    OK + END + b"abc",
    OK + END + b"a\r\n",
    OK + b"\r\n".join([b"server: x", b"etag: \"a\"", b"www-authenticate: a", b"x-p3p-DNT: 1"]) + b"\r\n" + END,
    OK + b"Set-Cookie: a=1\r\nX: \r\nset-cookie:b=2\r\nX:  y z\t\r\n" + END,
    OK + b"Connection: Keep-Alive\r\nKeep-Alive: timeout=5\r\n" + END,
    OK + b"CONTENT-LENGTH:3\r\nX: a:b: c\r\nY: \xff\x00\x0b\r\n\r\n",
    OK + b"Content-Length: 0003\r\n\r\n",
    OK + b"Content-Length: 0\r\n\r\n",
    b"HTTP/1.1 200\r\n" + END,
    b"HTTP/1.1 200 \r\n" + END,
    b"HTTP/1.1 404 Not  Found \xff\r\n" + END,
    b"HTTP/1.1 999 What\r\n" + END,
    b"HTTP/1.1 301 Moved\r\nLocation: /a\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 304 Not Modified\r\nETag: a\r\n\r\n",
    b"HTTP/1.1 304 Not Modified\r\nETag: a\r\nContent-Length: 30\r\n\r\n",
]  # fmt: skip
NOT_PLAIN = [
    b"",
    b"a",
    OK,
    OK + END[:-1],
    OK + END[:-2],
    OK + END.replace(b"\r", b""),
    OK + b"X: a\n" + END,
    OK + b"X: a\rb\r\n" + END,
    OK + b"X: a\n\r\n" + END,
    OK + b"X: a\r\n b\r\n" + END,
    OK + b" X: a\r\n" + END,
    OK + b"X : a\r\n" + END,
    OK + b": a\r\n" + END,
    OK + b"X\r\n" + END,
    OK + b"X\x00: a\r\n" + END,
    OK + b"X" * 61 + b": a\r\n" + END,
    OK + b"X: a\r\n" * MOST_LINES + END,
    OK + b"X: " + b"a" * MOST_BYTES + b"\r\n" + END,
    OK + b"Content-Length: 3\r\n" + END,
    OK + b"Content-Length: 4\r\n" + END,
    OK + b"Content-Length: 3, 3\r\n\r\n",
    OK + b"Content-Length: +3\r\n\r\n",
    OK + b"Content-Length: 0x3\r\n\r\n",
    OK + b"Content-Length:\r\n\r\n",
    OK + b"Content-Length: 1234567890\r\n\r\n",
    OK + b"\r\n",
    OK + b"Transfer-Encoding: chunked\r\n" + END,
    OK + b"Connection: close\r\n" + END,
    OK + b"Connection: Close\r\n" + END,
    OK + b"Connection: upgrade\r\nUpgrade: h2c\r\n" + END,
    b"HTTP/1.0 200 OK\r\n" + END,
    b"HTTP/2 200 OK\r\n" + END,
    b"HTTP/1.1  200 OK\r\n" + END,
    b"HTTP/1.1 +20 OK\r\n" + END,
    b"HTTP/1.1 20 OK\r\n" + END,
    b"HTTP/1.1 2000 OK\r\n" + END,
    b"HTTP/1.1 200OK\r\n" + END,
    b"HTTP/1.1 100 Continue\r\n\r\n" + OK + END,
    b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + OK + END,
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\n" + END,
    b"HTTP/1.1 103 Early Hints\r\n" + END,
    b"\r\n" + OK + END,
    b"HTTP/1.1 200 OK\n" + END,
]  # fmt: skip


@pytest.mark.parametrize("data", PLAIN)
def test_usual_heads_are_read_as_twisted_reads_them(data: bytes) -> None:
    read = as_read_in_one_go(data)
    assert read is not None
    assert read == as_twisted_reads(data)


@pytest.mark.parametrize("data", NOT_PLAIN)
def test_others_are_left_to_it(data: bytes) -> None:
    assert as_read_in_one_go(data) is None


@pytest.mark.parametrize("data", [data for data in PLAIN if not data.endswith(b"a\r\n")])
def test_a_head_of_which_not_all_is_there_is_left_to_it(data: bytes) -> None:
    size = data.index(b"\r\n\r\n") + 4
    assert [cut for cut in range(size) if as_read_in_one_go(data[:cut]) is not None] == []


def test_two_heads_have_no_list_in_common() -> None:
    """What a middleware adds to the headers of a response must not be in those of the next."""
    data = OK + b"X: a\r\n" + END
    first, second = plain_head(data), plain_head(data)
    assert first is not None
    assert second is not None
    for name, values in first.headers.items():
        assert values is not second.headers[name]


PIECES = st.one_of(
    st.sampled_from(
        [
            b"HTTP/1.1 ", b"HTTP/1.0 ", b"200", b"304", b"404", b"204", b"100", b" OK", b"\r\n", b"\n", b"\r", b"\r\n\r\n", b" ", b"\t", b":", b",",
            b"Content-Length: 3\r\n", b"Content-Length: 0\r\n", b"content-length:", b"Transfer-Encoding: chunked\r\n", b"Connection: keep-alive\r\n",
            b"Connection: close\r\n", b"ETag: \"a\"\r\n", b"Set-Cookie: a=b\r\n", b"X-a_b: c\r\n", b"TE: x\r\n", b"-1", b"3", b"12", b"abc",
        ]
    ),
    st.binary(max_size=3),
)  # fmt: skip


@given(st.booleans(), st.lists(PIECES, max_size=12), st.booleans())
def test_whatever_is_read_is_read_as_twisted_reads_it(begins: bool, pieces: list[bytes], ends: bool) -> None:
    assert not differs((OK if begins else b"") + b"".join(pieces) + (END if ends else b""))
