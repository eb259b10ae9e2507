"""Search in what a collection has sent to an index, for `scrapy search`, the console and programs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import NamedTuple

from crawlspace.config.sinks import SINKS, SQLITE, SinkOptions, is_searchable, made
from crawlspace.document import with_values
from crawlspace.errors import StoreError, UsageError
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.login_exclusion import REQUIRES_LOGIN
from crawlspace.index.search import OF_FIELDS, OWNER, Filter, FoundPart, Hit, Searchable, SearchResult, shown_name
from crawlspace.runtime.session.paths import CollectionPaths, refuse_missing_index
from crawlspace.text import quoted

MARKS = ("\ue000", "\ue001")
"""Around matching words: private-use characters, so that a page's control characters can be removed before the words are marked."""


class SearchAnswer(NamedTuple):
    """What a search has found. `has_index` is False where nothing was crawled yet."""

    result: SearchResult
    has_index: bool


def search(
    paths: CollectionPaths,
    words: str,
    *,
    sink: str | None = None,
    limit: int = 10,
    offset: int = 0,
    filters: Sequence[Filter] = (),
    facets: Sequence[str] = (),
    only_own: bool = False,
    is_public: bool = False,
) -> SearchAnswer:
    """Search a sink, the first that can be searched if none is named; snippets have MARKS around the words that were found.

    `only_own`: only documents of this collection, where an index is shared; `is_public`: and none whose page is behind a log-in.
    Raises UsageError for an unknown sink or a text without words, StoreError if nothing can be searched, and IndexUnavailable.
    """
    chosen = _chosen(paths, sink)
    if chosen.type == SQLITE and not _has_index(paths):
        return SearchAnswer(SearchResult(0, ()), has_index=False)
    may_be_shared = chosen.type == SQLITE and paths.index_file.parent != paths.state_file.parent
    if may_be_shared and (only_own or is_public):  # a server is always asked for those of the collection
        filters = [*filters, Filter(OWNER, paths.name)]
    if is_public:
        filters = [*filters, Filter(f"{OF_FIELDS}{REQUIRES_LOGIN}", "true", is_negated=True)]
    with closing(_opened(paths, chosen)) as index:
        result = index.search(words, limit=limit, offset=offset, marks=MARKS, filters=filters, facets=facets)
    return SearchAnswer(result, has_index=True)


def _chosen(paths: CollectionPaths, name: str | None) -> SinkOptions:
    """Return the sink to search. Raises UsageError for an unknown name, and StoreError if none can be searched."""
    sinks = paths.sinks.options
    if name is None:
        first = next(filter(is_searchable, sinks), None)
        if first is not None:
            return first
        others = ", ".join(f"{one.name} of type {one.type}" for one in sinks)
        raise StoreError(
            f"{paths.name} has no sink that can be searched, only {others}: give {SINKS} one of type sqlite, or that of a search server"
        )
    chosen = next((one for one in sinks if one.name == name), None)
    if chosen is None:
        raise UsageError(f"{paths.name} has no sink {quoted(name)}: it has {', '.join(paths.sinks.names)}")
    if not is_searchable(chosen):
        can = ", ".join(one.name for one in sinks if is_searchable(one))
        way = f"those that can are {can}" if can else f"{paths.name} has none that can"
        raise UsageError(f"the sink {name}, of type {chosen.type}, cannot be searched; {way}")
    return chosen


def _has_index(paths: CollectionPaths) -> bool:
    """Return whether there is an embedded index. Raises StoreError if there should be one here."""
    refuse_missing_index(paths)
    return paths.index_file.exists()


def _opened(paths: CollectionPaths, sink: SinkOptions) -> Searchable:
    if sink.type == SQLITE:
        return EmbeddedIndex(paths.index_file, read_only=True)
    made_of = made(sink)
    assert isinstance(made_of, Searchable), sink.type
    return made_of


def as_json(result: SearchResult) -> dict[str, object]:
    """Return what was found as JSON has it."""
    facets = {
        shown_name(name): [{"value": value, "count": number} for value, number in values]
        for name, values in result.facets.items()
    }
    return {"total": result.total, "hits": [_as_json(hit) for hit in result.hits], "facets": facets}


def _as_json(hit: Hit) -> dict[str, object]:
    snippet, found = without_marks(hit.snippet)
    return {
        "url": hit.url,
        "title": hit.title,
        "snippet": snippet,
        "found": found,
        "has_all_words": hit.has_all_words,
        "score": round(hit.score, 3),
        "language": hit.language,
        "fields": with_values(hit.fields),
        "duplicates": list(hit.duplicates),
        **({"parts": [_part_as_json(part) for part in hit.parts]} if hit.parts else {}),
    }


def _part_as_json(part: FoundPart) -> dict[str, object]:
    snippet, found = without_marks(part.snippet)
    return {
        "id": part.id,
        "key": part.key,
        "url": part.url,
        "headings": list(part.headings),
        "snippet": snippet,
        "found": found,
    }


def without_marks(snippet: str) -> tuple[str, list[list[int]]]:
    """Return a snippet without marks, and the first and last index (exclusive) of each place that was marked."""
    found: list[list[int]] = []
    text = ""
    opening, closing_mark = MARKS
    for part in snippet.split(opening):
        inside, mark, after = part.partition(closing_mark)
        if mark:
            found.append([len(text), len(text) + len(inside)])
        text += inside + after
    return text, found
