"""CRAWLSPACE_LINK_TAGS: elements, and pairs of element and attribute."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlspace.config.collection import load_collection
from crawlspace.config.content import read_content
from crawlspace.errors import SettingError
from tests.unit.config.collection_files import settings

NAME = "CRAWLSPACE_LINK_TAGS"

FROM: list[tuple[object, list[str]]] = [
    # value, what links are taken from
    (["a", "area"], ["a", "area"]),
    ("A, Area", ["a", "area"]),
    (["a", "div@data-href"], ["a", "div@data-href"]),
    ("a | IMG@Src *@data-url", ["*@data-url", "a", "img@src"]),
    (["my-card@href", "a@xlink:href", "x@ä"], ["a@xlink:href", "my-card@href", "x@ä"]),
    (["img@src", "img@src", "img@data-src"], ["img@data-src", "img@src"]),
    (["a@href", "area@href"], ["a", "area"]),
    (["a", "a@href"], ["a"]),
    (["iframe@src", "link@href"], ["iframe@src", "link@href"]),
]


@pytest.mark.parametrize(("value", "expected"), FROM, ids=[str(row[0]) for row in FROM])
def test_what_links_are_taken_from(collections: Path, value: object, expected: list[str]) -> None:
    assert load_collection("demo", settings(collections, **{NAME: value})).content.extraction[1] == expected


def test_without_meta_refresh(collections: Path) -> None:
    own = settings(collections, **{NAME: ["meta", "img@src"], "METAREFRESH_ENABLED": False})
    assert read_content(own, robots_obey=True).extraction[1] == ["img@src"]


MAY_HOLD = "it may hold a, area, frame, iframe, link, meta, and pairs of element and attribute, as in img@src, or *@data-url for any element"
WRONG: list[tuple[object, str]] = [
    ([], f"{NAME} is empty; {MAY_HOLD}"),
    ("img", f"{NAME} has 'img': name the attribute that has the link, as in img@src; {MAY_HOLD}"),
    (["a", "ara"], f"{NAME} has 'ara': did you mean 'area'?"),
    ("*", f"{NAME} has '*': {MAY_HOLD}"),
    ("a[href]", f"{NAME} has 'a[href]': {MAY_HOLD}"),
    ("img/@src", f"{NAME} has 'img/@src': did you mean 'img@src'?"),
    ("//img/@src", f"{NAME} has '//img/@src': {MAY_HOLD}"),
    ("img@", f"{NAME} has 'img@': {MAY_HOLD}"),
    ("@src", f"{NAME} has '@src': {MAY_HOLD}"),
    ("*@*", f"{NAME} has '*@*': {MAY_HOLD}"),
    ("/div@src", f"{NAME} has '/div@src': {MAY_HOLD}"),
    ("div@a@b", f"{NAME} has 'div@a@b': {MAY_HOLD}"),
    ("img@SrcSet", f"{NAME} has 'img@srcset', and links are not taken from srcset, which holds several with their sizes; leave it out"),
    ("*@imagesrcset", f"{NAME} has '*@imagesrcset', and links are not taken from imagesrcset"),
    (7, f"{NAME} is 7; it must be a list of words"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "sentence"), WRONG, ids=[str(row[0]) for row in WRONG])
def test_wrong_values(collections: Path, value: object, sentence: str) -> None:
    with pytest.raises(SettingError) as caught:
        load_collection("demo", settings(collections, **{NAME: value}))
    assert sentence in str(caught.value)
