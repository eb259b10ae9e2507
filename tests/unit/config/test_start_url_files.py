"""Start URLs from several files: which are read, in which order, and what stands for a start in their way."""

from __future__ import annotations

import codecs
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from crawlspace.config import files
from crawlspace.config.collection import load_collection
from crawlspace.config.files import read_start_urls
from crawlspace.crawl.startup import build_rediscovery, build_space, hash_of
from crawlspace.errors import ConfigError, RuleFileError, SettingError
from tests.unit.config.conftest import settings, write

NAME = "CRAWLSPACE_START_URL_FILES"

WRITTEN = {
    "more.txt": "# two\nhttp://c/\nhttp://a/ shift=2\n",
    "lists/b.txt": "http://b/ shift=-1\n",
    "lists/a.txt": "http://a/\nhttp://B/\n",
    "lists/deep/x.txt": "http://x/\n",
    "lists/a.old": "http://old/\n",
    "[odd].txt": "http://odd/\n",
}
OWN = {"start_urls.txt": "http://own/\nhttp://a/ shift=1\n"}

READ: list[tuple[Mapping[str, str], object, list[str]]] = [
    # further files, value, the start URLs in order
    ({}, ["more.txt"], ["more.txt:2 http://c/", "more.txt:3 http://a/ 2"]),
    (OWN, [], ["start_urls.txt:1 http://own/", "start_urls.txt:2 http://a/ 1"]),
    (OWN, ["more.txt"], ["start_urls.txt:1 http://own/", "start_urls.txt:2 http://a/ 1", "more.txt:2 http://c/"]),
    ({}, "more.txt, lists/b.txt", ["more.txt:2 http://c/", "more.txt:3 http://a/ 2", "lists/b.txt:1 http://b/ -1"]),
    ({}, ["lists/*.txt"], ["lists/a.txt:1 http://a/", "lists/a.txt:2 http://b/ as B", "lists/b.txt:1 http://b/ -1"]),
    ({}, ["lists/b.txt", "lists/*.txt"], ["lists/b.txt:1 http://b/ -1", "lists/a.txt:1 http://a/", "lists/a.txt:2 http://b/ as B"]),
    ({}, ["lists/*"], ["lists/a.old:1 http://old/", "lists/a.txt:1 http://a/", "lists/a.txt:2 http://b/ as B", "lists/b.txt:1 http://b/ -1"]),
    ({}, ["**/x.txt"], ["lists/deep/x.txt:1 http://x/"]),
    ({}, ["lists/[!b].txt"], ["lists/a.txt:1 http://a/", "lists/a.txt:2 http://b/ as B"]),
    ({}, ["[odd].txt"], ["[odd].txt:1 http://odd/"]),
    ({}, ["lists/../lists/b.txt", "lists/b.txt"], ["lists/../lists/b.txt:1 http://b/ -1"]),
    (OWN, ["start_urls.txt", "start*"], ["start_urls.txt:1 http://own/", "start_urls.txt:2 http://a/ 1"]),
]  # fmt: skip


@pytest.mark.parametrize(("more", "value", "expected"), READ, ids=[str(row[1]) for row in READ])
def test_which_files_are_read(tmp_path: Path, more: Mapping[str, str], value: object, expected: list[str]) -> None:
    write_all(tmp_path, {**WRITTEN, **more})
    assert shown(tmp_path, {NAME: value}) == expected


def test_the_setting_with_urls_comes_last_and_an_equal_url_counts_once(tmp_path: Path) -> None:
    write_all(tmp_path, {"a.txt": "http://a/\nhttp://a:80/\nhttp://a/#x\n"})
    own = {NAME: ["a.txt"], "CRAWLSPACE_START_URLS": ["http://z/", "http://a/ shift=-2"]}
    assert shown(tmp_path, own) == ["a.txt:1 http://a/", "CRAWLSPACE_START_URLS:1 http://z/"]


def test_a_name_may_be_absolute(tmp_path: Path) -> None:
    write_all(tmp_path, {"elsewhere/a.txt": "http://a/\n", "elsewhere/b.txt": "http://b/\n", "demo/x": ""})
    at = tmp_path / "elsewhere"
    assert shown(tmp_path / "demo", {NAME: [f"{at}/a.txt", f"{at}/*"]}) == [f"{at}/a.txt:1 http://a/", f"{at}/b.txt:1 http://b/"]


WITHOUT_FILES: list[tuple[object, str]] = [
    ("gone.txt", f"{NAME} has 'gone.txt', and there is no such file in {{folder}}; write it, or correct the name"),
    (["more.txt", "lists/b.text"], f"{NAME} has 'lists/b.text', and there is no such file in"),
    ("lists/*.text", f"{NAME} has 'lists/*.text', which matches no file in {{folder}}; write one, or correct the pattern"),
    ("lists/de*", f"{NAME} has 'lists/de*', which matches no file"),
    ("lists", f"{NAME} has 'lists', which is a folder; write 'lists/*' for the files in it"),
    ("no\0such", f"{NAME} has 'no\\x00such', and there is no such file"),
    ("no\0such*", f"{NAME} has 'no\\x00such*', which matches no file"),
    (3, f"{NAME} is 3; it must be a list of words"),
]


@pytest.mark.parametrize(("value", "sentence"), WITHOUT_FILES, ids=[repr(row[0]) for row in WITHOUT_FILES])
def test_a_missing_file_is_named_with_the_setting(tmp_path: Path, value: object, sentence: str) -> None:
    write_all(tmp_path, WRITTEN)
    with pytest.raises(SettingError) as caught:
        read_start_urls(tmp_path, {NAME: value})
    assert sentence.format(folder=tmp_path) in str(caught.value)


