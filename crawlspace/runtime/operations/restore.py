"""`scrapy restore`: put a backup of a collection in place.

The whole backup is verified before anything is written. The store is an unfinished copy, which no crawl accepts, until the files of the
archive and of the collection are in place. A restore that was killed continues when it is run again. Then the documents are sent to the
index: from the archive at once, the others by the next crawl.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.settings import BaseSettings

from crawlspace.admin.backups.file import FOLDER, GLOBAL_RULES, Backup
from crawlspace.admin.backups.folders import (
    differences,
    differing_archive_files,
    is_equal_file,
    listed,
    put_archive_in_place,
    unpack,
)
from crawlspace.admin.reindex import Reindexed, records_of_restored
from crawlspace.archive.files import archive_files, open_files
from crawlspace.config.collection import collection_names
from crawlspace.config.secrets import STORE_URL, shown
from crawlspace.config.sinks import EMBEDDED
from crawlspace.crawl.sinks.repair import is_restored, note_restored_documents_sent
from crawlspace.errors import IndexUnavailable, StoreError, StoreLocked, UsageError
from crawlspace.private_files import real_path, replace_file, sync_folder
from crawlspace.runtime.components.loader import collection_settings
from crawlspace.runtime.session.move import FILE, opened
from crawlspace.runtime.session.paths import CollectionPaths, collection_paths, folder_of
from crawlspace.runtime.session.reindexing import DocumentsAgain
from crawlspace.state.dump import Record, ValueRecord, move
from crawlspace.text import quoted

if TYPE_CHECKING:
    from crawlspace.runtime.session.progress import ProgressDisplay

_COLLECTIONS = "CRAWLSPACE_COLLECTIONS_DIR"
_RESTORED = "restored"
"""Metadata of a store: the version of the dump that it was restored from."""


@contextmanager
def open_backup(path: Path) -> Iterator[Backup]:
    """Open a backup. Raises StoreError and its kinds."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error
    with file:
        yield Backup(file, str(real_path(path)))


@dataclass(frozen=True, slots=True)
class Restored:
    """Where a backup was put, and what was done with its documents."""

    paths: CollectionPaths
    store: str
    """The name of the store, for people."""
    archive_files: int
    global_rules: Path | None
    """The file of the global crawl space, if it was written."""
    reindexed: Reindexed | None
    """None: the next crawl sends the documents."""


