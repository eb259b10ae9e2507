"""The processes that a crawl has started, as the system shows them."""

from __future__ import annotations

import os
import select
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.notifications import LONGEST_WAIT_S


def children(pid: int) -> dict[int, str]:
    """The processes that a process has started, each with its command."""
    found: dict[int, str] = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            for child in (task / "children").read_text(encoding="ascii").split():
                found[int(child)] = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return found


@contextmanager
def ends_watched(pids: Collection[int]) -> Iterator[None]:
    """Check at the end of the block that processes end, whoever started them."""
    watches = [os.pidfd_open(pid) for pid in pids]
    try:
        yield
        for watch in watches:
            assert select.select([watch], [], [], LONGEST_WAIT_S)[0], "a process is left"
    finally:
        for watch in watches:
            os.close(watch)
