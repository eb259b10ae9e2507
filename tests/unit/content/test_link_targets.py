"""The links of a DOM that was a page in another encoding."""

from __future__ import annotations

import pytest

from crawlspace.content.links import with_queries_in

DOMS = (
    ('<a href="/ж?q=ж&amp;x=1#ж">ж?</a>', "cp1251", '<a href="/ж?q=%E6&amp;x=1#ж">ж?</a>'),
    ('<iframe src="?é"></iframe><svg><a xlink:href="?é"></a></svg>', "cp1252", '<iframe src="?%E9"></iframe><svg><a xlink:href="?%E9"></a></svg>'),
    ('<a title="é?é" href="/é">', "cp1252", '<a title="é?é" href="/é">'),
    ('<a href="?é">', "utf-8", '<a href="?é">'),
    ('<a href="?a">', "cp1252", '<a href="?a">'),
)  # fmt: skip


@pytest.mark.parametrize(("html", "codec", "expected"), DOMS)
def test_queries_in_the_encoding_of_the_page(html: str, codec: str, expected: str) -> None:
    assert with_queries_in(html, codec) == expected
