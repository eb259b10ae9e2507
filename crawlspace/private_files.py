"""Files and folders with access for the owner only: states, index and logs may reveal the contents of an intranet; what is no file.

Existing files keep their mode.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


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


def kind_of(status: os.stat_result) -> str:
    """Return what something is instead of a regular file, such as "a pipe", whose opening would wait; empty for a file."""
    if stat.S_ISREG(status.st_mode):
        return ""
    return next((name for is_one, name in _KINDS if is_one(status.st_mode)), "something else")


def irregular(path: Path) -> str:
    """Return the same of what is at a path; empty, too, where nothing is, or where that cannot be seen."""
    try:
        return kind_of(path.stat())
    except OSError:
        return ""


def real_path(path: Path) -> Path:
    """Return a path without links; where these lead back to themselves, one of them. Raises nothing, unlike `Path.resolve`."""
    return Path(os.path.realpath(path))
