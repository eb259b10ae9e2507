"""A text that a regular expression matches, to show what it means."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import re2

from crawlspace.rules.url_spelling import Piece
from crawlspace.rules.xml.standard_values import units
from crawlspace.rules.xml.values import OPTIONS

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
