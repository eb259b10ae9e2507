"""Comparisons of a rules.xml: by field, kind and norm, also where RE2 has little memory, and values as regular expressions."""

from __future__ import annotations

import random
import re

import pytest
import re2
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crawlspace.cache import RecentByWeight
from crawlspace.rules.xml.comparisons import AtomMatcher, ExpressionSet, required_texts
from crawlspace.rules.xml.matcher import CompiledActions
from crawlspace.rules.xml.model import Atom, Expression, Field, Kind, Norm, Range, RegexSyntax
from crawlspace.urls import parse
from tests.quick import examples
from tests.unit.rules.xml.parsed import mistakes, read, shown
from tests.unit.rules.xml.test_matcher import expressions
from tests.unit.test_docs import plain, rows

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


# --- values as usual regular expressions ----------------------------------------------------------------------------


STANDARD, ESCAPED = RegexSyntax.STANDARD, RegexSyntax.ESCAPED


def rule_of(condition: str) -> str:
    return f"<Rules><Rule>{condition}<NoIndex/></Rule></Rules>"


def matches(condition: str, url: str, syntax: RegexSyntax = STANDARD) -> bool:
    actions = CompiledActions(read(rule_of(condition), syntax), accept=True, index=True, follow=True)
    return not actions.evaluate(parse(url)).index


@pytest.mark.parametrize("condition,escaped,standard", rows("docs/rules_xml.md", "Usual expressions"))
def test_the_documented_examples_mean_this(condition: str, escaped: str, standard: str) -> None:
    found = [shown(read(rule_of(plain(condition)), syntax).rules[0].condition) for syntax in (ESCAPED, STANDARD)]
    assert found == [plain(escaped), plain(standard)]


MEANINGS = [
    # anchors and what matches anything, at the ends of plain text
    ('<Path val="^/a"/>', "path prefix /a"),
    ('<InQuery val="^id=1$"/>', "query exact id=1"),
    ('<Atom field="path" kind="suffix" value="^/a"/>', "path exact /a"),
    ('<Atom field="path" kind="exact" value="/a.*"/>', "path prefix /a"),
    ('<Atom field="path" kind="exact" value=".*/a"/>', "path suffix /a"),
    ('<Atom field="path" kind="exact" value=".*/a.*"/>', "path inside /a"),
    ('<Atom field="path" kind="suffix" value="/a.*"/>', "path inside /a"),
    ('<Path val=".*"/>', "path prefix /.*/"),
    # plain text
    (r'<Url val="http://foo\.com/a\?b=c\+d"/>', "url exact http://foo.com/a?b=c+d"),
    ('<Path val="/a{b"/>', "path prefix /a%7Bb"),
    ('<Query val=""/>', "query exact ''"),
    # the spelling of URLs
    ('<Path val="/über uns/"/>', "path prefix /%C3%BCber%20uns/"),
    ('<Path val="/ü+/x|/y"/>', "path prefix //(?:%C3%BC)+/x|/y/"),
    ('<Path val="/[a-zä]+ü"/>', "path prefix //[a-zä]+%C3%BC/"),
    (r'<Path val="/\d{4}/{x}"/>', r"path prefix //\d{4}/%7Bx%7D/"),
    (r'<Atom field="url" kind="prefix" value="http://bücher\.example/a*"/>', r"url prefix /http://xn--bcher-kva\.example/a*/"),
    # groups, classes and escapes stay as they are
    (r'<Path val="/(?:a|b)(?P&lt;x>c)(d)?[^/]*?\.x"/>', r"path prefix //(?:a|b)(?P<x>c)(d)?[^/]*?\.x/"),
    (r'<Path val="/(?i)A\pL\x41\x{41}\Qa.b\E[[:alpha:]\]]"/>', r"path prefix //(?i)A\pL\x41\x{41}\Qa.b\E[[:alpha:]\]]/"),
    # where the setting does not hold
    (r'<Ext val="\.gif"/>', "path suffix /.gif/"),
    ('<Ext val="a.*b"/>', "path suffix a.*b"),
    (r'<Domain val="a\.b"/>', r"Or(host suffix /\.(?:a.b)/, host exact /a.b/)"),
    ('<Path literal="true" val="/a.*b"/>', "path prefix /a.*b"),
]  # fmt: skip


@pytest.mark.parametrize("condition,meaning", MEANINGS, ids=str)
def test_a_value_means(condition: str, meaning: str) -> None:
    assert shown(read(rule_of(condition), STANDARD).rules[0].condition) == meaning


