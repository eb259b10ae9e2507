"""The space on the disk that a collection takes, by part, and when the disk will be full at the pace of the last runs.

Each run keeps in its record how much there was at its end, on its machine.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from crawlspace.archive.files import size_of
from crawlspace.crawl.run_events import EVENTS_FOLDER
from crawlspace.crawl.run_log import RunRecord

_DAY_S = 86_400
_LEAST_S = 3_600
"""Between the first and the last run: the pace of a shorter time says nothing about days."""
_FAR_DAYS = 3_650


class DiskUse(msgspec.Struct, frozen=True):
    """Bytes by part: `state`, `index`, `archive`, `runs`, `other`; what is free on the disk of the data, and how that changes."""

    parts: Mapping[str, int]
    free: int
    bytes_per_day: int | None = None
    """None: the kept runs are too few, too short, or of versions that did not keep it."""
    full_in_days: int | None = None
    """None: it does not grow, or is not full in ten years."""

    @property
    def sentence(self) -> str:
        parts = ", ".join(f"{name} {size(number)}" for name, number in self.parts.items() if number)
        said = f"{size(sum(self.parts.values()))} ({parts or 'nothing'}); {size(self.free)} free"
        if self.bytes_per_day is None:
            return said
        if self.bytes_per_day <= 0:
            return f"{said}; does not grow"
        when = f": full in {self.full_in_days:,} days" if self.full_in_days is not None else ""
        return f"{said}; grows {size(self.bytes_per_day)} a day{when}"


def disk_use(state_file: Path, *, index_file: Path | None, archive: Path, runs: Sequence[RunRecord] = ()) -> DiskUse:
    """Measure the files of a collection. `index_file`: None where it has no embedded index. `runs` are the records that are kept."""
    data = state_file.parent
    parts = {
        "state": _of_database(state_file),
        "index": 0 if index_file is None else _of_database(index_file),
        "archive": size_of(archive),
        "runs": _of_folder(data / EVENTS_FOLDER),
    }
    within = parts["state"] + parts["runs"]
    within += parts["index"] if index_file is not None and index_file.parent == data else 0
    within += parts["archive"] if data in archive.parents else 0
    parts["other"] = max(0, _of_folder(data) - within)
    free = _free(data)
    growth = _bytes_per_day(runs)
    days = None if growth is None or growth <= 0 else free // growth
    return DiskUse(parts, free, growth, days if days is None or days <= _FAR_DAYS else None)


def size(number: int) -> str:
    """Return bytes for a person, such as 1.2 GB."""
    value = float(number)
    for unit in ("bytes", "kB", "MB", "GB"):
        if value < 1_000:
            return f"{value:.0f} {unit}" if unit == "bytes" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1_000
    return f"{value:,.1f} TB"


def _bytes_per_day(runs: Sequence[RunRecord]) -> int | None:
    """Return the growth between the first and the last run of this machine that has kept its numbers."""
    here = socket.gethostname()
    kept = sorted((one.ended, sum(one.disk.values())) for one in runs if one.ended is not None and one.disk and one.host == here)
    if not kept or kept[-1][0] - kept[0][0] < _LEAST_S:
        return None
    (began, before), (ended, after) = kept[0], kept[-1]
    return round((after - before) * _DAY_S / (ended - began))


def _of_database(file: Path) -> int:
    """Return the bytes of a database with its log."""
    return sum(_bytes_of(path) for path in (file, file.with_name(f"{file.name}-wal"), file.with_name(f"{file.name}-shm")))


def _of_folder(folder: Path) -> int:
    return sum(_bytes_of(path) for path in _files(folder))


def _files(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder):
        yield from (Path(place, name) for name in names)


def _bytes_of(path: Path) -> int:
    with suppress(OSError):  # it is gone, or was never there
        return path.stat().st_size
    return 0


def _free(folder: Path) -> int:
    while not folder.exists() and folder.parent != folder:
        folder = folder.parent
    return shutil.disk_usage(folder).free
