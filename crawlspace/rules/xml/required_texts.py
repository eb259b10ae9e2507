"""Plain texts that must occur wherever a regular expression matches, so that most texts need not be matched at all.

Finding plain texts is far cheaper than matching expressions, and thousands of them can be found at once. Only what is certain is read
from an expression; where that is uncertain, nothing.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"""(?P<literal> \\[!-/:-@\[-`{-~] | [^\\.\[\](){}^$|*+?\x80-\U0010ffff] )
      | (?P<other> \\[dDwWsSbBAz] | [.^$] | \[ \^? \]? (?: \[:\^?\w+:\] | \\. | [^\]\\] )* \] )
      | (?P<open> \( (?: \?: | \?P?<\w+> | (?!\?) ) )
      | (?P<close> \) )
      | (?P<or> \| )
      | (?P<optional> (?: [*?] | \{0+(?:,\d*)?\} ) \?? )
      | (?P<repeated> (?: \+ | \{\d+(?:,\d*)?\} ) \?? )""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_MOST_CHOICES = 50
_ANYTHING: frozenset[str] = frozenset()


def required_texts(source: str) -> list[frozenset[str]]:
    """Return sets of plain texts: wherever the expression matches, at least one text of each set occurs.

    An expression with anything uncommon in it (flags, characters by number, `\\Q`, letters beyond ASCII) has none. Its syntax:
    https://github.com/google/re2/wiki/Syntax
    """
    groups = [_Group()]
    at = 0
    before = ""
    while at < len(source):
        token = _TOKEN.match(source, at)
        if token is None:
            return []
        at = token.end()
        kind, pieces = token.lastgroup or "", groups[-1].pieces
        if kind == "literal":
            pieces.append(token[0][-1])
        elif kind == "other":
            pieces.append(_ANYTHING)
        elif kind == "open":
            groups.append(_Group())
        elif kind == "or":
            groups[-1].next_alternative()
        elif kind == "close":
            if len(groups) == 1:
                return []
            closed = groups.pop()
            closed.next_alternative()
            groups[-1].pieces.append(max(closed.choices(), key=shortest, default=_ANYTHING))
        elif not pieces or before in {"optional", "repeated"}:
            return []
        elif kind == "optional":
            pieces[-1] = _ANYTHING
        else:
            pieces.append(_ANYTHING)  # the next character does not follow on the one that is repeated
        before = kind
    if len(groups) > 1:
        return []
    groups[0].next_alternative()
    return groups[0].choices()


def shortest(texts: frozenset[str]) -> int:
    """Return the length of the shortest text, 0 without any."""
    return min(map(len, texts), default=0)


class _Group:
    """A group of an expression as far as it has been read."""

    __slots__ = ("alternatives", "pieces")

    def __init__(self) -> None:
        self.alternatives: list[list[frozenset[str]]] = []
        self.pieces: list[str | frozenset[str]] = []
        """Of the alternative being read: a character, or texts of which one occurs there."""

    def next_alternative(self) -> None:
        runs = "".join(piece if isinstance(piece, str) else "\0" for piece in self.pieces).split("\0")
        needed = [piece for piece in self.pieces if isinstance(piece, frozenset) and piece]
        self.alternatives.append(needed + [frozenset({run}) for run in runs if run])
        self.pieces = []

    def choices(self) -> list[frozenset[str]]:
        """What is needed whichever alternative matches."""
        if len(self.alternatives) == 1:
            return self.alternatives[0]
        best = [max(needed, key=lambda texts: (shortest(texts), -len(texts)), default=_ANYTHING) for needed in self.alternatives]
        together = frozenset().union(*best)
        return [together] if all(best) and len(together) <= _MOST_CHOICES else []
