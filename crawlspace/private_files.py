"""Files and folders that only the user who crawls may read: states, index and logs tell what is on an intranet.

What is there already keeps the mode it has.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def make_folder(path: Path) -> None:
    """Make a folder with mode 0700, and those above it that are missing. Raises OSError."""
    missing = [path]
    while not missing[-1].parent.exists() and missing[-1].parent != missing[-1]:
        missing.append(missing[-1].parent)
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)


def make_file(path: Path) -> None:
    """Make an empty file with mode 0600 where there is none; what SQLite puts beside it gets its mode. Errors are left to who opens it."""
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
