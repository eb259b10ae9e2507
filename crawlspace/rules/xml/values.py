"""Parsing of the values of a rules.xml into the compared form.

A value is text. A backslash before one of `^$.*+?[](){}|` gives that character its meaning in a regular expression; otherwise
these characters stand for themselves. A backslash itself is written twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import quote

import re2

from crawlspace.rules.xml.model import STANDARD_ELEMENTS, Expression, Field, Kind, Norm, Range, RegexSyntax
from crawlspace.rules.xml.spelling import AS_IT_IS, BadValue, Piece, as_in_urls, is_escaped, joined
from crawlspace.text import quoted
from crawlspace.urls import DEFAULT_PORTS, MalformedUrl, parse

SPECIAL = "^$.*+?[](){}|"
"""The characters that get a special meaning from a backslash."""
MAX_LENGTH = 10_000
"""Maximal characters of a value. URLs are shorter; RE2 would take minutes and gigabytes for a much longer expression."""
MAX_COUNT = 1000
"""RE2's maximal number of repetitions."""
OPTIONS = re2.Options()
"""With which an expression is tried when it is read."""
OPTIONS.log_errors = False


class TooLarge(BadValue):
    """An expression that needs too much memory in RE2."""


def read_value(text: str, field: Field, *, kind: Kind, norm: Norm, literal: bool) -> tuple[Kind, str | Expression | Range]:
    """Return the kind of comparison and the compared value. Raises BadValue or its subclass TooLarge.

    `\\^` at the beginning and `\\$` at the end don't become part of an expression: they change the kind of comparison.
    """
    if len(text) > MAX_LENGTH:
        raise BadValue(f"the value has {len(text):,} characters, and {MAX_LENGTH:,} is the most; put several conditions into Or")
    if kind is Kind.LENGTH:
        return kind, read_range(text)
    if literal or "\\" not in text:
        if not AS_IT_IS.fullmatch(text):
            text = joined(as_in_urls([Piece(text, 0)], field, norm=norm))
        return kind, plain_value(text, field, kind=kind, norm=norm)
    pieces = list(_pieces(text, field))
    begins = pieces[0].mark == "^"
    ends = pieces[-1].mark == "$"
    if begins or ends:
        kind = _anchored(pieces, kind, begins=begins, ends=ends)
        pieces = pieces[begins : len(pieces) - ends]
    pieces = list(as_compared(pieces, field, norm=norm))
    if any(piece.mark or piece.choice for piece in pieces):
        return kind, _Writer(pieces).expression()
    return kind, plain_value(joined(pieces), field, kind=kind, norm=norm)


def escaped(text: str) -> str:
    """Return text as an expression that matches it."""
    return _SPECIAL.sub(r"\\\g<0>", text)


def program_size(expression: Expression) -> int:
    """Return the number of instructions of RE2's program for an expression that was just compiled, so that RE2 has it cached."""
    return int(re2.compile(expression.source, OPTIONS).programsize)


def read_range(text: str) -> Range:
    """Return the range written as `[3:9]`, `[:9]`, `[3:]` or `[9]`; blanks are ignored. Raises BadValue."""
    found = _RANGE.fullmatch(text)
    if found is None:
        if negative := re.search(r"-\s*[0-9]", text):
            raise BadValue("a length is never negative", negative.start())
        begun = _RANGE_BEGUN.match(text)
        raise BadValue(f"{quoted(text)} is no range of lengths; {_RANGES}", begun.end() if begun else 0)
    low, high = found["low"], found["high"]
    if not low and not high:
        raise BadValue(f"a number is missing; {_RANGES}", found.start("low"))
    if high is None:
        return Range(int(low), int(low))
    if low and high and int(low) > int(high):
        raise BadValue(f"{low} is above {high}, so no length is in this range", found.start("low"))
    return Range(int(low or 0), int(high) if high else None)


