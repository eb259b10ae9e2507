"""`scrapy backup`: a copy of a collection in one file, which is read again and compared before it gets its name."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from crawlspace.admin.backups.file import FOLDER, GLOBAL_RULES, STORE, Backup, BackupContents, BackupWriter, Manifest, unfinished
from crawlspace.admin.backups.folders import OpenArchive, add_file, files_in
from crawlspace.archive.files import file_and_offset
from crawlspace.clock import Clock, iso
from crawlspace.config.collection import read_settings_file
from crawlspace.config.files import global_rules_file
from crawlspace.config.secrets import STORE_URL, plain_text_secrets, read_store_url
from crawlspace.errors import StoreError, UsageError
from crawlspace.private_files import irregular, real_path
from crawlspace.runtime.session.move import FILE, opened
from crawlspace.runtime.session.paths import CollectionPaths, folder_of
from crawlspace.state.dump import CopyMark, CopySource, Record, UrlRecord, ValueRecord, dump

if TYPE_CHECKING:
    from crawlspace.runtime.session.progress import ProgressDisplay


def back_up(
    paths: CollectionPaths, file: Path, display: ProgressDisplay, clock: Clock, *, with_archive: bool, replaces: bool
) -> Manifest:
    """Write a backup of a collection. Raises StoreError and its kinds, ConfigError, and UsageError for a file that may not be written."""
    check_file(paths, file, replaces=replaces)
    try:
        with unfinished(file) as unnamed:
            manifest = _written(paths, unnamed, display, clock, with_archive=with_archive)
            unnamed.flush()
            os.fsync(unnamed.fileno())
            unnamed.seek(0)
            Backup(unnamed, str(file)).verify(display)
    except OSError as error:
        raise StoreError(
            f"{file} cannot be written ({error.strerror}): free space there, correct its permissions, or name another file; nothing was left there"
        ) from error
    return manifest


def check_file(paths: CollectionPaths, file: Path, *, replaces: bool) -> None:
    """Raise UsageError for a file that is there, or that a backup would contain."""
    if file.exists():
        if kind := irregular(file):
            raise UsageError(f"{file} is not a file but {kind}: name a file")
        if not replaces:
            raise UsageError(f"{file} exists: name another file, or replace it with --replace")
    if not file.name or not file.parent.is_dir():
        raise UsageError(f"the folder {file.parent} does not exist: make it first, or name another one")
    for folder in (paths.folder, folder_of(paths)):
        if real_path(folder) in real_path(file).parents:
            raise UsageError(f"{file} is in {folder}, which is copied: name a file in another folder")


def secrets_in(folder: Path) -> list[str]:
    """Return which settings of a collection seem to have a secret as plain text. Raises ConfigError."""
    return plain_text_secrets(read_settings_file(folder))


def _written(paths: CollectionPaths, file: BinaryIO, display: ProgressDisplay, clock: Clock, *, with_archive: bool) -> Manifest:
    missing: Sequence[str] = ()
    while True:
        try:
            return _of_snapshot(paths, file, display, clock, with_archive=with_archive, missing=missing)
        except _Missing as error:  # perhaps a compaction has moved their records while they were opened
            missing = error.files


def _of_snapshot(
    paths: CollectionPaths, file: BinaryIO, display: ProgressDisplay, clock: Clock, *, with_archive: bool, missing: Sequence[str]
) -> Manifest:
    """Write all members. Raises _Missing where other files of the archive are missing than these."""
    where = str(paths.settings[STORE_URL] or "").strip()
    read_store_url(where)
    file.seek(0)
    file.truncate()
    writer = BackupWriter(file, now=clock.now())
    with ExitStack() as stack:
        source = _Noting(stack.enter_context(opened(paths, where or FILE, during_crawl=True)))
        archive = stack.enter_context(closing(OpenArchive(folder_of(paths)))) if with_archive else None
        with writer.packed(STORE) as packed:
            moved = dump(source, packed, paths.name, report=display)
        if archive is not None:
            lacking = sorted(name for name in source.archive_files() if not archive.has(name))
            if not set(lacking) <= set(missing):
                raise _Missing(lacking)
            missing = lacking
        for name, path in files_in(paths.folder).items():
            add_file(writer, FOLDER + name, path)
        shared = global_rules_file(paths.folder, paths.settings)
        if shared is not None and shared.parent != paths.folder:
            add_file(writer, GLOBAL_RULES, shared)
        if archive is not None:
            archive.add_to(writer, display)
        return writer.finish(
            BackupContents(
                paths.name,
                iso(clock.now()),
                "redis" if paths.store.is_shared else FILE,
                moved.urls,
                moved.orders,
                archive is not None,
                missing,
            )
        )


class _Missing(Exception):
    def __init__(self, files: Sequence[str]) -> None:
        self.files = files
        super().__init__()


class _Noting:
    """The source of a dump; notes to which files of the archive its records lead."""

    def __init__(self, source: CopySource) -> None:
        self.name = source.name
        self._source = source
        self._numbers: set[int] = set()
        self._files: dict[int, str] = {}

    def archive_files(self) -> set[str]:
        return {self._files[number] for number in self._numbers & self._files.keys()}

    def version(self) -> str:
        return self._source.version()

    def mark(self) -> CopyMark | None:
        return self._source.mark()

    def count(self) -> int:
        return self._source.count()

    def records(self) -> Iterator[Record]:
        for record in self._source.records():
            if isinstance(record, UrlRecord) and record.archived is not None:
                self._numbers.add(file_and_offset(record.archived)[0])
            elif isinstance(record, ValueRecord) and record.table == "archive_file":
                self._files[int(record.name)] = str(record.value)
            yield record
