"""Documents that are text already."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.content.text import extract_text_document

DOCUMENTS = (
    ("text/plain", b" a <b>\n c\0", "a <b> c"),
    ("text/csv; charset=utf-8", b"a,b\nc,d", "a,b c,d"),
    ("application/xml", b"<?xml version='1.0'?><r a='b>c'><x>1</x><x>2</x>&lt;3<!-- no --></r>", "1 2 <3"),
    ("text/xml", b"<script>a</script><![CDATA[<b> &amp;]]>", "a <b> &amp;"),
    ("image/svg+xml", b"<!DOCTYPE x [ <!ENTITY a 'b'> ]><svg><text>t</text></svg>", "t"),
    ("application/xml", b"", ""),
)


@pytest.mark.parametrize(("content_type", "body", "expected"), DOCUMENTS)
def test_text(content_type: str, body: bytes, expected: str) -> None:
    page = extract_text_document(body, url="http://example.com/a", content_type=content_type)
    assert page.text == expected
    assert page.links == ()


TITLES = (
    ("http://example.com/a/b%20c.txt?x=/y#z", "b c.txt"),
    ("http://example.com/a/", "a"),
    ("http://example.com/", ""),
    ("http://example.com", ""),
)


@pytest.mark.parametrize(("url", "title"), TITLES)
def test_the_title_is_the_last_segment(url: str, title: str) -> None:
    assert extract_text_document(b"x", url=url, content_type="text/plain").title == title


@given(st.binary(max_size=200))
def test_any_bytes_are_read(body: bytes) -> None:
    extract_text_document(body, url="http://example.com/", content_type="text/xml", max_text=50)
