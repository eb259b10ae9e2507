"""Search in OpenSearch and Elasticsearch, with what both have.

The query has a branch for each language of the documents, with the fields of that language. In it each word must occur in one of the
fields, and a word that the analyser of the language leaves out, such as "the", may be missing. The server finds and counts; the best are put
in order here, as those of the embedded index are, and what is shown of them is then asked for.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing

from crawlspace.errors import IndexUnavailable, UsageError
from crawlspace.index.closeness import REORDERED, best_first
from crawlspace.index.filters import Filter, by_field
from crawlspace.index.found_texts import FoundDocument, FoundTexts
from crawlspace.index.json_client import Client, Reply, items, shown, table
from crawlspace.index.opensearch.bulk import cause_of
from crawlspace.index.opensearch.mapping import OTHER, language_field, languages_of
from crawlspace.index.search import FACET_VALUES, FEW, Hit, SearchResult
from crawlspace.index.words import SearchQuery, Term

MOST_HITS = 10_000
"""How far into the hits both servers look, unless an index is made with another `max_result_window`."""
FACET_FIELDS = {"host": "host", "language": "language", "type": "content_type"}
_WEIGHTS = {"title": 10, "headings": 5, "description": 3, "text": 1}
_WEIGHT_OF_ADDRESS = 3
_TIE_BREAKER = 0.3
"""What the other fields with a word count, beside the one in which it counts most."""
_MOST_LANGUAGES = 1_000
_MOST_EXPANSIONS = 1_000
_MOST_SHOWN_AT_ONCE = 100
_CHARACTERS_OF_SNIPPET = 160
_PARAMETERS = {"allow_partial_search_results": "false", "preference": "crawlspace"}
"""A shard that fails is an error, and not fewer hits. The same copies of the shards are asked for each page of hits: equal scores are in
another order on each copy."""
_PORT = re.compile(r":\d+$")
_TOO_MANY_WORDS = re.compile(r"too_many_(?:nested_)?clauses|maxClauseCount")
_TOO_LONG_TO_HIGHLIGHT = re.compile(r"max_analyzed_offset")

_OF_OTHERS = f".{OTHER}"

Query = dict[str, object]


class Languages:
    """The languages of a collection's documents, by the fields that their texts are in."""

    def __init__(self, written: Iterable[str], *, fields: Collection[str] | None, filters: Sequence[Filter] = ()) -> None:
        """`written` are the languages as documents have them, `fields` as `languages_of` returns them."""
        wanted = [one.value.lower() for one in filters if one.field == "language"]
        self.written = [one for one in written if not wanted or any(_is_of(one, language) for language in wanted)]
        self.by_suffix: dict[str, list[str]] = {}
        """The languages by what follows the name of a field."""
        if fields is None:
            self.by_suffix[""] = []
            return
        for one in self.written:
            self.by_suffix.setdefault(f".{language_field(one, fields)}", []).append(one)
        self.by_suffix.setdefault(_OF_OTHERS, [])


def query_of(terms: SearchQuery, languages: Languages, *, owner: str, filters: Sequence[Filter], of_some: bool = False) -> Query:
    """Return the query for documents of a collection that have all terms; with `of_some`, those that must be there and some of the rest."""
    branches = [_branch(terms, suffix, languages, of_some=of_some) for suffix in languages.by_suffix]
    conditions: list[Query] = [{"term": {"collection": owner}}]
    for field, of_field in by_field(filters).items():
        if field == "language":
            conditions.append({"terms": {"language": languages.written}})
        else:
            conditions.append(_any([_condition(one) for one in of_field]))
    return {"bool": {"filter": conditions, "must": [_any(branches)]}}


def highlight_of(terms: SearchQuery, languages: Languages, marks: tuple[str, str], *, of_some: bool) -> Query:
    """Return what the server is asked to show of the texts."""
    found: list[Query] = []
    for suffix in languages.by_suffix:
        field = f"text{suffix}"
        for term in terms.wanted:
            if term.is_prefix:
                found += _prefixes(term, [field])
            elif of_some and not term.is_quoted:
                found.append({"match": {field: {"query": term.written}}})
            else:
                found.append({"match_phrase": {field: {"query": term.written}}})
    return {
        "pre_tags": [marks[0]],
        "post_tags": [marks[1]],
        "type": "plain",  # the others show a single sentence, however short
        "order": "score",
        "number_of_fragments": 1,
        "fragment_size": _CHARACTERS_OF_SNIPPET,
        "highlight_query": _any(found),
        "fields": {f"text{suffix}": {} for suffix in languages.by_suffix},
    }


