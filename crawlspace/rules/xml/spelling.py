"""Normalise the text of rule values to the spelling of URLs in normal form; otherwise it would never match.

Escapes are as in crawlspace.urls, other characters than ASCII are escaped, and host labels outside ASCII get their xn-- form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import quote

from crawlspace.rules.xml.model import Field, Norm
from crawlspace.text import quoted
from crawlspace.urls import MalformedUrl, parse


class BadValue(ValueError):
    """A wrong value; the message is shown at the character with index `at`."""

    def __init__(self, message: str, at: int = 0) -> None:
        super().__init__(message)
        self.at = at


class Piece(NamedTuple):
    """A text, or the `mark` after a backslash, or a `choice` of characters in RE2's syntax.

    `whole`: the text spells one character or host label, and must not be split.
    """

    text: str
    at: int
    mark: str = ""
    choice: str = ""
    whole: bool = False


def as_in_urls(run: list[Piece], field: Field, *, norm: Norm, begins: bool = True, ends: bool = True) -> list[Piece]:
    """Return text as in URLs in normal form; `begins` and `ends`: it is the beginning or the end of the value."""
    text = joined(run)
    if field is Field.SCHEME or field is Field.FRAGMENT or AS_IT_IS.fullmatch(text):
        return run
    run = [Piece(character, piece.at + index) for piece in run for index, character in enumerate(piece.text)]
    if field is Field.HOST:
        return _host(run, begins=begins, ends=ends)
    authority = _AUTHORITY.match(text) if field is Field.URL and begins else None
    if authority is None:
        return list(_with_escapes(run, field, norm=norm))
    start, end = authority.span(1)
    host = _host(run[start:end], begins=True, ends=ends or end < len(run))
    return [*run[:start], *host, *_with_escapes(run[end:], field, norm=norm)]


def is_escaped(character: str, field: Field) -> bool:
    return field in _ESCAPED and (not "!" <= character <= "~" or character in _ESCAPED[field])


def joined(pieces: Iterable[Piece]) -> str:
    return "".join(piece.text for piece in pieces)


# Characters that don't change in URLs, so that most values need no normalisation.
AS_IT_IS = re.compile(r"[!#$&()*+,./0-9:;=?@A-Z\[\\\]_a-z|~-]*")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_AUTHORITY = re.compile(r"https?://([^/?#:]*)", re.IGNORECASE)
_ESCAPED = {Field.URL: '"<>', Field.PATH: '"<>^`{}', Field.QUERY: "\"<>'"}
"""Characters always escaped in a part of a URL, besides blanks and all characters outside ASCII."""


def _with_escapes(run: list[Piece], field: Field, *, norm: Norm) -> Iterator[Piece]:
    text = joined(run)
    index = 0
    while index < len(run):
        piece = run[index]
        index += 1
        if escape := _ESCAPE.match(text, index - 1):
            character = chr(int(escape[0][1:], 16))
            spelled = character if _UNRESERVED.fullmatch(character) else escape[0].upper()
            index += 2
        elif is_escaped(piece.text, field):
            spelled = quote(piece.text, safe="")
        else:
            spelled = piece.text
        if len(spelled) > 1:
            yield Piece(spelled.lower() if norm is Norm.LOWER else spelled, piece.at, whole=True)
        else:
            yield piece._replace(text=spelled)


def _host(run: list[Piece], *, begins: bool, ends: bool) -> list[Piece]:
    """Return labels with letters outside ASCII in xn-- form."""
    if joined(run).isascii():
        return run
    dots = [index for index, piece in enumerate(run) if piece.text == "."]
    spelled: list[Piece] = []
    for start, end in zip([0, *(dot + 1 for dot in dots)], [*dots, len(run)], strict=True):
        label = joined(run[start:end])
        if label.isascii():
            spelled += run[start:end]
        elif (start == 0 and not begins) or (end == len(run) and not ends):
            raise BadValue(
                f"{quoted(label)} is not a whole part of a host name; write its xn-- form, which is compared", run[start].at
            )
        else:
            spelled.append(Piece(_label(label, run[start].at), run[start].at, whole=True))
        spelled += run[end : end + 1]
    return spelled


def _label(label: str, at: int) -> str:
    try:
        if not set(label) & set("/?#@:\\%[]"):
            return parse(f"http://{label}/").host
    except MalformedUrl:
        pass
    raise BadValue(f"{quoted(label)} is no part of a host name", at)
