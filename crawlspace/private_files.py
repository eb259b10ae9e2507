"""Files and folders with access for the owner only: states, index and logs may reveal the contents of an intranet; what is no file.

Existing files keep their mode.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkstemp

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


def replace_file(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Write a file as a whole: the old one stays until the new one is on the disk. A file that is there keeps its mode and its owner, a new
    one has `mode`, and of a link it is the file behind it. Raises OSError; then nothing has changed.
    """
    path = real_path(path)
    with _unfinished(path, data) as unfinished:
        with suppress(FileNotFoundError):
            before = path.stat()
            mode = stat.S_IMODE(before.st_mode)
            with suppress(OSError):  # of a file of another user: root alone may give it back
                os.chown(unfinished, before.st_uid, before.st_gid)
        unfinished.chmod(mode)  # after chown, which may reduce it
        unfinished.replace(path)
    sync_folder(path.parent)


def make_whole_file(path: Path, data: bytes) -> bool:
    """Write a file with mode 0600, unless there is one; return whether it was written. Raises OSError."""
    with _unfinished(path, data) as unfinished:
        try:
            os.link(unfinished, path)
        except FileExistsError:
            return False
    sync_folder(path.parent)
    return True


@contextmanager
def _unfinished(path: Path, data: bytes) -> Iterator[Path]:
    """Write a file with mode 0600, and a name of its own, next to where it is to be; what is left of it is removed."""
    descriptor, name = mkstemp(prefix=f".{path.name}.", suffix=".new", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield Path(name)
    finally:
        with suppress(OSError):
            Path(name).unlink()


def sync_folder(folder: Path) -> None:
    """Have new names in a folder survive a power failure, where the file system can do that."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


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
