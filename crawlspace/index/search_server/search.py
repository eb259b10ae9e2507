"""Search on a server: the server finds and counts, and the best hits are put in order here, as those of the embedded index are."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from crawlspace.errors import UsageError
from crawlspace.index.closeness import REORDERED, best_first
from crawlspace.index.found_texts import FoundDocument, FoundTexts
from crawlspace.index.json_client import items, table
from crawlspace.index.search import FEW, Filter, Hit, SearchResult
from crawlspace.index.search_server.documents import Languages
from crawlspace.index.words import SearchQuery, Term

MAX_HITS = 10_000
"""The last hit that a server shows: of OpenSearch and Elasticsearch, unless an index has another `max_result_window`."""
MAX_LANGUAGES = 1_000
"""Languages of the documents of a collection, as they are written."""
WEIGHTS = {"title": 10, "headings": 5, "description": 3, "text": 1}
ADDRESS_WEIGHT = 3
TIE_BREAKER = 0.3
"""The weight of the other fields with a word, relative to the field in which it counts most."""
TOO_MANY_WORDS = "the search has more words than the server accepts: leave some out"
_MAX_SHOWN_AT_ONCE = 100
_PORT = re.compile(r":\d+$")

Query = dict[str, object]


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search text with its filters."""

    texts: FoundTexts
    languages: Languages
    filters: Sequence[Filter]
    of_some: bool = False
    """Whether some of the optional words are enough."""

    @property
    def terms(self) -> SearchQuery:
        return self.texts.query

    def is_optional(self, term: Term) -> bool:
        """Return whether a document may lack a term."""
        return self.of_some and not (term.is_quoted or term.is_prefix)


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """The documents that a server has found."""

    documents: Sequence[FoundDocument]
    """Best first."""
    total: int
    best: float | None
    """The best score of all documents found."""
    facets: Mapping[str, list[tuple[str, int]]]


class DocumentSearch(ABC):
    """Searches the documents of one collection. Raises IndexUnavailable."""

    async def search(
        self, words: str, *, limit: int, offset: int, marks: tuple[str, str], filters: Sequence[Filter], facets: Sequence[str]
    ) -> SearchResult:
        """Return the hits from `offset` on, see `Searchable`."""
        if offset + limit > MAX_HITS:
            raise UsageError(
                f"--offset {offset} with --limit {limit} leads to hit {offset + limit:,}, and a search server shows the first {MAX_HITS:,}:"
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
                known = {one.id for one, _ in best}
                rest = [found for found in others if found[0].id not in known][: limit - len(hits)]
                hits += await self._hits(request, rest, marks)
            return SearchResult(answer.total, tuple(hits), answer.facets)

    @abstractmethod
    async def _languages(self, filters: Sequence[Filter]) -> Languages:
        """Return the languages of the collection's documents that pass the filters."""

    @abstractmethod
    async def _found(self, request: SearchRequest, *, first: int, number: int, facets: Sequence[str]) -> ServerAnswer:
        """Return some of the documents that the server finds, and the number of all."""

    @abstractmethod
    async def _shown(self, request: SearchRequest, ids: Sequence[str], marks: tuple[str, str]) -> Mapping[str, Hit]:
        """Return the hits of documents by id, without their scores."""

    async def _best(
        self, request: SearchRequest, *, limit: int, offset: int, facets: Sequence[str] = ()
    ) -> tuple[list[tuple[FoundDocument, float]], ServerAnswer]:
        """Return the best documents with their scores, and the server's answer."""
        is_reordered = offset < REORDERED
        answer = await self._found(
            request,
            first=0 if is_reordered else offset,
            number=max(REORDERED, offset + limit) if is_reordered else limit,
            facets=facets,
        )
        if is_reordered:
            return request.texts.in_order(answer.documents)[offset : offset + limit], answer
        # further hits stay in the order of the server
        return best_first([(one, one.score) for one in answer.documents], lambda _: 0.0, best=answer.best), answer

    async def _hits(
        self, request: SearchRequest, best: Sequence[tuple[FoundDocument, float]], marks: tuple[str, str]
    ) -> list[Hit]:
        hits: list[Hit] = []
        for first in range(0, len(best), _MAX_SHOWN_AT_ONCE):
            part = best[first : first + _MAX_SHOWN_AT_ONCE]
            shown = await self._shown(request, [one.id for one, _ in part], marks)
            hits += [
                replace(shown[one.id], score=score, has_all_words=not request.of_some) for one, score in part if one.id in shown
            ]
        return hits


def split_host(value: str) -> tuple[str, list[str]]:
    """Return the host of a filter without port, and the beginnings of its URLs, if it has a port."""
    host = _PORT.sub("", value)
    return host.strip("[]"), [] if host == value else [f"{scheme}://{value}/" for scheme in ("http", "https")]


def counts_of(facet: object, *, value: str, count: str) -> list[tuple[str, int]]:
    """Return the values and numbers in the buckets of a facet; `value` and `count` are their names there."""
    buckets = map(table, items(table(facet).get("buckets")))
    return [(str(one.get(value)), number) for one in buckets if isinstance(number := one.get(count), int)]


def score_of(value: object) -> float:
    """Return a score of an answer; 0 without one."""
    return float(value) if isinstance(value, int | float) else 0.0
