"""Backups of a simulated collection, taken between two crawls or in the middle of one, and restored after all was lost."""

from __future__ import annotations

import io
import random
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from crawlspace.admin.backups import file as backups
from crawlspace.admin.backups.file import Backup, BackupContents, BackupWriter
from crawlspace.admin.backups.folders import OpenArchive, put_archive_in_place
from crawlspace.admin.reindex import records_of_restored
from crawlspace.state.dump import dump, move
from crawlspace.state.redis.dump import RedisSide
from crawlspace.state.sqlite.dump import SqliteSide
from tests.contract.move.stores import Stopping
from tests.servers import client_of_pool


class SimulatedBackup:
    """The last backup of a crawler, with its archive or without."""

    def __init__(self, folder: Path, name: str, chance: random.Random, *, on_server: bool) -> None:
        self._folder = folder
        self._name = name
        self._chance = chance
        self._on_server = on_server
        self._file = io.BytesIO()

    def write(self, *, with_archive: bool) -> None:
        self._file = io.BytesIO()
        writer = BackupWriter(self._file, now=0)
        with self._opened(writes=False) as source, closing(OpenArchive(self._archive)) as archive:
            with writer.packed(backups.STORE) as packed:
                moved = dump(source, packed, self._name)
            if with_archive:
                archive.add_to(writer, lambda _: None)
        writer.finish(BackupContents(self._name, "", "file", moved.urls, moved.orders, with_archive))

    def restore(self, sinks: tuple[str, ...]) -> int:
        """Lose store and archive, and restore them; return how many times that was killed."""
        with self._opened(writes=True) as target:
            target.clear()
        shutil.rmtree(self._archive, ignore_errors=True)
        kills = 0
        while not self._restored(sinks, self._chance.randint(0, 9) if kills < 3 and self._chance.random() < 0.4 else -1):
            kills += 1
        return kills

    def _restored(self, sinks: tuple[str, ...], stop: int) -> bool:
        backup = Backup(io.BytesIO(self._file.getvalue()), "backup")
        backup.verify(lambda _: None)

        def finish() -> list[object]:
            put_archive_in_place(self._archive, backup, lambda _: None)
            return list(records_of_restored(sinks))

        with self._opened(writes=True) as target:
            try:
                move(backup.store(), Stopping(target, stop), self._name, records=20, finish=finish)  # type: ignore[arg-type]
            except KeyboardInterrupt:
                return target.mark() is None  # killed after its last write
        return True

    @property
    def _archive(self) -> Path:
        return self._folder / "data" / self._name / "archive"

    @contextmanager
    def _opened(self, *, writes: bool) -> Iterator[SqliteSide | RedisSide]:
        if self._on_server:
            with closing(RedisSide(client_of_pool(), self._name, timeout_s=0)) as side:
                yield side
            return
        with closing(SqliteSide(self._folder / "data" / self._name / "state.db", writes=writes, during_crawl=not writes)) as file:
            yield file
