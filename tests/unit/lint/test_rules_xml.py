"""What lint finds in action rules that load, in their values, and in their effects on the known URLs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from crawlspace.decision import RuleRef
from crawlspace.lint.expressions import example, lint_expressions
from crawlspace.lint.rules_xml import Usage, lint_action_rules, lint_values
from crawlspace.rules.xml.matcher import CompiledActions
from crawlspace.rules.xml.model import (
    Action,
    ActionKind,
    ActionRule,
    ActionRuleSet,
    And,
    Atom,
    Condition,
    Expression,
    Field,
    Kind,
    Norm,
    Not,
    Or,
    Range,
    RegexSyntax,
)
from crawlspace.rules.xml.parser import parse_rules_xml
from crawlspace.urls import parse
from tests.unit.rules.xml.test_matcher import (
    ACCEPT,
    EVERYTHING,
    FOLLOW,
    IGNORE,
    INDEX,
    NO_FOLLOW,
    NO_INDEX,
    host,
    meta,
    path,
    rule_set,
    source,
)

A, B = host("a"), host("b")
Rules = list[tuple[Condition, Sequence[Action]]]


def lower(value: str | Expression) -> Atom:
    return Atom(Field.PATH, Kind.INSIDE, value, Norm.LOWER)


def fragment(value: str | Expression | Range) -> Atom:
    return Atom(Field.FRAGMENT, Kind.LENGTH if isinstance(value, Range) else Kind.EXACT, value)


FINDINGS: list[tuple[Rules, list[tuple[int, str]]]] = [
    # rules; line and code of each finding
    ([], []),
    ([(A, [IGNORE]), (B, [IGNORE])], []),
    ([(A, [IGNORE]), (A, [IGNORE])], [(1, "xml-rule-repeated")]),
    ([(A, [IGNORE]), (host("A"), [IGNORE])], [(1, "xml-rule-repeated")]),
    ([(A, [IGNORE]), (Not(A), [IGNORE]), (A, [IGNORE])], [(1, "xml-rule-repeated")]),
    ([(A, [IGNORE, NO_INDEX]), (A, [NO_INDEX, IGNORE])], [(1, "xml-rule-repeated")]),
    ([(And((A, B)), [IGNORE]), (And((B, A)), [IGNORE])], [(1, "xml-rule-repeated")]),
    ([(A, [IGNORE]), (A, [ACCEPT])], [(1, "xml-rule-overridden")]),
    ([(A, [IGNORE]), (A, [NO_INDEX])], []),
    ([(A, [IGNORE, NO_INDEX]), (A, [ACCEPT])], []),
    ([(A, [IGNORE, NO_INDEX]), (A, [ACCEPT]), (A, [INDEX])], [(1, "xml-rule-overridden")]),
    ([(A, [meta("x", "1")]), (A, [meta("x", "2")])], [(1, "xml-rule-overridden")]),
    ([(A, [meta("x", "1")]), (A, [meta("y", "1")])], []),
    ([(A, [source("x")]), (Or((A, B)), [source("y")])], [(1, "xml-rule-overridden")]),
    ([(Or((A, B)), [source("x")]), (A, [source("y")])], []),
    ([(And((A, path("/x"))), [NO_INDEX]), (A, [INDEX])], [(1, "xml-rule-overridden")]),
    ([(A, [INDEX]), (And((A, path("/x"))), [NO_INDEX])], []),
    ([(lower("/Docs"), [IGNORE])], [(1, "xml-capitals")]),
    ([(lower("/docs"), [IGNORE])], []),
    ([(lower(Expression("/Docs/.*")), [IGNORE])], [(1, "xml-capitals")]),
    ([(lower(Expression(r"/docs/[^A]\W*")), [IGNORE])], []),
    ([(lower(Expression("(Docs|files)")), [IGNORE])], []),
    ([(Not(Or((B, lower("X")))), [IGNORE])], [(1, "xml-capitals")]),
    ([(Atom(Field.PATH, Kind.INSIDE, "X", Norm.NORM), [IGNORE])], []),
    ([(fragment("top"), [IGNORE])], [(1, "xml-fragment")]),
    ([(fragment(""), [FOLLOW])], []),
    ([(fragment(Expression("t+")), [IGNORE])], [(1, "xml-fragment")]),
    ([(fragment(Expression("t*")), [FOLLOW])], []),
    ([(fragment(Range(1, None)), [IGNORE])], [(1, "xml-fragment")]),
    ([(fragment(Range(0, 3)), [IGNORE])], []),
    ([(EVERYTHING, [IGNORE])], [(1, "xml-nothing-accepted")]),
    ([(EVERYTHING, [IGNORE]), (A, [ACCEPT])], []),
    ([(A, [ACCEPT]), (EVERYTHING, [IGNORE]), (B, [NO_INDEX])], [(2, "xml-nothing-accepted")]),
    ([(path(""), [IGNORE])], [(1, "xml-nothing-accepted")]),
    ([(path(Expression(".*")), [IGNORE])], [(1, "xml-nothing-accepted")]),
    ([(Not(Or(())), [IGNORE])], [(1, "xml-nothing-accepted")]),
    ([(Or((A, Not(fragment("x")))), [IGNORE])], [(1, "xml-fragment"), (1, "xml-nothing-accepted")]),
    ([(EVERYTHING, [IGNORE]), (fragment("x"), [ACCEPT])], [(1, "xml-nothing-accepted"), (2, "xml-fragment")]),
    ([(EVERYTHING, [IGNORE, ACCEPT])], []),
    ([(path("/"), [IGNORE])], []),
]


@pytest.mark.parametrize("rules,expected", FINDINGS)
def test_rules_alone(rules: Rules, expected: list[tuple[int, str]]) -> None:
    assert [(one.line, one.code) for one in lint_action_rules(rule_set(*rules))] == expected


@pytest.mark.parametrize(
    "rules,line", [([], 0), ([(A, [NO_INDEX])], 1), ([(A, [IGNORE]), (B, [FOLLOW])], 2), ([(fragment("x"), [ACCEPT])], 1)]
)
def test_nothing_is_accepted_without_a_rule_that_accepts(rules: Rules, line: int) -> None:
    found = [one for one in lint_action_rules(rule_set(*rules), accept=False) if one.code == "xml-nothing-accepted"]
    assert [(one.line, one.level) for one in found] == [(line, "error")]
    assert lint_action_rules(rule_set(*rules, (B, [ACCEPT])), accept=False) == [
        one for one in lint_action_rules(rule_set(*rules), accept=False) if one not in found
    ]


MESSAGES: list[tuple[Rules, str]] = [
    (
        [(A, [IGNORE]), (A, [IGNORE])],
        "rules.xml:1:1: warning: 'rule 1' is repeated in line 2; this one changes nothing and can go [xml-rule-repeated]",
    ),
    (
        [(A, [IGNORE]), (Or((A, B)), [ACCEPT])],
        (
            "rules.xml:1:1: warning: 'rule 1' has no effect, because wherever it matches the later rule in line 2 overrides what it sets "
            "[xml-rule-overridden]"
        ),
    ),
    (
        [(A, [INDEX, FOLLOW, IGNORE]), (A, [NO_INDEX]), (A, [NO_FOLLOW]), (A, [ACCEPT])],
        (
            "rules.xml:1:1: warning: 'rule 1' has no effect, because wherever it matches the later rules in lines 2, 3 and 4 override what "
            "it sets [xml-rule-overridden]"
        ),
    ),
    (
        [(lower("/Docs"), [IGNORE])],
        (
            "rules.xml:1:1: warning: '/Docs' has capitals and is compared with lower-case text, so that it never matches, in 'rule 1' "
            "[xml-capitals]"
        ),
    ),
]


@pytest.mark.parametrize("rules,message", MESSAGES)
def test_messages(rules: Rules, message: str) -> None:
    assert str(lint_action_rules(rule_set(*rules))[0]) == message


USED: list[tuple[Rules, list[str], list[tuple[int, str, str]]]] = [
    # rules, hosts and paths of the known URLs, findings: line, code, a part of the message
    ([(A, [NO_INDEX])], [], []),
    ([(A, [NO_INDEX])], ["a/"], []),
    ([(A, [NO_INDEX])], ["b/"], [(1, "xml-rule-unused", "'rule 1'")]),
    ([(A, [NO_INDEX]), (B, [NO_INDEX])], ["b/", "b/x"], [(1, "xml-rule-unused", "'rule 1'")]),
    ([(A, [IGNORE])], ["b/"], []),  # what it keeps out does not become known
    ([(A, [IGNORE, NO_INDEX])], ["b/"], []),
    ([(A, [IGNORE]), (path("/x"), [ACCEPT])], ["a/x"], []),  # nor does anything that it keeps out beside this
    ([(A, [NO_INDEX]), (path("/x"), [INDEX])], ["a/x", "a/xy"], [(1, "xml-action-overridden", "by 'rule 2' in line 2")]),
    ([(A, [NO_INDEX]), (path("/x"), [INDEX])], ["a/x", "a/y"], []),
    ([(A, [NO_INDEX]), (path("/x"), [INDEX])], ["a/y", "a/x"], []),
    ([(A, [NO_INDEX, IGNORE]), (path("/x"), [INDEX])], ["a/x"], [(1, "xml-action-overridden", "'index off'")]),
    (
        [(A, [NO_INDEX]), (path("/x"), [INDEX]), (path("/y"), [INDEX])],
        ["a/x", "a/y"],
        [(1, "xml-action-overridden", "by a later rule")],
    ),
    (
        [(A, [NO_INDEX]), (A, [INDEX]), (A, [NO_INDEX])],
        ["a/"],
        [(1, "xml-action-overridden", "by 'rule 3' in line 3"), (2, "xml-action-overridden", "by 'rule 3' in line 3")],
    ),
    ([(A, [NO_INDEX, INDEX])], ["a/"], [(1, "xml-action-overridden", "by the same rule")]),
    ([(A, [meta("x", "1"), meta("y", "1")]), (A, [meta("x", "2")])], ["a/"], [(1, "xml-action-overridden", "'x = 1'")]),
    ([(A, [INDEX]), (Not(B), [INDEX])], ["a/"], [(1, "xml-action-overridden", "'index on'")]),
]


@pytest.mark.parametrize("rules,known,expected", USED)
def test_known_urls(rules: Rules, known: list[str], expected: list[tuple[int, str, str]]) -> None:
    compiled = CompiledActions(rule_set(*rules), accept=True, index=True, follow=True)
    usage = Usage(compiled.rules)
    for url in known:
        usage.see(compiled.evaluate(parse(f"http://{url}")))
    found = list(usage.findings())
    assert [(one.line, one.code) for one in found] == [(line, code) for line, code, _ in expected]
    for one, (_, _, part) in zip(found, expected, strict=True):
        assert part in one.message


def test_an_action_is_shown_at_its_place() -> None:
    ref = RuleRef("rules.xml", 3, "rule")
    rules = ActionRuleSet(
        (
            ActionRule(ref, A, (FOLLOW, Action(ActionKind.NO_INDEX, line=5, column=9))),
            ActionRule(RuleRef("rules.xml", 7, "last"), A, (INDEX,)),
        )
    )
    usage = Usage(rules)
    usage.see(CompiledActions(rules, accept=True, index=True, follow=True).evaluate(parse("http://a/")))
    assert list(map(str, usage.findings())) == [
        (
            "rules.xml:5:9: warning: 'index off' of 'rule' is overridden on every known URL it matches, by 'last' in line 7 "
            "[xml-action-overridden]"
        )
    ]


def test_equal_rules_in_one_line_are_distinguished_by_their_order() -> None:
    ref = RuleRef("rules.xml", 1, "Host a: NoIndex")
    rules = ActionRuleSet((ActionRule(ref, A, (NO_INDEX,)), ActionRule(ref, A, (NO_INDEX,))))
    usage = Usage(rules)
    usage.see(CompiledActions(rules, accept=True, index=True, follow=True).evaluate(parse("http://a/")))
    assert [one.code for one in usage.findings()] == ["xml-action-overridden"]


# --- values that look as if they were meant otherwise than they are compared ----------------------------------------


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
