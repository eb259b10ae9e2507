"""A file that is replaced as a whole: until the new content is in place, the old is what everybody reads."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from crawlspace.runtime.components.replaced_file import ReplacedFile, is_replaceable

NAME = "items.jsonl"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / NAME


def names(path: Path) -> list[str]:
    return sorted(file.name for file in path.parent.iterdir())


@pytest.mark.parametrize("old", ["", "old, and longer than what comes\n"])
def test_the_old_content_stays_until_the_new_is_in_place(path: Path, old: str) -> None:
    if old:
        path.write_text(old)
    new = ReplacedFile(path)
    new.file.write(b"new\n")
    new.file.flush()
    assert path.exists() is bool(old)
    assert not old or path.read_text() == old
    assert f"{NAME}.part" in names(path)
    new.put_in_place()
    assert (path.read_text(), names(path)) == ("new\n", [NAME])


def test_what_is_discarded_leaves_nothing_behind(path: Path) -> None:
    path.write_text("old")
    new = ReplacedFile(path)
    new.file.write(b"new")
    new.discard()
    assert (path.read_text(), names(path)) == ("old", [NAME])


def test_what_a_killed_run_left_is_written_over(path: Path) -> None:
    path.with_name(f"{NAME}.part").write_text("half of a long li")
    new = ReplacedFile(path)
    new.file.write(b"new")
    new.put_in_place()
    assert (path.read_text(), names(path)) == ("new", [NAME])


def test_what_cannot_take_its_place_is_kept(path: Path) -> None:
    new = ReplacedFile(path)
    new.file.write(b"new")
    path.mkdir()
    with pytest.raises(OSError, match=f"Is a directory; the new content is in .*{NAME}.part"):
        new.put_in_place()
    assert path.with_name(f"{NAME}.part").read_text() == "new"


def test_only_one_run_at_a_time_writes_a_file(path: Path) -> None:
    first = ReplacedFile(path)
    with pytest.raises(OSError, match="another run is writing it"):
        ReplacedFile(path)
    first.file.write(b"first")
    first.put_in_place()
    second = ReplacedFile(path)
    second.file.write(b"second")
    assert path.read_text() == "first"
    second.put_in_place()
    assert path.read_text() == "second"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_the_mode_of_the_old_file_is_kept(path: Path, mode: int) -> None:
    path.write_text("old")
    path.chmod(mode)
    new = ReplacedFile(path)
    part = path.with_name(f"{NAME}.part")
    assert stat.S_IMODE(part.stat().st_mode) == mode, "nor may others read it while it is written"
    new.put_in_place()
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_new_file_follows_the_umask(path: Path) -> None:
    before = os.umask(0o027)
    try:
        ReplacedFile(path).put_in_place()
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("there", [True, False])
def test_a_symbolic_link_stays_one(path: Path, tmp_path: Path, *, there: bool) -> None:
    target = tmp_path / "elsewhere.jsonl"
    if there:
        target.write_text("old")
    path.symlink_to(target)
    new = ReplacedFile(path)
    new.file.write(b"new")
    new.put_in_place()
    assert path.is_symlink()
    assert target.read_text() == "new"


def test_a_link_in_the_place_of_the_new_file_is_not_followed(path: Path, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("of somebody else")
    path.with_name(f"{NAME}.part").symlink_to(tmp_path / "other")
    with pytest.raises(OSError):  # noqa: PT011 - its text is the system's
        ReplacedFile(path)
    assert (tmp_path / "other").read_text() == "of somebody else"


def test_what_is_replaceable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    expected = {
        "file": True,
        "missing": True,
        ".": False,
        "pipe": False,
        "/dev/null": False,
        "/dev/shm/missing": True,
        "/dev/stdout": False,
        "/proc/self/fd/1": False,
    }
    assert {name: is_replaceable(tmp_path / name) for name in expected} == expected