MATCHES = [
    ('<Path val="/a.*b"/>', "http://h/axxb/c", True),
    ('<Path val="/a.*b"/>', "http://h/x/a.b", False),
    ('<Atom field="path" kind="suffix" value="/[a-z]+"/>', "http://h/1/abc", True),
    ('<Atom field="path" kind="suffix" value="/[a-z]+"/>', "http://h/abc/1", False),
    ('<Url val="http://foo.com/(a|b)"/>', "http://foo.com/b", True),
    ('<Url val="http://foo.com/(a|b)"/>', "http://foo.com/bc", False),
    ('<Url val="http://foo.com/a|http://foo.com/b"/>', "http://foo.com/ac", False),
    (r'<InQuery val="(^|&amp;)id=\d+"/>', "http://h/?a=b&id=12", True),
    (r'<InQuery val="(^|&amp;)id=\d+"/>', "http://h/?aid=12", False),
    ('<Path val="/WATCH"/>', "http://h/watch", True),
    ('<Path norm="none" val="/WA.CH"/>', "http://h/watch", False),
    ('<Path val="/ü+/"/>', "http://h/%C3%BC%c3%bc/", True),
    (r'<Path val="/list?page=2"/>', "http://h/list?page=2", False),
    ('<Path val=".*"/>', "http://h/", True),
]  # fmt: skip


@pytest.mark.parametrize("condition,url,expected", MATCHES, ids=str)
def test_a_value_matches_as_its_kind_says(condition: str, url: str, expected: bool) -> None:
    assert matches(condition, url) == expected


WRONG = [
    (r'<Path val="/[a-z"/>', "RE2 cannot use this expression: missing ]: [a-z (character 2 of val)"),
    (r'<Path val="/a/(b"/>', "missing ): /a/(b"),
    (r'<Path val="/a**"/>', "bad repetition operator: ** (character 3 of val)"),
    (r'<Path val="(?!/a)b"/>', "invalid perl operator: (?!; it does not look ahead or behind, because that can hold a crawl up"),
    (r'<InQuery val="(a)\1"/>', r"invalid escape sequence: \1; it does not refer back"),
    (r'<Path val="a)(b"/>', "unexpected ): a)(b"),
    (r'<Path val="/((a{500}){500}){500}"/>', "invalid repetition size: {500}"),
    (r'<Path val="/(([ab]{900}c){900})"/>', "invalid repetition size"),
    ('<Atom field="host" value="bü(c|x)her"/>', "is not a whole part of a host name; write its xn-- form"),
    ('<Path val=""/>', "the value is empty, so this holds for every URL"),
    (f'<Path val="/{"a" * 10_000}"/>', "the value has 10,001 characters"),
]


@pytest.mark.parametrize("condition,sentence", WRONG, ids=[row[0][:40] for row in WRONG])
def test_what_cannot_be_read(condition: str, sentence: str) -> None:
    [mistake] = mistakes(f"<Rules>\n <Rule>{condition}<NoIndex/></Rule></Rules>", STANDARD)
    assert sentence in mistake.message
    assert (mistake.file, mistake.line, mistake.column) == ("rules.xml", 2, 8)


def test_the_other_reading_is_named_where_an_escape_is_not_known() -> None:
    hint = '; with CRAWLSPACE_RULES_XML_REGEX = "standard", values are usual expressions'
    assert [
        mistakes(rule_of(condition))[0].message.endswith(hint) for condition in (r'<Path val="\d"/>', r'<Ext val="\d"/>')
    ] == [
        True,
        False,
    ]


def hash_of(condition: str, syntax: RegexSyntax) -> str:
    return CompiledActions(read(rule_of(condition), syntax), accept=True, index=True, follow=True).content_hash


def test_the_reading_is_part_of_the_content_hash_where_it_changes_a_meaning() -> None:
    for condition, differs in [('<Path val="/a.*b"/>', True), ('<Path val="/a.b"/>', True), ('<Path val="/a"/>', False)]:
        assert (hash_of(condition, ESCAPED) != hash_of(condition, STANDARD)) is differs


def test_expressions_are_plain_text_where_they_can_be() -> None:
    """Plain text is found in one step for all rules; an expression costs time of its own."""
    plain_text = [r"/a\.html", "^/a$", "/a.*", ".*/a", "/a"]
    found = [shown(read(rule_of(f'<Path val="{value}"/>'), STANDARD).rules[0].condition) for value in plain_text]
    assert not [text for text in found if re.search("//", text)]
