"""How long a crawl waited for a processor, to tell whether a missed target is the machine's fault."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

_PERIOD_S = 0.5


class ProcessorWaits:
    """Watches the programs that this process starts while the block runs. `waited_s` is for how long they were ready to run and did not."""

    def __init__(self) -> None:
        self._waits: dict[int, float] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    @property
    def waited_s(self) -> float | None:
        """Seconds; None if the system does not report it. Counts the main thread of each program, which runs a crawl's loop."""
        return sum(self._waits.values()) if self._waits else None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()

    def __str__(self) -> str:
        return "unknown" if self.waited_s is None else f"{self.waited_s:.1f} s"

    def _watch(self) -> None:
        while not self._over.wait(_PERIOD_S):
            for process in _children():
                with contextlib.suppress(OSError, ValueError, IndexError):  # it may have ended meanwhile
                    waited = Path(f"/proc/{process}/schedstat").read_text(encoding="ascii").split()[1]
                    self._waits[process] = int(waited) / 1e9


def _children() -> list[int]:
    """The processes that any thread of this one has started."""
    found: list[int] = []
    for children in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, children.read_text(encoding="ascii").split())
    return found
