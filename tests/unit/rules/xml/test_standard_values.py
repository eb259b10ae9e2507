"""Values of a rules.xml as usual regular expressions, and the table of docs/rules_xml.md about both readings."""

from __future__ import annotations

import re

import pytest

from crawlspace.rules.xml.matcher import CompiledActions
from crawlspace.rules.xml.model import RegexSyntax
from crawlspace.urls import parse
from tests.unit.rules.xml.parsed import mistakes, read, shown
from tests.unit.test_docs import plain, rows

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
