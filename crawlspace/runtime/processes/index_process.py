"""The process that writes the embedded index of a crawl, so that the crawl does not wait for Python's lock meanwhile."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec import MsgspecError, msgpack

from crawlspace.document import IndexOrder
from crawlspace.framing import framed, received
from crawlspace.index.marks import BatchMark
from crawlspace.index.process import BatchAnswer, OrderBatch
from crawlspace.index.sink import Refusal, Sent
from crawlspace.runtime.processes.child import ChildProcess
from crawlspace.runtime.processes.file_processes import END_S

logger = logging.getLogger(__name__)

COMMAND = (sys.executable, "-m", "crawlspace.index.process")
ANSWER_S = 120.0
"""The longest that a batch may take; a process that takes longer is ended."""
MOST_LOST = 5
"""Processes that may end without having committed a batch in between; then no further one is started."""
_ANSWERS = msgpack.Decoder(BatchAnswer)


class IndexProcess:
    """Commits batches in a process, which is started with the first one. To be used by one thread at a time."""

    def __init__(self, path: Path, *, owner: str, command: Sequence[str] = COMMAND) -> None:
        self._arguments = (str(path), owner)
        self._command = command
        self._process: ChildProcess | None = None
        self._lost = 0
        """Processes that have ended since a batch was committed."""

    def send(self, orders: Sequence[IndexOrder], mark: BatchMark | None) -> Sent | None:
        """Commit a batch, and return the result. None: it may not be committed; send it again."""
        if self._lost >= MOST_LOST:
            return None
        try:
            answer = self._answer(framed(OrderBatch(tuple(orders), mark)))
        except UnicodeEncodeError:  # half of a surrogate pair, which the index refuses
            return None
        except (OSError, MsgspecError) as error:
            self._lose(error)
            return None
        self._lost = 0
        if not answer.is_committed:
            return None
        reasons = dict(answer.refused)
        return Sent([Refusal(order, reasons[order.sequence]) for order in orders if order.sequence in reasons])

    def close(self) -> None:
        """End the process, and wait until it has ended."""
        process = self._process
        if process is not None:
            process.socket.close()
            process.is_gone(within_s=END_S)
            self._end()

    def _answer(self, batch: bytes) -> BatchAnswer:
        """Return the answer of the process. Raises OSError or MsgspecError if there is none."""
        if self._process is None:
            self._process = ChildProcess(self._command, *self._arguments)
            self._process.socket.settimeout(ANSWER_S)
        channel = self._process.socket
        channel.sendall(batch)
        body = received(channel)
        if not body:
            raise ConnectionError("it closed its socket")
        return _ANSWERS.decode(body)

    def _lose(self, error: Exception) -> None:
        """End a process that does not answer as it should; warn when no further one is started."""
        ended = "" if self._process is None else self._process.how_it_ended()
        self._end()
        self._lost += 1
        if self._lost == MOST_LOST:
            why = f"it ended {ended}" if ended else str(error)
            logger.warning("no process that writes the index can be used (%s): the crawl writes it itself, more slowly", why)

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.socket.close()
            process.kill()
            process.is_gone(within_s=END_S)
