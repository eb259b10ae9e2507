"""Search in Solr: the query as JSON, and the hits, whose snippets are made here.

The query has a branch for each language of the documents, with the fields of that language. In it each word must occur in one of the fields or
in the URL; a word that the analyser of the language leaves out, such as "the", may be missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from urllib.parse import urlencode

from crawlspace.document import packed
from crawlspace.errors import IndexUnavailable, UsageError
from crawlspace.index.embedded_search import FACET_COLUMNS, without_hidden
from crawlspace.index.found_texts import FoundDocument
from crawlspace.index.ideographs import is_ideograph
from crawlspace.index.json_client import Client, Reply, items, table
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
from crawlspace.index.solr.contents import NOT_DELETED, answered, documents_of, pair_of
from crawlspace.index.solr.documents import parts_of, why_of
from crawlspace.index.words import Term

Analysed = Callable[[str, Term], Sequence[str]]
"""Returns the words of a term as the analyser of a language changes them."""
_NOTHING: Query = {"lucene": {"query": "-*:*"}}
_ALL: Query = {"lucene": {"query": "*:*"}}
_OPERATORS = ("AND", "OR", "NOT")


def query_of(request: SearchRequest, analysed: Analysed) -> Query:
    """Return the query for documents that have all terms; with `of_some`, those that must be there and some of the rest."""
    branches = [_branch(request, language, analysed) for language in request.languages.by_field]
    return _any([branch for branch in branches if branch is not None])


def filters_of(request: SearchRequest) -> list[Query]:
    """Return a query for each filtered field."""
    found = [
        _in_one_of(request.languages.written) if field == "language" else _any([_condition(one) for one in of_field])
        for field, of_field in by_field(request.filters).items()
    ]
    negated = [_condition(one) for one in request.filters if one.is_negated]
    return [*found, {"bool": {"must": [_ALL], "must_not": negated}}] if negated else found


def of_collection(owner: str) -> Query:
    """Return the query for all documents of a collection."""
    return _term("collection", owner)


def _branch(request: SearchRequest, language: str, analysed: Analysed) -> Query | None:
    """Return the query for the documents of a language; None if it could find nothing."""
    wanted, languages = request.terms.wanted, request.languages

    def has_words(term: Term) -> bool:
        return term.is_prefix or bool(analysed(language, term))

    optional = list(filter(request.is_optional, wanted))
    must = [
        _of_term(term, language, analysed)
        for term in wanted
        if term not in optional and (has_words(term) or any(map(str.isnumeric, term.written)))
    ]
    if optional:
        some = [_edismax(_plain(term.written), language, least="1") for term in optional if has_words(term)]
        if not some:
            return None
        must.append(_any(some))
    must_not = [_of_term(term, language, analysed) for term in request.terms.unwanted if has_words(term)]
    branch: Query = {"must": must or [_ALL]}
    if language == OTHER:
        must_not += [_in_one_of(others)] if (others := languages.outside(language)) else []
    else:
        branch["filter"] = [_in_one_of(languages.by_field[language])]
    return {"bool": branch | ({"must_not": must_not} if must_not else {})}


def _of_term(term: Term, language: str, analysed: Analysed) -> Query:
    """Return the query for a term, in one of the fields or in the URL."""
    if not term.is_prefix or any(map(is_ideograph, term.words)):  # pairs of ideographs are found within longer words
        return _edismax(_phrase(term.written), language)
    beginnings = {term.words[-1], *analysed(language, term)[-1:]}
    if len(term.words) == 1:
        beginnings.add(term.written.lower())
    fields = {f"{name}_txt_{language}": weight for name, weight in WEIGHTS.items()} | {"address": ADDRESS_WEIGHT}
    last = _any(
        [
            {"boost": {"b": str(weight), "query": _prefix(field, one)}}
            for one in sorted(beginnings)
            for field, weight in fields.items()
        ]
    )
    if len(term.words) == 1:
        return last
    return {"bool": {"must": [_edismax(_phrase(" ".join(term.words[:-1])), language), last]}}


def _edismax(query: str, language: str, *, least: str = "100%") -> Query:
    fields = [f"{name}_txt_{language}^{weight}" for name, weight in WEIGHTS.items()]
    return {"edismax": {"query": query, "qf": " ".join([*fields, f"address^{ADDRESS_WEIGHT}"]), "tie": TIE_BREAKER, "mm": least}}


def _phrase(written: str) -> str:
    escaped = re.sub(r'([\\"])', r"\\\1", written)
    return f'"{escaped}"'


def _plain(written: str) -> str:
    """Return words as they are written, without their meaning in a query."""
    return " ".join(one.lower() if one in _OPERATORS else _escaped(one) for one in written.split())


def _escaped(text: str) -> str:
    return re.sub(r"(\W)", r"\\\1", text)


def _term(field: str, value: str) -> Query:
    return {"term": {"f": field, "query": value}}


def _in_one_of(languages: Sequence[str]) -> Query:
    return {"terms": {"f": "language", "separator": "\n", "query": "\n".join(languages)}}


def _prefix(field: str, value: str) -> Query:
    return {"prefix": {"f": field, "query": value}}


def _any(queries: Sequence[Query]) -> Query:
    if not queries:
        return _NOTHING
    return queries[0] if len(queries) == 1 else {"bool": {"should": list(queries)}}


def _condition(one: Filter) -> Query:
    """Return the query for a filter other than that of a language."""
    match one.field:
        case "host":
            return _host(one.value)
        case "type" if "/" in one.value:
            kind = one.value.lower()
            return _any([_term("content_type", kind), _prefix("content_type", f"{kind};")])
        case "type":
            ending = f"content_type:*\\/{_escaped(one.value.lower())}"
            return {"lucene": {"query": f"{ending} OR {ending}\\;*"}}
        case "modified":
            first = f"{one.first}T00:00:00Z" if one.first else "*"
            last = f"{one.last}T23:59:59.999Z" if one.last else "*"
            return {"lucene": {"query": f"modified:[{first} TO {last}]"}}
        case field if one.value:
            return _term("fields", f"{_name_of(field)}{one.value}")
        case field:  # times are texts, as in published=2026-01, which counts as its first day; U follows the T before an hour
            day = (
                one.first.removesuffix("-01").removesuffix("-01")
                if one.first.endswith("-01-01")
                else one.first.removesuffix("-01")
            )
            first, last = f"{_name_of(field)}{day or '0'}", f"{_name_of(field)}{one.last or '9'}U"
            return {"lucene": {"query": f'fields:["{_escaped(first)}" TO "{_escaped(last)}"]'}}


def _name_of(field: str) -> str:
    """Return the beginning of the values of a further field."""
    return f"{field.removeprefix(OF_FIELDS)}="


def _facet(name: str) -> Query:
    terms = {"type": "terms", "limit": FACET_VALUES, "refine": True}
    if name in FACET_COLUMNS:
        return terms | {"field": FACET_COLUMNS[name]}
    return terms | {"field": "fields", "prefix": _name_of(name)}


def _host(value: str) -> Query:
    """Return the query for a host; a port is compared by the beginning of the URL."""
    host, beginnings = split_host(value)
    name = _term("host", host)
    return {"bool": {"must": [name, _any([_prefix("url", one) for one in beginnings])]}} if beginnings else name


_SHOWN = "id,url,language,fields,duplicates,parts,title_txt_*,text_txt_*"
_PARAMETERS = {"defType": "lucene", "hl": "false", "shards.preference": "replica.base:stable"}
"""The same replicas answer for each page of hits, because the scores of each differ."""
_AS_WRITTEN = {"expandMacros": "false", "wt": "json"}
"""Else Solr replaces `${name}` in a search text by the value of a parameter."""
_TOO_MANY_WORDS = re.compile(r"too many (?:nested|boolean) clauses|maxClauseCount", re.IGNORECASE)


class SolrSearch(DocumentSearch):
    """Searches the documents of one of our collections in a core or collection of Solr."""

    def __init__(self, client: Client, url: str, index: str, *, owner: str, languages: Collection[str]) -> None:
        """`languages` are those for which texts have fields."""
        self._client = client
        self._url = url
        self._index = index
        self._ours = [NOT_DELETED, of_collection(owner)]
        self._fields = languages

    async def _languages(self, filters: Sequence[Filter]) -> Languages:
        counted = {"languages": {"type": "terms", "field": "language", "limit": MAX_LANGUAGES}}
        answer = await self._ask({"query": "*:*", "filter": self._ours, "limit": 0, "facet": counted})
        written = [value for value, _ in _counts(answer, "languages")]
        return Languages(written, fields=self._fields, filters=filters)

    async def _found(self, request: SearchRequest, *, first: int, number: int, facets: Sequence[str]) -> ServerAnswer:
        languages, terms = list(request.languages.by_field), request.terms
        analysed = await self._analysed([*terms.wanted, *terms.unwanted], languages)
        counted = {name: _facet(name) for name in facets}
        answer = await self._ask(
            {
                "query": query_of(request, lambda language, term: analysed[language][term]),
                "filter": [*self._ours, *filters_of(request)],
                "offset": first,
                "limit": number,
                "fields": "id,url,title_txt_*,headings_txt_*,score",
                "facet": counted,
            }
        )
        found = table(answer["response"])
        total, best = found.get("numFound"), found.get("maxScore")
        return ServerAnswer(
            list(map(_candidate, documents_of(answer))),
            total if isinstance(total, int) else 0,
            score_of(best) if best is not None else None,
            {name: _counts(answer, name) for name in facets},
        )

    async def _shown(self, request: SearchRequest, ids: Sequence[str], marks: tuple[str, str]) -> dict[str, Hit]:
        of_these = {"terms": {"f": "id", "query": ",".join(ids)}}
        answer = await self._ask({"query": of_these, "filter": self._ours, "limit": len(ids), "fields": _SHOWN})
        hits = {str(one.get("id")): (_hit(one), _text(one, "text"), parts_of(one)) for one in documents_of(answer)}
        return {
            id: replace(
                hit,
                snippet=request.texts.snippet(without_hidden(text, hit.fields), marks),
                parts=request.texts.parts(parts, hit.fields, marks),
            )
            for id, (hit, text, parts) in hits.items()
        }

    async def _analysed(self, terms: Sequence[Term], languages: Sequence[str]) -> dict[str, dict[Term, list[str]]]:
        """Return the words of terms as the analysers of languages change them, by language."""
        fields = {f"text_txt_{language}": language for language in languages}
        form = {"analysis.fieldname": ",".join(fields), "analysis.query": "\n".join(term.written for term in terms)}
        reply = await self._client.request(
            "POST",
            f"/{self._index}/analysis/field",
            lines=urlencode(form).encode(),
            headers={"Content-Type": "application/x-www-form-urlencoded"},
            parameters=_AS_WRITTEN,
        )
        by_field = table(table(self._answered(reply, "analysis")["analysis"]).get("field_names"))
        found: dict[str, dict[Term, list[str]]] = {}
        for field, language in fields.items():
            steps = [one for one in items(table(by_field.get(field)).get("query")) if isinstance(one, list)]
            words = list(map(table, steps[-1])) if steps else []
            of_language = found.setdefault(language, {})
            start = 0
            for term in terms:
                end = start + _utf16_length(term.written)
                of_language[term] = [str(one.get("text")) for one in words if start <= _number(one.get("start")) < end]
                start = end + 1
        return found

    async def _ask(self, body: Mapping[str, object]) -> Mapping[str, object]:
        """Return the answer to a search."""
        query = {**body, "params": _PARAMETERS}
        reply = await self._client.request("POST", f"/{self._index}/select", body=query, parameters=_AS_WRITTEN)
        return self._answered(reply, "response")

    def _answered(self, reply: Reply, part: str) -> Mapping[str, object]:
        """Return an answer that has a part. Raises IndexUnavailable, or UsageError, for any other."""
        if reply.status in (401, 403):
            raise IndexUnavailable(
                f"{self._url} refuses access to {self._index} (HTTP status {reply.status}): check user and password of the sink"
            )
        if not reply.is_ok and _TOO_MANY_WORDS.search(why_of(reply.status, reply.body)):
            raise UsageError(TOO_MANY_WORDS)
        return answered(reply, f"{self._index} at {self._url}", part)


def _counts(answer: Mapping[str, object], name: str) -> list[tuple[str, int]]:
    found = counts_of(table(answer.get("facets")).get(name), value="val", count="count")
    return [(value.removeprefix(_name_of(name)), number) for value, number in found] if name.startswith(OF_FIELDS) else found


def _candidate(document: Mapping[str, object]) -> FoundDocument:
    return FoundDocument(
        id=str(document.get("id")),
        score=score_of(document.get("score")),
        url=str(document.get("url", "")),
        title=_text(document, "title"),
        headings=[str(heading) for heading in items(_of_language(document, "headings"))],
    )


def _hit(document: Mapping[str, object]) -> Hit:
    """Return the hit of a document, without its snippet."""
    return Hit(
        url=str(document.get("url", "")),
        title=_text(document, "title"),
        snippet="",
        score=0.0,
        language=str(document.get("language", "")),
        fields=_fields_of(items(document.get("fields"))),
        duplicates=tuple(map(str, items(document.get("duplicates")))),
    )


def _text(document: Mapping[str, object], name: str) -> str:
    return str(_of_language(document, name) or "")


def _of_language(document: Mapping[str, object], name: str) -> object:
    """Return a text, in any language."""
    return next((value for field, value in document.items() if field.startswith(f"{name}_txt_")), None)


def _fields_of(written: Iterable[object]) -> dict[str, str]:
    values: dict[str, list[str]] = {}
    for name, value in map(pair_of, written):
        values.setdefault(name, []).append(value)
    return {name: given[0] if len(given) == 1 else packed(given) for name, given in values.items()}


def _number(value: object) -> int:
    return value if isinstance(value, int) else -1


def _utf16_length(text: str) -> int:
    """Return the length of a text as Java counts it."""
    return len(text.encode("utf-16-le")) // 2
