"""Values of rules.xml that look meant otherwise than they are compared."""

from __future__ import annotations

import pytest

from crawlspace.rules.lint.expressions import lint_expressions
from crawlspace.rules.lint.values import lint_values
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
        [r"'/[0-9]{4}/' is plain text, and matches only this very text; if an expression is meant, write '/\[0-9\]\{4\}/'"],
    ),
    ('<Path val="/a.*"/>', ["'/a.*' is plain text"]),
    ('<Path val="/a$"/>', ["'/a$' is plain text"]),
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


@pytest.mark.parametrize(("condition", "reported"), SAID)
def test_values_that_look_meant_otherwise(condition: str, reported: list[str]) -> None:
    rules = parse_rules_xml(f"<Rules><Rule>{condition}<NoIndex/></Rule></Rules>".encode(), file="rules.xml")
    found = [finding.message for finding in (*lint_values(rules), *lint_expressions(rules))]
    assert len(found) == len(reported), found
    assert all(message.startswith(begin) for message, begin in zip(found, reported, strict=True)), found
