"""The log of a state file, taken into the file in a thread while the crawl goes on writing.

SQLite appends every transaction to a log beside the file and copies the log into the file now and then, which is a checkpoint. Left to
itself it does so inside the transaction that has made the log too long, and at ten million URLs that one waits a quarter of a second for
the disk. Here a thread copies what is there and flushes it; what has been written meanwhile is copied the same way, less each time, until
the rest is so little that the writer takes it over between two transactions. Then the log starts over. What SQLite guarantees for a killed
process or a power failure holds as without the thread: SQLite itself copies, and decides when the log may be overwritten.

See https://www.sqlite.org/wal.html, "Checkpointing".
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from threading import Thread

import apsw

LOG_PAGES = 16_000
"""64 MB: keys are spread over their whole index, and a page changed often is copied into the file once."""
REST_PAGES = 3_000
"""Copying so few takes the writer some 30 ms."""
MOST_PAGES = 8 * LOG_PAGES
"""Where the thread cannot keep up, the writer copies too, or the log would grow without end."""


class Checkpoints:
    """The checkpoints of the one connection that writes all the time, on the thread that uses it."""

    def __init__(self, path: Path, db: apsw.Connection) -> None:
        """Take over from SQLite's own checkpoints, which are switched off."""
        self._path = path
        self._db = db
        self._copier: Copier | None = None
        self._flushed: int | None = None
        """The file, to be flushed. Open until the process ends: closing it would take all locks on the file away from SQLite."""
        self._pages = 0
        """In the log, after the last transaction."""
        self._due_at = LOG_PAGES
        db.pragma("wal_autocheckpoint", 0)
        db.set_wal_hook(self._committed)

    def after_commit(self) -> None:
        """Have a long log copied. A failure is no error yet: nothing is lost, and the next checkpoint tries again."""
        copier = self._copier
        if copier is None:
            if self._pages >= self._due_at:
                self._later()
                self._copy()
        elif not copier.is_busy():
            self._go_on(copier)

    def close(self) -> None:
        """Stop copying. Call it before the connection is closed, which copies the rest."""
        if self._copier is not None:
            self._copier.interrupt()
            self._copier.end()
            self._copier = None

    def _committed(self, _db: apsw.Connection, _name: str, pages: int) -> int:
        if pages < self._pages:  # it has started over
            self._due_at = LOG_PAGES
        self._pages = pages
        return apsw.SQLITE_OK

    def _go_on(self, copier: Copier) -> None:
        copier.end()
        self._copier = None
        rest = self._pages - copier.copied
        if rest < 0:  # the log has started over meanwhile
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
        with suppress(apsw.Error, OSError, RuntimeError):  # the last one where no thread can be started
            if self._flushed is None:
                self._flushed = os.open(self._path, os.O_RDWR)
            self._copier = Copier(self._path, self._flushed)

    def _later(self) -> None:
        self._due_at = self._pages + LOG_PAGES // 4


class Copier:
    """Copies once what the log holds, and flushes the file, in a thread."""

    def __init__(self, path: Path, flushed: int) -> None:
        self.copied = 0
        self.hindered = True
        """Whether something prevented it: a reader of the log, another checkpoint, the disk."""
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
            self._db.execute("SELECT 1 FROM meta LIMIT 1").fetchall()  # a connection that has read nothing yet knows of no log
            pages, self.copied = self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            getattr(os, "fdatasync", os.fsync)(self._flushed)
            self.hindered = self.copied < pages
