"""What a search server is asked for: a search text, filters and languages as a query."""

from __future__ import annotations

from typing import Any

import pytest

from crawlspace.index.opensearch.search import highlight_of, query_of
from tests.unit.index.search_requests import request


def test_a_word_is_looked_for_in_the_fields_of_a_language_and_in_the_url() -> None:
    query: Any = query_of(request("Urlaub", ["de", "de-AT", "fr"]), owner="demo")
    german, other = query["bool"]["must"][0]["bool"]["should"]
    assert query["bool"]["filter"] == [{"term": {"collection": "demo"}}]
    assert german == {
        "bool": {
            "must": [
                {
                    "dis_max": {
                        "queries": [
                            {
                                "multi_match": {
                                    "query": "Urlaub",
                                    "fields": ["title.de^10", "headings.de^5", "description.de^3", "text.de^1"],
                                    "tie_breaker": 0.3,
                                    "type": "phrase",
                                    "zero_terms_query": "all",
                                }
                            },
                            {"match_phrase": {"address": {"query": "Urlaub", "boost": 3}}},
                        ],
                        "tie_breaker": 0.3,
                    }
                }
            ],
            "filter": [{"terms": {"language": ["de", "de-AT"]}}],
        }
    }
    assert other["bool"]["must_not"] == [{"terms": {"language": ["de", "de-AT"]}}]
    assert other["bool"]["must"][0]["dis_max"]["queries"][0]["multi_match"]["fields"][0] == "title.other^10"


def either(*queries: dict[str, Any]) -> dict[str, Any]:
    return {"bool": {"should": list(queries), "minimum_should_match": 1}}


# A search text, and the query in short: `a~b` is a in any field, else b; `?` where the analyser may leave the word out, `*` a beginning,
# `std` one that is not changed by the analyser, `or` any of its words.
QUERIES: tuple[tuple[str, str], ...] = (
    ("leave", "leave?~url leave"),
    ("annual Leave", "annual?~url annual AND Leave?~url Leave"),
    ('"annual leave" now', "annual leave?~url annual leave AND now?~url now"),
    ("e-mail", "e-mail?~url e-mail"),
    ("2024", "2024~url 2024"),
    ("Café", "Café?~url Café"),
    ("管理者", "管理者?~url 管理者"),
    ("holi*", "holi*~std holi*~url holi*"),
    ('"annual le"*', "annual le*~url annual le*"),
    ("leave -old", "leave?~url leave NOT old~url old"),
    ('leave -"very old" -ol*', "leave?~url leave NOT very old~url very old NOT ol*~std ol*~url ol*"),
    ("AND title:x", "AND?~url AND AND title:x?~url title:x"),
)


@pytest.mark.parametrize(("text", "expected"), QUERIES)
def test_query(text: str, expected: str) -> None:
    assert branch(query_of(request(text, fields=None), owner="demo")) == expected


OF_SOME: tuple[tuple[str, str], ...] = (
    ("annual leave", "annual or~url annual or OR leave or~url leave or"),
    ("e-mail", "e-mail or~url e-mail or"),
    ('a b "c d" e* -f', "c d?~url c d AND e*~std e*~url e* AND a or~url a or OR b or~url b or NOT f~url f"),
)


@pytest.mark.parametrize(("text", "expected"), OF_SOME)
def test_query_for_some_of_the_words(text: str, expected: str) -> None:
    assert branch(query_of(request(text, fields=None, of_some=True), owner="demo")) == expected


FILTERS: tuple[tuple[list[str], list[dict[str, Any]]], ...] = (
    ([], []),
    (["host=A.test"], [{"term": {"host": "a.test"}}]),
    (["host=a.test", "host=b.test"], [either({"term": {"host": "a.test"}}, {"term": {"host": "b.test"}})]),
    (
        ["host=a.test:8080"],
        [
            {
                "bool": {
                    "filter": [
                        {"term": {"host": "a.test"}},
                        either({"prefix": {"url": "http://a.test:8080/"}}, {"prefix": {"url": "https://a.test:8080/"}}),
                    ]
                }
            }
        ],
    ),
    (
        ["type=pdf"],
        [either({"wildcard": {"content_type": {"value": "*/pdf"}}}, {"wildcard": {"content_type": {"value": "*/pdf;*"}}})],
    ),
    (["type=Text/HTML"], [either({"term": {"content_type": "text/html"}}, {"prefix": {"content_type": "text/html;"}})]),
    (
        ["type=x*"],
        [either({"wildcard": {"content_type": {"value": r"*/x\*"}}}, {"wildcard": {"content_type": {"value": r"*/x\*;*"}}})],
    ),
    (["modified=2026-01-31"], [{"range": {"modified": {"gte": "2026-01-31", "lte": "2026-01-31T23:59:59.999Z"}}}]),
    (["modified=2026-01-01.."], [{"range": {"modified": {"gte": "2026-01-01"}}}]),
    (["modified=..2026-01-31"], [{"range": {"modified": {"lte": "2026-01-31T23:59:59.999Z"}}}]),
    (["language=en", "host=a.test"], [{"terms": {"language": ["en", "en-GB"]}}, {"term": {"host": "a.test"}}]),
    (["language=xx"], [{"terms": {"language": []}}]),
)


@pytest.mark.parametrize(("written", "expected"), FILTERS)
def test_filters(written: list[str], expected: list[dict[str, Any]]) -> None:
    query: Any = query_of(request("x", ["de", "en", "en-GB"], filters=written), owner="demo")
    assert query["bool"]["filter"] == [{"term": {"collection": "demo"}}, *expected]


HIGHLIGHTS: tuple[tuple[str, bool, list[dict[str, Any]]], ...] = (
    ("annual", False, [{"match_phrase": {"text": {"query": "annual"}}}]),
    ("e-mail", False, [{"match_phrase": {"text": {"query": "e-mail"}}}]),
    ("e-mail", True, [{"match": {"text": {"query": "e-mail"}}}]),
    ('"e-mail"', True, [{"match_phrase": {"text": {"query": "e-mail"}}}]),
)


@pytest.mark.parametrize(("text", "of_some", "expected"), HIGHLIGHTS)
def test_highlights(text: str, expected: list[dict[str, Any]], *, of_some: bool) -> None:
    asked: Any = highlight_of(request(text, fields=None, of_some=of_some), ("<", ">"))
    assert ([asked["highlight_query"]], asked["fields"]) == (expected, {"text": {}})
    assert (asked["pre_tags"], asked["post_tags"]) == (["<"], [">"])


def branch(query: Any) -> str:
    """The query for the documents of one language, in short."""
    found = query["bool"]["must"][0]["bool"]
    return " NOT ".join([" AND ".join(map(short, found["must"])), *map(short, found.get("must_not", []))])


def short(query: Any) -> str:
    ((kind, inner),) = query.items()
    if kind == "dis_max":
        return "~".join(map(short, inner["queries"]))
    if kind == "bool":
        return " OR ".join(map(short, inner["should"]))
    if kind in ("match", "match_phrase"):
        return f"url {inner['address']['query']}{' or' if kind == 'match' else ''}"
    assert kind == "multi_match"
    url = "url " if inner["fields"] == ["address^3"] else ""
    standard = "std " if inner.get("analyzer") == "standard" else ""
    ending = {"phrase": "", "best_fields": " or", "bool_prefix": "*", "phrase_prefix": "*"}[inner["type"]]
    return f"{standard}{url}{inner['query']}{ending}{'?' if inner.get('zero_terms_query') == 'all' else ''}"
