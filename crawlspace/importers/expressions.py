r"""Conditions of rules.xml as text, and regular expressions of Python and Perl as their values.

In a value, text is plain, and a backslash gives `^$.*+?[](){}|` their meaning: `^http://a\.b/[0-9]+` becomes `\^http://a.b/\[0-9\]\+`.
Look-around and back references, which RE2 lacks, have no translation.
"""

from __future__ import annotations

import re
from xml.sax.saxutils import quoteattr

from crawlspace.rules.xml.model import Field, Kind, Norm
from crawlspace.rules.xml.spelling import BadValue, is_escaped
from crawlspace.rules.xml.values import read_value
from crawlspace.text import quoted

MAX_LENGTH = 5_000
"""Maximal characters of an expression."""


class Untranslatable(ValueError):
    """An expression without a translation; the message says why."""


def translated(expression: str, field: Field, *, norm: Norm) -> tuple[list[str], Norm]:
    """Return the values that together match like an expression, and the norm. Raises Untranslatable."""
    if len(expression) > MAX_LENGTH:
        raise Untranslatable(f"it has more than {MAX_LENGTH:,} characters")
    try:
        re.compile(expression)
    except (re.error, OverflowError, RecursionError) as error:
        raise Untranslatable(f"it is no regular expression: {error}") from None
    if expression.startswith("(?i)"):
        expression, norm = expression[len("(?i)") :], Norm.NORM
    values = [_Translation(part, field).value() for part in _alternatives(expression)]
    for value in values:
        try:
            read_value(value, field, kind=Kind.INSIDE, norm=norm, literal=False)
        except BadValue as error:
            raise Untranslatable(str(error)) from None
    return values, norm


def _alternatives(expression: str) -> list[str]:
    """Return the alternatives of the whole expression."""
    parts, start, depth, index = [], 0, 0, 0
    while index < len(expression):
        character = expression[index]
        if character == "[":
            index = _end_of_choice(expression, index)
            continue
        depth += (character == "(") - (character == ")")
        if character == "|" and depth == 0:
            parts.append(expression[start:index])
            start = index + 1
        index += 2 if character == "\\" else 1
    return [*parts, expression[start:]]


def _end_of_choice(text: str, start: int) -> int:
    """Return the index after the `]` that ends a choice of characters; the first character may be a plain `]`."""
    index = start + 1
    if text.startswith("^", index):
        index += 1
    if text.startswith("]", index):
        index += 1
    while text[index] != "]":
        index += 2 if text[index] == "\\" else 1
    return index + 1


_CLASSES = {
    "d": r"\[0-9\]",
    "D": r"\[\^0-9\]",
    "w": r"\[A-Za-z0-9_\]",
    "W": r"\[\^A-Za-z0-9_\]",
    "S": r"\.",
}
_IN_CHOICE = {"d": "0-9", "w": "A-Za-z0-9_", "s": ""}
_COUNT = re.compile(r"\{(\d*)(?:(,)(\d*))?\}")
_GROUP = re.compile(r"\(\?(?::|P<\w+>)")
_SPECIAL = ".*+?()|"


