"""Where tests write: in memory, if the system has room there. No test cuts the power, and a disk would only be waited for.

The stores flush thousands of times.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

_MEMORY = Path("/dev/shm")
_ROOM_BYTES = 4 << 30
"""Several times what the tests of one run write, were it all kept."""


def folder_in_memory() -> str | None:
    """Return a folder that is in memory, None where there is none with room enough: as `tempfile` takes it."""
    has_room = os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM_BYTES
    return str(_MEMORY) if has_room else None
