"""Checkpoint the log of a state file on a thread while the crawl writes.

SQLite appends every transaction to a log next to the file and copies the log into the file from time to time, which is a checkpoint. By
default it does so inside the transaction that has made the log too long, and at ten million URLs that one waits a quarter of a second for
the disk. Here a thread copies the log and flushes it; pages written meanwhile are copied the same way, fewer each time, until the rest is so
small that the writer copies it between two transactions. Then the log starts over. SQLite's guarantees for a killed process or a power
failure hold as without the thread: SQLite itself copies, and decides when the log may be overwritten.

See https://www.sqlite.org/wal.html, "Checkpointing".
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from threading import Thread

import apsw

LOG_PAGES = 16_000
"""64 MB: keys are spread over their whole index, and a frequently changed page is copied once."""
REST_PAGES = 3_000
"""Copying these takes the writer some 30 ms."""
MOST_PAGES = 8 * LOG_PAGES
"""If the thread cannot keep up, the writer also copies, so that the log does not grow without bound."""


class Checkpoints:
    """The checkpoints of the connection that writes, on its thread."""

    def __init__(self, path: Path, db: apsw.Connection) -> None:
        """Replace SQLite's own checkpoints, which are switched off."""
        self._path = path
        self._db = db
        self._copier: Copier | None = None
        self._flushed: int | None = None
        """The file, to be flushed. Open until the process ends: closing it would release all of SQLite's locks on the file."""
        self._pages = 0
        """In the log, after the last transaction."""
        self._due_at = LOG_PAGES
        db.pragma("wal_autocheckpoint", 0)
        db.set_wal_hook(self._committed)

    def after_commit(self) -> None:
        """Copy a long log. A failure is no error: nothing is lost, and the next checkpoint retries."""
        copier = self._copier
        if copier is None:
            if self._pages >= self._due_at:
                self._later()
                self._copy()
        elif not copier.is_busy():
            self._continue(copier)

    def close(self) -> None:
        """Stop copying. Call it before the connection is closed, which copies the rest."""
        if self._copier is not None:
            self._copier.interrupt()
            self._copier.end()
            self._copier = None

    def _committed(self, _db: apsw.Connection, _name: str, pages: int) -> int:
        if pages < self._pages:  # it has been reset
            self._due_at = LOG_PAGES
        self._pages = pages
        return apsw.SQLITE_OK

    def _continue(self, copier: Copier) -> None:
        copier.end()
        self._copier = None
        rest = self._pages - copier.copied
        if rest < 0:  # the log has been reset meanwhile
            return
        self._later()
        if copier.hindered:
            return
        if rest > REST_PAGES and self._pages < MOST_PAGES:
            self._copy()
            return
        with suppress(apsw.Error):
            self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    def _copy(self) -> None:
        with suppress(apsw.Error, OSError, RuntimeError):  # the last one if no thread can be started
            if self._flushed is None:
                self._flushed = os.open(self._path, os.O_RDWR)
            self._copier = Copier(self._path, self._flushed)

    def _later(self) -> None:
        self._due_at = self._pages + LOG_PAGES // 4


class Copier:
    """Copies the log once, and flushes the file, on a thread."""

    def __init__(self, path: Path, flushed: int) -> None:
        self.copied = 0
        self.hindered = True
        """Whether a reader of the log, another checkpoint, or the disk prevented it."""
        self._flushed = flushed
        self._db = apsw.Connection(str(path))
        self._thread = Thread(target=self._run, name=f"checkpoint of {path.name}")
        self._thread.start()

    def is_busy(self) -> bool:
        return self._thread.is_alive()

    def interrupt(self) -> None:
        self._db.interrupt()

    def end(self) -> None:
        """Wait until it is done. The connection is closed here: one that is being closed must not be interrupted."""
        self._thread.join()
        self._db.close()

    def _run(self) -> None:
        with suppress(apsw.Error, OSError):
            self._db.execute("SELECT 1 FROM meta LIMIT 1").fetchall()  # a connection that has not read yet sees no log
            pages, self.copied = self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            getattr(os, "fdatasync", os.fsync)(self._flushed)
            self.hindered = self.copied < pages
