"""Scrapy's decompression of bodies, for what hostile and broken servers declare as encoded."""

from __future__ import annotations

from crawlspace.runtime.middlewares.decompression import BaseDecompression


class Decompression(BaseDecompression):
    """Raises UndecodableBody where a body is not encoded as its headers say; its status is 611."""
