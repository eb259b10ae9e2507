"""Values of a rules.xml that look meant as usual regular expressions: there a backslash gives a character its meaning, here too, and elsewhere
these characters are plain text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote

from crawlspace.rules.lint.crawl_rules import Finding
from crawlspace.rules.xml.conditions import Conditions
from crawlspace.rules.xml.model import ActionRuleSet, Atom, Expression, Field, Range

_USUAL = re.compile(r"\[\^?[^\]:]*[^\]:-]-[^\]:-][^\]:]*\]|\{\d+(?:,\d*)?\}|\.[*+]|\([^()]*\|[^()]*\)|^\^|.\$$")
"""A class with a range, a count, `.*`, alternatives, an anchor."""
_SPECIAL = re.compile(r"[\^$.*+?\[\](){}|]")
_ONE_DOT = re.compile(r"(?:[^\\.]|\\.)*?(?<!\\)\.(?![*+?{.])")
_PLAIN_REST = re.compile(r"(?:[\w/%&=~-]|\\[^\w])*")


def lint_expressions(rules: ActionRuleSet) -> Iterator[Finding]:
    """Yield values that are compared otherwise than one who knows regular expressions would expect, with what they match now."""
    for rule in rules.rules:
        if " literal" in rule.ref.text:
            continue
        conditions = Conditions()
        conditions.add(rule.condition)
        for message in dict.fromkeys(filter(None, map(_expected_otherwise, conditions.atoms.values()))):
            yield Finding(rule.ref.file, rule.ref.line, 1, "warning", "xml-expression", f"{message}, in '{rule.ref.text}'")


def _expected_otherwise(atom: Atom) -> str:
    """Return what a value matches that looks meant otherwise; empty if it does not."""
    if isinstance(atom.value, Range):
        return ""
    if isinstance(atom.value, Expression):
        head, dot, tail = atom.value.source.partition(".")
        if not dot or head.endswith("\\") or tail[:1] in {"*", "+", "?", "{"} or not _PLAIN_REST.fullmatch(head + tail):
            return ""
        return rf"'\.' is any one character, and not a dot: '{head}x{tail}' matches too; a dot is written without a backslash"
    text = unquote(atom.value)
    if atom.field is Field.HOST and "*" in text:
        return ""  # no host has one, which `lint_values` tells
    if not _USUAL.search(text):
        return ""
    meant = _SPECIAL.sub(r"\\\g<0>", text)
    return f"'{text}' is plain text, and matches only where it stands so; if an expression is meant, write '{meant}'"
