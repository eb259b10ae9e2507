"""Bodies that are not compressed as their headers say."""

from __future__ import annotations

import gzip
import zlib

import pytest
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from crawlspace.runtime.components.middlewares import Decompression
from crawlspace.runtime.http.errors import UndecodableBody
from tests.components.opened import NOTHING_IS_SENT
from tests.hostile.replies import LIBRARIES

BODY = b"some words" * 100
RESPONSES = [
    # Content-Encoding headers, body as sent, body as read or what is raised
    ([], BODY, BODY),
    (["gzip"], gzip.compress(BODY, mtime=0), BODY),
    (["deflate"], zlib.compress(BODY), BODY),
    (["br"], LIBRARIES.brotli.compress(BODY), BODY),
    (["zstd"], LIBRARIES.zstd.compress(BODY), BODY),
    (["gzip, gzip"], gzip.compress(gzip.compress(BODY, mtime=0), mtime=0), BODY),
    (["identity"], BODY, BODY),
    (["rot13"], BODY, BODY),
    (["\u00ff\x1b"], BODY, BODY),
    (["gzip"], BODY, UndecodableBody),
    (["gzip"], b"", b""),
    (["deflate"], BODY, UndecodableBody),
    (["br"], BODY, UndecodableBody),
    (["zstd"], BODY, UndecodableBody),
    (["gzip"] * 6, gzip.compress(BODY, mtime=0), UndecodableBody),
    ([",".join(["gzip"] * 50_000)], gzip.compress(BODY, mtime=0), UndecodableBody),
    (["gzip"], gzip.compress(b" " * 10_000, mtime=0), IgnoreRequest),
]


@pytest.mark.parametrize(("encodings", "sent", "expected"), RESPONSES)
def test_bodies(encodings: list[str], sent: bytes, expected: bytes | type[Exception]) -> None:
    middleware = Decompression.from_crawler(get_crawler(settings_dict={**NOTHING_IS_SENT, "DOWNLOAD_MAXSIZE": 5_000}))
    request = Request("http://a.example/")
    headers = {"Content-Encoding": [encoding.encode("latin-1") for encoding in encodings]} if encodings else {}
    response = Response(request.url, headers=headers, body=sent)
    if isinstance(expected, bytes):
        read = middleware.process_response(request, response)
        assert isinstance(read, Response)
        assert read.body == expected
    else:
        with pytest.raises(expected):
            middleware.process_response(request, response)
