"""Regular expressions of others as values of rules.xml: they find the same."""

from __future__ import annotations

import re

import pytest
import re2

from crawlspace.importers.expressions import Untranslatable, translated
from crawlspace.rules.xml.model import Expression, Field, Kind, Norm
from crawlspace.rules.xml.values import read_value

URLS = [
    "http://www.example.com/",
    "https://www.example.com/a.b?c=d-e",
    "http://dev12.example.org/calendar/2024/",
    "http://www.example.com/A_B/(x)%5E/[1]?a&b",
    "http://www.example.com:8080/x-y~z/aaa",
]
# an expression -> the values of rules.xml
TRANSLATED = [
    (r"www\.example\.com", ["www.example.com"]),
    (r"www.*com", [r"www\.\*com"]),
    (r"^http://dev\d+\.", [r"\^http://dev\[0-9\]\+."]),
    (r"\.org/|/a\.b$", [".org/", r"/a.b\$"]),
    (r"/[a-z]+-[a-z]$", [r"/\[a-z\]\+-\[a-z\]\$"]),
    (r"/[^/]+/\d{4}/", [r"/\[\^/\]\+/\[0-9\]\{4\}/"]),
    (r"(dev|test)\d*\.", [r"\(dev\|test\)\[0-9\]\*."]),
    (r"(?:a|b)\?c", [r"\(\?:a\|b\)?c"]),
    (r"(?P<year>\d\d)", [r"\(\?:\[0-9\]\[0-9\]\)"]),
    (r"[-\w]+~z", [r"\[A-Za-z0-9_-\]\+~z"]),
    (r"[^\s\"<>]+$", [r"\.\+\$"]),
    (r"/[\]x\[]1", [r"/\[]x[\]1"]),
    (r"\(x\)", ["(x)"]),
    (r"\Ahttp.*?/\Z", [r"\^http\.\*\?/\$"]),
    (r"a{2,}$", [r"a\{2,\}\$"]),
    (r"a{,3}$", [r"a\{0,3\}\$"]),
    (r"\W\w\S\D", [r"\[\^A-Za-z0-9_\]\[A-Za-z0-9_\]\.\[\^0-9\]"]),
]
WITHOUT = [
    (r"(?!www)", "RE2 has no look-around"),
    (r"(?<=a)b", "RE2 has no look-around"),
    (r"(a)\1", "RE2 has no back references"),
    (r"\bnews\b", r"it has \b"),
    (r"a\sb", r"it has \s"),
    (r"(^a|b)", "it has ^ inside"),
    (r"(a$|b)", "it has $ inside"),
    (r"(", "it is no regular expression"),
    (r"[ ]x", "it needs a character that no URL has"),
    ("a|", "it matches everything"),
    ("(?s)a", "it has '(?s)'"),
    ("a" * 6000, "it has more than 5,000 characters"),
    ("((a{500}){500}){500}", "more than"),
]


@pytest.mark.parametrize(("expression", "values"), TRANSLATED)
def test_expressions_find_the_same(expression: str, values: list[str]) -> None:
    assert translated(expression, Field.URL, norm=Norm.NONE) == (values, Norm.NONE)
    assert [any(matches(value, url) for value in values) for url in URLS] == [
        re.search(expression, url) is not None for url in URLS
    ]


def matches(value: str, url: str) -> bool:
    kind, compared = read_value(value, Field.URL, kind=Kind.INSIDE, norm=Norm.NONE, literal=False)
    source = compared.source if isinstance(compared, Expression) else re.escape(str(compared))
    start = r"\A" if kind in {Kind.PREFIX, Kind.EXACT} else ""
    end = r"\z" if kind in {Kind.SUFFIX, Kind.EXACT} else ""
    return re2.search(f"{start}(?:{source}){end}", url) is not None


@pytest.mark.parametrize(("expression", "reason"), WITHOUT, ids=[row[0][:20] for row in WITHOUT])
def test_what_has_no_translation(expression: str, reason: str) -> None:
    with pytest.raises(Untranslatable, match=re.escape(reason)):
        translated(expression, Field.URL, norm=Norm.NONE)


def test_capitals_count_for_nothing_where_the_expression_says_so() -> None:
    assert translated("(?i)News", Field.URL, norm=Norm.NONE) == (["News"], Norm.NORM)
