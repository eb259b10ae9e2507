"""Scrapy's decompression of bodies, for what hostile and broken servers declare as encoded."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware

from crawlspace.printable import printable
from crawlspace.runtime.http.errors import UndecodableBody
from crawlspace.runtime.scrapy_internals import DecompressionHook, is_too_large

if TYPE_CHECKING:
    from scrapy.http import Response

logger = logging.getLogger(__name__)

MOST_ENCODINGS = 5
"""Encodings of one body, one around the other. Each costs a decompression, and one header can name fifty thousand."""


class BaseDecompression(DecompressionHook, HttpCompressionMiddleware):
    """Raises UndecodableBody where a body is not encoded as its headers say, so that it is an error of the response (611)."""

    def decompress(self, body: bytes, encodings: list[bytes], max_size: int) -> tuple[bytes, list[bytes]]:
        if sum(value.count(b",") + 1 for value in encodings) > MOST_ENCODINGS:
            raise UndecodableBody(f"it has more than {MOST_ENCODINGS} encodings")
        try:
            return super().decompress(body, encodings, max_size)
        except Exception as error:  # each library has its own, and some raise EOFError or struct.error
            if is_too_large(error):
                raise
            raise UndecodableBody(f"{type(error).__name__}: {error}") from error

    def unknown_encoding(self, response: Response, encodings: list[bytes]) -> None:
        named = printable(b", ".join(encodings).decode("latin-1"))
        logger.info("%s is read as it came, because its encoding is not known: %s", response.url, named)
