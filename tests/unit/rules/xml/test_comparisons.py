"""Comparisons that are made all at once: each as its field, kind and norm say, also where RE2 has little memory or none."""

from __future__ import annotations

import random
import re

import pytest
import re2
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crawlspace.cache import RecentByWeight
from crawlspace.rules.xml.comparisons import AtomMatcher, ExpressionSet, required_texts
from crawlspace.rules.xml.model import Atom, Expression, Field, Kind, Norm, Range
from crawlspace.urls import parse
from tests.quick import examples
from tests.unit.rules.xml.test_matcher import expressions

E = Expression
URL = "http://Www.Example.com:8080/Docs/a.PDF?Q=1&b=/x"
COMPARISONS: list[tuple[str, str, str, str | Expression | Range, bool]] = [
    # field, kind, norm, value, whether it holds for URL
    ("url", "exact", "norm", URL, True),
    ("url", "exact", "lower", URL.lower(), True),
    ("url", "exact", "lower", URL, False),
    ("url", "exact", "none", URL, True),
    ("url", "exact", "none", URL.replace("Www.Example", "www.example"), False),
    ("url", "prefix", "none", "http://Www.", True),
    ("url", "prefix", "norm", "HTTP://WWW.", True),
    ("url", "inside", "none", "com:8080/D", True),
    ("scheme", "exact", "norm", "HTTP", True),
    ("scheme", "exact", "none", "http", True),
    ("scheme", "exact", "none", "HTTP", False),
    ("scheme", "prefix", "norm", "https", False),
    ("host", "exact", "norm", "www.example.COM", True),
    ("host", "exact", "lower", "www.example.com", True),
    ("host", "exact", "lower", "Www.Example.com", False),
    ("host", "exact", "none", "Www.Example.com", True),
    ("host", "exact", "none", "www.example.com", False),
    ("host", "suffix", "norm", ".example.com", True),
    ("host", "suffix", "norm", "example", False),
    ("host", "inside", "norm", "example", True),
    ("host", "exact", "norm", E("www.*com"), True),
    ("host", "exact", "norm", E("www"), False),
    ("host", "exact", "none", E("www.*com"), False),
    ("path", "prefix", "norm", "/docs", True),
    ("path", "prefix", "none", "/docs", False),
    ("path", "prefix", "none", "/Docs", True),
    ("path", "prefix", "lower", "/docs", True),
    ("path", "prefix", "lower", "/Docs", False),
    ("path", "prefix", "norm", "docs", False),
    ("path", "suffix", "norm", ".pdf", True),
    ("path", "suffix", "norm", ".pd", False),
    ("path", "inside", "norm", "s/a", True),
    ("path", "inside", "norm", "", True),
    ("path", "prefix", "norm", "", True),
    ("path", "exact", "norm", "", False),
    ("path", "exact", "norm", E("/docs/.*"), True),
    ("path", "exact", "norm", E("/docs/."), False),
    ("path", "exact", "norm", E("/docs/a.pdf|x"), True),
    ("path", "exact", "norm", E("x|/docs"), False),
    ("path", "prefix", "norm", E("x|/docs"), True),
    ("path", "prefix", "norm", E("docs"), False),
    ("path", "suffix", "norm", E("pd.|x"), True),
    ("path", "suffix", "norm", E("x|pd"), False),
    ("path", "inside", "norm", E("[A-D]OCS"), True),
    ("path", "inside", "lower", E("[A-D]ocs"), False),
    ("path", "inside", "none", E("[A-D]ocs"), True),
    ("path", "inside", "none", E("[A-D]OCS"), False),
    ("path", "inside", "norm", E("(?i)docs"), True),
    ("path", "inside", "none", E("(?i)dOCS"), True),
    ("path", "inside", "norm", E(r"\x2fdocs"), True),
    ("path", "inside", "norm", E("^/docs"), True),
    ("path", "inside", "norm", E("^docs"), False),
    ("path", "inside", "norm", E("/docs$"), False),
    ("query", "exact", "norm", "q=1&b=/x", True),
    ("query", "inside", "norm", "b=", True),
    ("query", "inside", "none", "q=1", False),
    ("query", "length", "norm", Range(8, 8), True),
    ("query", "length", "none", Range(9, None), False),
    ("query", "length", "norm", Range(0, 7), False),
    ("path", "length", "norm", Range(11, None), True),
    ("url", "length", "norm", Range(0, 47), True),
    ("url", "length", "norm", Range(0, 46), False),
    ("fragment", "exact", "norm", "", True),
    ("fragment", "inside", "norm", "a", False),
    ("fragment", "exact", "norm", E("a*"), True),
    ("fragment", "exact", "norm", E("a+"), False),
    ("fragment", "length", "norm", Range(0, 0), True),
]


