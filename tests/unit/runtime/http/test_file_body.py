"""Where the body of a response is while it comes, and what is too large."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from crawlspace.content.fingerprint import checksum_of_bytes
from crawlspace.runtime.http.file_body import FileBody, remove_left

HTML = b"<!doctype html>" + b"x" * 100
PDF = b"%PDF-1.4" + b"x" * 100


@pytest.mark.parametrize(
    ("body", "is_declared", "on_disk", "is_over", "is_too_large"),
    [
        # what, its headers say a file: it is on disk, over its limit, too large as a file
        (PDF[:10], True, False, False, False),
        (PDF, True, True, False, False),
        (PDF, False, True, False, False),
        (PDF * 10, False, True, True, True),
        (b"\0" * 100, True, True, False, False),
        (b"\0" * 100, False, False, False, False),
        (b"\0" * 201, False, False, True, False),
        (HTML, True, False, False, False),
        (HTML * 2, True, False, True, False),
    ],
)
def test_body(tmp_path: Path, body: bytes, is_declared: bool, on_disk: bool, is_over: bool, is_too_large: bool) -> None:
    kept = FileBody(tmp_path / "files", is_declared=is_declared, limit=500, page_limit=200, in_memory=50)
    for at in range(0, len(body), 60):
        kept.write(body[at : at + 60])
    assert (kept.path is not None, kept.is_over, kept.is_too_large) == (on_disk, is_over, is_too_large)
    assert kept.getvalue() == (b"" if on_disk else body)
    if kept.path is not None:
        assert kept.path.read_bytes() == body
        assert kept.path.stat().st_mode & 0o77 == 0
        assert kept.checksum == checksum_of_bytes(body)
        kept.drop()
        assert not kept.path.exists()


def test_a_body_that_nobody_has_any_more_is_removed(tmp_path: Path) -> None:
    kept = FileBody(tmp_path, is_declared=True, limit=500, page_limit=200, in_memory=50)
    kept.write(PDF)
    kept.drop()
    assert not list(tmp_path.iterdir())


def test_only_what_was_left_by_a_process_that_has_ended_is_removed(tmp_path: Path) -> None:
    """One that had the number of this process has ended, too: in a container each crawl may have the same."""
    for name in ("999999999-a.part", f"{os.getpid()}-b.part", f"{os.getppid()}-c.part", "x-d.part", "other"):
        (tmp_path / name).touch()
    for process in (999_999_999, os.getppid()):
        (tmp_path / f"{process}-folder.part").mkdir()
        (tmp_path / f"{process}-folder.part" / "file").touch()
    remove_left(tmp_path)
    assert sorted(path.name.partition("-")[2] or path.name for path in tmp_path.iterdir()) == [
        "c.part",
        "d.part",
        "folder.part",
        "other",
    ]
