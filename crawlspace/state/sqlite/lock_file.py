"""The file beside a state file that a process locks while it crawls, or sends to the index."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import apsw


def process_exists(process: int) -> bool:
    if os.name != "posix":
        return True  # Windows has no signal without an effect
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def lock_of(path: Path) -> Path:
    """Return the file that the process locks that crawls with a state file."""
    return path.with_name(f"{path.name}.lock")


def is_locked(lock: Path) -> bool:
    """Return whether a process has locked a file."""
    if not lock.is_file():
        return False
    with closing(apsw.Connection(str(lock), flags=apsw.SQLITE_OPEN_READONLY)) as db:
        try:
            db.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        except apsw.BusyError:
            return True
        except apsw.Error:
            return False  # no lock of ours
    return False