def atom(field: str, kind: str, norm: str, value: str | Expression | Range) -> Atom:
    return Atom(Field(field), Kind(kind), value, Norm(norm))


@pytest.mark.parametrize("field,kind,norm,value,holds", COMPARISONS)
def test_one(field: str, kind: str, norm: str, value: str | Expression | Range, holds: bool) -> None:
    assert AtomMatcher({7: atom(field, kind, norm, value)}).matching(parse(URL)) == ({7} if holds else set())


@pytest.mark.parametrize("memory", [64 << 20, 3_000, 1])
def test_all_at_once(memory: int) -> None:
    """However little memory there is, down to none that a set would fit in."""
    matcher = AtomMatcher({place: atom(*row[:4]) for place, row in enumerate(COMPARISONS)}, set_memory=memory)
    expected = {place for place, row in enumerate(COMPARISONS) if row[4]}
    assert matcher.matching(parse(URL)) == expected
    assert matcher.matching(parse(URL)) == expected


def test_a_part_that_is_missing_is_empty() -> None:
    rows: list[tuple[str, str, str | Expression]] = [
        ("query", "exact", ""),
        ("query", "inside", ""),
        ("query", "inside", E("a*")),
        ("query", "inside", "a"),
        ("query", "exact", E("a")),
    ]
    matcher = AtomMatcher({place: atom(field, kind, "norm", value) for place, (field, kind, value) in enumerate(rows)})
    assert matcher.matching(parse("http://h/")) == {0, 1, 2}


def test_a_host_is_found_in_a_url_whatever_the_scheme_holds() -> None:
    matcher = AtomMatcher(
        {1: atom("url", "exact", "none", "http://HTTP/http"), 2: atom("url", "exact", "none", "http://http/http")}
    )
    assert matcher.matching(parse("http://HTTP/http")) == {1}


OF_TWO_LETTERS = [f"a[ab]{{{length}}}b{{1,3}}$" for length in range(3, 23)]
"""An automaton of these has a state for nearly every text."""


def texts(count: int, length: int) -> list[bytes]:
    chosen = random.Random(5)
    return ["".join(chosen.choice("ab") for _ in range(length)).encode() for _ in range(count)]


def one_by_one(text: bytes) -> list[int]:
    return [number for number, source in enumerate(OF_TWO_LETTERS) if re.search(source, text.decode())]


@pytest.mark.parametrize("more", [0, 1, 500, 10_000])
def test_a_set_whose_memory_is_full_all_the_time_answers_right(more: int) -> None:
    least = _least_memory()
    asked = ExpressionSet(list(enumerate(OF_TWO_LETTERS)), memory=least + more)
    assert asked.compiled
    for text in texts(20, 300):
        assert sorted(asked.matching(text)) == one_by_one(text)


