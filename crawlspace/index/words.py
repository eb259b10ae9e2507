"""Search texts as queries for FTS5, and the other forms of their words.

All plain words must occur, in any of their forms; `"quoted words"` must be adjacent; `word*` matches prefixes; `-word` must not occur.
Everything else is read as words: search texts never contain FTS5 syntax.

Other forms of a word are found by Snowball's stemmers: `installation` finds `installing`, `Einstellung` finds `Einstellungen`. The index has
the words as they are written, and a query searches for all words with the same stem. So a stemmer reads a few hundred words for a query, and
none while a page is recorded. The languages are those of the documents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

import apsw
from Stemmer import Stemmer

from crawlspace.errors import UsageError
from crawlspace.index.ideographs import MARK, is_ideograph, separated
from crawlspace.text import quoted

_TERM = re.compile(r'(-?)(?:"([^"]*)"?|([^\s"]+))(\*?)')
_MOST_PIECES = 40
"""Alternatives in a query for some of the words: more would be slow, and find nothing better."""

Tokenize = Callable[[str], Sequence[str]]
"""Returns the words of a text as the index has them: without accents, in lower case."""
Forms = Callable[[str], Sequence[str]]
"""Returns the other forms of a word that the index has."""


@dataclass(frozen=True, slots=True)
class Term:
    """Words that must be side by side, the last one perhaps only as a prefix."""

    words: tuple[str, ...]
    is_quoted: bool = False
    is_prefix: bool = False
    forms: tuple[str, ...] = ()
    """Other forms of its only word."""
    written: str = ""
    """The words as they were written, without quotes and star."""

    @property
    def fts(self) -> str:
        if self.forms:
            return "(" + " OR ".join(f'"{form}"' for form in (*self.words, *self.forms)) + ")"
        return f'"{" ".join(self.words)}"' + (" *" if self.is_prefix else "")

    def pieces(self) -> Iterator[str]:
        """Yield the parts of a term to search for if the whole is not found: its words, and pairs of characters of a word without spaces."""
        if self.is_quoted or self.is_prefix or self.forms:
            yield self.fts
            return
        for at, word in enumerate(self.words):
            if word == MARK:
                continue
            following = self.words[at + 1 : at + 2]
            if not is_ideograph(word):
                yield f'"{word}"'
            elif following and is_ideograph(following[0]):
                yield f'"{word} {following[0]}"'


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """The terms of a search text."""

    wanted: tuple[Term, ...]
    unwanted: tuple[Term, ...]

    @property
    def fts(self) -> str:
        """The query for documents that have all terms."""
        return self._without_unwanted(" AND ".join(term.fts for term in self.wanted))

    @property
    def fts_of_some(self) -> str:
        """The query for documents with all quoted words and prefixes, and some of the other words; empty if there are no others."""
        pieces = list(dict.fromkeys(piece for term in self.wanted for piece in term.pieces()))
        fixed = [term.fts for term in self.wanted if term.is_quoted or term.is_prefix]
        optional = [piece for piece in pieces if piece not in fixed][:_MOST_PIECES]
        if len(optional) < 2:
            return ""
        return self._without_unwanted(" AND ".join([*fixed, f"({' OR '.join(optional)})"]))

    def _without_unwanted(self, query: str) -> str:
        if not self.unwanted:
            return query
        return f"({query}) NOT ({' OR '.join(term.fts for term in self.unwanted)})"


def read_query(text: str, tokenize: Tokenize, forms: Forms) -> SearchQuery:
    """Return the query of a search text. Raises UsageError if it has no words.

    Excluded and quoted words have no other forms.
    """
    wanted: list[Term] = []
    unwanted: list[Term] = []
    for minus, phrase, word, star in _TERM.findall(text.replace("\0", " ").encode("utf-8", "replace").decode()):
        words = _without_marks(tokenize(separated(phrase or word)))
        if words:
            is_prefix = bool(star) or word.endswith("*")
            is_plain = len(words) == 1 and not (minus or phrase or is_prefix)
            others = tuple(forms(words[0])) if is_plain else ()
            term = Term(words, is_quoted=bool(phrase), is_prefix=is_prefix, forms=others, written=phrase or word.rstrip("*"))
            (unwanted if minus else wanted).append(term)
    if not wanted:
        shown = text.strip()
        raise UsageError(
            f"there is nothing to search for in {quoted(shown)}: give at least one word that is not excluded with -"
            if shown
            else "there is nothing to search for: give at least one word"
        )
    return SearchQuery(tuple(wanted), tuple(unwanted))


def _without_marks(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words without marks at the ends: a term may begin within a word of a page."""
    first, last = 0, len(words)
    while first < last and words[first] == MARK:
        first += 1
    while first < last and words[last - 1] == MARK:
        last -= 1
    return tuple(words[first:last])


ALGORITHMS = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english", "eo": "esperanto",
    "es": "spanish", "et": "estonian", "eu": "basque", "fa": "persian", "fi": "finnish", "fr": "french", "ga": "irish", "hi": "hindi",
    "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian", "lt": "lithuanian", "nb": "norwegian", "ne": "nepali",
    "nl": "dutch", "nn": "norwegian", "no": "norwegian", "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian",
    "sr": "serbian", "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip
_DEFAULT = ("english",)
"""For an index without a document of known language."""
_LAST = "\U0010ffff"
_SHORTEST = 3
_LONGEST_ENDING = 8
_MOST_LANGUAGES = 100
_MOST_WORDS = 3_000
"""Words of the index with the same beginning that are compared."""
_MOST_FORMS = 25
_LANGUAGES = "SELECT language FROM documents WHERE language > ? ORDER BY language LIMIT 1"
_WITH_BEGINNING = "SELECT term FROM vocabulary WHERE term >= ? AND term < ? LIMIT ?"


class Stems:
    """Finds the other forms of words in an open index."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db

    def stemmers(self, languages: tuple[str, ...] = ()) -> list[Stemmer]:
        """Return a stemmer for each language; by default, for those of the documents."""
        found = dict.fromkeys(ALGORITHMS.get(one.partition("-")[0].lower(), "") for one in languages or self._languages())
        return [Stemmer(name) for name in [*filter(None, found)] or _DEFAULT]

    def forms(self, word: str, stemmers: list[Stemmer]) -> tuple[str, ...]:
        """Return the other words of the index with the stem of a word in one of the languages."""
        if len(word) < _SHORTEST or not word.isalpha():
            return ()
        stems = [(stemmer, stemmer.stemWord(word)) for stemmer in stemmers]
        beginning = "".join(
            letters[0] for letters in takewhile(_are_equal, zip(word, *(stem for _, stem in stems), strict=False))
        )
        if len(beginning) < _SHORTEST:
            return ()
        rows = self._db.execute(_WITH_BEGINNING, (beginning, beginning + _LAST, _MOST_WORDS))
        longest = len(word) + _LONGEST_ENDING
        found = [str(term) for (term,) in rows if len(str(term)) <= longest and term != word]
        return tuple(form for form in found if any(stemmer.stemWord(form) == stem for stemmer, stem in stems))[:_MOST_FORMS]

    def _languages(self) -> list[str]:
        """Return the languages of the documents, without region; each step skips all documents of a language."""
        found: list[str] = []
        after = ""
        while len(found) < _MOST_LANGUAGES and (row := self._db.execute(_LANGUAGES, (after,)).fetchone()):
            found.append(str(row[0]).partition("-")[0])
            after = f"{found[-1]}-{_LAST}"
        return found


def _are_equal(letters: tuple[str, ...]) -> bool:
    return len(set(letters)) == 1
