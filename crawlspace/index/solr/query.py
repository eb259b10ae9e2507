"""The query for documents in Solr, as JSON.

It has a branch for each language of the documents, with the fields of that language. In it each word must occur in one of the fields or in the
URL; a word that the analyser of the language leaves out, such as "the", may be missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from crawlspace.index.filters import Filter, by_field
from crawlspace.index.ideographs import is_ideograph
from crawlspace.index.search_server.languages import OTHER
from crawlspace.index.search_server.search import TIE_BREAKER, WEIGHT_OF_ADDRESS, WEIGHTS, Query, SearchRequest
from crawlspace.index.words import Term

Analysed = Callable[[str, Term], Sequence[str]]
"""Returns the words of a term as the analyser of a language makes them."""
_NOTHING: Query = {"lucene": {"query": "-*:*"}}
_ALL: Query = {"lucene": {"query": "*:*"}}
_PORT = re.compile(r":\d+$")
_OPERATORS = ("AND", "OR", "NOT")


def query_of(request: SearchRequest, analysed: Analysed) -> Query:
    """Return the query for documents that have all terms; with `of_some`, those that must be there and some of the rest."""
    branches = [_branch(request, language, analysed) for language in request.languages.by_field]
    return _any([branch for branch in branches if branch is not None])


def filters_of(request: SearchRequest) -> list[Query]:
    """Return a query for each field that is filtered by."""
    return [
        _in_one_of(request.languages.written) if field == "language" else _any([_condition(one) for one in of_field])
        for field, of_field in by_field(request.filters).items()
    ]


def of_collection(owner: str) -> Query:
    """Return the query for all documents of a collection."""
    return _term("collection", owner)


def _branch(request: SearchRequest, language: str, analysed: Analysed) -> Query | None:
    """Return the query for the documents of a language; None where nothing can be found."""
    wanted, languages = request.terms.wanted, request.languages

    def has_words(term: Term) -> bool:
        return term.is_prefix or bool(analysed(language, term))

    optional = [term for term in wanted if request.of_some and not (term.is_quoted or term.is_prefix)]
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
        must_not += [_in_one_of(others)] if (others := languages.of_others(language)) else []
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
    fields = {f"{name}_txt_{language}": weight for name, weight in WEIGHTS.items()} | {"address": WEIGHT_OF_ADDRESS}
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
    return {
        "edismax": {"query": query, "qf": " ".join([*fields, f"address^{WEIGHT_OF_ADDRESS}"]), "tie": TIE_BREAKER, "mm": least}
    }


def _phrase(written: str) -> str:
    escaped = re.sub(r'([\\"])', r"\\\1", written)
    return f'"{escaped}"'


def _plain(written: str) -> str:
    """Return words as they are written, without the meaning that they have in a query."""
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
        case _:
            first = f"{one.first}T00:00:00Z" if one.first else "*"
            last = f"{one.last}T23:59:59.999Z" if one.last else "*"
            return {"lucene": {"query": f"modified:[{first} TO {last}]"}}


def _host(value: str) -> Query:
    """Return the query for a host; one with a port is told apart by the beginning of the URL."""
    host = _PORT.sub("", value)
    name = _term("host", host.strip("[]"))
    if host == value:
        return name
    return {"bool": {"must": [name, _any([_prefix("url", f"{scheme}://{value}/") for scheme in ("http", "https")])]}}
