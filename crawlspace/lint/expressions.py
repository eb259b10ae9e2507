"""Values of a rules.xml that look meant for the other reading of regular expressions than CRAWLSPACE_RULES_XML_REGEX sets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from urllib.parse import unquote

import re2

from crawlspace.lint.finding import Finding
from crawlspace.rules.xml.elements import SHORTCUTS
from crawlspace.rules.xml.matcher import Conditions
from crawlspace.rules.xml.model import STANDARD_ELEMENTS, ActionRule, ActionRuleSet, Atom, Expression, Field, Range, RegexSyntax
from crawlspace.rules.xml.spelling import BadValue, Piece
from crawlspace.rules.xml.values import OPTIONS, SPECIAL, escaped, read_standard_value, read_value, units

_USUAL = re.compile(r"\[\^?[^\]:]*[^\]:-]-[^\]:-][^\]:]*\]|\{\d+(?:,\d*)?\}|\.[*+]|\([^()]*\|[^()]*\)|^\^|.\$$|^https\?:")
"""A range in brackets, a count, `.*`, alternatives, an anchor, or `https?`."""
_ESCAPED = re.compile(
    r"\\\[\\?\^?[^\]\\:]*[^\]\\:-]-[^\]\\:-][^\]\\:]*\\\]|\\\{\d+(?:,\d*)?\\\}|\\\.\\[*+]|\\\([^()]*\\\|[^()]*\\\)|^\\\^|.\\\$$"
)
"""The same with a backslash before each special character."""
_BEFORE_QUERY = re.compile(r"[\w/]\?\w[\w.-]*=")
"""As in `/list?page=`."""
_BEHIND_BACKSLASH = re.compile(rf"\\[{re.escape(SPECIAL)}]")
_ESCAPED_IN_PATHS = re.compile("%5E|%7B|%7D")
_PLAIN_REST = re.compile(r"(?:[\w/%&=~-]|\\[^\w])*")
_NOT_STANDARD = {meaning for name, meaning in SHORTCUTS.items() if name not in STANDARD_ELEMENTS}


def lint_expressions(rules: ActionRuleSet) -> Iterator[Finding]:
    """Yield values that match something else than users of regular expressions would expect, with what they match."""
    for rule in rules.rules:
        conditions = Conditions()
        conditions.add(rule.condition)
        messages = (_expected_otherwise(atom, rule, rules.syntax) for atom in conditions.atoms.values())
        for message in dict.fromkeys(filter(None, messages)):
            yield Finding(rule.ref.file, rule.ref.line, 1, "warning", "xml-expression", f"{message}, in '{rule.ref.text}'")


def _expected_otherwise(atom: Atom, rule: ActionRule, syntax: RegexSyntax) -> str:
    """Return what a value matches, if it looks as if something else was meant; empty otherwise."""
    if isinstance(atom.value, Range):
        return ""
    if " literal" in rule.ref.text:
        return _literal_backslash(rule)
    standard = syntax is RegexSyntax.STANDARD and _may_be_standard(atom, rule)
    if standard:
        return _meant_escaped(atom, atom.value)
    if isinstance(atom.value, Expression):
        return _any_for_dot(atom.value)
    return _meant_standard(atom, atom.value, is_possible=_may_be_standard(atom, rule))


def _may_be_standard(atom: Atom, rule: ActionRule) -> bool:
    """Return whether the value stands where CRAWLSPACE_RULES_XML_REGEX applies."""
    is_domain = atom.field is Field.HOST and "Domain" in rule.ref.text
    return "Atom " in rule.ref.text or ((atom.field, atom.kind) not in _NOT_STANDARD and not is_domain)


def _literal_backslash(rule: ActionRule) -> str:
    """Return how backslashes in a literal value are treated, by the rule itself, because URLs have no backslashes."""
    if not _BEHIND_BACKSLASH.search(rule.ref.text.rpartition(" literal")[0]):
        return ""
    return (
        "backslashes are plain text with literal, and most parts of URLs have none; if an expression is meant, leave literal off"
    )


def _any_for_dot(value: Expression) -> str:
    head, dot, tail = value.source.partition(".")
    if not dot or head.endswith("\\") or tail[:1] in {"*", "+", "?", "{"} or not _PLAIN_REST.fullmatch(head + tail):
        return ""
    return rf"'\.' is any one character, and not a dot: '{head}x{tail}' matches too; a dot is written without a backslash"


def _meant_standard(atom: Atom, value: str, *, is_possible: bool) -> str:
    text = unquote(value)
    if atom.field is Field.HOST and "*" in text:
        return ""  # no host has one; `lint_values` reports it
    if not _USUAL.search(text):
        return ""
    message = f"'{text}' is plain text, and matches only this very text; if an expression is meant, write '{escaped(text)}'"
    if not is_possible:
        return message
    try:
        read_standard_value(text, atom.field, kind=atom.kind, norm=atom.norm)
    except BadValue:
        return message
    shown = example(text)
    return (
        f"{message}, or set CRAWLSPACE_RULES_XML_REGEX = \"standard\", with which it would match '{shown}'" if shown else message
    )


def _meant_escaped(atom: Atom, value: str | Expression) -> str:
    written = _as_written(value)
    if _ESCAPED.search(written):
        try:
            _, meant = read_value(written, atom.field, kind=atom.kind, norm=atom.norm, literal=False)
        except BadValue:
            return ""
        shown = example(meant.source) if isinstance(meant, Expression) else str(meant)
        would = f"; with CRAWLSPACE_RULES_XML_REGEX = \"escaped\" it would match '{unquote(shown)}'" if shown else ""
        plain = _BEHIND_BACKSLASH.sub(lambda found: found[0][1], written)
        return f"'{written}' has plain characters behind its backslashes{would}; if an expression is meant, write '{plain}'"
    if isinstance(value, Expression) and (query := _BEFORE_QUERY.search(written)):
        at = query.start() + 1
        shown = example(written)
        matched = f"'{shown}'" if shown else "the text without it"
        return f"'?' is a repetition, and no question mark: '{written}' matches {matched}; write '{written[:at]}\\{written[at:]}'"
    return ""


def _as_written(value: str | Expression) -> str:
    """Return a value of the usual syntax about as it is in the file, where URLs escape characters."""
    if isinstance(value, Expression):
        return unquote(_ESCAPED_IN_PATHS.sub(lambda found: f"\\{unquote(found[0])}", value.source))
    return escaped(unquote(value))


_MOST_COPIES = 30
_OF_CLASSES = {".": "x", r"\d": "1", r"\D": "x", r"\w": "x", r"\W": "-", r"\S": "x"}
_NOTHING = frozenset({"^", "$", r"\A", r"\z", r"\b", r"\B"})
_TRIED = "x1-/._=aA~"
_COUNT = re.compile(r"\{(\d+)")


class _Unknown(Exception):
    """An expression with something uncommon in it."""


def example(expression: str) -> str:
    """Return a short text that a valid expression matches as a whole; empty if none is found."""
    try:
        text = _Example(units(expression)).alternatives()
    except _Unknown:
        return ""
    return text if re2.compile(f"(?:{expression})", OPTIONS).fullmatch(text) is not None else ""


class _Example:
    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces = pieces
        self._at = 0

    def alternatives(self) -> str:
        """Return a text for the first alternative up to the end of the group, and pass over the others."""
        first = self._sequence()
        while self._at < len(self._pieces) and self._pieces[self._at].choice == "|":
            self._at += 1
            self._sequence()
        return first

    def _sequence(self) -> str:
        parts: list[str] = []
        while self._at < len(self._pieces) and self._pieces[self._at].choice not in {"|", ")"}:
            piece = self._pieces[self._at]
            self._at += 1
            if piece.choice.startswith(("*", "+", "?", "{")) and parts:
                parts[-1] *= self._copies(piece.choice)
            else:
                parts.append(piece.text or self._one(piece.choice))
        return "".join(parts)

    def _one(self, choice: str) -> str:
        if choice.startswith("("):
            if choice.endswith(")"):  # flags
                return ""
            inner = self.alternatives()
            self._at += 1  # the closing bracket
            return inner
        if choice in _NOTHING:
            return ""
        if choice in _OF_CLASSES:
            return _OF_CLASSES[choice]
        if choice.startswith("["):
            return _of_class(choice)
        raise _Unknown

    def _copies(self, repetition: str) -> int:
        count = _COUNT.match(repetition)
        if count is None:
            return 1
        if int(count[1]) > _MOST_COPIES:
            raise _Unknown
        return max(int(count[1]), 1)


def _of_class(choice: str) -> str:
    compiled = re2.compile(choice, OPTIONS)
    tried: list[str] = [*_TRIED]
    if not choice.startswith("[^"):
        tried = [choice[1], *(low for low, high in pairwise(choice[1:]) if high == "-"), *tried]
    for character in tried:
        if compiled.fullmatch(character) is not None:
            return character
    raise _Unknown
