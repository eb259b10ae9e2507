"""CRAWLSPACE_EXCLUDE_EXTENSIONS: a list of one's own, or signs that add to the built-in list and take from it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from crawlspace.config.collection import load_collection
from crawlspace.config.limits import read_extensions
from crawlspace.errors import SettingError
from crawlspace.rules.limits import DEFAULT_EXCLUDED_EXTENSIONS as BUILT_IN
from crawlspace.rules.limits import changes_of_built_in
from tests.unit.config.collection_files import settings

NAME = "CRAWLSPACE_EXCLUDE_EXTENSIONS"

LISTS: list[tuple[object, set[str]]] = [
    # value, what is excluded
    ("", {*BUILT_IN}),
    ([], {*BUILT_IN}),
    ("none", set()),
    ("log|old", {"log", "old"}),
    (".LOG, old", {"log", "old"}),
    ("+log", {*BUILT_IN, "log"}),
    ("+log -ps", {*BUILT_IN, "log"} - {"ps"}),
    ("-PS|+.Log", {*BUILT_IN, "log"} - {"ps"}),
    (["-ps", "-css"], {*BUILT_IN} - {"ps", "css"}),
    (["+ log ", "+log"], {*BUILT_IN, "log"}),
    ("+jpg", {*BUILT_IN}),
    ("-pdf", {*BUILT_IN}),
]


@pytest.mark.parametrize(("value", "excluded"), LISTS, ids=[str(row[0]) for row in LISTS])
def test_which_extensions_are_excluded(collections: Path, value: object, excluded: set[str]) -> None:
    assert load_collection("demo", settings(collections, **{NAME: value})).limits.exclude_extensions == excluded


WRONG: list[tuple[object, str]] = [
    ("+log pdf", f"{NAME} has '+log' with a sign and 'pdf' without one; write all with + or -, to add to the built-in list and"),
    (["log", "-ps"], f"{NAME} has '-ps' with a sign and 'log' without one"),
    ("none -ps", f"{NAME} has '-ps' with a sign and 'none' without one"),
    ("+ log", f"{NAME} has '+' with a sign and 'log' without one"),
    ("+log -", f"{NAME} is '+log -', with a sign that no extension follows; write it as in '+log -ps'"),
    ("-.", f"{NAME} is '-.', with a sign that no extension follows"),
    ("+log -LOG", f"{NAME} both adds 'log' and takes it away; write one of '+log' and '-log'"),
    (3, f"{NAME} is 3; it must be a list of words"),
]


@pytest.mark.parametrize(("value", "sentence"), WRONG, ids=[str(row[0]) for row in WRONG])
def test_wrong_lists(collections: Path, value: object, sentence: str) -> None:
    with pytest.raises(SettingError) as caught:
        load_collection("demo", settings(collections, **{NAME: value}))
    assert sentence in str(caught.value)


WITHOUT_EFFECT: list[tuple[object, list[str]]] = [
    ("", []),
    ("log", []),
    ("+log -ps", []),
    ("-gift", [f"{NAME} takes 'gift' from the built-in list, which does not have it: did you mean 'gif'?"]),
    ("-aspx", [f"{NAME} takes 'aspx' from the built-in list, which does not have it: its URLs are not excluded anyway"]),
    ("+jpg", [f"{NAME} adds 'jpg' to the built-in list, which has it already: leave it out"]),
    ("+tar.log", [f"{NAME} has 'tar.log', and no URL has an extension with a dot in it: write 'log'"]),
    ("tar.gz|old", [f"{NAME} has 'tar.gz', and no URL has an extension with a dot in it: write 'gz'"]),
]


@pytest.mark.parametrize(("value", "warnings"), WITHOUT_EFFECT, ids=[str(row[0]) for row in WITHOUT_EFFECT])
def test_what_lint_says_of_a_list(value: object, warnings: Sequence[str]) -> None:
    assert list(read_extensions({NAME: value}).warnings()) == warnings


CHANGES: list[tuple[frozenset[str], list[str]]] = [
    (BUILT_IN, []),
    (BUILT_IN | {"old", "log"}, ["+log", "+old"]),
    (BUILT_IN - {"zip", "css"} | {"log"}, ["+log", "-css", "-zip"]),
]


@pytest.mark.parametrize(("excluded", "changes"), CHANGES)
def test_the_changes_of_the_built_in_list_make_the_same_list(excluded: frozenset[str], changes: list[str]) -> None:
    assert changes_of_built_in(excluded) == changes
    assert read_extensions({NAME: changes}).excluded == excluded
