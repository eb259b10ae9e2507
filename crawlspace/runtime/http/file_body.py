"""The body of a file while it comes: in memory up to a size, then on disk, so that a large file costs no memory.

The headers decide whether a response may be a file; the body decides the rest. A body that is compressed for the transfer is
kept in memory, and has the limit of pages.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import IO

from scrapy.http import Headers

from crawlspace import private_files
from crawlspace.config.collection import Collection
from crawlspace.content.documents.converters import converter_for
from crawlspace.content.documents.kinds import FILE_TYPES, FIRST_BYTES, is_html
from crawlspace.content.fingerprint import BytesChecksum
from crawlspace.content.mime import SNIFFED_BYTES
from crawlspace.content.sitemaps import SITEMAP_TYPES, is_sitemap
from crawlspace.document import essence, is_generic
from crawlspace.outcome import BodyFile
from crawlspace.runtime.http.headers import declared_type

IN_MEMORY = 1024 * 1024
"""Bytes beyond which a file is on disk."""
SUFFIX = ".part"
"""Of all that is kept in the folder until it is read."""


class FileBody:
    """Takes a body that may be a file. A page stays in memory, whatever its headers are."""

    def __init__(self, folder: Path, *, is_declared: bool, limit: int, page_limit: int, in_memory: int = IN_MEMORY) -> None:
        """`is_declared`: the headers say that it is a file; else its first bytes decide. `page_limit` is that of a page; 0: none."""
        self._folder = folder
        self._is_declared = is_declared
        self._limit, self._page_limit = limit, page_limit
        self._in_memory = in_memory
        self._buffer = BytesIO()
        self._file: IO[bytes] | None = None
        self._checksum = BytesChecksum()
        self._is_page = False
        self.path: Path | None = None
        """Path on disk; None: it is in memory."""
        self.size = 0
        self.start = b""
        """Its first bytes, once it is on disk."""
        self.is_too_large = False
        """The download was stopped, because it is over the limit of files."""

    @property
    def is_over(self) -> bool:
        """Whether there is more than the limit allows; a file is marked as too large then."""
        if self._is_page:
            return 0 < self._page_limit < self.size
        if self.size > self._limit:
            self.is_too_large = True
        return self.is_too_large

    @property
    def checksum(self) -> bytes:
        """The checksum of a file on disk."""
        return self._checksum.checksum()

    def write(self, data: bytes) -> None:
        """Add received bytes. Raises OSError for a full disk."""
        self.size += len(data)
        if self._file is not None:
            self._append(data)
            return
        self._buffer.write(data)
        if self.size > self._in_memory and not self._is_page:
            self._to_disk()

    def getvalue(self) -> bytes:
        """Return the body; nothing if it is on disk, which then has all of it."""
        if self._file is None:
            return self._buffer.getvalue()
        self._file.close()
        return b""

    def kept(self) -> BodyFile:
        """Return a body on disk as a file of its own, which stays when this one is dropped. Raises OSError."""
        assert self.path is not None
        kept = self.path.with_name(f"{self.path.name.removesuffix(SUFFIX)}-kept{SUFFIX}")
        try:
            os.link(self.path, kept)
        except OSError:  # a file system without links
            shutil.copyfile(self.path, kept)
        return BodyFile(kept, self.size)

    def drop(self) -> None:
        """Remove the file from disk."""
        if self._file is not None:
            self._file.close()
            self._remove()

    def _to_disk(self) -> None:
        start = self._buffer.getvalue()
        self._is_page = is_html(start) or not (self._is_declared or start.startswith(FIRST_BYTES) or is_sitemap(start))
        if self._is_page:
            return
        private_files.make_folder(self._folder)
        handle, name = tempfile.mkstemp(prefix=prefix(), suffix=SUFFIX, dir=self._folder)
        self.path = Path(name)
        self._file = os.fdopen(handle, "wb")
        self._remove = weakref.finalize(self, _remove, name)
        self.start = start[:SNIFFED_BYTES]
        self._append(start)
        self._buffer = BytesIO()

    def _append(self, data: bytes) -> None:
        assert self._file is not None
        self._file.write(data)
        self._checksum.update(data)


def files_folder(collection: Collection) -> Path:
    """Return the folder in which files are kept until they are read."""
    return collection.data_folder / "files"


def file_body_for(collection: Collection, headers: Headers, *, length: int | None, limits: tuple[int, int]) -> FileBody | None:
    """Return what takes the body of a response that may be a file, by its headers; None for a page.

    `limits`: bytes of a page, 0: any number, and of a file.
    """
    if b"Content-Encoding" in headers:
        return None
    page_limit, file_limit = limits
    files, header = collection.files, declared_type(headers)
    kind = essence(header)
    is_declared = kind in FILE_TYPES or bool(files.converters and converter_for(kind, files.converters))
    if not is_declared and not is_generic(header) and kind not in SITEMAP_TYPES:
        return None
    body = FileBody(files_folder(collection), is_declared=is_declared, limit=file_limit, page_limit=page_limit)
    body.is_too_large = is_declared and length is not None and length > file_limit
    return body


def prefix() -> str:
    """Return how the names begin of what this process keeps in the folder."""
    return f"{os.getpid()}-"


def remove_left(folder: Path) -> None:
    """Remove the files, and the folders of converters, of processes that were killed. Before this process keeps any."""
    with suppress(OSError):
        for path in list(folder.glob(f"*{SUFFIX}")):
            process = path.name.partition("-")[0]
            if not process.isdecimal() or _is_running(int(process)):
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    """Return whether another process has that number. This one, as in a container, may have that of one which was killed."""
    if process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _remove(name: str) -> None:
    with suppress(OSError):
        Path(name).unlink(missing_ok=True)
