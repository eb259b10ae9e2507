r"""Parsing of the values of a rules.xml as usual regular expressions, where CRAWLSPACE_RULES_XML_REGEX is "standard".

The syntax is RE2's (https://github.com/google/re2/wiki/Syntax). What an expression spells out is brought to the spelling of URLs in
normal form, as in the other reading; classes of characters, escapes and flags stay as they are. A value that spells out all of
what it matches becomes plain text, which is found faster: `^/watch\.html` is the text `/watch.html` at the beginning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import re2

from crawlspace.rules.url_spelling import BadValue, Piece, joined
from crawlspace.rules.xml.model import STANDARD_ELEMENTS, Expression, Field, Kind, Norm, Range, RegexSyntax
from crawlspace.rules.xml.values import MAX_LENGTH, OPTIONS, TooLarge, as_compared, escaped, plain_value, read_value


def syntax_of(element: str, syntax: RegexSyntax) -> RegexSyntax | None:
    """Return how the values of a condition are read; None where they are in the escaped syntax whatever is set."""
    return syntax if element in STANDARD_ELEMENTS else None


def read_in(
    syntax: RegexSyntax | None, text: str, field: Field, *, kind: Kind, norm: Norm, literal: bool
) -> tuple[Kind, str | Expression | Range]:
    """Return the kind of comparison and the compared value, read as `syntax_of` says. Raises BadValue or its subclass TooLarge."""
    if syntax is RegexSyntax.STANDARD and kind is not Kind.LENGTH and not literal:
        return read_standard_value(text, field, kind=kind, norm=norm)
    try:
        return read_value(text, field, kind=kind, norm=norm, literal=literal)
    except BadValue as error:
        if syntax is RegexSyntax.ESCAPED and _USUAL_ESCAPE.search(text):
            hint = '; with CRAWLSPACE_RULES_XML_REGEX = "standard", values are usual expressions'
            raise type(error)(f"{error}{hint}", error.at) from None
        raise


def read_standard_value(text: str, field: Field, *, kind: Kind, norm: Norm) -> tuple[Kind, str | Expression]:
    """Return the kind of comparison and the compared value. Raises BadValue or its subclass TooLarge.

    What begins or ends with an anchor or with `.*` and is plain text otherwise has another kind of comparison then.
    """
    if len(text) > MAX_LENGTH:
        raise BadValue(f"the value has {len(text):,} characters, and {MAX_LENGTH:,} is the most; put several conditions into Or")
    _compile(text)
    if not text:
        return kind, plain_value(text, field, kind=kind, norm=norm)
    pieces = units(text)
    plain = _plain_middle(pieces, kind)
    if plain is not None:
        kind, pieces = plain
        return kind, plain_value(joined(as_compared(pieces, field, norm=norm)), field, kind=kind, norm=norm)
    return kind, Expression(_written(list(as_compared(pieces, field, norm=norm))))


def units(text: str) -> list[Piece]:
    """Return a valid expression as characters that it spells out (`text`), and all else as it is written (`choice`)."""
    return list(_units(text))


def _units(text: str) -> Iterator[Piece]:
    at = 0
    while at < len(text):
        unit = _UNIT.match(text, at)
        if unit is None:
            yield Piece(text[at], at)
            at += 1
        else:
            escape = unit["escape"]
            yield Piece(escape, at) if escape else Piece("", at, choice=unit[0])
            at = unit.end()


_UNIT = re.compile(
    r"""\\(?P<escape>[^0-9A-Za-z])
      | \\Q.*?(?:\\E|\Z) | \\x\{[0-9A-Fa-f]+\} | \\x[0-9A-Fa-f]{2} | \\[0-7]{1,3} | \\[pP](?:\{[^}]*\}|.) | \\.
      | \[ \^? \]? (?: \[:\^?\w+:\] | \\. | [^\]\\] )* \]
      | \(\?(?:P?<\w+>|[a-zA-Z-]*[:)]) | [()|^$.] | (?:[*+?]|\{\d+(?:,\d*)?\})\??""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_USUAL_ESCAPE = re.compile(r"\\[bBdDsSwWAz]")
_REPETITION = tuple("*+?{")
_BEGINS, _ENDS, _ANYTHING = ("^", r"\A"), ("$", r"\z"), (".", "*")
_ANCHORED = (
    {Kind.INSIDE: Kind.PREFIX, Kind.SUFFIX: Kind.EXACT},
    {Kind.INSIDE: Kind.SUFFIX, Kind.PREFIX: Kind.EXACT},
)
_OPENED = ({Kind.EXACT: Kind.SUFFIX, Kind.PREFIX: Kind.INSIDE}, {Kind.EXACT: Kind.PREFIX, Kind.SUFFIX: Kind.INSIDE})
"""The kind of comparison with an anchor, or with `.*`, at the beginning or at the end."""


def _plain_middle(pieces: Sequence[Piece], kind: Kind) -> tuple[Kind, list[Piece]] | None:
    """Return the kind of comparison and the text, if all but anchors and `.*` at the ends is text; None otherwise."""
    middle = list(pieces)
    if middle and middle[0].choice in _BEGINS:
        kind = _ANCHORED[0].get(kind, kind)
        del middle[0]
    if middle and middle[-1].choice in _ENDS:
        kind = _ANCHORED[1].get(kind, kind)
        del middle[-1]
    if _is_anything(middle[:2]):
        kind = _OPENED[0].get(kind, kind)
        del middle[:2]
    if _is_anything(middle[-2:]):
        kind = _OPENED[1].get(kind, kind)
        del middle[-2:]
    if not middle or any(piece.choice for piece in middle):
        return None
    return kind, middle


def _is_anything(pieces: Sequence[Piece]) -> bool:
    return tuple(piece.choice for piece in pieces) == _ANYTHING


def _written(pieces: Sequence[Piece]) -> str:
    """Return pieces as one expression; a repetition applies to one character of the file."""
    parts = []
    for index, piece in enumerate(pieces):
        if piece.choice:
            parts.append(piece.choice)
            continue
        repeated = piece.whole and pieces[index + 1 : index + 2] and pieces[index + 1].choice.startswith(_REPETITION)
        parts.append(f"(?:{escaped(piece.text)})" if repeated else escaped(piece.text))
    return "".join(parts)


def _compile(text: str) -> None:
    try:
        re2.compile(text, OPTIONS)
    except re2.error as error:
        reported = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else str(error.args[0])
    else:
        return
    reason, _, part = reported.partition(": ")
    kind = TooLarge if reason == "pattern too large" else BadValue
    at = max(text.rfind(part), 0) if part else 0
    raise kind(f"RE2 cannot use this expression: {reported[:200]}{_hint(part)}", at)


def _hint(part: str) -> str:
    """Return what to do about the part of an expression that RE2 refuses, if it can be said."""
    if part.startswith(("(?=", "(?!", "(?<")):
        return "; it does not look ahead or behind, because that can hold a crawl up"
    if re.match(r"\\[1-9]", part):
        return "; it does not refer back, because that can hold a crawl up"
    return ""
