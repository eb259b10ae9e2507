"""The download of a file: it has a limit of its own, and is on disk beyond a size.

What the headers say decides whether a response may be a file; what comes decides the rest. A body that is compressed for the transfer is
kept in memory, and has the limit of pages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from crawlspace.content.documents.converters import converter_for
from crawlspace.content.documents.kinds import FILE_TYPES
from crawlspace.content_type import declared, essence, is_generic
from crawlspace.runtime.files.body import IN_MEMORY, FileBody
from crawlspace.runtime.requests import CONTENTS, FILE, STATE
from crawlspace.runtime.shortcuts.exchanges import ShortAgent

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy import Request

    from crawlspace.config.collection import Collection


def files_folder(collection: Collection) -> Path:
    """Return the folder in which files are kept until they are read."""
    return collection.data_folder / "files"


class FileAgent(ShortAgent):
    """Downloads the page or file of a URL of the collection."""

    def body_for(
        self, request: Request, values_of: Callable[[bytes], list[bytes]], *, length: int, page_limit: int
    ) -> FileBody | None:
        """Return what is to take the body of a response that may be a file; None for pages, and what is not of the frontier."""
        for of_an_earlier_response in (FILE, CONTENTS):
            request.meta.pop(of_an_earlier_response, None)
        session = getattr(self._crawler.spider, "session", None)
        collection: Collection | None = None if session is None else session.collection
        if collection is None or STATE not in request.meta or values_of(b"Content-Encoding"):
            return None
        files = collection.files
        header = declared([value.decode("latin-1") for value in values_of(b"Content-Type")])
        kind = essence(header)
        is_declared = kind in FILE_TYPES or bool(files.converters and converter_for(kind, files.converters))
        if not is_declared and not is_generic(header):
            return None
        body = FileBody(files_folder(collection), is_declared=is_declared, limit=files.max_bytes, page_limit=page_limit)
        body.is_too_large = is_declared and length > files.max_bytes
        request.meta[FILE] = body
        if not 0 <= length <= IN_MEMORY:
            request.meta["dont_cache"] = True  # Scrapy's cache would keep it without its body
        return body