class ServerSearch:
    """Searches the documents of one collection in an index."""

    def __init__(self, client: Client, url: str, index: str, *, owner: str) -> None:
        self._client = client
        self._url = url
        self._index = index
        self._owner = owner

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
            query = query_of(texts.query, languages, owner=self._owner, filters=filters)
            best, total, counts = await self._best(texts, query, limit=limit, offset=offset, facets=facets)
            hits = await self._hits(texts, languages, best, marks, has_all_words=True)
            if total < FEW and offset == 0 and texts.query.fts_of_some:
                some = query_of(texts.query, languages, owner=self._owner, filters=filters, of_some=True)
                others, _, _ = await self._best(texts, some, limit=limit + FEW, offset=0)
                found_already = {one.id for one, _ in best}
                rest = [found for found in others if found[0].id not in found_already][: limit - len(hits)]
                hits += await self._hits(texts, languages, rest, marks, has_all_words=False)
            return SearchResult(total, tuple(hits), counts)

    async def _languages(self, filters: Sequence[Filter]) -> Languages:
        reply = await self._client.request("GET", f"/{self._index}/_mapping")
        mapping = table(next(iter(table(self._answered(reply)).values()), None))
        if "mappings" not in mapping:
            raise IndexUnavailable(
                f"{self._url} is no OpenSearch or Elasticsearch: it answers {reply.status} {shown(reply.body)}"
            )
        counted = {"languages": {"terms": {"field": "language", "size": _MOST_LANGUAGES}}}
        answer = await self._ask({"size": 0, "query": {"term": {"collection": self._owner}}, "aggs": counted})
        written = [value for value, _ in _counts(answer, "languages")]
        return Languages(written, fields=languages_of(mapping), filters=filters)

    async def _best(
        self, texts: FoundTexts, query: Query, *, limit: int, offset: int, facets: Sequence[str] = ()
    ) -> tuple[list[tuple[FoundDocument, float]], int, dict[str, list[tuple[str, int]]]]:
        """Return the best documents with their scores, the number of all, and the facets."""
        is_reordered = offset < REORDERED
        answer = await self._ask(
            {
                "query": query,
                "from": 0 if is_reordered else offset,
                "size": max(REORDERED, offset + limit) if is_reordered else limit,
                "track_total_hits": True,
                "_source": ["url", "title", "headings"],
                "aggs": {name: _facet(name) for name in facets},
            }
        )
        found = table(answer.get("hits"))
        total = table(found.get("total")).get("value")
        candidates = [_candidate(table(one)) for one in items(found.get("hits"))]
        if is_reordered:
            best = texts.in_order(candidates)[offset : offset + limit]
        else:  # further hits stay as the server has them
            first = found.get("max_score")
            of_first = first if isinstance(first, float) else None
            best = best_first([(one, one.score) for one in candidates], lambda _: 0.0, best=of_first)
        return best, total if isinstance(total, int) else 0, {name: _counts(answer, name) for name in facets}

    async def _hits(
        self,
        texts: FoundTexts,
        languages: Languages,
        best: Sequence[tuple[FoundDocument, float]],
        marks: tuple[str, str],
        *,
        has_all_words: bool,
    ) -> list[Hit]:
        highlight = highlight_of(texts.query, languages, marks, of_some=not has_all_words)
        hits: list[Hit] = []
        for first in range(0, len(best), _MOST_SHOWN_AT_ONCE):
            part = best[first : first + _MOST_SHOWN_AT_ONCE]
            sources, snippets = await self._shown([one.id for one, _ in part], highlight)
            without = [id for id in sources if id not in snippets]
            for id, text in (await self._texts(without)).items():
                snippets[id] = texts.snippet(text, marks)
            hits += [
                _hit(sources[one.id], score, snippets.get(one.id, ""), has_all_words=has_all_words)
                for one, score in part
                if one.id in sources
            ]
        return hits

    async def _shown(self, ids: Sequence[str], highlight: Query) -> tuple[dict[str, Mapping[str, object]], dict[str, str]]:
        """Return what is stored of documents beside their texts, and the snippets that the server makes, by id."""
        body: Query = {
            "query": {"ids": {"values": list(ids)}},
            "size": len(ids),
            "_source": ["url", "title", "language", "fields", "duplicates"],
        }
        reply = await self._request({**body, "highlight": highlight})
        if not reply.is_ok and _TOO_LONG_TO_HIGHLIGHT.search(str(reply.body)):
            reply = await self._request(body)
        found = [table(one) for one in items(table(table(self._answered(reply)).get("hits")).get("hits"))]
        snippets = {str(one.get("_id")): " … ".join(_fragments(one)).strip() for one in found if _fragments(one)}
        return {str(one.get("_id")): table(one.get("_source")) for one in found}, snippets

    async def _texts(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the texts of documents by id."""
        if not ids:
            return {}
        answer = await self._ask({"query": {"ids": {"values": list(ids)}}, "size": len(ids), "_source": ["text", "text.*"]})
        found = [table(one) for one in items(table(answer.get("hits")).get("hits"))]
        return {str(one.get("_id")): _text(table(one.get("_source")).get("text")) for one in found}

    async def _ask(self, body: Query) -> Mapping[str, object]:
        """Return the answer to a search."""
        reply = await self._request(body)
        answer = table(self._answered(reply))
        if "hits" not in answer:
            raise IndexUnavailable(
                f"{self._url} is no OpenSearch or Elasticsearch: it answers {reply.status} {shown(reply.body)}"
            )
        return answer

    async def _request(self, body: Query) -> Reply:
        return await self._client.request("POST", f"/{self._index}/_search", body=body, parameters=_PARAMETERS)

    def _answered(self, reply: Reply) -> object:
        """Return the body of an answer. Raises IndexUnavailable, or UsageError, for an error."""
        if reply.is_ok:
            return reply.body
        why = cause_of(reply.body)
        if reply.status in (401, 403):
            raise IndexUnavailable(
                f"{self._url} refuses access to {self._index} (HTTP status {reply.status}): check user and password, or the API key, of the"
                " sink"
            )
        if reply.status == 404 and why.startswith("index_not_found_exception"):
            raise IndexUnavailable(
                f"there is no {self._index} at {self._url}, neither an alias nor an index: `scrapy crawl {self._owner}` makes it if it was"
                " never there, else reports what to do"
            )
        if _TOO_MANY_WORDS.search(why):
            raise UsageError("the search has more words than the server takes: leave some out")
        raise IndexUnavailable(
            f"{self._url} cannot search {self._index}: {why or f'it answers {reply.status} {shown(reply.body)}'}"
        )


def _branch(terms: SearchQuery, suffix: str, languages: Languages, *, of_some: bool) -> Query:
    """Return the query for the documents of a language, which have their texts in the fields with a suffix."""
    fields = [f"{name}{suffix}^{weight}" for name, weight in _WEIGHTS.items()]
    optional = [term for term in terms.wanted if of_some and not (term.is_quoted or term.is_prefix)]
    must = [_term(term, fields) for term in terms.wanted if term not in optional]
    if optional:
        must.append(_any([_some_of(term, fields) for term in optional]))
    must_not = [_term(term, fields, may_be_missing=False) for term in terms.unwanted]
    branch: Query = {"must": must}
    if suffix == _OF_OTHERS:
        with_fields = [one for other, written in languages.by_suffix.items() if other != suffix for one in written]
        must_not += [{"terms": {"language": with_fields}}] if with_fields else []
    elif suffix:
        branch["filter"] = [{"terms": {"language": languages.by_suffix[suffix]}}]
    return {"bool": branch | ({"must_not": must_not} if must_not else {})}


def _term(term: Term, fields: Sequence[str], *, may_be_missing: bool = True) -> Query:
    """Return the query for a term, in one of the fields or in the URL; a word that the analyser leaves out is everywhere."""
    if term.is_prefix:
        return _best_of([*_prefixes(term, fields), *_prefixes(term, [f"address^{_WEIGHT_OF_ADDRESS}"])[:1]])
    is_left_out = may_be_missing and not any(map(str.isnumeric, term.written))
    texts = _in_fields(term, fields, type="phrase", zero_terms_query="all" if is_left_out else "none")
    return _best_of([texts, {"match_phrase": {"address": {"query": term.written, "boost": _WEIGHT_OF_ADDRESS}}}])


def _some_of(term: Term, fields: Sequence[str]) -> Query:
    texts = _in_fields(term, fields, type="best_fields")
    return _best_of([texts, {"match": {"address": {"query": term.written, "boost": _WEIGHT_OF_ADDRESS}}}])


def _prefixes(term: Term, fields: Sequence[str]) -> list[Query]:
    """Return queries for words with a beginning: as the analyser changes it, and as it is written."""
    if len(term.words) > 1:
        return [_in_fields(term, fields, type="phrase_prefix", max_expansions=_MOST_EXPANSIONS)]
    return [
        _in_fields(term, fields, type="bool_prefix"),
        _in_fields(term, fields, type="bool_prefix", analyzer="standard"),
    ]


def _in_fields(term: Term, fields: Sequence[str], **options: object) -> Query:
    return {"multi_match": {"query": term.written, "fields": list(fields), "tie_breaker": _TIE_BREAKER, **options}}


def _best_of(queries: Sequence[Query]) -> Query:
    return {"dis_max": {"queries": list(queries), "tie_breaker": _TIE_BREAKER}}


def _any(queries: Sequence[Query]) -> Query:
    return queries[0] if len(queries) == 1 else {"bool": {"should": list(queries), "minimum_should_match": 1}}


def _condition(one: Filter) -> Query:
    """Return the query for a filter other than that of a language."""
    match one.field:
        case "host":
            return _host(one.value)
        case "type":
            kind = one.value.lower() if "/" in one.value else f"*/{_literal(one.value.lower())}"
            if "/" in one.value:
                return _any([{"term": {"content_type": kind}}, {"prefix": {"content_type": f"{kind};"}}])
            return _any([{"wildcard": {"content_type": {"value": value}}} for value in (kind, f"{kind};*")])
        case _:
            days = {"gte": one.first, "lte": one.last and f"{one.last}T23:59:59.999Z"}
            return {"range": {"modified": {name: day for name, day in days.items() if day}}}


def _host(value: str) -> Query:
    """Return the query for a host; one with a port is told apart by the beginning of the URL."""
    host = _PORT.sub("", value)
    name: Query = {"term": {"host": host.strip("[]")}}
    if host == value:
        return name
    return {"bool": {"filter": [name, _any([{"prefix": {"url": f"{scheme}://{value}/"}} for scheme in ("http", "https")])]}}


def _literal(value: str) -> str:
    return re.sub(r"([\\*?])", r"\\\1", value)


def _facet(name: str) -> Query:
    order = [{"_count": "desc"}, {"_key": "asc"}]
    return {"terms": {"field": FACET_FIELDS[name], "size": FACET_VALUES, "shard_size": _MOST_LANGUAGES, "order": order}}


def _counts(answer: Mapping[str, object], name: str) -> list[tuple[str, int]]:
    """Return the values that an aggregation has counted, with their number."""
    found = map(table, items(table(table(answer.get("aggregations")).get(name)).get("buckets")))
    return [(str(one.get("key")), count) for one in found if isinstance(count := one.get("doc_count"), int)]


def _is_of(written: str, language: str) -> bool:
    return written.lower() == language or written.lower().startswith(f"{language}-")


def _candidate(hit: Mapping[str, object]) -> FoundDocument:
    source, score = table(hit.get("_source")), hit.get("_score")
    headings = next(iter(table(source.get("headings")).values()), source.get("headings"))
    return FoundDocument(
        id=str(hit.get("_id")),
        score=float(score) if isinstance(score, int | float) else 0.0,
        url=str(source.get("url", "")),
        title=_text(source.get("title")),
        headings=[str(heading) for heading in items(headings)],
    )


def _hit(source: Mapping[str, object], score: float, snippet: str, *, has_all_words: bool) -> Hit:
    return Hit(
        url=str(source.get("url", "")),
        title=_text(source.get("title")),
        snippet=snippet,
        score=score,
        language=str(source.get("language", "")),
        fields={name: str(value) for name, value in table(source.get("fields")).items()},
        duplicates=tuple(map(str, items(source.get("duplicates")))),
        has_all_words=has_all_words,
    )


def _text(value: object) -> str:
    """Return a text that is stored by language, or as it is."""
    found = next(iter(value.values()), "") if isinstance(value, dict) else value
    return str(found or "")


def _fragments(hit: Mapping[str, object]) -> list[str]:
    return [str(one) for found in table(hit.get("highlight")).values() for one in items(found)]
