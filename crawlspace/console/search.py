"""Searches as the pages show them: hits with marked words, facets as links, and what else the query asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crawlspace.console.templates import link
from crawlspace.errors import UsageError
from crawlspace.index.search import FILTERS, Hit, read_facets, read_filter, shown_name
from crawlspace.runtime.session.paths import CollectionPaths
from crawlspace.runtime.session.searching import MARKS, search

HITS = 10
MOST_PAGES = 100
LONGEST_QUERY = 500
"""Characters."""
_FACETS = ("host", "language", "type")


@dataclass(frozen=True, slots=True)
class ShownHit:
    """A document found; `snippet` has pieces of text, and whether each has words of the search."""

    hit: Hit
    title: str
    snippet: Sequence[tuple[str, bool]]


@dataclass(frozen=True, slots=True)
class FacetLink:
    """A value of a facet, the number of its documents, and where the search leads with or without it."""

    value: str
    number: int
    path: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class SearchPage:
    """What a search page shows. `error` says what is wrong with the query."""

    words: str
    number: int = 1
    total: int = 0
    hits: Sequence[ShownHit] = ()
    facets: Mapping[str, Sequence[FacetLink]] | None = None
    has_more: bool = False
    has_index: bool = True
    error: str = ""


def search_page(paths: CollectionPaths, path: str, query: Mapping[str, str], *, is_public: bool = False) -> SearchPage:
    """Search as the query of a page asks: `q` has the words, `page` the number of the page, and each filter its name.

    Raises StoreError if nothing can be searched.
    """
    words = " ".join(query.get("q", "").split())[:LONGEST_QUERY]
    if not words:
        return SearchPage("")
    text = query.get("page", "1")
    number = min(int(text), MOST_PAGES) if text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0 else 1
    chosen = {name: query[name] for name in FILTERS if query.get(name)}
    try:
        found = search(
            paths,
            words,
            limit=HITS,
            offset=(number - 1) * HITS,
            filters=[read_filter(f"{name}={value}") for name, value in chosen.items()],
            facets=read_facets(_FACETS),
            is_public=is_public,
        )
    except UsageError as error:
        return SearchPage(words, error=str(error))
    result = found.result
    return SearchPage(
        words,
        number,
        result.total,
        [shown_hit(hit) for hit in result.hits],
        {
            shown_name(name): [
                FacetLink(
                    value,
                    count,
                    link(path, query, page=None, **{name: None if chosen.get(name) == value else value}),
                    chosen.get(name) == value,
                )
                for value, count in values
            ]
            for name, values in result.facets.items()
            if values
        },
        has_more=result.total > number * HITS and number < MOST_PAGES,
        has_index=found.has_index,
    )


def shown_hit(hit: Hit) -> ShownHit:
    title = " ".join(hit.title.split())
    return ShownHit(hit, title, list(_pieces(hit.snippet)))


def _pieces(snippet: str) -> list[tuple[str, bool]]:
    """Return the pieces of a snippet between the marks."""
    opening, closing = MARKS
    pieces: list[tuple[str, bool]] = []
    for part in " ".join(snippet.split()).split(opening):
        inside, mark, after = part.partition(closing)
        if mark:
            pieces.append((inside, True))
            inside = after
        if inside:
            pieces.append((inside, False))
    return pieces