def test_expressions_that_exceed_the_memory_are_matched_one_by_one() -> None:
    asked = ExpressionSet(list(enumerate(OF_TWO_LETTERS)), memory=_least_memory() // 2)
    assert not asked.compiled
    for text in texts(20, 60):
        assert list(asked.matching(text)) == one_by_one(text)


@pytest.mark.parametrize("answer", [None, [3]])
def test_a_set_that_lacks_memory_while_matching(answer: list[int] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reports nothing, and not even the expression that always matches."""
    asked = ExpressionSet(list(enumerate(OF_TWO_LETTERS)))
    monkeypatch.setattr(re2.Set, "Match", lambda self, text: answer)
    assert asked.compiled
    for text in texts(20, 60):
        assert list(asked.matching(text)) == one_by_one(text)


def _least_memory() -> int:
    """So many bytes are just enough for the set to be compiled."""
    low, high = 0, 1 << 24
    while high - low > 1:
        middle = (low + high) // 2
        if ExpressionSet(list(enumerate(OF_TWO_LETTERS)), memory=middle).compiled:
            high = middle
        else:
            low = middle
    return high


REQUIRED = [
    # expression, texts of which one stands in every text that it matches
    ("foo", [{"foo"}]),
    ("foo.*bar", [{"foo"}, {"bar"}]),
    (r"/docs/[^/]+\.pdf", [{"/docs/"}, {".pdf"}]),
    ("foo?bar", [{"fo"}, {"bar"}]),
    ("foo*?bar", [{"fo"}, {"bar"}]),
    ("fo+bar", [{"fo"}, {"bar"}]),
    ("foo{2}bar", [{"foo"}, {"bar"}]),
    ("foo{0,2}bar", [{"fo"}, {"bar"}]),
    ("foo{,2}bar", []),
    ("(foo|bar)x", [{"foo", "bar"}, {"x"}]),
    ("(?:foo|bar)?x", [{"x"}]),
    ("(?P<name>foo)+x", [{"foo"}, {"x"}]),
    ("(foo|b?)x", [{"x"}]),
    ("(ab(cd|e)*)+fg", [{"ab"}, {"fg"}]),
    ("foo|barx*", [{"foo", "bar"}]),
    ("foo|", []),
    ("|foo", []),
    (r"\d+foo\.", [{"foo."}]),
    ("[[:alpha:]x]foo", [{"foo"}]),
    ("[]a]foo[^]b]", [{"foo"}]),
    (r"[\]a]foo", [{"foo"}]),
    ("^foo$", [{"foo"}]),
    (r"\Afoo\z", [{"foo"}]),
    ("(?i)foo", []),
    ("(?i:foo)bar", []),
    (r"\x66oo", []),
    (r"\146oo", []),
    (r"\pLoo", []),
    (r"\Qfoo\E", []),
    (r"\n", []),
    ("früh", []),
    (".*", []),
    ("(a+)+$", [{"a"}]),
    ("(a", []),
    ("a)", []),
    ("a**", []),
    ("*a", []),
    ("", []),
]


@pytest.mark.parametrize("source,expected", REQUIRED)
def test_texts_that_an_expression_needs(source: str, expected: list[set[str]]) -> None:
    assert sorted(map(sorted, required_texts(source))) == sorted(map(sorted, expected))


@given(expressions, st.lists(st.text("abAB/.=cp:", max_size=8), min_size=1, max_size=8))
@example(Expression("(?:a|b)*abc"), ["abc", "aabc", "ab"])
@settings(max_examples=examples(500), deadline=None)
def test_where_an_expression_matches_its_required_texts_occur(expression: Expression, tried: list[str]) -> None:
    needed = required_texts(expression.source)
    for text in tried:
        if re.search(expression.source, text):
            assert all(any(one in text for one in choices) for choices in needed), text


def test_a_memory_is_bounded_by_weight() -> None:
    memory: RecentByWeight[int, str] = RecentByWeight(10, lambda _, value: len(value))
    for number in range(100):
        memory.put(number, "abcde")
    kept = [number for number in reversed(range(100)) if memory.get(number)]
    assert kept[0] == 99
    assert len(kept) <= 4


def test_what_is_used_is_kept() -> None:
    memory: RecentByWeight[int, str] = RecentByWeight(3, lambda _key, _value: 1)
    memory.put(-1, "kept")
    for number in range(50):
        memory.put(number, "")
        assert memory.get(-1) == "kept"
    assert memory.get(0) is None
