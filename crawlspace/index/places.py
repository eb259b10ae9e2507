"""Where a sink is, among all machines that crawl a collection."""

from __future__ import annotations

import socket
from pathlib import Path

from crawlspace.index.sink import Sink
from crawlspace.private_files import real_path


def index_place(file: Path) -> str:
    """Return where a file on this machine is."""
    return f"{socket.gethostname()}:{real_path(file)}"


def place_of(sink: Sink) -> str:
    """Return where a sink is that has a file, its attribute `path`; empty for a server, to which any machine may send."""
    path = getattr(sink, "path", None)
    return index_place(path) if isinstance(path, Path) else ""
