"""How well title, headings and URL of a document fit a query.

BM25 counts words: it prefers a short page that mentions a word often to a long one that has it as a heading, and doesn't notice that a
title is the query itself. So the best by BM25 are reordered by closeness, too. The weights are those with which the right
pages of the open queries in `benchmarks/search_sets` came first most often; the result hardly depends on them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from crawlspace.index.words import Term, Tokenize

T = TypeVar("T")

REORDERED = 100
"""Number of the best documents by BM25 that are reordered by closeness."""
_OF_BM25 = 0.2
"""The weight of BM25 relative to closeness, for the best document."""
_OF_TITLE, _OF_HEADING, _OF_URL = 2.0, 2.0, 1.0
_OF_FORM = 0.7
"""The weight of another form of a word, relative to the word."""
_BETWEEN_PARTS = re.compile(r"\s+[-–—|:·»]\s+")
"""Between the title of a page and the name of its site."""
_EXTENSION = re.compile(r"\.\w{1,5}$")


def best_first(
    found: Sequence[tuple[T, float]], closeness: Callable[[T], float], *, best: float | None = None
) -> list[tuple[T, float]]:
    """Return documents with scores of BM25, best first, in the order of hits and with the scores of hits.

    `best` is the best score, if the documents before these are not given.
    """
    best = best or max((score for _, score in found), default=0.0) or 1.0
    scored = [(document, _OF_BM25 * score / best) for document, score in found]
    reordered = [(document, score + closeness(document)) for document, score in scored[:REORDERED]]
    reordered.sort(key=lambda one: -one[1])
    return [*reordered, *scored[REORDERED:]]


class Closeness:
    """Rates documents for the words of a query: 0 if none is in their title, headings or URL."""

    def __init__(self, wanted: Sequence[Term], tokenize: Tokenize) -> None:
        self._tokenize = tokenize
        self._words = frozenset(word for term in wanted for word in term.words[: -1 if term.is_prefix else None])
        self._forms = tuple({term.words[0]: frozenset(term.forms) for term in wanted if term.forms}.items())
        self._prefixes = tuple({term.words[-1] for term in wanted if term.is_prefix})
        self._number = len(self._words) + len(self._prefixes)

    def of(self, title: str, headings: str, url_words: str) -> float:
        """Return the rating of a document; headings are separated by line ends."""
        path = _EXTENSION.sub("", url_words).partition("/")[2]
        return (
            _OF_TITLE * self._best([title, *_BETWEEN_PARTS.split(title)])
            + _OF_HEADING * self._best(headings.split("\n"))
            + _OF_URL * self._best([path, path.rpartition("/")[2]])
        )

    def _best(self, texts: Iterable[str]) -> float:
        return max(self._share(self._tokenize(text)) if text else 0.0 for text in texts)

    def _share(self, words: Sequence[str]) -> float:
        """Return the share of the query's words that a text has, squared, times the share of the text that they are."""
        found = self._words.intersection(words)
        number = float(len(found)) + sum(any(word.startswith(prefix) for word in words) for prefix in self._prefixes)
        number += _OF_FORM * sum(word not in found and not forms.isdisjoint(words) for word, forms in self._forms)
        return (number / self._number) ** 2 * min(number / len(words), 1.0) if number else 0.0
