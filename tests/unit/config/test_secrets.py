"""The URL of a shared store, where it stands elsewhere, and what is said of one that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlspace.config.secrets import read_store_url
from crawlspace.distributed.connection import connected
from crawlspace.errors import ConfigError, SettingError, UsageError
from crawlspace.runtime.session.move import read_place

URL = "redis://:SECRET@h:6379/0"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STORE", URL)
    monkeypatch.setenv("EMPTY", " ")
    monkeypatch.setenv("WRONG", "redi://:SECRET@h/")
    for name, content in (
        ("store", f"{URL}\n".encode()),
        ("empty", b"\n"),
        ("wrong", b"http:user:SECRET@h/"),
        ("lines", b"SECRET\nSECRET"),
        ("latin", b"SECRET\xe4"),
        ("large", b"SECRET" * 100_000),
    ):
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.parametrize("value", [URL, f" {URL}\n", "env:STORE", "file:store"])
def test_the_url_of_a_store(folder: Path, value: str) -> None:
    assert read_store_url(value) == URL


WRONG = [
    ("redi://:SECRET@h/", "CRAWLSPACE_STORE_URL is 'redi://…@h/'; leave it empty"),
    ("redi://h/?password=SECRET", "CRAWLSPACE_STORE_URL is 'redi://h/'; leave it empty"),
    ("env:", "names nothing"),
    ("env:MISSING", "the environment has no variable MISSING; set it"),
    ("env:EMPTY", "that variable is empty"),
    ("env:WRONG", "is env:WRONG, which is 'redi://…@h/'; leave"),
    ("file:missing", "is file:missing, which cannot be read: No such file or directory"),
    ("file:folder", "which is not a file"),
    ("file:empty", "which is empty"),
    ("file:wrong", "is file:wrong, which is 'http:…@h/'; leave"),
    ("file:lines", "which has several lines"),
    ("file:latin", "which is not UTF-8"),
    ("file:large", "which has more than 65,536 bytes"),
]


@pytest.mark.parametrize(("value", "sentence"), WRONG)
def test_a_url_that_cannot_be_used(folder: Path, value: str, sentence: str) -> None:
    with pytest.raises(SettingError) as received:
        read_store_url(value)
    assert sentence in str(received.value)
    assert "SECRET" not in str(received.value)


@pytest.mark.parametrize("url", ["redis://:SEC/RET@h:6379/0", "redis://u:SEC?RET@h", 'redis://:SEC"/RET@h', "redis://h:SECRET/0"])
def test_the_error_of_a_client_for_a_url_has_no_password(url: str) -> None:
    settings = {"CRAWLSPACE_STORE_URL": url}
    with pytest.raises(ConfigError, match="Redis cannot be") as received:
        connected(settings)
    assert "SEC" not in str(received.value)
    assert "RET" not in str(received.value)


def test_a_store_that_is_moved_to() -> None:
    assert read_place("env:STORE") == "env:STORE"
    with pytest.raises(UsageError, match="'redi://…@h' is no store"):
        read_place("redi://:SECRET@h")
