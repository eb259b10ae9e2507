"""A file that is replaced as a whole: the old one stays until the new one is complete and on the disk.

The new one is `NAME.part` in the same folder. Its writer holds a lock on it, so a `.part` without one is left from a killed run, and
is written over by the next.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO

from crawlspace.private_files import real_path, sync_folder

if sys.platform != "win32":
    import fcntl

_BUFFERED_BYTES = 256 * 1024
"""Of documents of some 8 KB, each of which would be a system call."""
_OUTSIDE = (("dev",), ("proc",))
"""What is below these names is no file of a folder, even where it leads to one, as /dev/stdout may."""
_IN_MEMORY = ("dev", "shm")
"""The exception: an ordinary folder."""


def is_replaceable(path: Path) -> bool:
    """Return whether a path is a regular file, or could become one; a device or a pipe is written to as it is."""
    place = path.absolute().parts[1:]
    if place[:1] in _OUTSIDE and place[:2] != _IN_MEMORY:
        return False
    return path.is_file() or not path.exists()


class ReplacedFile:
    """The new content of `path`; of a symbolic link, of the file that it leads to. Write it to `file`.

    Raises OSError where it cannot be written, also while another run writes it.
    """

    def __init__(self, path: Path) -> None:
        self._path = real_path(path)
        self._part = self._path.with_name(f"{self._path.name}.part")
        old = self._path.stat() if self._path.exists() else None
        self.file: IO[bytes] = self._opened(0o666 if old is None else stat.S_IMODE(old.st_mode))
        try:
            if old is not None:
                self._keep_access(old)
            self.file.truncate()
        except BaseException:
            self.discard()
            raise

    def put_in_place(self) -> None:
        """Flush the new content to the disk and have it take the place of the old. Raises OSError; the old is there then."""
        try:
            self.file.flush()
            os.fsync(self.file.fileno())
        except BaseException:
            self.discard()
            raise
        if sys.platform == "win32":  # there no open file can be renamed
            self.file.close()
        try:
            self._part.replace(self._path)
        except OSError as error:
            raise OSError(error.errno, f"{error.strerror}; the new content is in {self._part}", str(self._path)) from error
        finally:
            self.file.close()  # not before: without its lock another run could take it for its own
        sync_folder(self._path.parent)

    def discard(self) -> None:
        """Remove the new content; the old stays."""
        with suppress(OSError):
            self._part.unlink()
        with suppress(OSError, ValueError):
            self.file.close()

    def _keep_access(self, old: os.stat_result) -> None:
        """Give the new content the owner and the mode of the old, independent of the umask."""
        if sys.platform != "win32":
            with suppress(PermissionError):  # the file of somebody else, which only root can make
                os.chown(self._part, old.st_uid, old.st_gid)
        self._part.chmod(stat.S_IMODE(old.st_mode))

    def _opened(self, mode: int) -> IO[bytes]:
        while True:
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
            file = os.fdopen(os.open(self._part, flags, mode), "wb", buffering=_BUFFERED_BYTES)
            try:
                self._lock(file)
                if self._is_part(file):
                    return file
            except BaseException:
                file.close()
                raise
            file.close()  # another run has put it in place meanwhile

    def _lock(self, file: IO[bytes]) -> None:
        if sys.platform == "win32":
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OSError(errno.EBUSY, "another run is writing it", str(self._path)) from None
        except OSError:
            return  # a file system without locks

    def _is_part(self, file: IO[bytes]) -> bool:
        try:
            return os.path.samestat(os.fstat(file.fileno()), self._part.stat())
        except FileNotFoundError:
            return False
