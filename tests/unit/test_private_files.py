"""Files that are replaced as a whole."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from crawlspace.private_files import make_whole_file, replace_file


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


MODES = [
    ("a new file", None, {}, 0o600),
    ("a new file with a mode", None, {"mode": 0o644}, 0o644),
    ("the mode of the file before", 0o640, {}, 0o640),
    ("whatever is asked for", 0o604, {"mode": 0o600}, 0o604),
]


@pytest.mark.parametrize(("before", "options", "after"), [row[1:] for row in MODES], ids=[row[0] for row in MODES])
def test_the_mode_of_a_file(tmp_path: Path, before: int | None, options: dict[str, int], after: int) -> None:
    file = tmp_path / "file"
    if before is not None:
        file.write_bytes(b"old")
        file.chmod(before)
    replace_file(file, b"new", **options)
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (b"new", after)
    assert names(tmp_path) == ["file"]


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    replace_file(link, b"new")
    assert (link.is_symlink(), target.read_bytes()) == (True, b"new")


def test_a_file_that_cannot_be_replaced_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        replace_file(file, b"new")
    assert (file.read_bytes(), names(tmp_path)) == (b"old", ["file"])


def test_many_who_write_at_the_same_time(tmp_path: Path) -> None:
    """What is there is always the whole of one of them; a file that is made once is that of the first."""
    many = 8
    together = Barrier(many)

    def write(number: int) -> bool:
        together.wait()
        for _ in range(20):
            replace_file(tmp_path / "replaced", b"%d" % number * 1_000)
            assert len(set((tmp_path / "replaced").read_bytes())) == 1
        return make_whole_file(tmp_path / "made", b"%d" % number * 1_000)

    with ThreadPoolExecutor(many) as pool:
        first = list(pool.map(write, range(many)))
    assert sum(first) == 1
    assert (tmp_path / "made").read_bytes() == b"%d" % first.index(True) * 1_000
    assert names(tmp_path) == ["made", "replaced"]
