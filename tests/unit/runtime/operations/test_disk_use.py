"""The space that a collection takes, by part, and its forecast."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from crawlspace.crawl.run_log import RunRecord
from crawlspace.runtime.operations.disk_use import DiskUse, disk_use, size

HOUR, DAY = 3_600, 86_400


def run(ended: int | None, disk: dict[str, int], *, host: str = "") -> RunRecord:
    return RunRecord(1, 1, host or socket.gethostname(), 0, 0, ended=ended, disk=disk)


def written(path: Path, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))


def test_parts(tmp_path: Path) -> None:
    data = tmp_path / "demo"
    for name, number in {
        "state.db": 1,
        "state.db-wal": 2,
        "index.db": 4,
        "archive/a.warc.gz": 8,
        "archive/b.warc.gz.open": 16,
        "runs/1.events": 32,
        "logs/crawl.log": 64,
        "state.db.lock": 128,
    }.items():
        written(data / name, number)
    use = disk_use(data / "state.db", index_file=data / "index.db", archive=data / "archive")
    assert dict(use.parts) == {"state": 3, "index": 4, "archive": 24, "runs": 32, "other": 192}
    assert use.free > 0
    written(tmp_path / "shared.db", 256)
    elsewhere = disk_use(data / "state.db", index_file=tmp_path / "shared.db", archive=tmp_path / "archive")
    assert dict(elsewhere.parts) == {"state": 3, "index": 256, "archive": 0, "runs": 32, "other": 192 + 4 + 24}
    nothing = disk_use(tmp_path / "none" / "state.db", index_file=None, archive=tmp_path / "none" / "archive")
    assert sum(nothing.parts.values()) == 0


# kept runs -> bytes per day
GROWTH: list[tuple[list[RunRecord], int | None]] = [
    ([], None),
    ([run(HOUR, {"state": 5})], None),
    ([run(0, {"state": 5}), run(HOUR - 1, {"state": 9})], None),
    ([run(0, {}), run(None, {"state": 3}), run(DAY, {"state": 9})], None),
    ([run(0, {"state": 5}), run(DAY, {"state": 7, "index": 8}), run(5, {}), run(2 * DAY, {"state": 25})], 10),
    ([run(2 * DAY, {"state": 5}), run(0, {"state": 25})], -10),
    ([run(0, {"state": 5}), run(HOUR, {"state": 6})], 24),
    ([run(0, {"state": 5}), run(DAY, {"state": 9}, host="another")], None),
]


@pytest.mark.parametrize(("runs", "growth"), GROWTH)
def test_growth(tmp_path: Path, runs: list[RunRecord], growth: int | None) -> None:
    use = disk_use(tmp_path / "state.db", index_file=None, archive=tmp_path / "archive", runs=runs)
    assert use.bytes_per_day == growth
    assert use.full_in_days is None, "not in ten years"


def test_full_soon(tmp_path: Path) -> None:
    use = disk_use(
        tmp_path / "state.db", index_file=None, archive=tmp_path / "a", runs=[run(0, {"a": 0}), run(DAY, {"a": 1 << 60})]
    )
    assert use.full_in_days == 0


SENTENCES = [
    (DiskUse({"state": 0}, 5_000), "0 bytes (nothing); 5.0 kB free"),
    (
        DiskUse({"state": 300_000_000, "index": 0, "archive": 900_000_000}, 24_000_000_000, 200_000_000, 120),
        "1.2 GB (state 300 MB, archive 900 MB); 24.0 GB free; grows 200 MB a day: full in 120 days",
    ),
    (DiskUse({"state": 999}, 1, 5, None), "999 bytes (state 999 bytes); 1 bytes free; grows 5 bytes a day"),
    (DiskUse({"state": 999}, 1, -5, None), "999 bytes (state 999 bytes); 1 bytes free; does not grow"),
]


@pytest.mark.parametrize(("use", "sentence"), SENTENCES)
def test_sentences(use: DiskUse, sentence: str) -> None:
    assert use.sentence == sentence


def test_sizes() -> None:
    assert [size(number) for number in (0, 999, 1_000, 123_456, 1_500_000, 10**12)] == [
        "0 bytes",
        "999 bytes",
        "1.0 kB",
        "123 kB",
        "1.5 MB",
        "1.0 TB",
    ]
