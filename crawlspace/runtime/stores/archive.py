"""Where the archive of a collection is, for commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlspace.archive.reader import ArchiveReader
from crawlspace.config.content import archive_folder

if TYPE_CHECKING:
    from pathlib import Path

    from crawlspace.runtime.command import Place
    from crawlspace.runtime.stores.places import OpenStore


def folder_of(place: Place) -> Path:
    """Return the folder with the archive of a collection, whether it is there or not."""
    return archive_folder(place.settings, place.state_file.parent)


def archive_reader(place: Place, opened: OpenStore) -> ArchiveReader:
    files = opened.store.archive_files
    return ArchiveReader(folder_of(place), files(), look_up=files)
