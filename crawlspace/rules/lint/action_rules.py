"""Warnings about a valid rules.xml: rules without the intended effect, and superfluous rules.

Some follow from the rules alone; `Usage` finds others from the rule actions of all known URLs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import re2

from crawlspace.decision import Actions, RuleRef
from crawlspace.printable import quoted
from crawlspace.rules.lint.crawl_rules import Finding
from crawlspace.rules.xml.conditions import Conditions, Joint
from crawlspace.rules.xml.exported import first_not_read, what_is_not_read
from crawlspace.rules.xml.matcher import Setting, setting
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
from crawlspace.rules.xml.required_texts import required_texts

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
    return sorted(findings, key=lambda finding: (finding.file, finding.line, finding.column, finding.code))


def _not_read(rules: ActionRuleSet) -> Iterator[Finding]:
    if sentence := what_is_not_read(rules):
        at = first_not_read(rules)
        yield Finding("rules.xml", at.line, at.column, "warning", "xml-export", sentence)


class Usage:
    """The effect of the rules on the URLs seen so far."""

    def __init__(self, rules: ActionRuleSet) -> None:
        self._rules = rules.rules
        self._places: dict[RuleRef, list[int]] = {}
        for place, rule in enumerate(rules.rules):
            self._places.setdefault(rule.ref, []).append(place)
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
        for place in reversed(self._matched(actions)):
            overriding = self._overriding[place]
            if overriding is None:
                overriding = self._overriding[place] = [set() for _ in self._aspects[place]]
            for number in range(len(overriding) - 1, -1, -1):
                by = last.get(self._aspects[place][number])
                if by is None:
                    last[self._aspects[place][number]] = place
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
        """Return the indices of the rules that matched. Of rules with equal place and text, take the next in order."""
        places: list[int] = []
        after = -1
        for one in actions.applied:
            after = next(place for place in self._places[one.rule] if place > after)
            places.append(after)
        return places


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
    for place in range(len(rules) - 1, -1, -1):
        rule, root = rules[place], roots[place]
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
        same[root, frozenset(last.values())] = place
        for aspect in last:
            sets.setdefault(aspect, {})[root] = place


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


def _of_rule(rule: ActionRule, code: str, message: str, *, level: Literal["error", "warning"] = "warning") -> Finding:
    return Finding(rule.ref.file, rule.ref.line, 1, level, code, message)


def _of_action(rule: ActionRule, action: Action, code: str, message: str) -> Finding:
    return Finding(rule.ref.file, action.line or rule.ref.line, action.column or 1, "warning", code, message)
