"""Warnings about a valid rules.xml: rules without the intended effect, and superfluous rules.

Some follow from the rules alone; `Usage` finds others from the rule actions of all known URLs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import re2

from crawlspace.decision import Actions, RuleRef
from crawlspace.lint.finding import Finding, Level
from crawlspace.rules.xml.comparisons import required_texts, text_of
from crawlspace.rules.xml.matcher import Conditions, Joint, Setting, setting
from crawlspace.rules.xml.model import (
    Action,
    ActionKind,
    ActionRule,
    ActionRuleSet,
    Atom,
    Expression,
    Field,
    Kind,
    Norm,
    Range,
)
from crawlspace.rules.xml.parser import first_not_read, what_is_not_read
from crawlspace.text import quoted
from crawlspace.urls import DEFAULT_PORTS, MalformedUrl, parse

_MAX_COMPARED = 5_000_000
"""Maximal conditions compared in search of overridden rules: many rules made of the same few conditions would take minutes."""

_SEEN = 10_000
"""Number of `Actions` objects remembered as already counted; bounds the memory."""


def lint_action_rules(rules: ActionRuleSet, *, accept: bool = True) -> list[Finding]:
    """Return the findings, by line; `accept` is the default before the first rule."""
    conditions = Conditions()
    roots = [conditions.add(rule.condition) for rule in rules.rules]
    findings = [
        *_overridden(rules.rules, roots, conditions),
        *_impossible(rules.rules, roots, conditions),
        *_nothing_accepted(rules.rules, roots, conditions, accept=accept),
        *_not_read(rules),
    ]
    return sorted(findings, key=lambda finding: finding.order)


def _not_read(rules: ActionRuleSet) -> Iterator[Finding]:
    if sentence := what_is_not_read(rules):
        at = first_not_read(rules)
        yield Finding("rules.xml", at.line, at.column, "warning", "xml-export", sentence)


class Usage:
    """The effect of the rules on the URLs seen so far."""

    def __init__(self, rules: ActionRuleSet) -> None:
        self._rules = rules.rules
        self._indexes: dict[RuleRef, list[int]] = {}
        for index, rule in enumerate(rules.rules):
            self._indexes.setdefault(rule.ref, []).append(index)
        self._aspects = [[setting(action).aspect for action in rule.actions] for rule in rules.rules]
        self._seen: dict[int, Actions] = {}
        self._any = False
        self._overriding: list[list[set[int] | None] | None] = [None] * len(rules.rules)
        """For each rule that matched, and each of its actions: the rules that overrode it; None if once none did."""

    def see(self, actions: Actions) -> None:
        """Count the actions of a URL; cheap for an object that has been counted."""
        if id(actions) in self._seen:
            return
        if len(self._seen) >= _SEEN:
            self._seen.clear()
        self._seen[id(actions)] = actions  # referenced, so that no other object gets its id
        self._any = True
        last: dict[tuple[str, ...], int] = {}
        for index in reversed(self._matched(actions)):
            overriding = self._overriding[index]
            if overriding is None:
                overriding = self._overriding[index] = [set() for _ in self._aspects[index]]
            for number in range(len(overriding) - 1, -1, -1):
                by = last.get(self._aspects[index][number])
                if by is None:
                    last[self._aspects[index][number]] = index
                    overriding[number] = None
                elif (known := overriding[number]) is not None:
                    known.add(by)

    def findings(self) -> Iterator[Finding]:
        """Yield the rules that matched no URL seen, and the actions overridden on every URL. Nothing without any URL.

        `Ignore` is left out: a URL that it refuses doesn't become known, and a known URL was accepted by another rule.
        """
        if not self._any:
            return
        for rule, overriding in zip(self._rules, self._overriding, strict=True):
            if overriding is None:
                if all(action.kind is not ActionKind.IGNORE for action in rule.actions):
                    yield _of_rule(rule, "xml-rule-unused", f"{quoted(rule.ref.text)} matches no known URL")
                continue
            for action, by in zip(rule.actions, overriding, strict=True):
                if not by or action.kind is ActionKind.IGNORE:
                    continue
                if len(by) > 1:
                    overrider = "a later rule"
                else:
                    other = self._rules[next(iter(by))]
                    overrider = "the same rule" if other is rule else f"{quoted(other.ref.text)} in line {other.ref.line}"
                message = f"{quoted(setting(action).words)} of {quoted(rule.ref.text)} is overridden on every known URL it matches, by {overrider}"
                yield _of_action(rule, action, "xml-action-overridden", message)

    def _matched(self, actions: Actions) -> list[int]:
        """Return the indexes of the rules that matched. Of rules with equal position and text, take the next in order."""
        indexes: list[int] = []
        after = -1
        for one in actions.applied:
            after = next(index for index in self._indexes[one.rule] if index > after)
            indexes.append(after)
        return indexes


def _overridden(rules: Sequence[ActionRule], roots: Sequence[int], conditions: Conditions) -> Iterator[Finding]:
    """Yield rules whose every action is overridden by later rules that match wherever they match."""
    wider: dict[int, list[int]] = {}
    for number, node in conditions.nodes.items():
        if node.joint is Joint.OR:
            for part in node.parts:
                wider.setdefault(part, []).append(number)
        elif node.joint is Joint.AND:
            wider.setdefault(number, []).extend(node.parts)
    sets: dict[tuple[str, ...], dict[int, int]] = {}
    compared = 0
    same: dict[tuple[int, frozenset[Setting]], int] = {}
    for index in range(len(rules) - 1, -1, -1):
        rule, root = rules[index], roots[index]
        last = {one.aspect: one for one in map(setting, rule.actions)}
        by: list[list[int]] = []
        for aspect in last:
            conditions_of, setting_it = (root, *wider.get(root, ())), sets.get(aspect, {})
            compared += len(conditions_of)
            by.append([setting_it[one] for one in conditions_of if one in setting_it])
        if compared > _MAX_COMPARED:
            return
        repeated = same.get((root, frozenset(last.values())))
        if repeated is not None:
            message = (
                f"{quoted(rule.ref.text)} is repeated in line {rules[repeated].ref.line}; this one changes nothing and can go"
            )
            yield _of_rule(rule, "xml-rule-repeated", message)
        elif by and all(by):
            lines = sorted({rules[min(others)].ref.line for others in by})
            message = (
                f"{quoted(rule.ref.text)} has no effect, because wherever it matches {_lines_that_override(lines)} what it sets"
            )
            yield _of_rule(rule, "xml-rule-overridden", message)
        same[root, frozenset(last.values())] = index
        for aspect in last:
            sets.setdefault(aspect, {})[root] = index


def _lines_that_override(lines: Sequence[int]) -> str:
    if len(lines) == 1:
        return f"the later rule in line {lines[0]} overrides"
    return f"the later rules in lines {', '.join(map(str, lines[:-1]))} and {lines[-1]} override"


def _impossible(rules: Sequence[ActionRule], roots: Sequence[int], conditions: Conditions) -> Iterator[Finding]:
    """Yield comparisons that match no URL, each once a rule."""
    wrong = {number: reason for number, atom in conditions.atoms.items() if (reason := _never(atom)) is not None}
    for rule, root in zip(rules, roots, strict=True):
        for number in sorted(conditions.atoms_of(root) & wrong.keys()):
            code, message = wrong[number]
            yield _of_rule(rule, code, f"{message}, in {quoted(rule.ref.text)}")


def _never(atom: Atom) -> tuple[str, str] | None:
    """Return code and reason if an atom can be seen to match no URL."""
    value = atom.value
    if isinstance(value, Range):
        if atom.field is Field.FRAGMENT and value.low > 0:
            return "xml-fragment", f"a rule sees a URL without its fragment, so that its length is never {value.low} or more"
        return None
    shown = value.source if isinstance(value, Expression) else value
    if atom.field is Field.FRAGMENT and not (_matches_empty(value) if isinstance(value, Expression) else not value):
        return "xml-fragment", f"a rule sees a URL without its fragment, so that {quoted(shown)} never matches"
    if atom.norm is Norm.LOWER and _needs_capitals(value):
        return "xml-capitals", f"{quoted(shown)} has capitals and is compared with lower-case text, so that it never matches"
    return None


def _matches_empty(value: Expression) -> bool:
    """Return whether an expression matches the empty text."""
    options = re2.Options()
    options.log_errors = False
    return re2.compile(f"(?:{value.source})", options=options).fullmatch("") is not None


def _needs_capitals(value: str | Expression) -> bool:
    if isinstance(value, Expression):
        return any(all(text != text.lower() for text in texts) for texts in required_texts(value.source))
    return value != value.lower()


def _nothing_accepted(
    rules: Sequence[ActionRule], roots: Sequence[int], conditions: Conditions, *, accept: bool
) -> Iterator[Finding]:
    """Yield the rule after which no URL is accepted, so that nothing is crawled."""
    always, never = _constant(conditions)
    accepting = accept
    since: ActionRule | None = None
    for rule, root in zip(rules, roots, strict=True):
        value = next((setting(action).value for action in reversed(rule.actions) if setting(action).aspect == ("accept",)), None)
        if value is True and not never[root]:
            accepting = True
        elif value is False and always[root]:
            accepting, since = False, rule
    if accepting:
        return
    if since is not None:
        message = f"{quoted(since.ref.text)} ignores every URL and no rule after it accepts any, so that nothing is crawled"
        yield _of_rule(since, "xml-nothing-accepted", message, level="error")
    else:
        message = "CRAWLSPACE_DEFAULT_ACCEPT is off and no rule accepts a URL, so that nothing is crawled"
        if rules:
            yield _of_rule(rules[-1], "xml-nothing-accepted", message, level="error")
        else:
            yield Finding("rules.xml", 0, 0, "error", "xml-nothing-accepted", message)


def _constant(conditions: Conditions) -> tuple[dict[int, bool], dict[int, bool]]:
    """Return for each condition whether it holds for every URL, and whether for none, as far as its form shows."""
    always = {number: _holds_always(atom) for number, atom in conditions.atoms.items()}
    never = {number: _never(atom) is not None for number, atom in conditions.atoms.items()}
    for number, node in conditions.nodes.items():
        parts = node.parts
        if node.joint is Joint.NOT:
            always[number], never[number] = never[parts[0]], always[parts[0]]
        elif node.joint is Joint.AND:
            always[number], never[number] = all(always[part] for part in parts), any(never[part] for part in parts)
        else:
            always[number], never[number] = any(always[part] for part in parts), all(never[part] for part in parts)
    return always, never


def _holds_always(atom: Atom) -> bool:
    if isinstance(atom.value, Range):
        return atom.value == Range(0, None)
    if isinstance(atom.value, Expression):
        return atom.value.source in {".*", "(.*)"} or (atom.kind is not Kind.EXACT and not atom.value.source)
    return atom.kind is not Kind.EXACT and not atom.value


def _of_rule(rule: ActionRule, code: str, message: str, *, level: Level = "warning") -> Finding:
    return Finding(rule.ref.file, rule.ref.line, 1, level, code, message)


def _of_action(rule: ActionRule, action: Action, code: str, message: str) -> Finding:
    return Finding(rule.ref.file, action.line or rule.ref.line, action.column or 1, "warning", code, message)


_MADE: Mapping[tuple[Field, Kind], Sequence[tuple[str, str]]] = {
    (Field.HOST, Kind.EXACT): (("http://", "/"),),
    (Field.HOST, Kind.PREFIX): (("http://", "z/"),),
    # The normal form of the end of an IPv4 address depends on what is before it.
    (Field.HOST, Kind.SUFFIX): tuple((f"http://{before}", "/") for before in ("z", "", "1", "1.", "1.1", "1.1.", "1.1.1")),
    (Field.HOST, Kind.INSIDE): (("http://z", "z/"),),
    (Field.PATH, Kind.EXACT): (("http://h", ""),),
    (Field.PATH, Kind.PREFIX): (("http://h", "z"),),
    (Field.PATH, Kind.SUFFIX): (("http://h/z", ""),),
    (Field.PATH, Kind.INSIDE): (("http://h/z", "z"),),
    (Field.QUERY, Kind.EXACT): (("http://h/?", ""),),
    (Field.QUERY, Kind.PREFIX): (("http://h/?", "z"),),
    (Field.QUERY, Kind.SUFFIX): (("http://h/?z", ""),),
    (Field.QUERY, Kind.INSIDE): (("http://h/?z", "z"),),
    (Field.URL, Kind.EXACT): (("", ""),),
    (Field.URL, Kind.PREFIX): (("", ""), ("", "z"), ("", "1/")),
    (Field.URL, Kind.SUFFIX): (("", ""), ("http://z", ""), ("http://h/z", ""), ("http://h/?z", "")),
    (Field.URL, Kind.INSIDE): (("", "z"), ("http://z", "z"), ("http://h/z", "z"), ("http://h/?z", "z")),
}
"""Texts before and after a value that make a URL of it; a `z` next to it keeps it from being parsed as a whole segment."""
_SHORTEST = {Field.URL: len("http://h/"), Field.SCHEME: len("http"), Field.HOST: 1, Field.PATH: 1}
_STARTS = tuple(f"{scheme}://" for scheme in DEFAULT_PORTS)
_OF_IPV6 = frozenset("0123456789abcdef:[]")


def lint_values(rules: ActionRuleSet) -> Iterator[Finding]:
    """Yield the values of a rules.xml that match no URL, because no URL in normal form has such a text there."""
    conditions = Conditions()
    roots = [conditions.add(rule.condition) for rule in rules.rules]
    wrong = {number: reason for number, atom in conditions.atoms.items() if (reason := _never_holding(atom)) is not None}
    for rule, root in zip(rules.rules, roots, strict=True):
        atoms = {number: conditions.atoms[number] for number in sorted(conditions.atoms_of(root))}
        holding = {atom for number, atom in atoms.items() if number not in wrong}
        reasons = (wrong[number] for number, atom in atoms.items() if number in wrong and _below(atom) not in holding)
        for reason in dict.fromkeys(reasons):
            message = f"{reason}, in {quoted(rule.ref.text)}"
            yield Finding(rule.ref.file, rule.ref.line, 1, "warning", "xml-never-matches", message)


def _below(atom: Atom) -> Atom | None:
    """Return the second comparison of a Domain: the hosts below it. These may exist although the name itself is no host."""
    if atom.field is Field.HOST and atom.kind is Kind.EXACT and isinstance(atom.value, str):
        return Atom(Field.HOST, Kind.SUFFIX, f".{atom.value}", atom.norm)
    return None


def _never_holding(atom: Atom) -> str | None:
    """Return why a comparison matches no URL, as far as its text shows; None otherwise, and for fragments."""
    field, value = atom.field, atom.value
    if isinstance(value, Range):
        if value.high is None or value.high >= _SHORTEST.get(field, 0):
            return None
        return f"a length of {value.high} or less never matches: the {field} of a URL is longer"
    if field is Field.HOST and isinstance(value, str) and (reason := _no_host(value, atom.kind)):
        return reason
    kind, choices = (atom.kind, [frozenset({value})]) if isinstance(value, str) else (Kind.INSIDE, required_texts(value.source))
    for texts in choices:
        if texts and not any(_may_match(text, field, kind, norm=atom.norm) for text in texts):
            text = min(texts)
            shown = text.removeprefix(".") if field is Field.HOST else text
            return f"{quoted(shown)} never matches: {_why_not(shown, field, kind)}"
    return None


def _no_host(value: str, kind: Kind) -> str:
    """Return why a value with a star, or with a dot before a whole name, is in no host; empty if it has neither."""
    name = value.lstrip("*.")
    meant = f"; <Domain val={name!r}/> means {name} and every host below it" if name and "*" not in name else ""
    if "*" in value:
        return f"{value.lstrip('.')!r} never matches: a * is a plain character here, and no host has one{meant}"
    if value.startswith("." if kind in {Kind.EXACT, Kind.PREFIX} else ".."):
        return f"{'.' + name!r} never matches: no host begins with a dot{meant}"
    return ""


def _may_match(text: str, field: Field, kind: Kind, *, norm: Norm) -> bool:
    """Return whether a URL may have a text in a part. If one can, so can a URL made of the text."""
    if field is Field.FRAGMENT or (kind is not Kind.EXACT and _may_be_cut_out(text.lower(), field)):
        return True
    as_written = norm is Norm.NONE
    part = text_of(field, as_written=as_written)
    wanted = text if as_written else text.lower()
    for before, after in _MADE.get((field, kind), ()):
        with suppress(MalformedUrl):
            url = parse(f"{before}{text}{after}")
            if url.scheme in DEFAULT_PORTS and _matches_part(wanted, part(url), kind):
                return True
    return field is Field.SCHEME and any(_matches_part(wanted, scheme, kind) for scheme in DEFAULT_PORTS)


def _may_be_cut_out(text: str, field: Field) -> bool:
    """Return whether a text may be part of something parsed as a whole: an IPv6 address, an xn-- label, the start of a URL."""
    if field is Field.HOST:
        return "xn--" in text or (not set(":[]").isdisjoint(text) and set(text) <= _OF_IPV6)
    if field is not Field.URL:
        return False
    authority = text.partition("://")[2]
    unfinished = "/" not in authority and ("xn--" in authority or authority.startswith("["))
    return any(start.startswith(text) or (unfinished and text.startswith(start)) for start in _STARTS)


def _matches_part(text: str, part: str, kind: Kind) -> bool:
    if kind is Kind.EXACT:
        return part == text
    if kind is Kind.PREFIX:
        return part.startswith(text)
    return part.endswith(text) if kind is Kind.SUFFIX else text in part


def _why_not(text: str, field: Field, kind: Kind) -> str:
    anchored = kind in {Kind.EXACT, Kind.PREFIX}
    if field is Field.SCHEME:
        return f"only {' and '.join(DEFAULT_PORTS)} are crawled"
    if "#" in text:
        return "a rule sees a URL without its fragment"
    if field is Field.HOST and not text.startswith("[") and (set(text) & set("/:?@\\") or text.endswith(".")):
        return "a host has no scheme, port, path or final dot"
    if field is Field.PATH and anchored and not text.startswith("/"):
        return "a path begins with /"
    if field is Field.PATH and "?" in text:
        return "the query is no part of the path"
    if field is Field.PATH and "\\" in text:
        return "a backslash in a path is / in URLs"
    if field is Field.URL and anchored and not text.lower().startswith(_STARTS):
        return "a URL begins with http:// or https://"
    with suppress(MalformedUrl):
        before, after = _MADE[field, Kind.EXACT][0]
        if anchored:
            return f"URLs have {quoted(text_of(field, as_written=True)(parse(f'{before}{text}{after}')))} there"
    return "no URL in normal form has this there"