@dataclass(slots=True)
class Restore:
    """A restore of the collection `name`; `settings` are the project's."""

    backup: Backup
    name: str
    settings: BaseSettings
    display: ProgressDisplay
    store: str | None
    """`file`, `redis` or the URL of a server; None: where the settings of the collection have it."""
    keeps_files: bool
    _global_rules: Path | None = field(default=None, init=False)
    _archive_files: int = field(default=0, init=False)

    def check(self) -> None:
        """Read the whole backup. Raises StoreDamaged, and UsageError for one of another collection."""
        collection = self.backup.contents.collection
        if collection != self.name:
            raise UsageError(f"{self.backup.name} is a backup of {quoted(collection)}: name that collection")
        self.backup.verify(self.display)

    def run(self) -> Restored:
        """Raises StoreError and its kinds, ConfigError and UsageError."""
        self.check()
        base = Path(str(self.settings[_COLLECTIONS]))
        folder, staging = base / self.name, base / f".{self.name}.restored"
        is_there = self.name in collection_names(base)
        if is_there and not self.keeps_files:
            self._refuse_others(folder, differences(folder, self.backup))
        try:
            if not is_there:
                shutil.rmtree(staging, ignore_errors=True)
                unpack(staging / self.name, self.backup)
            paths = self._paths(base if is_there else staging, folder)
            name = self._restore(paths, None if is_there else staging)
        except OSError as error:
            raise StoreError(
                f"{self.name} cannot be written to {error.filename or base} ({error.strerror}): free space there, or correct its permissions;"
                " the same command continues"
            ) from error
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        return Restored(paths, name, self._archive_files, self._global_rules, _reindexed(paths))

    def _paths(self, base: Path, folder: Path) -> CollectionPaths:
        """Return the paths of the collection with its own settings, which are in `base` until the folder is in place."""
        settings = self.settings.copy()
        settings.frozen = False
        settings.set(_COLLECTIONS, str(base), priority="cmdline")
        own = collection_settings(settings, self.name)
        own.set(_COLLECTIONS, str(folder.parent), priority="cmdline")
        if self.store is not None:
            own.set(STORE_URL, "" if self.store == FILE else self.store, priority="cmdline")
        return collection_paths(self.name, folder, own)

    def _restore(self, paths: CollectionPaths, staging: Path | None) -> str:
        """Copy the records, and put the files in place before the copy counts as complete. Return the name of the store."""
        where = str(paths.settings[STORE_URL] or "").strip() or FILE
        archive = folder_of(paths)
        if differing := differing_archive_files(archive, self.backup):
            raise StoreError(
                f"the archive in {archive} has other files than {self.backup.name} by the same names, and nothing was changed there:"
                f" {listed(differing)}; move them away"
            )
        global_rules = self._global_rules_to_write(paths)
        source = self.backup.store()

        def finish() -> Sequence[Record]:
            self._archive_files = put_archive_in_place(archive, self.backup, self.display)
            if global_rules is not None:
                replace_file(global_rules, self.backup.read(GLOBAL_RULES), mode=0o644)
                self._global_rules = global_rules
            if staging is not None:
                (staging / self.name).rename(paths.folder)
                sync_folder(paths.folder.parent)
            return [*records_of_restored(paths.sinks.names), ValueRecord("meta", _RESTORED, source.version())]

        with opened(paths, where, writes=True) as target:
            if not _is_complete(paths, source.version()):
                move(source, target, self.name, report=self.display, finish=finish)
        return str(paths.state_file) if where == FILE else shown(where)

    def _refuse_others(self, folder: Path, names: Sequence[str]) -> None:
        if names:
            raise StoreError(
                f"{folder} differs from {self.backup.name}, and nothing was changed there: {listed(names)}; move it away, or take the files that"
                " are there with --keep-files"
            )

    def _global_rules_to_write(self, paths: CollectionPaths) -> Path | None:
        """Return where the file of the global crawl space is to be written; None if it is there. Raises StoreError for another one."""
        named = paths.settings["CRAWLSPACE_GLOBAL_RULES"]
        path = Path(str(named)) if named else paths.folder.parent / GLOBAL_RULES
        has_own = bool(self.backup.names(FOLDER + GLOBAL_RULES)) and not named
        is_in_backup = bool(self.backup.names(GLOBAL_RULES))
        if self.keeps_files or has_own or (not path.exists() and not is_in_backup):
            return None
        way_out = f"make {path} what the collection needs, and take it as it is with --keep-files"
        if path.exists():
            if not is_in_backup or not is_equal_file(path, self.backup, GLOBAL_RULES):
                raise StoreError(f"{path} is not that of {self.backup.name}, and nothing was changed: {way_out}")
            return None
        if others := [one for one in collection_names(paths.folder.parent) if one != self.name]:
            raise StoreError(
                f"{self.backup.name} has a {GLOBAL_RULES} that would apply to {listed(others)} too, and nothing was changed: {way_out}"
            )
        return path


def _is_complete(paths: CollectionPaths, version: str) -> bool:
    """Return whether a store has been restored from that dump already, and not crawled since."""
    with paths.store.reading() as there:
        return there is not None and there.store.get_meta(_RESTORED) == version and is_restored(there.store)


def _reindexed(paths: CollectionPaths) -> Reindexed | None:
    """Send the index what the archive has, if both are here."""
    archive = folder_of(paths)
    if paths.store.is_shared or not paths.sinks.has_embedded or not (archive_files(archive) or open_files(archive)):
        return None
    with paths.store.changing() as there:
        if there is None or not is_restored(there.store):
            return None
        is_new = not paths.index_file.exists()
        try:
            done = DocumentsAgain(paths, there).to(EMBEDDED)
        except (IndexUnavailable, StoreLocked) as error:
            raise StoreError(f"{error}; {paths.name} is restored, and the next crawl sends its documents") from error
        note_restored_documents_sent(there.store, to_new_index=is_new)
        return done
