"""Which of several lists of prefix targets apply to a URL: one look-up for a URL that none applies to, however many there are."""

from __future__ import annotations

from collections.abc import Sequence

from crawlspace.rules.patterns import NO_MATCH, PatternIndex
from crawlspace.text import compile_glob


class TargetLists:
    """Immutable after compilation. A list applies where one of its patterns does (`prefix_target`); an empty one applies everywhere."""

    __slots__ = ("_all", "_globs", "_is_any_empty")

    def __init__(self, lists: Sequence[Sequence[str]]) -> None:
        self._all = PatternIndex((pattern for patterns in lists for pattern in patterns), open_end=True)
        self._globs = [[compile_glob(f"{pattern}*") for pattern in patterns] for patterns in lists]
        self._is_any_empty = not all(lists)

    def applying(self, text: str) -> tuple[int, ...]:
        """Return the indexes of the lists that apply to a URL, given as its text in normal form."""
        if not self._globs or (not self._is_any_empty and self._all.first(text) == NO_MATCH):
            return ()
        return tuple(at for at, globs in enumerate(self._globs) if not globs or any(glob.matches(text) for glob in globs))
