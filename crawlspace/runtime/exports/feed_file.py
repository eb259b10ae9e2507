"""The files of feed exports. One that is to be overwritten is replaced at the end, so that whoever reads it meanwhile has a whole one."""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING

from scrapy.extensions.feedexport import FileFeedStorage
from scrapy.utils.asyncio import run_in_thread
from scrapy.utils.defer import deferred_from_coro

from crawlspace.runtime.exports.replaced_file import ReplacedFile, is_replaceable

if TYPE_CHECKING:
    from scrapy import Spider
    from twisted.internet.defer import Deferred


class FeedFile(FileFeedStorage):
    """As Scrapy's, but with `overwrite` (`-O`) the file that is there stays until the new one is complete."""

    _new: ReplacedFile | None = None

    @property
    def replaces(self) -> bool:
        """Whether a file is replaced as a whole; a device or a pipe is written to at once."""
        return self.write_mode == "wb" and is_replaceable(Path(self.path))

    def open(self, spider: Spider) -> IO[bytes]:
        if not self.replaces:
            return super().open(spider)
        Path(self.path).parent.mkdir(parents=True, exist_ok=True)
        self._new = ReplacedFile(Path(self.path))
        return self._new.file

    def store(self, file: IO[bytes]) -> Deferred[None] | None:
        if self._new is None:
            return super().store(file)
        return deferred_from_coro(run_in_thread(self._new.put_in_place))

    def discard(self) -> None:
        """Remove what was written; the file that was there stays."""
        if self._new is not None:
            self._new.discard()
