"""Search in OpenSearch and Elasticsearch, by what both support.

The query has a branch for each language of the documents, with the fields of that language. In it each word must occur in one of the
fields, and a word that the analyser of the language leaves out, such as "the", may be missing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from crawlspace.document import NO_SNIPPET, packed
from crawlspace.errors import IndexUnavailable, UsageError
from crawlspace.index.embedded_search import FACET_COLUMNS, without_hidden
from crawlspace.index.found_texts import FoundDocument, of_language
from crawlspace.index.json_client import Client, Reply, items, shown, table
from crawlspace.index.opensearch.bulk import cause_of
from crawlspace.index.opensearch.contents import hits_of
from crawlspace.index.opensearch.mapping import COLUMNS, PARTS, columns_of, languages_of
from crawlspace.index.search import FACET_VALUES, OF_FIELDS, Filter, Hit, by_field
from crawlspace.index.search_server.documents import OTHER, Languages
from crawlspace.index.search_server.search import (
    ADDRESS_WEIGHT,
    MAX_LANGUAGES,
    TIE_BREAKER,
    TOO_MANY_WORDS,
    WEIGHTS,
    DocumentSearch,
    Query,
    SearchRequest,
    ServerAnswer,
    counts_of,
    score_of,
    split_host,
)
from crawlspace.index.words import Term

_MOST_EXPANSIONS = 1_000
_CHARACTERS_OF_SNIPPET = 160
_PARAMETERS = {"allow_partial_search_results": "false", "preference": "crawlspace"}
"""The failure of a shard is an error, not fewer hits. The same replicas answer for each page of hits, because each orders equal scores in
another way."""
_TOO_MANY_WORDS = re.compile(r"too_many_(?:nested_)?clauses|maxClauseCount")
_TOO_LONG_TO_HIGHLIGHT = re.compile(r"max_analyzed_offset")


def query_of(request: SearchRequest, *, owner: str) -> Query:
    """Return the query for documents of a collection that have all terms; with `of_some`, those that must be there and some of the rest."""
    languages = request.languages
    branches = [_branch(request, field) for field in languages.by_field]
    conditions: list[Query] = [{"term": {"collection": owner}}]
    for field, of_field in by_field(request.filters).items():
        if field == "language":
            conditions.append({"terms": {"language": languages.written}})
        else:
            conditions.append(_any([_condition(one) for one in of_field]))
    negated = [_condition(one) for one in request.filters if one.is_negated]
    return {"bool": {"filter": conditions, "must": [_any(branches)], **({"must_not": negated} if negated else {})}}


def highlight_of(request: SearchRequest, marks: tuple[str, str]) -> Query:
    """Return the part of a request for snippets of the texts."""
    found: list[Query] = []
    fields = [f"text{_suffix(one)}" for one in request.languages.by_field]
    for field in fields:
        for term in request.terms.wanted:
            if term.is_prefix:
                found += _prefixes(term, [field])
            elif request.is_optional(term):
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
        "fields": {field: {} for field in fields},
    }


def not_this_product(url: str, reply: Reply) -> IndexUnavailable:
    """Return the error for another server."""
    return IndexUnavailable(f"{url} is no OpenSearch or Elasticsearch: it answers {reply.status} {shown(reply.body)}")


def not_an_alias(server: str, index: str) -> IndexUnavailable:
    """Return the error for an index that has the name of the alias."""
    return IndexUnavailable(
        f"{index} at {server} is an index, and must be an alias: give the sink another index, or reindex that one under another name and"
        " have an alias lead there"
    )


class ServerSearch(DocumentSearch):
    """Searches the documents of one collection in an index."""

    def __init__(self, client: Client, url: str, index: str, *, owner: str) -> None:
        self._client = client
        self._url = url
        self._index = index
        self._owner = owner
        self._columns: frozenset[str] = frozenset()
        self._is_flat = False
        """The server keeps further fields as a flat object of OpenSearch, which it cannot count: it answers with names of Java objects."""

    async def _languages(self, filters: Sequence[Filter]) -> Languages:
        alias = await self._client.request("GET", f"/_alias/{self._index}")
        if alias.status == 404 and (await self._client.request("HEAD", f"/{self._index}")).is_ok:
            raise not_an_alias(self._url, self._index)
        reply = await self._client.request("GET", f"/{self._index}/_mapping")
        mapping = table(next(iter(table(self._answered(reply)).values()), None))
        if "mappings" not in mapping:
            raise not_this_product(self._url, reply)
        fields = table(table(table(mapping["mappings"]).get("properties")).get("fields"))
        self._is_flat = fields.get("type") == "flat_object"
        self._columns = columns_of(mapping)
        counted = {"languages": {"terms": {"field": "language", "size": MAX_LANGUAGES}}}
        answer = await self._ask({"size": 0, "query": {"term": {"collection": self._owner}}, "aggs": counted})
        written = [value for value, _ in _counts(answer, "languages")]
        return Languages(written, fields=languages_of(mapping), filters=filters)

    async def _found(self, request: SearchRequest, *, first: int, number: int, facets: Sequence[str]) -> ServerAnswer:
        counted = {name: self._counted(name) for name in facets}
        uncounted = [name for name, stored in counted.items() if self._is_flat and stored.startswith(OF_FIELDS)]
        if uncounted:
            raise UsageError(f"OpenSearch cannot count the values of {uncounted[0]}: leave out --facet {uncounted[0]}")
        answer = await self._ask(
            {
                "query": query_of(request, owner=self._owner),
                "from": first,
                "size": number,
                "track_total_hits": True,
                "_source": ["url", "title", "headings"],
                "aggs": {name: _facet(stored) for name, stored in counted.items()},
            }
        )
        found = table(answer.get("hits"))
        total, best = table(found.get("total")).get("value"), found.get("max_score")
        return ServerAnswer(
            [_candidate(hit) for hit in hits_of(answer)],
            total if isinstance(total, int) else 0,
            best if isinstance(best, float) else None,
            {name: _counts(answer, name) for name in facets},
        )

    def _counted(self, field: str) -> str:
        """Return the field of the index whose values are counted for a facet."""
        own = field.removeprefix(OF_FIELDS)
        return own if own != field and own in self._columns else FACET_COLUMNS.get(field, field)

    async def _shown(self, request: SearchRequest, ids: Sequence[str], marks: tuple[str, str]) -> dict[str, Hit]:
        body: Query = {
            "query": {"ids": {"values": list(ids)}},
            "size": len(ids),
            "_source": ["url", "title", "language", "fields", *COLUMNS, "duplicates", PARTS],
        }
        reply = await self._request({**body, "highlight": highlight_of(request, marks)})
        if not reply.is_ok and _TOO_LONG_TO_HIGHLIGHT.search(str(reply.body)):
            reply = await self._request(body)
        found = {str(one.get("_id")): one for one in hits_of(self._answered(reply))}
        hits = {id: _hit(table(one.get("_source")), " … ".join(_fragments(one)).strip()) for id, one in found.items()}
        for id, one in found.items():
            parts = request.texts.parts(table(one.get("_source")).get(PARTS), hits[id].fields, marks)
            hits[id] = replace(hits[id], parts=parts)
        without = [id for id, hit in hits.items() if not hit.snippet or NO_SNIPPET in hit.fields]
        for id, text in (await self._texts(without)).items():
            hits[id] = replace(hits[id], snippet=request.texts.snippet(without_hidden(text, hits[id].fields), marks))
        return hits

    async def _texts(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the texts of documents by id."""
        if not ids:
            return {}
        answer = await self._ask({"query": {"ids": {"values": list(ids)}}, "size": len(ids), "_source": ["text", "text.*"]})
        return {str(one.get("_id")): _text(table(one.get("_source")).get("text")) for one in hits_of(answer)}

    async def _ask(self, body: Query) -> Mapping[str, object]:
        """Return the answer to a search."""
        reply = await self._request(body)
        answer = table(self._answered(reply))
        if "hits" not in answer:
            raise not_this_product(self._url, reply)
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
                f"there is no {self._index} at {self._url}, neither an alias nor an index: `scrapy crawl {self._owner}` creates it if it never"
                " existed, else reports what to do"
            )
        if _TOO_MANY_WORDS.search(why):
            raise UsageError(TOO_MANY_WORDS)
        raise IndexUnavailable(
            f"{self._url} cannot search {self._index}: {why or f'it answers {reply.status} {shown(reply.body)}'}"
        )


