"""Download handler of a process that makes documents anew: whoever requests something gets an error, and nothing is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.exceptions import IgnoreRequest

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response


class NoNetwork(BaseDownloadHandler):
    """Refuses every request."""

    async def download_request(self, request: Request) -> Response:
        raise IgnoreRequest("no request is sent while documents are made anew from the archive")
