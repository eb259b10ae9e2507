r"""Find out of thousands of comparisons those that match a URL, in a few look-ups for each part of the URL.

The comparisons of one part of the URL, case-sensitive or not, are matched together:

* a plain text for the whole part, in a dict;
* plain texts at the beginning, the end or inside, by one Aho-Corasick automaton; the position of a hit decides;
* lengths, in a table cached for each length;
* regular expressions by RE2, whose time is proportional to the text for every expression. Most can match only where some plain
  text occurs (`/old\.\*report` only where `/old` and `report` do); these are tried when the automaton has found the rarest of
  these texts. Expressions tried together form one `re2.Set`: small sets, so that their automata stay small, too.

A `re2.Set` that runs out of memory finds nothing, and its Python interface can't distinguish that from no match (google/re2 issue
136). So each set has one more expression that always matches; when it is missing, the expressions are tried one by one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import ahocorasick
import re2

from crawlspace.cache import RecentByWeight
from crawlspace.rules.xml.model import Atom, Expression, Field, Kind, Norm, Range
from crawlspace.urls import Url

SET_MEMORY = 64 << 20
"""Maximal bytes for one set of expressions, or one expression; far more than ordinary ones need."""

_SET_SIZE = 200
"""Maximal expressions of a set. More would make the states of the set's automaton large and slow to build."""

_MIN_TEXT = 3
"""Minimal length of a text to search for first; a shorter one is in nearly every URL."""

_CACHED = 50_000
"""Maximal numbers of atoms in each generation of a cache, for hosts and for lengths."""


class AtomMatcher:
    """Immutable but for caches. Raises `re2.error` for an expression that RE2 refuses."""

    def __init__(self, atoms: Mapping[int, Atom], *, host_case_sensitive: bool = True, set_memory: int = SET_MEMORY) -> None:
        """`host_case_sensitive`: whether capitals of a host count where a value is compared as written."""
        parts: dict[tuple[Field, bool], dict[int, Atom]] = {}
        for number, atom in atoms.items():
            parts.setdefault((atom.field, atom.norm is Norm.NONE), {})[number] = atom
        self._parts = [
            (
                _text_of(field, as_written=as_written, host_case_sensitive=host_case_sensitive),
                _Part(own, in_few_values=field in _IN_FEW_VALUES, set_memory=set_memory),
            )
            for (field, as_written), own in parts.items()
        ]

    def matching(self, url: Url) -> frozenset[int]:
        """Return the numbers of the atoms that match a URL."""
        found: list[int] = []
        for text, part in self._parts:
            found += part.matching(text(url))
        return frozenset(found)


_IN_FEW_VALUES = frozenset({Field.SCHEME, Field.HOST, Field.FRAGMENT})
"""Parts with few different values in a crawl, whose matches are cached."""


def _text_of(field: Field, *, as_written: bool, host_case_sensitive: bool) -> Callable[[Url], str]:
    return _NORMAL[field] if as_written and not host_case_sensitive else text_of(field, as_written=as_written)


def text_of(field: Field, *, as_written: bool) -> Callable[[Url], str]:
    """Return a function that returns the text of a field of a URL: as written, or in lower case."""
    if as_written:
        return _AS_WRITTEN[field]
    if field in {Field.SCHEME, Field.HOST, Field.FRAGMENT}:  # the normal form has no capitals there
        return _NORMAL[field]
    normal = _NORMAL[field]
    return lambda url: normal(url).lower()


def _url_as_written(url: Url) -> str:
    if url.host_as_written == url.host:
        return url.text
    start = len(url.scheme) + len("://")
    return f"{url.text[:start]}{url.host_as_written}{url.text[start + len(url.host) :]}"


_NORMAL: Mapping[Field, Callable[[Url], str]] = {
    Field.URL: lambda url: url.text,
    Field.SCHEME: lambda url: url.scheme,
    Field.HOST: lambda url: url.host,
    Field.PATH: lambda url: url.path,
    Field.QUERY: lambda url: url.query or "",
    Field.FRAGMENT: lambda _: "",
}
_AS_WRITTEN: Mapping[Field, Callable[[Url], str]] = {
    **_NORMAL,
    Field.URL: _url_as_written,
    Field.HOST: lambda url: url.host_as_written,
}


