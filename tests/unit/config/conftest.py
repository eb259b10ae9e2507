"""What tests of the configuration share: collections in files."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from crawlspace import settings as defaults

SCRAPY = {"DOWNLOAD_DELAY": 0, "RETRY_TIMES": 2}


def settings(folder: Path, **own: object) -> dict[str, object]:
    all_defaults = {name: value for name, value in vars(defaults).items() if name.isupper()}
    return {
        **all_defaults,
        **SCRAPY,
        "CRAWLSPACE_COLLECTIONS_DIR": str(folder),
        "CRAWLSPACE_DATA_DIR": str(folder / "data"),
        **own,
    }


def forbid(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """Have the system refuse to look at a path, as it refuses nothing to root."""

    def refused(name: str, real: Callable[..., object]) -> Callable[..., object]:
        def call(at: object, *args: object, **named: object) -> object:
            if str(at) == str(path):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return real(at, *args, **named)

        return call

    for name in ("stat", "lstat", "scandir"):
        monkeypatch.setattr(os, name, refused(name, getattr(os, name)))


def write(folder: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")


@pytest.fixture
def collections(tmp_path: Path) -> Path:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "start_urls.txt").write_text("# comment\nhttp://a.example/  shift=-1\n\nhttp://[2001:db8::1]:8080/x\n")
    (tmp_path / "demo" / "crawl.rules").write_text("allow domain *.example\nforbid domain *\n")
    return tmp_path