def _branch(request: SearchRequest, field: str) -> Query:
    """Return the query for the documents whose texts are in the fields of one language."""
    terms, languages = request.terms, request.languages
    fields = [f"{name}{_suffix(field)}^{weight}" for name, weight in WEIGHTS.items()]
    optional = list(filter(request.is_optional, terms.wanted))
    must = [_term(term, fields) for term in terms.wanted if term not in optional]
    if optional:
        must.append(_any([_some_of(term, fields) for term in optional]))
    must_not = [_term(term, fields, may_be_missing=False) for term in terms.unwanted]
    branch: Query = {"must": must}
    if field == OTHER:
        with_fields = languages.outside(field)
        must_not += [{"terms": {"language": with_fields}}] if with_fields else []
    elif field:
        branch["filter"] = [{"terms": {"language": languages.by_field[field]}}]
    return {"bool": branch | ({"must_not": must_not} if must_not else {})}


def _term(term: Term, fields: Sequence[str], *, may_be_missing: bool = True) -> Query:
    """Return the query for a term, in one of the fields or in the URL; a word that the analyser leaves out matches all documents."""
    if term.is_prefix:
        return _best_of([*_prefixes(term, fields), *_prefixes(term, [f"address^{ADDRESS_WEIGHT}"])[:1]])
    is_left_out = may_be_missing and not any(map(str.isnumeric, term.written))
    texts = _in_fields(term, fields, type="phrase", zero_terms_query="all" if is_left_out else "none")
    return _best_of([texts, {"match_phrase": {"address": {"query": term.written, "boost": ADDRESS_WEIGHT}}}])