class ExpressionSet:
    """Expressions tried together; each is a number and an expression with anchors and case in RE2's syntax."""

    __slots__ = ("_expressions", "_memory", "_numbers", "_one_by_one", "_set", "_witness")

    def __init__(self, expressions: Sequence[tuple[int, str]], *, memory: int = SET_MEMORY) -> None:
        self._expressions = expressions
        self._memory = memory
        self._numbers = [number for number, _ in expressions]
        self._witness = len(expressions)
        self._one_by_one: list[tuple[int, re2._Regexp]] | None = None
        self._set: re2.Set | None = re2.Set.SearchSet(_options(memory))
        for _, expression in expressions:
            self._set.Add(expression)
        self._set.Add(r"\z")
        try:
            self._set.Compile()
        except re2.error:  # matching with a set that did not compile crashes the process
            self._set = None
            self._singly()

    @property
    def compiled(self) -> bool:
        """Whether the expressions form one set; if not, for lack of memory, they are tried one by one."""
        return self._set is not None

    def matching(self, text: bytes) -> Sequence[int]:
        """Return the numbers of the expressions that match a text in UTF-8."""
        found = None if self._set is None else self._set.Match(text)
        if found is None or self._witness not in found:
            return [number for number, expression in self._singly() if expression.search(text) is not None]
        if len(found) == 1:
            return ()
        return [self._numbers[index] for index in found if index != self._witness]

    def _singly(self) -> list[tuple[int, re2._Regexp]]:
        """Return the expressions compiled singly: slow, but a single one is matched correctly without memory for an automaton."""
        if self._one_by_one is None:
            options = _options(max(self._memory, SET_MEMORY))
            self._one_by_one = [(number, re2.compile(text.encode(), options=options)) for number, text in self._expressions]
        return self._one_by_one


def _options(memory: int) -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    options.dot_nl = True  # a URL has no lines: a dot is any character
    options.never_capture = True
    options.max_mem = memory
    return options


class _Literal(NamedTuple):
    """The comparisons and sets that depend on a plain text."""

    length: int
    at_start: list[int]
    at_end: list[int]
    anywhere: list[int]
    sets: list[ExpressionSet]


class _Part:
    """The atoms of one part of the URL, either all case-sensitive or all in lower case."""

    __slots__ = ("_always", "_automaton", "_cache", "_exact", "_in_nothing", "_lengths", "_of_length", "_sets")

    def __init__(self, atoms: Mapping[int, Atom], *, in_few_values: bool, set_memory: int) -> None:
        self._always: list[int] = []
        self._exact: dict[str, list[int]] = {}
        self._lengths: list[tuple[Range, int]] = []
        self._of_length: RecentByWeight[int, list[int]] = RecentByWeight(_CACHED, lambda _, found: 1 + len(found))
        self._cache: RecentByWeight[str, list[int]] | None = None
        if in_few_values:
            self._cache = RecentByWeight(_CACHED, lambda _, found: 1 + len(found))
        literals: dict[str, _Literal] = {}
        expressions: dict[int, Atom] = {}
        for number, atom in atoms.items():
            if isinstance(atom.value, Range):
                self._lengths.append((atom.value, number))
            elif isinstance(atom.value, Expression):
                expressions[number] = atom
            else:
                self._file(number, atom.kind, atom.value.lower() if atom.norm is Norm.NORM else atom.value, literals)
        self._sets: list[ExpressionSet] = []
        for texts, found in _sets(expressions, set_memory):
            for text in texts:
                _literal(literals, text).sets.append(found)
            if not texts:
                self._sets.append(found)
        self._automaton = _automaton(literals)
        self._in_nothing = self._found("")

    def matching(self, text: str) -> list[int]:
        if not text:
            return self._in_nothing
        if self._cache is None:
            return self._found(text)
        found = self._cache.get(text)
        if found is None:
            found = self._found(text)
            self._cache.put(text, found)
        return found

    def _found(self, text: str) -> list[int]:
        found = self._always.copy()
        found += self._exact.get(text, ())
        if self._lengths:
            found += self._by_length(len(text))
        sets = self._sets
        if self._automaton is not None and text:
            last = len(text) - 1
            for end, (length, at_start, at_end, anywhere, of_literal) in self._automaton.iter(text):
                if anywhere:
                    found += anywhere
                if at_start and end + 1 == length:
                    found += at_start
                if at_end and end == last:
                    found += at_end
                if of_literal:
                    sets = sets + of_literal
        if sets:
            encoded = text.encode()
            for one in sets if len(sets) == 1 else dict.fromkeys(sets):
                found += one.matching(encoded)
        return found

    def _by_length(self, length: int) -> list[int]:
        found = self._of_length.get(length)
        if found is None:
            found = [number for (low, high), number in self._lengths if low <= length and (high is None or length <= high)]
            self._of_length.put(length, found)
        return found

    def _file(self, number: int, kind: Kind, text: str, literals: dict[str, _Literal]) -> None:
        if kind is Kind.EXACT:
            self._exact.setdefault(text, []).append(number)
        elif not text:
            self._always.append(number)
        elif kind is Kind.PREFIX:
            _literal(literals, text).at_start.append(number)
        elif kind is Kind.SUFFIX:
            _literal(literals, text).at_end.append(number)
        else:
            _literal(literals, text).anywhere.append(number)


