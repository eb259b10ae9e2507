"""What lint says of action rules that load, and of what they did to the known URLs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from crawlspace.decision import RuleRef
from crawlspace.lint.rules_xml import Usage, lint_action_rules
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
)
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
