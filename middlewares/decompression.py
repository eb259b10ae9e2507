"""Scrapy's decompression of bodies, for what hostile and broken servers declare as encoded."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.utils._compression import _DecompressionMaxSizeExceeded

from crawlspace.printable import printable
from crawlspace.runtime.download.failures import UndecodableBody

if TYPE_CHECKING:
    from scrapy.http import Response

logger = logging.getLogger(__name__)

MOST_ENCODINGS = 5
"""Encodings of one body, one around the other. Each costs a decompression, and one header can name fifty thousand."""


class Decompression(HttpCompressionMiddleware):
    """Raises UndecodableBody where a body is not encoded as its headers say, so that it is an error of the answer (611)."""

    def _handle_encoding(self, body: bytes, content_encoding: list[bytes], max_size: int) -> tuple[bytes, list[bytes]]:
        if sum(value.count(b",") + 1 for value in content_encoding) > MOST_ENCODINGS:
            raise UndecodableBody(f"it has more than {MOST_ENCODINGS} encodings")
        try:
            return super()._handle_encoding(body, content_encoding, max_size)
        except _DecompressionMaxSizeExceeded:
            raise
        except Exception as error:  # each library has its own, and some raise EOFError or struct.error
            raise UndecodableBody(f"{type(error).__name__}: {error}") from error

    def _warn_unknown_encoding(self, response: Response, encodings: list[bytes]) -> None:
        named = printable(b", ".join(encodings).decode("latin-1"))
        logger.info("%s is read as it came, because its encoding is not known: %s", response.url, named)
