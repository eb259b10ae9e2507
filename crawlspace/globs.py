"""Glob patterns: `*` stands for any characters, and the pattern is compared with the whole text."""

from __future__ import annotations

from typing import NamedTuple


class Glob(NamedTuple):
    """A pattern split at its stars."""

    head: str
    inner: tuple[str, ...]
    """The texts between two stars."""
    tail: str | None
    """None for a pattern without a star."""

    def matches(self, text: str) -> bool:
        """Return whether the pattern matches a text; each part is searched once, from left to right."""
        head, inner, tail = self
        if tail is None:
            return text == head
        at, end = len(head), len(text) - len(tail)
        if end < at or not text.startswith(head) or not text.endswith(tail):
            return False
        for literal in inner:
            at = text.find(literal, at, end)
            if at < 0:
                return False
            at += len(literal)
        return True


def compile_glob(pattern: str) -> Glob:
    """Return a pattern in compiled form."""
    head, *rest = pattern.split("*")
    return Glob(head, tuple(filter(None, rest[:-1])), rest[-1] if rest else None)