def _literal(literals: dict[str, _Literal], text: str) -> _Literal:
    literal = literals.get(text)
    if literal is None:
        literal = literals[text] = _Literal(len(text), [], [], [], [])
    return literal


def _automaton(literals: Mapping[str, _Literal]) -> ahocorasick.Automaton | None:
    if not literals:
        return None
    automaton = ahocorasick.Automaton()
    for text, literal in literals.items():
        automaton.add_word(text, literal)
    automaton.make_automaton()
    return automaton


def _sets(atoms: Mapping[int, Atom], memory: int) -> Iterable[tuple[frozenset[str], ExpressionSet]]:
    """Yield sets of expressions, each with texts of which one occurs wherever one of them matches; no texts: always try it."""
    needed = {number: _needed(atom) for number, atom in atoms.items()}
    counts = Counter(text for choices in needed.values() for texts in set(choices) for text in texts)
    together: dict[frozenset[str], list[tuple[int, str]]] = {}
    for number, atom in atoms.items():
        rarest = min(needed[number], key=lambda texts: (sum(counts[t] for t in texts), -shortest(texts)), default=frozenset())
        together.setdefault(rarest, []).append((number, _anchored(atom)))
    for texts, expressions in together.items():
        for index in range(0, len(expressions), _SET_SIZE):
            yield texts, ExpressionSet(expressions[index : index + _SET_SIZE], memory=memory)


def _anchored(atom: Atom) -> str:
    assert isinstance(atom.value, Expression)
    start = r"\A" if atom.kind in {Kind.EXACT, Kind.PREFIX} else ""
    case = "(?i:" if atom.norm is Norm.NORM else "(?:"
    end = r"\z" if atom.kind in {Kind.EXACT, Kind.SUFFIX} else ""
    return f"{start}{case}{atom.value.source}){end}"


def _needed(atom: Atom) -> list[frozenset[str]]:
    assert isinstance(atom.value, Expression)
    choices = required_texts(atom.value.source)
    if atom.norm is Norm.NORM:
        choices = [frozenset(text.lower() for text in texts) for texts in choices]
    return [texts for texts in choices if shortest(texts) >= _MIN_TEXT]


# --- Plain texts that must occur wherever a regular expression matches, so that most texts need not be matched at all ---
# Finding plain texts is far cheaper than matching expressions, and thousands of them can be found at once. Only what is certain is read
# from an expression; where that is uncertain, nothing.

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
        """Return sets of texts of which one is needed whichever alternative matches."""
        if len(self.alternatives) == 1:
            return self.alternatives[0]
        best = [max(needed, key=lambda texts: (shortest(texts), -len(texts)), default=_ANYTHING) for needed in self.alternatives]
        together = frozenset().union(*best)
        return [together] if all(best) and len(together) <= _MOST_CHOICES else []
