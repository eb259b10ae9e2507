"""How a search server is searched: it finds and counts, and the best are put in order here, as those of the embedded index are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from crawlspace.errors import UsageError
from crawlspace.index.closeness import REORDERED, best_first
from crawlspace.index.found_texts import FoundDocument, FoundTexts
from crawlspace.index.search import FEW, Filter, Hit, SearchResult
from crawlspace.index.search_server.documents import Languages
from crawlspace.index.words import SearchQuery

MOST_HITS = 10_000
"""How far into the hits servers look: OpenSearch and Elasticsearch, unless an index is made with another `max_result_window`."""
MOST_LANGUAGES = 1_000
"""Of the documents of a collection, as they are written."""
FACET_FIELDS = {"host": "host", "language": "language", "type": "content_type"}
WEIGHTS = {"title": 10, "headings": 5, "description": 3, "text": 1}
WEIGHT_OF_ADDRESS = 3
TIE_BREAKER = 0.3
"""What the other fields with a word count, beside the one in which it counts most."""
TOO_MANY_WORDS = "the search has more words than the server takes: leave some out"
_MOST_SHOWN_AT_ONCE = 100

Query = dict[str, object]


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What is searched for."""

    texts: FoundTexts
    languages: Languages
    filters: Sequence[Filter]
    of_some: bool = False
    """Whether some of the words are enough, beside those that must be there."""

    @property
    def terms(self) -> SearchQuery:
        return self.texts.query


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """What a server has found."""

    documents: Sequence[FoundDocument]
    """Best first."""
    total: int
    best: float | None
    """The score of the best of all."""
    facets: Mapping[str, list[tuple[str, int]]]


class DocumentSearch(ABC):
    """Searches the documents of one collection. Raises IndexUnavailable."""

    async def search(
        self, words: str, *, limit: int, offset: int, marks: tuple[str, str], filters: Sequence[Filter], facets: Sequence[str]
    ) -> SearchResult:
        """Return the hits from `offset` on, see `Searchable`."""
        if offset + limit > MOST_HITS:
            raise UsageError(
                f"--offset {offset} with --limit {limit} leads to hit {offset + limit:,}, and a search server shows the first {MOST_HITS:,}:"
                " narrow the search by more words or --filter"
            )
        languages = await self._languages(filters)
        with closing(FoundTexts(words, languages.written)) as texts:
            request = SearchRequest(texts, languages, filters)
            best, answer = await self._best(request, limit=limit, offset=offset, facets=facets)
            hits = await self._hits(request, best, marks)
            if answer.total < FEW and offset == 0 and texts.query.fts_of_some:
                request = replace(request, of_some=True)
                try:
                    others, _ = await self._best(request, limit=limit + FEW, offset=0)
                except UsageError:  # a server may count more clauses for the parts of a word than for the word
                    others = []
                found_already = {one.id for one, _ in best}
                rest = [found for found in others if found[0].id not in found_already][: limit - len(hits)]
                hits += await self._hits(request, rest, marks)
            return SearchResult(answer.total, tuple(hits), answer.facets)

    @abstractmethod
    async def _languages(self, filters: Sequence[Filter]) -> Languages:
        """Return the languages of the collection's documents that filters let through."""

    @abstractmethod
    async def _found(self, request: SearchRequest, *, first: int, number: int, facets: Sequence[str]) -> ServerAnswer:
        """Return some of the documents that the server finds, and the number of all."""

    @abstractmethod
    async def _shown(self, request: SearchRequest, ids: Sequence[str], marks: tuple[str, str]) -> Mapping[str, Hit]:
        """Return what is shown of documents, by id, without their scores."""

    async def _best(
        self, request: SearchRequest, *, limit: int, offset: int, facets: Sequence[str] = ()
    ) -> tuple[list[tuple[FoundDocument, float]], ServerAnswer]:
        """Return the best documents with their scores, and what the server has answered."""
        is_reordered = offset < REORDERED
        answer = await self._found(
            request,
            first=0 if is_reordered else offset,
            number=max(REORDERED, offset + limit) if is_reordered else limit,
            facets=facets,
        )
        if is_reordered:
            return request.texts.in_order(answer.documents)[offset : offset + limit], answer
        # further hits stay as the server has them
        return best_first([(one, one.score) for one in answer.documents], lambda _: 0.0, best=answer.best), answer

    async def _hits(
        self, request: SearchRequest, best: Sequence[tuple[FoundDocument, float]], marks: tuple[str, str]
    ) -> list[Hit]:
        hits: list[Hit] = []
        for first in range(0, len(best), _MOST_SHOWN_AT_ONCE):
            part = best[first : first + _MOST_SHOWN_AT_ONCE]
            shown = await self._shown(request, [one.id for one, _ in part], marks)
            hits += [
                replace(shown[one.id], score=score, has_all_words=not request.of_some) for one, score in part if one.id in shown
            ]
        return hits