class _Writer:
    """Writes pieces as one expression, and finds what RE2 would refuse while the position is known."""

    def __init__(self, pieces: list[Piece]) -> None:
        self._pieces = [*pieces, Piece("", -1)]  # a sentinel, so that there always is a next one
        self._written: list[str] = []
        self._origins: list[int] = []
        self._groups: list[int] = []
        self._before = ""
        """What a repetition here would apply to: "" (nothing), `one` unit, a `repeated` one, or a lazily repeated (`seldom`) one."""

    def expression(self) -> Expression:
        index = 0
        while index < len(self._pieces) - 1:
            index += self._write(index)
        if self._groups:
            raise BadValue(r"\( is not closed by \)", self._groups[-1])
        source = "".join(self._written)
        try:
            re2.compile(source, OPTIONS)
        except re2.error as error:
            raise self._refused(source, error.args[0]) from error
        return Expression(source)

    def _write(self, index: int) -> int:
        """Write one unit; return its number of pieces."""
        piece, following = self._pieces[index], self._pieces[index + 1]
        if piece.choice or piece.mark == ".":
            return self._put(piece, piece.choice or ".")
        if not piece.mark:
            self._text(piece, repeated=following.mark in _REPETITIONS)
            return 1
        if piece.mark == "{":
            return self._count(index)
        if piece.mark in _REPETITIONS:
            self._repeat(piece, piece.mark)
            return 1
        if piece.mark == "(":
            pieces = self._group(index)
            self._groups.append(piece.at)
            self._put(piece, "(?:", before="")  # captures are not used
            return pieces
        if piece.mark == ")" and self._groups:
            self._groups.pop()
            return self._put(piece, ")")
        if piece.mark == "|":
            return self._put(piece, "|", before="")
        raise BadValue(_MISPLACED[piece.mark], piece.at)

    def _text(self, piece: Piece, *, repeated: bool) -> None:
        """Write plain text; a repetition applies to one character of the file."""
        text = escaped(piece.text)
        if text:
            self._put(piece, f"(?:{text})" if repeated and piece.whole else text)

    def _put(self, piece: Piece, text: str, *, before: str = "one") -> int:
        self._written.append(text)
        self._origins.append(piece.at)
        self._before = before
        return 1

    def _repeat(self, piece: Piece, text: str) -> None:
        if not self._before:
            raise BadValue(f"there is nothing before \\{piece.mark} that it could repeat", piece.at)
        if self._before == "repeated" and piece.mark == "?":
            self._put(piece, text, before="seldom")
        elif self._before == "one":
            self._put(piece, text, before="repeated")
        else:
            raise BadValue(rf"\{piece.mark} comes after another repetition; put what it is to repeat in \( \)", piece.at)

    def _count(self, index: int) -> int:
        end = index + 1
        while self._pieces[end].text:
            end += 1
        text = joined(self._pieces[index + 1 : end])
        found = _COUNT.fullmatch(text)
        if found is None or self._pieces[end].mark != "}":
            raise BadValue(r"after \{ come one or two numbers and \}, as in \{3\}, \{3,\} or \{3,9\}", self._pieces[index].at)
        low, high = int(found["low"]), int(found["high"] or found["low"])
        if low > high or high > MAX_COUNT:
            why = f"{low} is above {high}" if low > high else f"RE2 repeats nothing more than {MAX_COUNT:,} times"
            raise BadValue(why, self._pieces[index + 1].at)
        self._repeat(self._pieces[index], f"{{{text}}}")
        return end + 1 - index

    def _group(self, index: int) -> int:
        r"""Return the number of pieces that open a group; for `\(\?:`, remove the colon from the following text."""
        if self._pieces[index + 1].mark != "?":
            return 1
        sort = joined(self._pieces[index + 2 : index + 4])
        if sort.startswith(":"):
            colon = self._pieces[index + 2]
            self._pieces[index + 2] = colon._replace(text=colon.text[1:], at=colon.at + 1)
            return 2
        if sort.startswith(("=", "!", "<=", "<!", "%3C=", "%3C!", "%3c=", "%3c!")):
            raise BadValue("looking ahead or behind is not supported, because it can hold a crawl up", self._pieces[index].at)
        raise BadValue(r"groups are written \( \) or \(\?: \); they have no names and no flags", self._pieces[index].at)

    def _refused(self, source: str, reason: bytes | str) -> BadValue:
        reported = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        place = max(source.rfind(reported.partition(": ")[2]), 0)
        at, length = 0, 0
        for text, origin in zip(self._written, self._origins, strict=True):
            if length > place:
                break
            at, length = origin, length + len(text)
        if reported.startswith("invalid repetition size"):
            return BadValue(f"repetitions inside each other make more than {MAX_COUNT:,}, which is more than RE2 takes", at)
        kind = TooLarge if reported.startswith("pattern too large") else BadValue
        return kind(f"RE2 cannot use this expression: {reported.partition(': ')[0]}", at)


_REPETITIONS = tuple("*+?{")
_SPECIAL = re.compile(r"[\\^$.*+?\[\](){}|]")
_MISPLACED = {
    ")": r"there is no \( before this \)",
    "]": r"there is no \[ before this \]",
    "}": r"there is no \{ before this \}",
    "^": r"\^ is allowed only at the beginning of a value, and after \[",
    "$": r"\$ is allowed only at the end of a value",
}
_COUNT = re.compile(r"(?P<low>[0-9]{1,9})(?:,(?P<high>[0-9]{0,9}))?")
_RANGE = re.compile(r"\s*\[\s*(?P<low>[0-9]{0,9})\s*(?::\s*(?P<high>[0-9]{0,9})\s*)?\]\s*")
_RANGE_BEGUN = re.compile(r"\s*(?:\[\s*[0-9]{0,9}\s*(?::\s*[0-9]{0,9}\s*)?(?:\]\s*)?)?")
_RANGES = "ranges are written [3:9], [:9], [3:] or [9]"


