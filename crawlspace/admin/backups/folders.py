"""The files of a collection and of its archive, as a backup has them: read from their folders, compared, and put in place.

A file of the archive is put in place as a whole, so a restore that was killed continues with those that are missing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import BinaryIO

from crawlspace.admin.backups.file import ARCHIVE, FOLDER, Backup, BackupWriter, Progress
from crawlspace.archive import files as archive
from crawlspace.errors import StoreError
from crawlspace.private_files import irregular, make_folder, replace_file, sync_folder

_CACHE = "__pycache__"
_MOST_SHOWN = 10


# --- the folder of the collection ----------------------------------------------------------------------------------


def files_in(folder: Path) -> dict[str, Path]:
    """Return the files of a collection by their path in its folder, links as what they lead to. Raises StoreError for a pipe or a device."""
    found: dict[str, Path] = {}

    def refuse(error: OSError) -> None:
        raise StoreError(f"{error.filename} cannot be read: {error.strerror}") from error

    for place, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = sorted(name for name in folders if name != _CACHE)
        for name in sorted(names):
            path = Path(place, name)
            if kind := irregular(path):
                raise StoreError(f"{path} is not a file but {kind}: move it out of the folder of the collection")
            found[path.relative_to(folder).as_posix()] = path
    return found


def add_file(writer: BackupWriter, name: str, path: Path) -> None:
    """Write a file to a backup. Raises StoreError."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error
    with file:
        writer.add(name, file, os.fstat(file.fileno()).st_size)


def differences(folder: Path, backup: Backup) -> list[str]:
    """Return the files in which a folder differs from what a backup has of it. Raises StoreError."""
    there, names = files_in(folder), set(backup.names(FOLDER))
    found = [name for name in names & there.keys() if not is_equal_file(there[name], backup, FOLDER + name)]
    return sorted([*found, *(there.keys() ^ names)])


def unpack(folder: Path, backup: Backup) -> None:
    """Write the files of a collection to a new folder. Raises OSError."""
    make_folder(folder)
    for name in backup.names(FOLDER):
        make_folder((folder / name).parent)
        replace_file(folder / name, backup.read(FOLDER + name))


def is_equal_file(path: Path, backup: Backup, name: str) -> bool:
    """Return whether a file has the content that a member of the backup has. Raises StoreError."""
    try:
        return _is_equal(path, backup, name)
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error


def listed(names: Sequence[str]) -> str:
    """Return names for a sentence, the first ten of them."""
    more = f" and {len(names) - _MOST_SHOWN:,} more" if len(names) > _MOST_SHOWN else ""
    return f"{', '.join(names[:_MOST_SHOWN])}{more}"


# --- the archive ---------------------------------------------------------------------------------------------------


class OpenArchive:
    """The files of an archive, opened when the store was read: a compaction that removes them later changes nothing.

    What a crawl adds afterwards is left out. A file that it was writing keeps the name of such a file: where it ends within a record, the
    next start cuts that off, as after a kill.
    """

    def __init__(self, folder: Path) -> None:
        """Raises StoreError."""
        self._stack = ExitStack()
        self._files: dict[str, tuple[BinaryIO, int]] = {}
        try:
            for path in (*archive.archive_files(folder), *archive.open_files(folder)):
                self._open(folder, path.name)
        except OSError as error:
            self.close()
            raise StoreError(f"the archive in {folder} cannot be read: {error.strerror}") from error

    def close(self) -> None:
        self._stack.close()

    def has(self, name: str) -> bool:
        """Return whether there is a file of that name, which the store knows without the ending of a file that is written."""
        return name in self._files or name + archive.OPEN in self._files

    def add_to(self, writer: BackupWriter, progress: Progress) -> None:
        for number, (name, (file, size)) in enumerate(self._files.items(), 1):
            progress(f"copying file {number:,} of {len(self._files):,} of the archive")
            writer.add(ARCHIVE + name, file, size)

    def _open(self, folder: Path, name: str) -> None:
        with suppress(FileNotFoundError):  # it was compacted meanwhile, or closed, and has another name
            file = self._stack.enter_context((folder / name).open("rb"))
            self._files[name] = file, os.fstat(file.fileno()).st_size
            return
        closed = name.removesuffix(archive.OPEN)
        if closed not in self._files and closed != name and (folder / closed).exists():
            self._open(folder, closed)


def differing_archive_files(folder: Path, backup: Backup) -> list[str]:
    """Return the files of an archive that do not begin with what a backup has of them. Raises StoreError."""
    found = []
    for name in backup.names(ARCHIVE):
        path = archive.find(folder, name.removesuffix(archive.OPEN))
        if path is not None and not is_equal_file(path, backup, ARCHIVE + name):
            found.append(path.name)
    return found


def put_archive_in_place(folder: Path, backup: Backup, progress: Progress) -> int:
    """Write the files of an archive that are missing, and return how many the backup has. Raises OSError."""
    names = backup.names(ARCHIVE)
    if names:
        make_folder(folder)
    for number, name in enumerate(names, 1):
        if archive.find(folder, name.removesuffix(archive.OPEN)) is not None:
            continue
        progress(f"writing file {number:,} of {len(names):,} of the archive")
        part = folder / f".{name}.new"
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
            for content in backup.parts(ARCHIVE + name):
                file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.rename(folder / name)
    sync_folder(folder)
    return len(names)


def _is_equal(path: Path, backup: Backup, name: str) -> bool:
    """Return whether a file has the content of a member; one of the archive may have more, because a crawl has added to it."""
    with path.open("rb") as file:
        for part in backup.parts(name):
            if file.read(len(part)) != part:
                return False
        return name.startswith(ARCHIVE) or not file.read(1)
