"""Values of a rules.xml that look like usual regular expressions. In rules.xml a backslash gives a special character its meaning;
without one it is plain text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote

from crawlspace.rules.lint.crawl_rules import Finding
from crawlspace.rules.xml.conditions import Conditions
from crawlspace.rules.xml.model import ActionRuleSet, Atom, Expression, Field, Range

_USUAL = re.compile(r"\[\^?[^\]:]*[^\]:-]-[^\]:-][^\]:]*\]|\{\d+(?:,\d*)?\}|\.[*+]|\([^()]*\|[^()]*\)|^\^|.\$$")
"""A range in brackets, a count, `.*`, alternatives, or an anchor."""
_SPECIAL = re.compile(r"[\^$.*+?\[\](){}|]")
_ONE_DOT = re.compile(r"(?:[^\\.]|\\.)*?(?<!\\)\.(?![*+?{.])")
_PLAIN_REST = re.compile(r"(?:[\w/%&=~-]|\\[^\w])*")


def lint_expressions(rules: ActionRuleSet) -> Iterator[Finding]:
    """Yield values that match something else than users of regular expressions would expect, with what they match."""
    for rule in rules.rules:
        if " literal" in rule.ref.text:
            continue
        conditions = Conditions()
        conditions.add(rule.condition)
        for message in dict.fromkeys(filter(None, map(_expected_otherwise, conditions.atoms.values()))):
            yield Finding(rule.ref.file, rule.ref.line, 1, "warning", "xml-expression", f"{message}, in '{rule.ref.text}'")


def _expected_otherwise(atom: Atom) -> str:
    """Return what a value matches, if it looks as if something else was meant; empty otherwise."""
    if isinstance(atom.value, Range):
        return ""
    if isinstance(atom.value, Expression):
        head, dot, tail = atom.value.source.partition(".")
        if not dot or head.endswith("\\") or tail[:1] in {"*", "+", "?", "{"} or not _PLAIN_REST.fullmatch(head + tail):
            return ""
        return rf"'\.' is any one character, and not a dot: '{head}x{tail}' matches too; a dot is written without a backslash"
    text = unquote(atom.value)
    if atom.field is Field.HOST and "*" in text:
        return ""  # no host has one; `lint_values` reports it
    if not _USUAL.search(text):
        return ""
    meant = _SPECIAL.sub(r"\\\g<0>", text)
    return f"'{text}' is plain text, and matches only this very text; if an expression is meant, write '{meant}'"
