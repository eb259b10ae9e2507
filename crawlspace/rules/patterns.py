"""The first of many `*` patterns that matches a text, about as fast for a hundred thousand patterns as for ten.

A pattern is literal text with `*` for any characters, and must match the whole text. Patterns are not tried in order; each is
stored where a matching text leads to it:

* without a star, in a dict;
* `head*` and `*tail`, in tables that return the longest known prefix (or, reversed, suffix) of a text;
* `head*inner*tail`, in a bucket of its head or its tail, as long as few patterns share that;
* the rest, in an Aho-Corasick automaton under the rarest of their literals.

Candidates from a bucket or the automaton are verified from left to right with `str.find`; there are no regular expressions, so no
pattern takes exponential time. Thousands of patterns made of the same few literals in different combinations remain costly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import ahocorasick

from crawlspace.text import Glob, compile_glob

NO_MATCH = 1 << 62
"""Larger than the index of any pattern."""

_BUCKET = 16
"""Maximal patterns with one head in a bucket; for more, the automaton is faster than verifying each."""


class Budget:
    """The number of comparisons of a pattern with a text that may still be made."""

    __slots__ = ("_left",)

    def __init__(self, comparisons: int) -> None:
        self._left = comparisons

    def spend(self, comparisons: int) -> bool:
        """Subtract comparisons. Return whether there were enough."""
        self._left -= comparisons
        return self._left >= 0


class PatternIndex:
    """Compiled patterns; immutable. The index of a pattern is its position in the sequence."""

    __slots__ = ("_automaton", "_everything", "_exact", "_heads", "_tails")

    def __init__(self, patterns: Iterable[str], *, open_end: bool = False) -> None:
        """`open_end` adds a star to the end of each pattern."""
        self._exact: dict[str, int] = {}
        heads: dict[str, int] = {}
        tails: dict[str, int] = {}
        stars_inside: dict[str, int] = {}
        for index, written in enumerate(patterns):
            if open_end and "*" not in written:
                heads.setdefault(written, index)
                continue
            pattern = collapse(f"{written}*" if open_end else written)
            stars = pattern.count("*")
            if stars == 0:
                self._exact.setdefault(pattern, index)
            elif stars == 1 and pattern[-1] == "*":
                heads.setdefault(pattern[:-1], index)
            elif stars == 1 and pattern[0] == "*":
                tails.setdefault(pattern[:0:-1], index)
            else:
                stars_inside.setdefault(pattern, index)
        self._everything = heads.pop("", NO_MATCH)
        general: list[_Glob] = []
        for pattern, index in stars_inside.items():
            general.append(_Glob(index, compile_glob(pattern)))
        by_head, by_tail, by_literal = _file(general)
        self._heads = _Anchored(heads, by_head) if heads or by_head else None
        self._tails = _Anchored(tails, by_tail) if tails or by_tail else None
        self._automaton = _automaton(by_literal)

    def covering(self, text: str, budget: Budget) -> int:
        """As `first`; when the budget for comparing patterns one by one is spent, a larger index or NO_MATCH."""
        best = min(self._exact.get(text, NO_MATCH), self._everything)
        if self._heads is not None:
            best = self._heads.first(text, text, best, budget)
        if self._tails is not None:
            best = self._tails.first(text[::-1], text, best, budget)
        if self._automaton is not None:
            for globs in _found_once(self._automaton, text):
                if not budget.spend(len(globs)):
                    break
                best = _first_glob(globs, text, best)
        return best

    def first(self, text: str) -> int:
        """Return the smallest index of a pattern that matches the whole text, or NO_MATCH."""
        best = self._exact.get(text, NO_MATCH) if self._exact else NO_MATCH
        if self._everything < best:  # noqa: PLR1730 - `min` takes as long as the rest of the look-up
            best = self._everything
        if self._heads is not None:
            best = self._heads.first(text, text, best)
        if self._tails is not None:
            best = self._tails.first(text[::-1], text, best)
        if self._automaton is not None:
            for globs in _found_once(self._automaton, text):
                best = _first_glob(globs, text, best)
        return best


def collapse(pattern: str) -> str:
    """Return the pattern with each run of stars replaced by one star."""
    while "**" in pattern:
        pattern = pattern.replace("**", "*")
    return pattern


class LongestPrefix:
    """The longest of many strings that a text begins with; the number of look-ups is logarithmic in the number of string lengths.

    Binary search on prefix lengths: Waldvogel, Varghese, Turner, Plattner, "Scalable High Speed IP Routing Lookups", SIGCOMM
    1997. A marker is stored where a search has to continue with greater lengths; it has its longest prefix string.
    """

    __slots__ = ("_lengths", "_parents", "_strings", "_table")

    def __init__(self, strings: Iterable[str]) -> None:
        self._strings = sorted(strings)  # a string comes after its own prefixes
        self._lengths = sorted({len(s) for s in self._strings})
        markers = {length: _lengths_before(self._lengths, length) for length in self._lengths}
        self._table: dict[str, int] = {}
        self._parents: list[int] = []
        table, strings = self._table, self._strings
        begun: list[int] = []  # the strings that are prefixes of this one, shorter ones first
        for number, string in enumerate(strings):
            while begun and not string.startswith(strings[begun[-1]]):
                begun.pop()
            self._parents.append(begun[-1] if begun else -1)
            table[string] = number
            for length in markers[len(string)]:
                marker = string[:length]
                if marker not in table:
                    table[marker] = next((one for one in reversed(begun) if len(strings[one]) <= length), -1)
            begun.append(number)

    @property
    def strings(self) -> Sequence[str]:
        """The strings, each after its own prefixes; `find` returns indices of this sequence."""
        return self._strings

    @property
    def parents(self) -> Sequence[int]:
        """For each string the index of its longest proper prefix among the strings, or -1."""
        return self._parents

    def find(self, text: str) -> int:
        """Return the index of the longest string that the text begins with, or -1."""
        table, lengths = self._table, self._lengths
        low, high, best = 0, len(lengths) - 1, -1
        while low <= high:
            middle = (low + high) >> 1
            found = table.get(text[: lengths[middle]])
            if found is None:
                high = middle - 1
            else:
                best = found
                low = middle + 1
        return best


def _lengths_before(lengths: Sequence[int], wanted: int) -> list[int]:
    """Return the lengths at which the search for a string of the wanted length continues with greater ones."""
    low, high = 0, len(lengths) - 1
    turned: list[int] = []
    while lengths[middle := (low + high) >> 1] != wanted:
        if lengths[middle] > wanted:
            high = middle - 1
        else:
            turned.append(lengths[middle])
            low = middle + 1
    return turned


class _Glob(NamedTuple):
    """A pattern with stars inside, and its index."""

    number: int
    pattern: Glob


class _Bucket(NamedTuple):
    """The globs stored under one head."""

    globs: Sequence[_Glob]
    shorter: _Bucket | None
    """The bucket of the next shorter head that has globs."""


class _Anchored:
    """Patterns found by the beginning of a text (or its end, if everything is reversed)."""

    __slots__ = ("_buckets", "_firsts", "_known")

    def __init__(self, literals: Mapping[str, int], buckets: Mapping[str, Sequence[_Glob]]) -> None:
        self._known = LongestPrefix(literals.keys() | buckets.keys() if buckets else literals)
        self._firsts: list[int] = []
        """For each beginning, the first literal pattern found with it, shorter beginnings included."""
        self._buckets: list[_Bucket | None] = []
        """For each beginning, its globs, or those of the next shorter one that has any; empty if there are no globs."""
        for string, parent in zip(self._known.strings, self._known.parents, strict=True):
            first = literals.get(string, NO_MATCH)
            self._firsts.append(first if parent < 0 else min(first, self._firsts[parent]))
            if buckets:
                shorter = None if parent < 0 else self._buckets[parent]
                globs = buckets.get(string)
                self._buckets.append(shorter if globs is None else _Bucket(globs, shorter))

    def first(self, text: str, whole: str, best: int, budget: Budget | None = None) -> int:
        index = self._known.find(text)
        if index < 0:
            return best
        first = self._firsts[index]
        best = min(best, first)
        if self._buckets:
            bucket = self._buckets[index]
            while bucket is not None and (budget is None or budget.spend(len(bucket.globs))):
                best = _first_glob(bucket.globs, whole, best)
                bucket = bucket.shorter
        return best


def _found_once(automaton: ahocorasick.Automaton, text: str) -> Iterator[Sequence[_Glob]]:
    """Yield the globs stored under the literals in a text, each list once."""
    seen: set[int] = set()
    for _, globs in automaton.iter(text):
        number = globs[0].number
        if number not in seen:
            seen.add(number)
            yield globs


def _first_glob(globs: Sequence[_Glob], text: str, best: int) -> int:
    """Return the index of the first glob that matches, or `best` if that is smaller. `globs` are sorted by index."""
    for glob in globs:
        if glob.number >= best:
            return best
        if glob.pattern.matches(text):
            return glob.number
    return best


def _file(globs: Sequence[_Glob]) -> tuple[dict[str, list[_Glob]], dict[str, list[_Glob]], list[_Glob]]:
    """Divide globs into those stored by head, by reversed tail, and by a literal."""
    heads = Counter(glob.pattern.head for glob in globs)
    tails = Counter(glob.pattern.tail for glob in globs)
    by_head: dict[str, list[_Glob]] = {}
    by_tail: dict[str, list[_Glob]] = {}
    by_literal: list[_Glob] = []
    for glob in globs:
        head, _, tail = glob.pattern
        if head and heads[head] <= _BUCKET:
            by_head.setdefault(head, []).append(glob)
        elif tail and tails[tail] <= _BUCKET:
            by_tail.setdefault(tail[::-1], []).append(glob)
        else:
            by_literal.append(glob)
    return by_head, by_tail, by_literal


def _automaton(globs: Sequence[_Glob]) -> ahocorasick.Automaton | None:
    if not globs:
        return None
    counts = Counter(literal for glob in globs for literal in _literals(glob))
    filed: dict[str, list[_Glob]] = {}
    for glob in globs:
        rarest = min(_literals(glob), key=lambda literal: (counts[literal], -len(literal), literal))
        filed.setdefault(rarest, []).append(glob)
    automaton = ahocorasick.Automaton()
    for literal, found in filed.items():
        automaton.add_word(literal, tuple(found))
    automaton.make_automaton()
    return automaton


def _literals(glob: _Glob) -> set[str]:
    head, inner, tail = glob.pattern
    return {literal for literal in (head, *inner, tail) if literal}
