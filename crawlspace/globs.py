"""Patterns with `*` for any run of characters, compared with a whole text."""

from __future__ import annotations

from typing import NamedTuple


class Glob(NamedTuple):
    """A pattern divided at its stars."""

    head: str
    inner: tuple[str, ...]
    """What stands between two stars."""
    tail: str | None
    """None where there is no star."""

    def matches(self, text: str) -> bool:
        """Return whether a text is as the pattern; each part is looked for once, from left to right."""
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
    """Return a pattern in the form in which it is compared."""
    head, *rest = pattern.split("*")
    return Glob(head, tuple(filter(None, rest[:-1])), rest[-1] if rest else None)
