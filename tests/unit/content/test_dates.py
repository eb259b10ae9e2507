"""Dates of HTTP headers in ISO 8601: those of RFC 9110 and what servers send beside them."""

from __future__ import annotations

import pytest

from crawlspace.content.dates import http_time

DATES = [
    ("Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37Z"),
    ("Sunday, 06-Nov-94 08:49:37 GMT", "1994-11-06T08:49:37Z"),
    ("Sun Nov  6 08:49:37 1994", "1994-11-06T08:49:37Z"),
    ("Mon, 02 Jun 2025 10:00:00 +0200", "2025-06-02T08:00:00Z"),
    ("Thu, 29 Feb 2024 00:00:00 GMT", "2024-02-29T00:00:00Z"),
    ("Sun, 31 Feb 1994 08:49:37 GMT", ""),
    ("Sun, 06 Nov 1994 25:49:37 GMT", ""),
    ("yesterday", ""),
    ("0", ""),
    ("-1", ""),
    ("", ""),
]


@pytest.mark.parametrize(("text", "expected"), DATES)
def test_http_dates(text: str, expected: str) -> None:
    assert http_time(text) == expected