class _Translation:
    def __init__(self, text: str, field: Field) -> None:
        self._text = text
        self._field = field
        self._at = 0

    def value(self) -> str:
        text, written = self._text, []
        while self._at < len(text):
            character = text[self._at]
            if character == "\\":
                written.append(self._escape())
            elif character == "[":
                written.append(self._choice())
            elif character == "{":
                written.append(self._count())
            elif character == "(" and text.startswith("(?", self._at):
                written.append(self._group())
            elif character in "^$":
                written.append(self._anchor(character))
            else:
                written.append(f"\\{character}" if character in _SPECIAL else character)
                self._at += 1
        if not "".join(written):
            raise Untranslatable("it matches everything")
        return "".join(written)

    def _anchor(self, mark: str) -> str:
        inside = self._at > 0 if mark == "^" else self._at < len(self._text) - 1
        if inside:
            raise Untranslatable(f"it has {mark} inside")
        self._at += 1
        return f"\\{mark}"

    def _escape(self) -> str:
        mark = self._text[self._at + 1]
        self._at += 2
        if mark in _CLASSES:
            return _CLASSES[mark]
        if mark == "\\":
            return r"\\"
        if not mark.isalnum():
            return mark
        if (mark == "A" and self._at == 2) or (mark in "Zz" and self._at == len(self._text)):
            return r"\^" if mark == "A" else r"\$"
        if mark.isdigit():
            raise Untranslatable("RE2 has no back references, because they can block a crawl")
        raise Untranslatable(rf"it has \{mark}, which rules.xml does not know")

    def _count(self) -> str:
        found = _COUNT.match(self._text, self._at)
        if found is None or not (found[1] or found[2]):
            self._at += 1
            return "{"
        self._at = found.end()
        return f"\\{{{found[1] or '0'}{found[2] or ''}{found[3] or ''}\\}}"

    def _group(self) -> str:
        found = _GROUP.match(self._text, self._at)
        if found is None:
            if self._text.startswith(("(?=", "(?!", "(?<=", "(?<!"), self._at):
                raise Untranslatable("RE2 has no look-around, because it can block a crawl")
            raise Untranslatable(f"it has {quoted(self._text[self._at : self._at + 4])}, which rules.xml does not know")
        self._at = found.end()
        return r"\(\?:"

    def _choice(self) -> str:
        end = _end_of_choice(self._text, self._at)
        inside = self._text[self._at + 1 : end - 1]
        self._at = end
        negated = inside.startswith("^")
        parts = self._members(inside.removeprefix("^"))
        hyphen = "-" in parts
        parts = [part for part in parts if part != "-"]
        if "^" in parts and not negated:  # plain only where it is not the first
            parts = [part for part in parts if part != "^"]
            if not parts and not hyphen:
                raise Untranslatable("it has a choice of ^ alone, which is %5E in URLs")
            parts.append("^")
        written = "".join(parts) + "-" * hyphen
        if not written:
            if negated:
                return r"\."
            raise Untranslatable("it needs a character that no URL has")
        if written == "^-":
            written = "-^"
        return f"\\[{chr(92) + '^' if negated else ''}{written}\\]"

    def _members(self, inside: str) -> list[str]:
        """Return the characters and ranges of a choice, without those that URLs escape."""
        found: list[str] = []
        index = 0
        while index < len(inside):
            low, index = _member(inside, index)
            if len(low) == 1 and inside.startswith("-", index) and index + 1 < len(inside):
                high, index = _member(inside, index + 1)
                found.append(f"{_plain(low)}-{_plain(high)}")
            elif len(low) != 1 or not is_escaped(low, self._field):
                found.append(low if len(low) != 1 else _plain(low))
        return [part for part in found if part]


def _member(inside: str, index: int) -> tuple[str, int]:
    """Return one character, or the meaning of a class such as `\\d`, and the index after it."""
    if inside[index] != "\\":
        return inside[index], index + 1
    mark = inside[index + 1]
    if mark in _IN_CHOICE:
        return _IN_CHOICE[mark], index + 2
    if mark.isalnum():
        raise Untranslatable(rf"it has \{mark} in a choice of characters, which rules.xml does not know")
    return mark, index + 2


def _plain(character: str) -> str:
    return r"\\" if character == "\\" else character


# --- The conditions of a rules.xml, as text ------------------------------------------------------------------------


def atom(field: Field, kind: Kind, text: str, norm: Norm) -> str:
    """Return the comparison of a part of the URL with a text. Raises Untranslatable."""
    _check(text, field, kind, norm, literal=True)
    literal = ' literal="true"' if "\\" in text else ""
    return f'<Atom field="{field.value}" kind="{kind.value}" norm="{norm.value}"{literal} value={quoteattr(text)}/>'


def expression_atom(field: Field, kind: Kind, value: str, norm: Norm) -> str:
    """Return the comparison of a part of the URL with a value in which backslashes make expressions. Raises Untranslatable."""
    _check(value, field, kind, norm, literal=False)
    return f'<Atom field="{field.value}" kind="{kind.value}" norm="{norm.value}" value={quoteattr(value)}/>'


def _check(value: str, field: Field, kind: Kind, norm: Norm, *, literal: bool) -> None:
    try:
        read_value(value, field, kind=kind, norm=norm, literal=literal)
    except BadValue as error:
        raise Untranslatable(str(error)) from None
