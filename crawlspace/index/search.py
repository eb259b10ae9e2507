"""What a search returns, and the interface of an index that can be searched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from crawlspace.index.filters import Filter

FEW = 3
"""Where fewer documents have all words, those that have some of them follow."""
FACET_VALUES = 20
"""Values of a facet at most."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One document found. A larger score is a better match; scores of different searches are not comparable."""

    url: str
    title: str
    snippet: str
    score: float
    language: str
    fields: Mapping[str, str]
    duplicates: tuple[str, ...]
    has_all_words: bool = True


@dataclass(frozen=True, slots=True)
class SearchResult:
    """`total` counts the documents that have all words. `hits` has the best of them; if they are few, others with some words follow."""

    total: int
    hits: tuple[Hit, ...]
    facets: Mapping[str, Sequence[tuple[str, int]]] = field(default_factory=dict)
    """Of each field asked for, its most frequent values among the documents counted, with their number."""


@runtime_checkable
class Searchable(Protocol):
    """An index that can be searched."""

    def search(
        self,
        words: str,
        *,
        limit: int = ...,
        offset: int = ...,
        marks: tuple[str, str] = ...,
        filters: Sequence[Filter] = ...,
        facets: Sequence[str] = ...,
    ) -> SearchResult:
        """Return the best matches for a search text; `words` has its syntax, and `filters` the names of facets.

        `marks` are put around the matching words of a snippet. Raises UsageError for a text without words, or hits that the index
        does not show, and IndexUnavailable.
        """

    def close(self) -> None: ...