def _pieces(text: str, field: Field) -> Iterator[Piece]:
    at = 0
    while at < len(text):
        mark = text[at + 1 : at + 2]
        if text[at] != "\\":
            end = text.find("\\", at)
            run = text[at:end] if end >= 0 else text[at:]
            yield Piece(run, at)
            at += len(run)
        elif mark == "[":
            choice, end = _choice(text, at, field)
            yield Piece("", at, choice=choice)
            at = end
        else:
            _check_mark(mark, at)
            yield Piece("\\", at) if mark == "\\" else Piece("", at, mark=mark)
            at += 2


def _check_mark(mark: str, at: int) -> None:
    if mark and mark in f"{SPECIAL}\\":
        return
    if mark.isdigit():
        raise BadValue("back references are not supported, because they can hold a crawl up", at)
    instead = r"; a digit is \[0-9\]" if mark == "d" else ""
    raise BadValue(
        rf"a backslash is allowed only before one of {SPECIAL} to give it its meaning; a plain backslash is written \\{instead}",
        at,
    )


def _choice(text: str, start: int, field: Field) -> tuple[str, int]:
    r"""Return the text from `\[` to `\]` in RE2's syntax, and the index of its end."""
    at = start + 2
    negated = text.startswith(r"\^", at)
    at += 2 * negated
    characters: list[tuple[str, int]] = []
    while not text.startswith(r"\]", at):
        if at >= len(text):
            raise BadValue(r"\[ is not closed by \]", start)
        begin, character = at, text[at]
        if character == "\\":
            _check_mark(text[at + 1 : at + 2], at)
            at, character = at + 1, text[at + 1]
        elif is_escaped(character, field) or (field is Field.HOST and not character.isascii()):
            if character == "^" and not characters and not negated:
                raise BadValue(r"'none of these characters' is written \[\^ \]; a plain ^ is %5E in URLs", at)
            spelled = quote(character, safe="") if field is not Field.HOST else "xn--…"
            raise BadValue(rf"{character!r} is {spelled} in URLs and so cannot be between \[ and \]; use \( \| \)", at)
        characters.append((character, begin))
        at += 1
    if not characters:
        raise BadValue(r"there is no character between \[ and \]", start)
    written = []
    index = 0
    while index < len(characters):
        low, begin = characters[index]
        written.append(_in_choice(low))
        index += 1
        if index + 1 < len(characters) and text[characters[index][1]] == "-":
            high = characters[index + 1][0]
            if low > high:
                raise BadValue(f"{low}-{high} runs backwards", begin)
            written.append(f"-{_in_choice(high)}")
            index += 2
    return f"[{'^' * negated}{''.join(written)}]", at + 2


def _in_choice(character: str) -> str:
    return f"\\{character}" if character in r"\[]^-" else character


def _anchored(pieces: list[Piece], kind: Kind, *, begins: bool, ends: bool) -> Kind:
    """Return the kind of comparison anchored at the beginning or the end."""
    depth = 0
    for piece in pieces:
        depth += (piece.mark == "(") - (piece.mark == ")")
        if piece.mark == "|" and depth == 0:
            raise BadValue(r"\^ and \$ are of the whole value, which \| divides here; put the alternatives in \( \)", piece.at)
    if begins:
        kind = {Kind.INSIDE: Kind.PREFIX, Kind.SUFFIX: Kind.EXACT}.get(kind, kind)
    if ends:
        kind = {Kind.INSIDE: Kind.SUFFIX, Kind.PREFIX: Kind.EXACT}.get(kind, kind)
    return kind


def as_compared(pieces: list[Piece], field: Field, *, norm: Norm) -> Iterator[Piece]:
    """Yield the pieces, with text in the spelling of URLs."""
    start = 0
    while start < len(pieces):
        end = start
        while end < len(pieces) and pieces[end].text:
            end += 1
        yield from as_in_urls(pieces[start:end], field, norm=norm, begins=start == 0, ends=end == len(pieces))
        yield from pieces[end : end + 1]
        start = end + 1


def plain_value(text: str, field: Field, *, kind: Kind, norm: Norm) -> str:
    """Return the compared form of a value without an expression."""
    if not text and kind is not Kind.EXACT:
        raise BadValue("the value is empty, so this holds for every URL; leave it out, or use kind exact")
    if kind is not Kind.EXACT:
        return text
    if field is Field.SCHEME and (text.lower() if norm is Norm.NORM else text) not in DEFAULT_PORTS:
        raise BadValue(f"{quoted(text)} is no scheme that is crawled; expected {' or '.join(DEFAULT_PORTS)}")
    if field is Field.URL and norm is Norm.NORM:
        try:
            url = parse(text)
        except MalformedUrl:
            return text
        return url.text if url.scheme in DEFAULT_PORTS else text
    return text


# --- Parsing of the values of a rules.xml as usual regular expressions, where CRAWLSPACE_RULES_XML_REGEX is "standard" ---
# The syntax is RE2's (https://github.com/google/re2/wiki/Syntax). What an expression spells out is brought to the spelling of URLs in
# normal form, as in the other reading; classes of characters, escapes and flags stay as they are. A value that spells out all of
# what it matches becomes plain text, which is found faster: `^/watch\.html` is the text `/watch.html` at the beginning.


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
