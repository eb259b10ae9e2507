"""Where the embedded index of a collection is, where several machines crawl it."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def index_place(file: Path) -> str:
    """Where an index is, among all machines."""
    return f"{socket.gethostname()}:{file.resolve()}"
