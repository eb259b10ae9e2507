"""Which validators are sent back."""

from __future__ import annotations

import pytest
from scrapy import Request

from crawlspace.model import UrlState
from crawlspace.runtime.components.middlewares import ConditionalGet
from crawlspace.runtime.components.requests import CONDITIONAL, STATE

URL = "http://a.example/"
STORED = [
    # ETag and Last-Modified as stored, conditional, headers of the request
    ('"a"', "Tue", True, {"If-None-Match": '"a"', "If-Modified-Since": "Tue"}),
    ('"a"', None, True, {"If-None-Match": '"a"'}),
    ('"a"', "Tue", False, {}),
    ("a" * 2_000, "Tue", True, {"If-Modified-Since": "Tue"}),
    ("a\x00", "T\x1b", True, {}),
]


@pytest.mark.parametrize(("etag", "modified", "conditional", "headers"), STORED)
def test_what_an_older_version_stored_without_bounds_is_not_sent(
    etag: str, modified: str | None, headers: dict[str, str], *, conditional: bool
) -> None:
    state = UrlState(1, 1, URL, "a.example:80", etag=etag, last_modified=modified)
    request = Request(URL, meta={STATE: state, CONDITIONAL: conditional})
    ConditionalGet().process_request(request)
    assert request.headers.to_unicode_dict() == headers
