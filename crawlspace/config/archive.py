"""Read the settings of the archive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from crawlspace.parsing import boolean, optional_integer

SMALLEST_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class ArchiveSettings:
    """`folder` is that of the collection, whether it is archived or not."""

    is_on: bool
    folder: Path
    max_bytes: int | None
    """None: no limit."""


def read_archive(settings: Mapping[str, object], data_folder: Path) -> ArchiveSettings:
    """Return the settings of a collection with that data folder. Raises SettingError."""
    return ArchiveSettings(
        is_on=boolean("CRAWLSPACE_ARCHIVE", settings["CRAWLSPACE_ARCHIVE"]),
        folder=archive_folder(settings, data_folder),
        max_bytes=optional_integer("CRAWLSPACE_ARCHIVE_MAX_BYTES", settings["CRAWLSPACE_ARCHIVE_MAX_BYTES"], low=SMALLEST_BYTES),
    )


def archive_folder(settings: Mapping[str, object], data_folder: Path) -> Path:
    """Return the folder with the files of a collection; elsewhere they are in a folder of its name, so that collections may share it."""
    elsewhere = str(settings["CRAWLSPACE_ARCHIVE_DIR"] or "")
    return Path(elsewhere) / data_folder.name if elsewhere else data_folder / "archive"
