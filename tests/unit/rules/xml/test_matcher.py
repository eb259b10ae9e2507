"""What the rules of a rules.xml say of URLs; and that the compiled ones agree with a plain reading of them, one rule after the other."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from crawlspace.decision import Applied, Reason, Render, RuleRef
from crawlspace.rules.crawl_rules import CrawlRules
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import CrawlSpace
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
from crawlspace.urls import Url, parse
from tests.quick import examples

ACCEPT, IGNORE = Action(ActionKind.ACCEPT), Action(ActionKind.IGNORE)
INDEX, NO_INDEX = Action(ActionKind.INDEX), Action(ActionKind.NO_INDEX)
FOLLOW, NO_FOLLOW = Action(ActionKind.FOLLOW), Action(ActionKind.NO_FOLLOW)


def source(name: str) -> Action:
    return Action(ActionKind.SOURCE, name)


def meta(name: str, value: str) -> Action:
    return Action(ActionKind.ADD_META, name, value)


def priority(shift: int) -> Action:
    return Action(ActionKind.PRIORITY, shift=shift)


def render(mode: Render) -> Action:
    return Action(ActionKind.RENDER, mode=mode)


def host(value: str) -> Atom:
    return Atom(Field.HOST, Kind.EXACT, value)


def domain(value: str) -> Or:
    return Or((Atom(Field.HOST, Kind.SUFFIX, f".{value}"), host(value)))


def path(value: str | Expression) -> Atom:
    return Atom(Field.PATH, Kind.PREFIX, value)


def rule_set(*rules: tuple[Condition, Sequence[Action]], first_line: int = 1) -> ActionRuleSet:
    """The rules stand in lines 1, 2, 3 …"""
    return ActionRuleSet(
        tuple(
            ActionRule(RuleRef("rules.xml", line, f"rule {line}"), condition, tuple(actions))
            for line, (condition, actions) in enumerate(rules, first_line)
        )
    )


def compiled(
    *rules: tuple[Condition, Sequence[Action]], accept: bool = True, index: bool = True, follow: bool = True
) -> CompiledActions:
    return CompiledActions(rule_set(*rules), accept=accept, index=index, follow=follow)


EVERYTHING = And(())

OVERRIDING = [
    # rules, accept, index, follow, shift, line of the deciding rule, label, fields
    ([], True, True, True, 0, 0, "", ()),
    ([(host("a"), [IGNORE])], True, True, True, 0, 0, "", ()),
    ([(host("h"), [IGNORE])], False, True, True, 0, 1, "", ()),
    ([(host("h"), [NO_INDEX, NO_FOLLOW, IGNORE])], False, False, False, 0, 1, "", ()),
    ([(host("h"), [NO_INDEX])], True, False, True, 0, 0, "", ()),
    ([(host("h"), [NO_FOLLOW])], True, True, False, 0, 0, "", ()),
    ([(host("h"), [IGNORE]), (host("h"), [ACCEPT])], True, True, True, 0, 2, "", ()),
    ([(host("h"), [ACCEPT]), (host("h"), [IGNORE]), (host("a"), [ACCEPT])], False, True, True, 0, 2, "", ()),
    ([(host("h"), [IGNORE, ACCEPT])], True, True, True, 0, 1, "", ()),
    ([(host("h"), [NO_INDEX, NO_FOLLOW]), (path("/d"), [INDEX])], True, True, False, 0, 0, "", ()),
    ([(host("h"), [priority(-2)]), (path("/d"), [priority(1)])], True, True, True, 1, 0, "", ()),
    ([(host("h"), [source("a")]), (path("/d"), [source("b")]), (path("/x"), [source("c")])], True, True, True, 0, 0, "b", ()),
    (
        [(host("h"), [meta("z", "1"), meta("b", "2")]), (path("/d"), [meta("z", "3"), meta("a", "")])],
        *(True, True, True, 0, 0, ""),
        (("a", ""), ("b", "2"), ("z", "3")),
    ),
    ([(EVERYTHING, [IGNORE]), (domain("h"), [ACCEPT])], True, True, True, 0, 2, "", ()),
    ([(Not(host("h")), [IGNORE]), (Not(host("a")), [NO_INDEX])], True, False, True, 0, 0, "", ()),
]


@pytest.mark.parametrize("rules,accept,index,follow,shift,line,label,fields", OVERRIDING)
def test_a_later_rule_overrides(
    rules: list[tuple[Condition, list[Action]]],
    accept: bool,
    index: bool,
    follow: bool,
    shift: int,
    line: int,
    label: str,
    fields: tuple[tuple[str, str], ...],
) -> None:
    reported = compiled(*rules).evaluate(parse("http://h/d/x"))
    assert (reported.accept, reported.index, reported.follow, reported.shift, reported.label, reported.fields) == (
        accept,
        index,
        follow,
        shift,
        label,
        fields,
    )
    assert (reported.rule.line if reported.rule else 0) == line


@pytest.mark.parametrize("accept", [True, False])
@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("follow", [True, False])
def test_what_holds_before_the_first_rule(accept: bool, index: bool, follow: bool) -> None:
    reported = compiled((host("h"), [priority(1)]), accept=accept, index=index, follow=follow).evaluate(parse("http://h/"))
    assert (reported.accept, reported.index, reported.follow, reported.rule) == (accept, index, follow, None)


def test_each_rule_that_matched_lists_what_it_changed() -> None:
    rules = compiled(
        (host("h"), [NO_INDEX, FOLLOW, priority(-2), source("news"), meta("dept", "sales")]),
        (host("other"), [IGNORE]),
        (path("/d"), [INDEX, priority(-2), meta("dept", "sales"), source("shop"), meta("empty", "")]),
        (path("/d"), [IGNORE, ACCEPT, NO_FOLLOW, priority(0)]),
    )
    first, third, fourth = (rules.rules.rules[place].ref for place in (0, 2, 3))
    assert rules.evaluate(parse("http://h/d")).applied == (
        Applied(first, ("index off", "priority -2", "source news", "dept = sales"), ("follow on",)),
        Applied(third, ("index on", "source shop", "empty = "), ("priority -2", "dept = sales")),
        Applied(fourth, ("accept off", "accept on", "follow off", "priority 0")),
    )


DEFAULTS = {"accept": True, "index": True, "follow": True}
ONE = [(host("h"), [IGNORE]), (path("/d"), [ACCEPT])]
SAME_HASH = [
    (ONE, ONE, True),
    (ONE, [ONE[1], ONE[0]], False),
    (ONE, ONE[:1], False),
    (ONE, [(host("H"), [IGNORE]), ONE[1]], True),
    (
        [(Atom(Field.PATH, Kind.EXACT, "/A", Norm.NONE), [IGNORE])],
        [(Atom(Field.PATH, Kind.EXACT, "/a", Norm.NONE), [IGNORE])],
        False,
    ),
    ([(path("/a"), [IGNORE])], [(path(Expression("/a")), [IGNORE])], False),
    ([(And((host("h"), path("/d"))), [IGNORE])], [(And((path("/d"), And((host("h"),)))), [IGNORE])], True),
    ([(And((host("h"), path("/d"))), [IGNORE])], [(Or((path("/d"), host("h"))), [IGNORE])], False),
    ([(Not(Not(host("h"))), [IGNORE])], [(host("h"), [IGNORE])], True),
    ([(host("h"), [INDEX, NO_INDEX])], [(host("h"), [NO_INDEX])], True),
    ([(host("h"), [NO_INDEX, NO_FOLLOW])], [(host("h"), [NO_FOLLOW, NO_INDEX])], True),
    ([(host("h"), [meta("a", "b")])], [(host("h"), [meta("a", "c")])], False),
    ([(host("h"), [meta("a", "b")])], [(host("h"), [source("a")])], False),
    ([(host("h"), [priority(1)])], [(host("h"), [priority(2)])], False),
    ([(host("h"), [render(Render.AUTO)])], [(host("h"), [render(Render.ALWAYS)])], False),
    ([(host("h"), [])], [], True),
]


@pytest.mark.parametrize("one,other,same", SAME_HASH)
def test_the_hash_differs_where_answers_could(
    one: list[tuple[Condition, list[Action]]], other: list[tuple[Condition, list[Action]]], same: bool
) -> None:
    assert (compiled(*one).content_hash == compiled(*other).content_hash) is same


def test_places_and_groups_are_not_in_the_hash_and_defaults_are() -> None:
    moved = rule_set(*ONE, first_line=40)
    grouped = ActionRuleSet(tuple(ActionRule(rule.ref, rule.condition, rule.actions, "group", "key") for rule in moved.rules))
    plain = compiled(*ONE).content_hash
    assert CompiledActions(grouped, **DEFAULTS).content_hash == plain
    assert len({plain, *(CompiledActions(moved, **{**DEFAULTS, off: False}).content_hash for off in DEFAULTS)}) == 4


def test_urls_that_match_the_same_share_an_answer() -> None:
    rules = compiled((And((domain("h"), Not(path("/x")))), [NO_INDEX]), (path("/y"), [IGNORE]))
    first, second, third = (rules.evaluate(parse(f"http://{url}")) for url in ("a.h/d/1", "b.h/d/2", "h/x"))
    assert first is second
    assert first is not third


def test_conditions_of_any_depth() -> None:
    odd: Condition = host("h")
    even: Condition = host("h")
    for depth in range(5_001):
        odd = Not(odd)
        even = And((even, path("/d"))) if depth % 2 else Or((even, path("/x")))
    rules = compiled((odd, [NO_INDEX]), (even, [NO_FOLLOW]))
    reported = [rules.evaluate(parse(url)) for url in ("http://h/d", "http://other/d")]
    assert [(one.index, one.follow) for one in reported] == [(True, False), (False, True)]


def test_a_crawl_space_refuses_what_the_rules_ignore() -> None:
    space = CrawlSpace(CrawlRules(), Limits(), [], actions=compiled((path("/x"), [IGNORE]), (path("/y"), [ACCEPT, NO_INDEX])))
    refused, admitted = (space.decide_url(parse(url)) for url in ("http://h/x", "http://h/y"))
    assert (refused.reason, refused.rule and refused.rule.line) == (Reason.ACTIONS, 1)
    assert (admitted.reason, admitted.index, admitted.rule and admitted.rule.line) == (Reason.ADMITTED, False, 2)


# Anything of few letters, so that much matches; dots and slashes in the places where URLs have them.
PIECES = [
    "a",
    "b",
    "aa",
    "ab",
    "A",
    "B",
    "/",
    ".",
    "=",
    "/a",
    "a/b",
    "aB",
    "abc",
    "/ab",
    "http",
    "https",
    "://a",
    "a.b",
    "b.a",
    "bab",
]
plain = st.lists(st.sampled_from([*PIECES, ""]), max_size=3).map("".join)
simple = st.sampled_from([*map(re.escape, PIECES), ".", "[a-b]", "[^a]", r"\w", r"\d", "[A-C/]", "b?", "a{2}"])


def _repeats_nothing(part: str) -> bool:
    """Whether there is no endless repetition in it: one within another takes the plain reading minutes for a URL of thirty characters."""
    return "*" not in part and "+" not in part


grouped = st.recursive(
    simple,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"({'|'.join(parts)})"),
        inner.filter(_repeats_nothing).map(lambda part: f"(?:{part})*"),
        inner.filter(_repeats_nothing).map(lambda part: f"(?:{part})+?"),
        inner.map(lambda part: f"(?P<n>{part})?" if "(?P" not in part else part),
        inner.map(lambda part: f"(?:{part}){{1,2}}"),
        inner.map(lambda part: f"{part}|"),
    ),
    max_leaves=6,
)
# Two repetitions at most: the plain reading is Python's, which takes minutes for three of them inside each other.
expressions = grouped.filter(lambda text: text.count("(?P") < 2 and text.count("*") + text.count("+") < 3).map(Expression)
ranges = st.builds(
    lambda low, more: Range(low, None if more is None else low + more), st.integers(0, 14), st.none() | st.integers(0, 9)
)
fields = st.sampled_from(list(Field))
norms = st.sampled_from(list(Norm))
atoms = st.one_of(
    st.builds(Atom, fields, st.sampled_from([kind for kind in Kind if kind is not Kind.LENGTH]), plain | expressions, norms),
    st.builds(Atom, fields, st.just(Kind.LENGTH), ranges, norms),
)
conditions = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda parts: And(tuple(parts))),
        st.lists(inner, max_size=4).map(lambda parts: Or(tuple(parts))),
        inner.map(Not),
    ),
    max_leaves=8,
)
actions = st.one_of(
    st.sampled_from([ACCEPT, IGNORE, INDEX, NO_INDEX, FOLLOW, NO_FOLLOW]),
    st.sampled_from(["a", "b"]).map(source),
    st.builds(meta, st.sampled_from(["a", "b"]), st.sampled_from(["", "1"])),
    st.integers(-2, 2).map(priority),
    st.sampled_from(Render).map(render),
)
rule_lists = st.lists(st.tuples(conditions, st.lists(actions, min_size=1, max_size=3)), max_size=14)
urls = st.builds(
    lambda scheme, host, port, path, query: parse(f"{scheme}://{host}{port}/{path}{query}"),
    st.sampled_from(["http", "https", "HTTP"]),
    st.sampled_from(["a", "b", "a.b", "A.b", "aB", "b.a.b", "http"]),
    st.sampled_from(["", "", ":8080"]),
    st.text("abAB/.=", max_size=7),
    st.text("abAB/=", max_size=5).map(lambda text: f"?{text}" if text else ""),
)


@given(rule_lists, st.lists(urls, min_size=1, max_size=6), st.booleans())
@example(
    [(Or((Not(host("a")), Not(host("b")))), [IGNORE]), (And((Not(host("a")), path("/a"))), [NO_INDEX])],
    [parse("http://a/a")],
    True,
)
@settings(max_examples=examples(600), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_agrees_with_a_plain_reading(rules: list[tuple[Condition, list[Action]]], tried: list[Url], accept: bool) -> None:
    fast = CompiledActions(rule_set(*rules), accept=accept, index=True, follow=True)
    for url in [*tried, *tried]:
        reported = fast.evaluate(url)
        assert [one.rule.line for one in reported.applied] == [
            n for n, (condition, _) in enumerate(rules, 1) if _holds(condition, url)
        ]
        assert (
            reported.accept,
            reported.index,
            reported.follow,
            reported.shift,
            reported.render,
            reported.label,
            dict(reported.fields),
            reported.rule and reported.rule.line,
        ) == (_read(rules, url, accept=accept))


def _read(rules: list[tuple[Condition, list[Action]]], url: Url, *, accept: bool) -> tuple[object, ...]:
    index = follow = True
    shift, rendered, label, added = 0, None, "", {}
    line = None
    for number, (condition, done) in enumerate(rules, 1):
        for action in done if _holds(condition, url) else ():
            match action.kind:
                case ActionKind.ACCEPT | ActionKind.IGNORE:
                    accept, line = action.kind is ActionKind.ACCEPT, number
                case ActionKind.INDEX | ActionKind.NO_INDEX:
                    index = action.kind is ActionKind.INDEX
                case ActionKind.FOLLOW | ActionKind.NO_FOLLOW:
                    follow = action.kind is ActionKind.FOLLOW
                case ActionKind.SOURCE:
                    label = action.name
                case ActionKind.ADD_META:
                    added[action.name] = action.value
                case ActionKind.PRIORITY:
                    shift = action.shift
                case ActionKind.RENDER:
                    rendered = action.mode
    return (accept, index, follow, shift, rendered, label, added, line)


def _holds(condition: Condition, url: Url) -> bool:
    match condition:
        case And(parts):
            return all(_holds(part, url) for part in parts)
        case Or(parts):
            return any(_holds(part, url) for part in parts)
        case Not(part):
            return not _holds(part, url)
    return _compare(condition, url)


def _compare(atom: Atom, url: Url) -> bool:
    written = atom.norm is Norm.NONE
    text = {
        Field.URL: url.text.replace(f"//{url.host}", f"//{url.host_as_written}", 1) if written else url.text,
        Field.SCHEME: url.scheme,
        Field.HOST: url.host_as_written if written else url.host,
        Field.PATH: url.path,
        Field.QUERY: url.query or "",
        Field.FRAGMENT: "",
    }[atom.field]
    text = text if written else text.lower()
    if isinstance(atom.value, Range):
        return atom.value.low <= len(text) and (atom.value.high is None or len(text) <= atom.value.high)
    folded = atom.norm is Norm.NORM
    if isinstance(atom.value, Expression):
        source = {
            Kind.EXACT: rf"\A(?:{atom.value.source})\Z",
            Kind.PREFIX: rf"\A(?:{atom.value.source})",
            Kind.SUFFIX: rf"(?:{atom.value.source})\Z",
            Kind.INSIDE: atom.value.source,
        }[atom.kind]
        return re.search(source, text, re.IGNORECASE if folded else 0) is not None
    value = atom.value.lower() if folded else atom.value
    return {
        Kind.EXACT: text == value,
        Kind.PREFIX: text.startswith(value),
        Kind.SUFFIX: text.endswith(value),
        Kind.INSIDE: value in text,
    }[atom.kind]