def _some_of(term: Term, fields: Sequence[str]) -> Query:
    texts = _in_fields(term, fields, type="best_fields")
    return _best_of([texts, {"match": {"address": {"query": term.written, "boost": ADDRESS_WEIGHT}}}])


def _prefixes(term: Term, fields: Sequence[str]) -> list[Query]:
    """Return queries for a prefix: as the analyser changes it, and as it is written."""
    if len(term.words) > 1:
        return [_in_fields(term, fields, type="phrase_prefix", max_expansions=_MOST_EXPANSIONS)]
    return [
        _in_fields(term, fields, type="bool_prefix"),
        _in_fields(term, fields, type="bool_prefix", analyzer="standard"),
    ]


def _in_fields(term: Term, fields: Sequence[str], **options: object) -> Query:
    return {"multi_match": {"query": term.written, "fields": list(fields), "tie_breaker": TIE_BREAKER, **options}}


def _best_of(queries: Sequence[Query]) -> Query:
    return {"dis_max": {"queries": list(queries), "tie_breaker": TIE_BREAKER}}


def _any(queries: Sequence[Query]) -> Query:
    return queries[0] if len(queries) == 1 else {"bool": {"should": list(queries), "minimum_should_match": 1}}


def _facet(field: str) -> Query:
    order = [{"_count": "desc"}, {"_key": "asc"}]
    return {"terms": {"field": field, "size": FACET_VALUES, "shard_size": MAX_LANGUAGES, "order": order}}


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
        case field if one.value:
            return _any([{"term": {stored: one.value}} for stored in _stored(field)])
        case field:
            given = {"gte": one.first, "lte": one.last and f"{one.last}T23:59:59.999Z"}
            days = {name: day for name, day in given.items() if day}
            return _any([{"range": {stored: days}} for stored in _stored(field)])


def _host(value: str) -> Query:
    """Return the query for a host; a port is compared by the beginning of the URL."""
    host, beginnings = split_host(value)
    name: Query = {"term": {"host": host}}
    return {"bool": {"filter": [name, _any([{"prefix": {"url": one}} for one in beginnings])]}} if beginnings else name


def _literal(value: str) -> str:
    return re.sub(r"([\\*?])", r"\\\1", value)


def _stored(field: str) -> Sequence[str]:
    """Return the fields of an index that may have a field of documents."""
    own = field.removeprefix(OF_FIELDS)
    return [own, field] if own in COLUMNS and own != field else [FACET_COLUMNS.get(field, field)]


def _counts(answer: Mapping[str, object], name: str) -> list[tuple[str, int]]:
    return counts_of(table(answer.get("aggregations")).get(name), value="key", count="doc_count")


def _suffix(field: str) -> str:
    """Return the ending of a text's field for a language."""
    return f".{field}" if field else ""


def _candidate(hit: Mapping[str, object]) -> FoundDocument:
    source = table(hit.get("_source"))
    headings = next(iter(table(source.get("headings")).values()), source.get("headings"))
    return FoundDocument(
        id=str(hit.get("_id")),
        score=score_of(hit.get("_score")),
        url=str(source.get("url", "")),
        title=_text(source.get("title")),
        headings=[str(heading) for heading in items(headings)],
    )


def _hit(source: Mapping[str, object], snippet: str) -> Hit:
    fields = {name: source[name] for name in COLUMNS if name in source}
    fields.update(table(source.get("fields")))
    return Hit(
        url=str(source.get("url", "")),
        title=_text(source.get("title")),
        snippet=snippet,
        score=0.0,
        language=str(source.get("language", "")),
        fields={name: packed(list(map(str, value))) if isinstance(value, list) else str(value) for name, value in fields.items()},
        duplicates=tuple(map(str, items(source.get("duplicates")))),
    )


def _text(value: object) -> str:
    """Return a text that is stored by language, or as it is."""
    return str(of_language(value) or "")


def _fragments(hit: Mapping[str, object]) -> list[str]:
    return [str(one) for found in table(hit.get("highlight")).values() for one in items(found)]
