"""Files and folders with access for the owner only: states, index and logs may reveal the contents of an intranet.

Existing files keep their mode.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def make_folder(path: Path) -> None:
    """Create a folder, and missing parents, with mode 0700. Raises OSError."""
    missing = [path]
    while not missing[-1].parent.exists() and missing[-1].parent != missing[-1]:
        missing.append(missing[-1].parent)
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)


def make_file(path: Path) -> None:
    """Create an empty file with mode 0600 if it is missing; SQLite's companion files get its mode. Ignore errors."""
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
