"""A sink that appends orders as lines of JSON to a file, which is rotated: for a program that reads them at its own pace."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from crawlspace import private_files
from crawlspace.clock import Clock, SystemClock
from crawlspace.document import IndexOrder
from crawlspace.errors import IndexUnavailable
from crawlspace.index.marks import BatchMark
from crawlspace.index.orders import lines_of
from crawlspace.index.sink import Options, Sent


class OrderLog:
    """Appends to `path`. A file of at least `most_bytes` is renamed first, with the time in UTC in its name; nothing is ever deleted."""

    def __init__(self, name: str, path: Path, *, owner: str, most_bytes: int, clock: Clock | None = None) -> None:
        self.name = name
        self.path = path
        self._owner = owner
        self._most_bytes = most_bytes
        self._clock = clock or SystemClock()

    @classmethod
    def from_options(cls, options: Options) -> Self:
        """Return the sink that the options describe. Raises SettingError."""
        path = Path(options.text("file", str(options.data_folder / f"{options.name}.jsonl"))).expanduser()
        most_bytes = options.integer("rotate_bytes", 100_000_000, low=1_000)
        return cls(options.name, path, owner=options.collection, most_bytes=most_bytes)

    def mark(self) -> BatchMark | None:
        return None

    def send(self, orders: Sequence[IndexOrder], mark: BatchMark | None = None) -> Sent:
        """Append the orders, and wait until they are on the disk. A line that a full disk has cut off is removed."""
        lines, refused = lines_of(orders, owner=self._owner)
        if lines:
            try:
                self._append(b"".join(line for _, line in lines))
            except OSError as error:
                raise IndexUnavailable(f"{self.path} cannot be written: {error.strerror}") from error
        return Sent(refused)

    def close(self) -> None:
        """Do nothing: the file is closed after each batch."""

    def _append(self, data: bytes) -> None:
        private_files.make_folder(self.path.parent)
        private_files.make_file(self.path)
        self._rotate()
        with self.path.open("r+b", buffering=0) as file:
            end = _whole_lines(file.fileno())
            file.truncate(end)
            file.seek(end)
            try:
                left = memoryview(data)
                while left:
                    left = left[file.write(left) or 0 :]
                os.fsync(file.fileno())
            except OSError:
                file.truncate(end)
                raise

    def _rotate(self) -> None:
        if self.path.stat().st_size < self._most_bytes:
            return
        stamp = datetime.fromtimestamp(self._clock.now(), UTC).strftime("%Y%m%dT%H%M%SZ-%f")[:-3]
        self.path.rename(self.path.with_name(f"{self.path.stem}-{stamp}{self.path.suffix}"))
        private_files.make_file(self.path)


def _whole_lines(fd: int) -> int:
    """Return the offset after the last whole line of a file: a kill or a power failure may have cut off the next one."""
    end = os.fstat(fd).st_size
    while end:
        first = max(0, end - 65_536)
        found = os.pread(fd, end - first, first).rfind(b"\n")
        if found >= 0:
            return first + found + 1
        end = first
    return 0
