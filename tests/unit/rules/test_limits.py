"""The limits, one by one."""

from __future__ import annotations

import pytest

from crawlspace.rules.limits import (
    DEFAULT_EXCLUDED_EXTENSIONS,
    Limits,
    extension,
    folders,
    in_folders,
    mime_allowed,
    path_depth,
    repeats_segments,
)
from crawlspace.urls import parse

EXTENSIONS = [
    ("/", ""),
    ("/a", ""),
    ("/a.b/c", ""),
    ("/a/Photo.JPG", "jpg"),
    ("/a/photo.jpg;size=2", "jpg"),
    ("/a;b.jpg/c", ""),
    ("/a.tar.gz", "gz"),
    ("/a.", ""),
    ("/.htaccess", "htaccess"),
]
DEPTHS = [("/", 0), ("/a", 0), ("/a/", 1), ("/a/b", 1), ("/a/b/c.html", 2), ("//", 1), ("", 0), ("user@example.com", 0)]
REPEATS = [
    # path, refused at 3
    ("/", False),
    ("/x/x/x", False),
    ("/x/x/x/", False),
    ("/x/x/x/x", True),
    ("/x/a/x/b/x/c", False),
    ("/x/a/x/b/x/c/x", True),
    ("/a/b/a/b/a/b", False),
    ("/a/b/a/b/a/b/a/b", True),
    ("/a/b/c/a/b/c/a/b/c/a/b/c.html", True),
    ("/a/b/c/d/e/f/g/h", False),
    ("/x/X/x/X", False),
    ("/a////b", False),
    ("/a/////b", True),
    ("/2024/01/01/01", False),
]
FOLDERS = [
    # start URL, URL, inside
    ("http://h/docs/index.html", "http://h/docs/", True),
    ("http://h/docs/index.html", "http://h/docs/a/b/c.html?x=1", True),
    ("http://h/docs/index.html", "https://h/docs/a", True),
    ("http://h/docs/index.html", "http://h/docs", False),
    ("http://h/docs/index.html", "http://h/docsearch/", False),
    ("http://h/docs/index.html", "http://h/", False),
    ("http://h/docs/index.html", "http://other/docs/", False),
    ("http://h/docs/index.html", "http://h:8080/docs/", False),
    ("http://h:8080/docs/", "http://h:8080/docs/a", True),
    ("http://h/docs", "http://h/anything", True),
    ("http://h", "http://h/anything/at/all", True),
]
TYPES = [
    # types to take, declared, taken
    (("text/html",), "text/html", True),
    (("text/html",), "Text/HTML; charset=utf-8", True),
    (("TEXT/HTML",), "text/html", True),
    (("text/html",), "text/plain", False),
    (("text/*",), "text/plain", True),
    (("text/*",), "application/pdf", False),
    (("*/*",), "application/pdf", True),
    (("application/vnd.oasis.opendocument.*",), "application/vnd.oasis.opendocument.text", True),
    (("text/html",), None, True),
    (("text/html",), " ", True),
    (("text/html",), "application/octet-stream", False),
    ((), "text/html", False),
    (Limits().mime_types, "application/xhtml+xml", True),
    (Limits().mime_types, "application/pdf", True),
    (Limits().mime_types, "application/zip", False),
    (Limits().mime_types, "image/png", False),
]


@pytest.mark.parametrize("path,expected", EXTENSIONS)
def test_extension(path: str, expected: str) -> None:
    assert extension(path) == expected


@pytest.mark.parametrize("name", ["jpg", "mp3", "mp4", "zip", "exe", "woff2", "css", "js"])
def test_what_is_no_document_is_excluded(name: str) -> None:
    assert name in DEFAULT_EXCLUDED_EXTENSIONS


@pytest.mark.parametrize(
    "name", ["html", "htm", "php", "aspx", "txt", "pdf", "doc", "docx", "xls", "ppt", "odt", "epub", "xml", "com"]
)
def test_documents_are_not_excluded(name: str) -> None:
    assert name not in DEFAULT_EXCLUDED_EXTENSIONS


@pytest.mark.parametrize("path,expected", DEPTHS)
def test_path_depth(path: str, expected: int) -> None:
    assert path_depth(path) == expected


@pytest.mark.parametrize("path,expected", REPEATS)
def test_repeated_segments(path: str, expected: bool) -> None:
    assert repeats_segments(path, 3) is expected


@pytest.mark.parametrize("start,url,expected", FOLDERS)
def test_folder_of_a_start_url(start: str, url: str, expected: bool) -> None:
    assert in_folders(parse(url), folders([parse(start)])) is expected


@pytest.mark.parametrize("types,declared,expected", TYPES)
def test_mime_types(types: tuple[str, ...], declared: str | None, expected: bool) -> None:
    assert mime_allowed(types, declared) is expected
