"""What a Location header leads to: also where its bytes are no UTF-8."""

from __future__ import annotations

import pytest

from crawlspace.runtime.http.headers import location_of
from crawlspace.urls import join

LOCATIONS = [
    # bytes -> what they lead to from http://a.example/x/
    (None, "", "http://a.example/x/"),
    (b"", "", "http://a.example/x/"),
    (b" \t/a ", "/a", "http://a.example/a"),
    (b"/a?b=c", "/a?b=c", "http://a.example/a?b=c"),
    ("/gr\u00fc\u00dfe".encode(), "/gr\u00fc\u00dfe", "http://a.example/gr%C3%BC%C3%9Fe"),
    ("/gr\u00fc\u00dfe".encode("latin-1"), "/gr%FC%DFe", "http://a.example/gr%FC%DFe"),
    ("/\u65e5\u672c".encode("shift_jis"), "/%93%FA%96{", "http://a.example/%93%FA%96%7B"),
    (b"/a%20b?q=\xe4", "/a%20b?q=%E4", "http://a.example/a%20b?q=%E4"),
    ("/\u00fc".encode() + b"/\xfc", "/%C3%BC/%FC", "http://a.example/%C3%BC/%FC"),
    (b"http://b.example/\xff", "http://b.example/%FF", "http://b.example/%FF"),
]


@pytest.mark.parametrize(("value", "location", "target"), LOCATIONS)
def test_location(value: bytes | None, location: str, target: str) -> None:
    assert location_of(value) == location
    assert join("http://a.example/x/", location) == target
