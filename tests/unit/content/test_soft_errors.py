"""Pages that are errors although they answer 200: which rows match, and how the setting is read."""

from __future__ import annotations

import pytest

from crawlspace.content.soft_errors import SoftErrors, read_soft_errors
from crawlspace.errors import SettingError
from tests.growth import is_linear

HR = "http://www.example.com/hr/"
SORRY = "Sorry, the page you want has moved"

ROWS = [
    # URL pattern, title pattern, text pattern; URL, title, text; whether it matches
    ((f"{HR}*", "Sorry, the page*", "*"), (f"{HR}a?b=c", SORRY, "Try again"), True),
    ((f"{HR}*", "Sorry, the page*", "*"), ("http://www.example.com/hr", SORRY, "Try again"), False),
    ((f"{HR}*", "Sorry, the page*", "*"), (f"{HR}a", "Jobs", "Sorry, the page"), False),
    # a URL is compared as a whole, with its capitals
    ((HR, "*", "*"), (HR, "", ""), True),
    ((HR, "*", "*"), (f"{HR}a", "", ""), False),
    (("*/HR/*", "*", "*"), (f"{HR}a", "", ""), False),
    (("http*/hr/*/x", "*", "*"), (f"{HR}a/b/x", "", ""), True),
    (("http*/hr/*/x", "*", "*"), (f"{HR}x", "", ""), False),
    ((f" {HR} ", "*", "*"), (HR, "", ""), True),
    # title and text as a whole, without their capitals; white space is one blank
    (("*", "not found", "*"), (HR, "Not  Found\n", ""), True),
    (("*", "NOT\tFOUND", "*"), (HR, "not found", ""), True),
    (("*", "not found", "*"), (HR, "Page not found", ""), False),
    (("*", "*not found*", "*"), (HR, "Page not found!", ""), True),
    (("*", "seite der strasse*", "*"), (HR, "Seite der Straße 4", ""), True),
    (("*", "*", "* no such page *"), (HR, "", "There is no\u00a0such\npage here"), True),
    (("*", "*", "no such page"), (HR, "", "There is no such page here"), False),
    (("*", "404*", "*gone*"), (HR, "404", "here"), False),
    (("*", "404*", "*gone*"), (HR, "404", "It is gone."), True),
    # an empty pattern is a star
    (("", "", "gone"), (HR, "Title", "Gone"), True),
    (("", "", "gone"), (HR, "Title", ""), False),
    # the ends may not overlap, and the parts come in their order
    (("*", "ab*ba", "*"), (HR, "aba", ""), False),
    (("*", "ab*ba", "*"), (HR, "abba", ""), True),
    (("*", "*b*a*", "*"), (HR, "ab", ""), False),
    (("*", "a**b", "*"), (HR, "ab", ""), True),
    # nothing but the star is special
    (("*", "what?", "*"), (HR, "whats", ""), False),
    (("*", "[a-z].+", "*"), (HR, "[A-Z].+", ""), True),
]


@pytest.mark.parametrize("patterns,page,matches", ROWS)
def test_rows(patterns: tuple[str, str, str], page: tuple[str, str, str], matches: bool) -> None:
    url, title, text = page
    assert (SoftErrors([(*patterns, 404)]).status_of(url, title=title, text=text) == 404) is matches


def test_the_first_row_that_matches_counts() -> None:
    errors = SoftErrors([("*", "gone*", "*", 410), ("*", "*", "*sorry*", 404), ("*", "*", "*", 503)])
    assert [errors.status_of(HR, title=title, text="Sorry") for title in ("Gone", "Moved")] == [410, 404]
    assert errors.status_of(HR, title="Gone", text="") == 410
    assert errors.status_of(HR, title="", text="") == 503


def test_no_rows() -> None:
    assert not SoftErrors()
    assert SoftErrors([("*", "a", "*", 404)])
    assert SoftErrors().status_of(HR, title="Not found", text="") is None


def test_the_content_hash_differs_where_answers_could() -> None:
    rows = [[], [("a", "", "", 404)], [("", "a", "", 404)], [("a", "", "", 410)], [("a", "", "", 404), ("b", "", "", 404)]]
    assert len({SoftErrors(row).content_hash for row in rows}) == len(rows)
    assert SoftErrors(rows[1]).content_hash == read_soft_errors([["a", "", "", "404"]]).content_hash


def test_no_pattern_takes_long() -> None:
    errors = SoftErrors([("*", "*", "*a" * 200 + "*b", 404)])
    texts = {size: "a" * size for size in (1_000_000, 4_000_000)}

    def look_at(size: int) -> None:
        assert errors.status_of(HR, title="", text=texts[size]) is None

    assert is_linear(look_at, 1_000_000)


@pytest.mark.parametrize("value", [None, "", [], ()])
def test_nothing_set(value: object) -> None:
    assert not read_soft_errors(value)


READ = [(f"{HR}*", "Sorry*", "*", 404), [f"{HR}*", "Sorry*", "", "404"]]


@pytest.mark.parametrize("row", READ)
def test_rows_that_are_read(row: object) -> None:
    assert read_soft_errors([row]).status_of(f"{HR}a", title=SORRY, text="") == 404


GOOD = ("*", "a", "*", 404)
WRONG = [
    # setting, what the sentence says
    ("*", "CRAWLSPACE_SOFT_ERRORS is '*'; it must be a list of rows like ("),
    ({"*": 404}, "it must be a list of rows like ("),
    (GOOD, "row 1 of CRAWLSPACE_SOFT_ERRORS is '*'; it must be a URL pattern, a title pattern, a text pattern and a code, as ("),
    ([GOOD, ("*", "a", 404)], "row 2 of CRAWLSPACE_SOFT_ERRORS is ('*', 'a', 404); it must be a URL pattern,"),
    ([GOOD, GOOD, (*GOOD, 1)], "row 3 of CRAWLSPACE_SOFT_ERRORS is "),
    ([("*", None, "*", 404)], "row 1 of CRAWLSPACE_SOFT_ERRORS: the title pattern is None; it must be a text"),
    ([("*", "a", "*", 399)], "row 1 of CRAWLSPACE_SOFT_ERRORS: the code is 399; it must be an error from 400 to 599"),
    ([("*", "a", "*", 600)], "the code is 600"),
    ([("*", "a", "*", 404.0)], "the code is 404.0"),
    ([("*", "a", "*", "4xx")], "the code is '4xx'"),
    ([("*", "a", "*", True)], "the code is True"),
    ([("*", "", " ** ", 404)], "would turn every page into an error"),
]  # fmt: skip


@pytest.mark.parametrize("value,sentence", WRONG, ids=[str(row[0]) for row in WRONG])
def test_wrong(value: object, sentence: str) -> None:
    with pytest.raises(SettingError) as caught:
        read_soft_errors(value)
    assert sentence in str(caught.value)
