"""The settings of documents that are sent without their text."""

from __future__ import annotations

import pytest

from crawlspace.config.content import ReferenceSettings, read_references
from crawlspace.errors import SettingError
from crawlspace.urls import document_id

PAGE = "http://a.example/x y?q=1&z=ü"


def read(url: object = "", most: object = None) -> ReferenceSettings:
    settings = {"CRAWLSPACE_ARCHIVE": True, "CRAWLSPACE_INLINE_MAX_BYTES": most, "CRAWLSPACE_CONTENT_URL": url}
    return read_references(settings, "hand book")


TEMPLATES = [
    ("", ""),
    (None, ""),
    ("https://c.example/content/{id}", f"https://c.example/content/{document_id(PAGE)}"),
    (
        "http://c.example/{collection}/?u={url}&x=1",
        "http://c.example/hand%20book/?u=http%3A%2F%2Fa.example%2Fx%20y%3Fq%3D1%26z%3D%C3%BC&x=1",
    ),
]


@pytest.mark.parametrize(("template", "url"), TEMPLATES)
def test_the_url_of_a_document(template: object, url: str) -> None:
    assert read(template).url_of(PAGE) == url


WRONG = [
    ("c.example/{id}", "write a URL with {id} or {url}, as in https://console.example.com/content/{id}"),
    ("ftp://c.example/{id}", "write a URL with {id} or {url}"),
    ("https://c.example/{id} x", "write a URL with {id} or {url}"),
    (7, "CRAWLSPACE_CONTENT_URL is 7; it must be a text"),
    ("https://c.example/content", "is one URL for all documents; write {id} or {url} into it"),
    ("https://c.example/{collection}", "is one URL for all documents"),
    ("https://c.example/{ID}", "holds {ID}; there are {id}, {url} and {collection}"),
    ("https://c.example/{}/{id}", "holds {}; there are {id}"),
    ("https://c.example/{id", "has a brace of its own; there are {id}"),
    ("https://c.example/{a-b}/{id}", "has a brace of its own"),
]


@pytest.mark.parametrize(("template", "sentence"), WRONG)
def test_a_wrong_template_is_explained(template: object, sentence: str) -> None:
    with pytest.raises(SettingError) as raised:
        read(template)
    assert str(raised.value).startswith("CRAWLSPACE_CONTENT_URL is ")
    assert sentence in str(raised.value)


# a text, most bytes; whether it is too large
SIZES = [
    ("a" * 1_000, 1_000, False),
    ("a" * 1_001, 1_000, True),
    ("ü" * 500, 1_000, False),
    ("ü" * 501, 1_000, True),
    ("🙂" * 250, 1_000, False),
    ("🙂" * 251, 1_000, True),
    ("\ud800" * 334, 1_000, True),
    ("a" * 100_000, None, False),
    ("a" * 100_000, "none", False),
]


@pytest.mark.parametrize(("text", "most", "is_too_large"), SIZES)
def test_sizes_are_bytes(text: str, most: object, *, is_too_large: bool) -> None:
    assert read(most=most).is_too_large(text) == is_too_large


def test_a_limit_that_is_too_small_is_refused() -> None:
    with pytest.raises(SettingError, match="CRAWLSPACE_INLINE_MAX_BYTES is 999"):
        read(most=999)