def test_the_line_of_the_setting_is_named(collections: Path) -> None:
    write(collections, {"demo/settings.py": f"# files\n{NAME} = ['gone.txt']\n"})
    with pytest.raises(SettingError, match=rf"demo/settings.py:2: {NAME} has 'gone.txt'"):
        load_collection("demo", settings(collections, **{NAME: ["gone.txt"]}))


def test_all_mistakes_of_all_files_are_named(tmp_path: Path) -> None:
    write_all(tmp_path, {"start_urls.txt": "ftp://a/\n", "lists/a.txt": "\nhttp://a/ x\n", "lists/b.txt": "http://b/\nb\n"})
    with pytest.raises(RuleFileError) as caught:
        read_start_urls(tmp_path, {NAME: ["lists/*"]})
    places = [f"{one.file}:{one.line}:{one.column}" for one in caught.value.mistakes]
    assert places == ["start_urls.txt:1:1", "lists/a.txt:2:11", "lists/b.txt:2:1"]


def test_a_mistake_in_a_file_that_is_named_twice_is_reported_once(tmp_path: Path) -> None:
    write_all(tmp_path, {"start_urls.txt": "a\n", "lists/a.txt": "a\n"})
    with pytest.raises(RuleFileError) as caught:
        read_start_urls(tmp_path, {NAME: ["lists/a.txt", "lists/../*/*.txt", "*.txt"]})
    assert [one.file for one in caught.value.mistakes] == ["start_urls.txt", "lists/a.txt"]


ENCODINGS: list[tuple[bytes, list[str]]] = [
    (b"http://a/\r\nhttp://b/\r\n", ["lists/a.txt:1 http://a/", "lists/a.txt:2 http://b/"]),
    (b"http://a/\rhttp://b/", ["lists/a.txt:1 http://a/", "lists/a.txt:2 http://b/"]),
    (codecs.BOM_UTF8 + b"# x\nhttp://a/\n", ["lists/a.txt:2 http://a/"]),
    ("http://a/\n".encode("utf-16"), ["lists/a.txt:1:1: the file is in UTF-16; save it as UTF-8"]),
    (b"http://a/\nhttp://b/caf\xe9\n", ["lists/a.txt:2:13: this is not UTF-8; save the file as UTF-8"]),
]


@pytest.mark.parametrize(("content", "expected"), ENCODINGS)
def test_encodings_and_line_ends(tmp_path: Path, content: bytes, expected: list[str]) -> None:
    write_all(tmp_path, {"lists/a.txt": ""})
    (tmp_path / "lists/a.txt").write_bytes(content)
    try:
        found = shown(tmp_path, {NAME: ["lists/a.txt"]})
    except RuleFileError as error:
        found = [f"{one.file}:{one.line}:{one.column}: {one.message}" for one in error.mistakes]
    assert found == expected


def test_files_without_any_url_are_named(tmp_path: Path) -> None:
    write_all(tmp_path, {"lists/a.txt": "# none yet\n"})
    with pytest.raises(ConfigError, match=r"has no start URL: write one a line into .*start_urls.txt, or into lists/a.txt$"):
        read_start_urls(tmp_path, {NAME: ["lists/*"]})


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="pipe is not a regular file but a pipe"):
        read_start_urls(tmp_path, {NAME: ["pipe"]})


def test_the_limit_holds_for_all_files_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_START_URLS", 2)
    write_all(
        tmp_path, {"a.txt": "http://a/\nhttp://a/\n", "b.txt": "http://a/\nhttp://b/\n", "c.txt": "http://a/\n\nhttp://c/\n"}
    )
    assert len(read_start_urls(tmp_path, {NAME: ["a.txt", "b.txt"]})) == 2
    with pytest.raises(RuleFileError, match=r"^c.txt:3:1: this is the 3st start URL, and 2 is the most"):
        read_start_urls(tmp_path, {NAME: ["?.txt"]})


LIMITS: list[dict[str, object]] = [{"CRAWLSPACE_FOLLOW_OFFSITE_LINKS": False}, {"CRAWLSPACE_INDEX_ENTIRE_SITE": True}]


@pytest.mark.parametrize("limit", LIMITS)
def test_a_start_compares_the_urls_wherever_they_are_written(collections: Path, limit: dict[str, object]) -> None:
    """What a start compares with the last one, for start_urls.txt alone, for a file beside it, and after a change of either."""

    def compared(own: str, other: str) -> tuple[str, str]:
        write(collections, {"demo/start_urls.txt": own, "demo/other.txt": other})
        demo = load_collection("demo", settings(collections, **{NAME: ["other.txt"]}, **limit))
        space = build_space(demo)
        return hash_of(demo, space), build_rediscovery(demo, space).checks

    alone = compared("http://a/x/\nhttp://b/\n", "")
    assert compared("http://a/x/\n", "http://b/\n") == alone
    assert compared("http://b/\n", "http://a/x/\n") == alone
    more_in_own, more_in_other = (
        compared("http://a/x/\nhttp://c/\n", "http://b/\n"),
        compared("http://a/x/\n", "http://b/\nhttp://c/\n"),
    )
    assert more_in_own == more_in_other
    assert more_in_own[0] != alone[0]
    assert more_in_own[1] != alone[1]


def write_all(folder: Path, contents: Mapping[str, str]) -> None:
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")


def shown(folder: Path, own: Mapping[str, object]) -> list[str]:
    """Return place, URL, shift, and the host as written, where these are not the usual."""
    found = []
    for start in read_start_urls(folder, own):
        written = f" as {start.url.host_as_written}" if start.url.host_as_written != start.url.host else ""
        found.append(f"{start.where} {start.url.text}{f' {start.shift}' if start.shift else ''}{written}")
    return found
