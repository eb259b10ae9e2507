"""Values of rules.xml that look meant otherwise than they are compared."""

from __future__ import annotations

import pytest

from crawlspace.lint.expressions import example, lint_expressions
from crawlspace.lint.rules_xml import lint_values
from crawlspace.rules.xml.model import RegexSyntax
from crawlspace.rules.xml.parser import parse_rules_xml

# condition, how what is said of it begins
SAID = [
    ('<Domain val="*.foo.com"/>', ["'*.foo.com' never matches: a * is a plain character here"]),
    ('<Domain val=".foo.com"/>', ["'.foo.com' never matches: no host begins with a dot; <Domain val='foo.com'/> means"]),
    ('<Host val=".foo.com"/>', ["'.foo.com' never matches: no host begins with a dot"]),
    ('<Domain val="foo.com"/>', []),
    ('<Atom field="host" kind="suffix" value=".foo.com"/>', []),
    ('<Atom field="host" kind="inside" value=".foo"/>', []),
    (
        '<Path val="/[0-9]{4}/"/>',
        [
            (
                r"'/[0-9]{4}/' is plain text, and matches only this very text; if an expression is meant, write '/\[0-9\]\{4\}/', or set "
                "CRAWLSPACE_RULES_XML_REGEX = \"standard\", with which it would match '/0000/'"
            )
        ],
    ),
    (
        '<Path val="/a.*"/>',
        ["'/a.*' is plain text, and matches only this very text; if an expression is meant, write '/a\\.\\*', or"],
    ),
    ('<Path val="/a$"/>', ["'/a$' is plain text"]),
    ('<InQuery val="^id=[a-z]+"/>', ["'^id=[a-z]+' is plain text"]),
    ('<Url val="https?://h/"/>', ["'https?://h/' never matches", "'https?://h/' is plain text"]),
    (
        '<Ext val="/(a|b)"/>',
        [r"'/(a|b)' is plain text, and matches only this very text; if an expression is meant, write '/\(a\|b\)', in"],
    ),
    (
        r'<Url literal="true" val="http://h/\.\+"/>',
        ["backslashes are plain text with literal"],
    ),
    ('<Path val="/a.*" literal="true"/>', []),
    (r'<Ext val="\.gif"/>', [r"'\.' is any one character, and not a dot: 'xgif' matches too"]),
    (r'<Domain val="a\.b.com"/>', [r"'\.' is any one character, and not a dot: 'axb\.com' matches too"]),
    ('<Ext val=".gif"/>', []),
    (r'<Path val="/foo\.\*bar"/>', []),
    (r'<Path val="/x\[0-9\]\{4\}"/>', []),
    ('<Host val="[2001:db8::1]"/>', []),
    ('<InQuery val="a[]=1"/>', []),
    ('<Path val="/Foo_(bar)"/>', []),
]


# the same with CRAWLSPACE_RULES_XML_REGEX = "standard"
STANDARD = [
    (
        r'<InQuery val="foo\.\*bar"/>',
        [
            (
                r"'foo\.\*bar' has plain characters behind its backslashes; with CRAWLSPACE_RULES_XML_REGEX = "
                "\"escaped\" it would match 'fooxbar'; if an expression is meant, write 'foo.*bar'"
            )
        ],
    ),
    (r'<Path val="/x\[0-9\]\{4\}"/>', [r"'/x\[0-9\]\{4\}' has plain characters"]),
    (r'<Path val="/a.b\(c\|d\)"/>', [r"'/a.b\(c\|d\)' has plain characters"]),
    (
        '<Atom field="url" kind="prefix" value="http://foo.com/list?page=2"/>',
        [
            (
                "'?' is a repetition, and no question mark: 'http://foo.com/list?page=2' matches 'http://fooxcom/listpage=2'; write "
                r"'http://foo.com/list\?page=2'"
            )
        ],
    ),
    ('<Url val="http://www.foo.com/a.html"/>', []),
    (r'<Path val="/a\.html"/>', []),
    (r'<Path val="/Foo_\(bar\)"/>', []),
    (r'<Path val="/c\+\+/"/>', []),
    (r'<Url val="http://foo\.com/a\?b=c"/>', []),
    ('<Path val="/[0-9]{4}/.*"/>', []),
    ('<InQuery val="(^|&amp;)id=[a-z]+"/>', []),
    (r'<Ext val="\.gif"/>', [r"'\.' is any one character, and not a dot: 'xgif' matches too"]),
    ('<Path literal="true" val="/list?page=2"/>', ["'/list?page=2' never matches: the query is no part of the path"]),
]


@pytest.mark.parametrize(
    ("syntax", "condition", "reported"),
    [*((RegexSyntax.ESCAPED, *row) for row in SAID), *((RegexSyntax.STANDARD, *row) for row in STANDARD)],
)
def test_values_that_look_meant_otherwise(syntax: RegexSyntax, condition: str, reported: list[str]) -> None:
    text = f"<Rules><Rule>{condition}<NoIndex/></Rule></Rules>"
    rules = parse_rules_xml(text.encode(), file="rules.xml", syntax=syntax)
    found = [finding.message for finding in (*lint_values(rules), *lint_expressions(rules))]
    assert len(found) == len(reported), found
    assert all(message.startswith(begin) for message, begin in zip(found, reported, strict=True)), found


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("/a.*", "/ax"),
        (r"/\d{4}/[^/]+\.pdf", "/1111/x.pdf"),
        ("(?:a|b)(c|d)?", "ac"),
        ("^[a-z]+$", "a"),
        (r"(?i)x\pL", ""),
        ("a{500}", ""),
        (r"[[:digit:]]\b", "1"),
        ("", ""),
    ],
)
def test_a_text_that_an_expression_matches(expression: str, text: str) -> None:
    assert example(expression) == text
