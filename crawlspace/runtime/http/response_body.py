"""The body of a response while it comes: its limits, Scrapy's signals for it, and where it is kept."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Mapping
from typing import TYPE_CHECKING, Any

from pydispatch import dispatcher
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import StopDownload
from scrapy.signalmanager import SignalManager
from twisted.python.failure import Failure

from crawlspace.runtime.http.errors import AnswerTooLarge
from crawlspace.text import counted, printable

if TYPE_CHECKING:
    from crawlspace.runtime.http.file_body import FileBody
    from crawlspace.runtime.http.transfer import AnswerHead

logger = logging.getLogger(__name__)


def is_heard(manager: SignalManager, signal: object) -> bool:
    """Return whether a signal may have receivers. Sending one takes ten times as long, and a body comes in many parts."""
    connections: Mapping[int, Container[object]] = dispatcher.connections
    for key in (id(manager.sender), _ANYONE):
        receivers = connections.get(key, ())
        if signal in receivers or dispatcher.Any in receivers:
            return True
    return False


_ANYONE = id(dispatcher.Any)


class ResponseBody:
    """Takes the body of one response, in memory or, for a file, on disk beyond a size."""

    def __init__(
        self,
        request: Request,
        crawler: Crawler,
        *,
        most: int,
        warned_of: int,
        file_for: Callable[[Request, AnswerHead], FileBody | None] | None,
        truncates: bool = False,
    ) -> None:
        """`most` and `warned_of` are bytes, 0: no limit. `file_for` returns what takes the body of a response that may be a file.

        `truncates`: of a body that is too large, the beginning is taken.
        """
        self._truncates = truncates
        self.is_cut = False
        """Whether only the beginning was taken."""
        self._request, self._crawler = request, crawler
        self._most, self._warned_of = most, warned_of
        self._file_for = file_for
        self._parts: list[bytes] = []
        self.received = 0
        """Bytes so far."""
        self.file: FileBody | None = None
        self.stop: StopDownload | None = None
        """Exception that a receiver of a signal has raised."""

    def begin(self, head: AnswerHead) -> bool:
        """Prepare for the body; return whether to read it. Raises AnswerTooLarge."""
        length = head.length
        self._send(signals.headers_received, headers=head.headers, body_length=length)
        if self.stop is not None:
            return False
        if self._file_for is not None:
            self.file = self._file_for(self._request, head)
        if self.file is not None:
            return not self.file.is_too_large
        if length is not None and self._request.method != "HEAD":
            if 0 < self._most < length and not self._truncates:
                raise AnswerTooLarge(expected=length, limit=self._most)
            self._warn(length)
        return True

    def write(self, data: bytes) -> bool:
        """Add a part of the body; return whether to read on. Raises AnswerTooLarge."""
        self.received += len(data)
        if self.file is None:
            self._parts.append(data)
            if 0 < self._most < self.received:
                if not self._truncates:
                    raise AnswerTooLarge(expected=None, limit=self._most)
                self.is_cut = True
                self._parts[-1] = data[: len(data) - (self.received - self._most)]
                return False
            self._warn(self.received)
        else:
            self.file.write(data)
        self._send(signals.bytes_received, data=data)
        if self.stop is not None:
            return False
        if self.file is not None and self.file.is_over:
            if not self.file.is_too_large:  # a page
                raise AnswerTooLarge(expected=None, limit=self._most)
            self.file.drop()
            return False
        return True

    def content(self) -> bytes:
        """Return the body; empty if it is on disk."""
        if self.file is not None:
            return self.file.getvalue()
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)

    def drop(self) -> None:
        """Drop received bytes, as when the download has failed."""
        self._parts.clear()
        if self.file is not None:
            self.file.drop()

    def _send(self, signal: object, **values: Any) -> None:
        crawler, request = self._crawler, self._request
        if not is_heard(crawler.signals, signal):
            return
        for _, result in crawler.signals.send_catch_log(signal, request=request, spider=crawler.spider, **values):
            if isinstance(result, Failure) and isinstance(result.value, StopDownload):
                self.stop = result.value
                return

    def _warn(self, size: int) -> None:
        if 0 < self._warned_of < size:
            self._warned_of = 0
            logger.warning(
                "%s: its body has %s or more, which is over DOWNLOAD_WARNSIZE",
                printable(self._request.url),
                counted(size, "byte"),
            )
