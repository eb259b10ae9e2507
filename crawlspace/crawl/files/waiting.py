"""How many files may wait to be read: so many that none waits long, however slowly they are read at present."""

from __future__ import annotations

from crawlspace.clock import Clock

MOST_WAITING = 64
MOST_BYTES = 256 * 1024 * 1024
PATIENCE_S = 5.0
"""How long a file should wait at most."""
FIRST_GUESS_S = 0.3
"""How long reading a file takes, as long as nothing is known of that."""
_SMOOTHING = 8


class WaitingFiles:
    """The files that wait, by the id of their URL, and how fast they are read."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sizes: dict[int, int] = {}
        self._bytes = 0
        self._a_file_s = FIRST_GUESS_S
        """Seconds from the end of one file to that of the next: a mean in which the last ones count most."""
        self._since = 0.0
        """When the last one ended, or the first of those that wait has come."""

    def __len__(self) -> int:
        return len(self._sizes)

    def __contains__(self, id: int) -> bool:
        return id in self._sizes

    @property
    def room(self) -> int:
        """The number of files that may be added."""
        if self._bytes >= MOST_BYTES:
            return 0
        most = max(1, min(MOST_WAITING, int(PATIENCE_S / self._a_file_s)))
        return max(0, most - len(self._sizes))

    def add(self, id: int, *, size: int) -> None:
        """A file has come."""
        if not self._sizes:
            self._since = self._clock.monotonic()
        self._sizes[id] = size
        self._bytes += size

    def remove(self, id: int) -> bool:
        """A file has been read. Return whether it was waiting."""
        size = self._sizes.pop(id, None)
        if size is None:
            return False
        now = self._clock.monotonic()
        self._a_file_s += (now - self._since - self._a_file_s) / _SMOOTHING
        self._a_file_s = max(self._a_file_s, PATIENCE_S / MOST_WAITING)
        self._since = now
        self._bytes -= size
        return True
