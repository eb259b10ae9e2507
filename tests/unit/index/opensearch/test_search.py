"""Search in OpenSearch and Elasticsearch: queries for search texts, filters and languages, and hits."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from crawlspace.document import IndexOrder, Op
from crawlspace.errors import CrawlspaceError, IndexUnavailable, UsageError
from crawlspace.index.opensearch.search import highlight_of, query_of
from crawlspace.index.opensearch.sink import OpenSearchSink
from crawlspace.index.search import read_filter
from tests.conftest import assert_same
from tests.contract.searching import DOCUMENTS
from tests.fault_proxy import Fault, FaultProxy, answers, error
from tests.search_server import INDEX, SearchServer, search_server, sink_of
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


@dataclass
class Scene:
    server: SearchServer
    proxy: FaultProxy
    sink: OpenSearchSink
    of: Callable[..., OpenSearchSink]

    def fill(self, sink: OpenSearchSink, documents: Any) -> None:
        orders = [IndexOrder(number, Op.PUSH, one.url, one, number) for number, one in enumerate(documents, 1)]
        sent = sink.send(orders)
        assert (sent.refused, sent.later) == ([], [])
        self.server.ask("POST", f"/{INDEX}/_refresh")


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with ExitStack() as stack:
        server = stack.enter_context(search_server())
        proxy = stack.enter_context(closing(FaultProxy(server.url, path="/_search")))

        def of(collection: str = "demo", **options: object) -> OpenSearchSink:
            made = sink_of(tmp_path, server.options(**{"url": proxy.url, **options}), collection=collection)
            stack.callback(made.close)
            return made  # type: ignore[no-any-return]

        yield Scene(server, proxy, of(), of)


@pytest.fixture
def filled(scene: Scene) -> Scene:
    scene.fill(scene.sink, DOCUMENTS)
    return scene


def without_highlights(body: dict[str, Any]) -> object:
    for hit in body["hits"]["hits"]:
        hit.pop("highlight", None)
    return body


def too_long(body: bytes) -> tuple[int, object] | None:
    why = (
        "The length of [text.en] field has exceeded [1000000]: set the [index.highlight.max_analyzed_offset] index level setting"
    )
    causes = {"type": "search_phase_execution_exception", "root_cause": [error("illegal_argument_exception", why)["error"]]}
    return (400, {"error": causes}) if b'"highlight"' in body else None


@pytest.mark.parametrize("fault", [Fault(change=without_highlights), Fault(too_long)])
def test_a_snippet_is_made_here_where_the_server_makes_none(filled: Scene, fault: Fault) -> None:
    filled.proxy.rest = fault
    assert [hit.snippet for hit in filled.sink.search("request").hits] == ["[Requests] for annual leave go here."]
    assert [hit.snippet for hit in filled.sink.search("handbook requests").hits] == [
        "[Requests] for annual leave go here.",
        "Annual leaves of 2024.",
    ]
    assert [hit.snippet for hit in filled.sink.search("休暇").hits] == ["年次[休暇]の申請"]


def test_a_shard_that_fails_is_an_error_and_not_fewer_hits(filled: Scene) -> None:
    filled.sink.search("requests annual", facets=["host"])
    assert len(filled.proxy.paths) > 1
    assert all("allow_partial_search_results=false" in path for path in filled.proxy.paths)


def test_plain_texts_of_a_template_of_the_users_own(scene: Scene, tmp_path: Path) -> None:
    keyword = {"type": "keyword"}
    fields = dict.fromkeys(("url", "id", "host", "collection", "language", "content_type", "keywords", "fields.author"), keyword)
    texts = {name: {"type": "text"} for name in ("title", "text", "headings", "description")}
    path = tmp_path / "template.json"
    path.write_text(json.dumps({"mappings": {"dynamic": False, "properties": fields | texts}}))
    sink = scene.of(template=str(path))
    scene.fill(sink, DOCUMENTS)
    found = sink.search("annual leave", facets=["host"], filters=[read_filter("language=en")])
    assert_same([hit.url for hit in found.hits], [DOCUMENTS[0].url, DOCUMENTS[1].url])
    assert found.hits[0].title == "Annual leave"
    assert {hit.snippet for hit in found.hits} == {"Requests for [annual] [leave] go here.", "[Annual] leaves of 2024."}
    assert found.hits[0].fields == DOCUMENTS[0].fields
    names = ["fields.keywords", "fields.author"]
    filters = [read_filter("author=Ann"), read_filter("keywords=forms")]
    found = sink.search("annual leave", facets=names, filters=filters)
    assert found.facets == {"fields.keywords": [("forms", 1), ("leave", 1)], "fields.author": [("Ann", 1), ("Bo", 1)]}


ERRORS: tuple[tuple[int, object, type[CrawlspaceError], str], ...] = (
    (
        401,
        "",
        IndexUnavailable,
        "refuses access to intranet (HTTP status 401): check user and password, or the API key, of the sink",
    ),
    (403, error("security_exception"), IndexUnavailable, "refuses access to intranet (HTTP status 403)"),
    (404, error("index_not_found_exception"), IndexUnavailable, "`scrapy crawl demo` creates it if it never existed"),
    (404, "no such page", IndexUnavailable, "cannot search intranet: it answers 404 no such page"),
    (400, error("index_closed_exception", "closed"), IndexUnavailable, "cannot search intranet: index_closed_exception: closed"),
    (503, error("search_phase_execution_exception", "all shards failed"), IndexUnavailable, "all shards failed"),
    (
        400,
        error("query_shard_exception", "too_many_nested_clauses: maxClauseCount is 1024"),
        UsageError,
        "more words than the server accepts",
    ),
    (200, "<html>", IndexUnavailable, "is no OpenSearch or Elasticsearch: it answers 200 <html>"),
)


@pytest.mark.parametrize(("status", "body", "kind", "sentence"), ERRORS)
def test_errors_are_sentences(filled: Scene, status: int, body: object, kind: type[CrawlspaceError], sentence: str) -> None:
    filled.proxy.rest = answers(status, body)
    with pytest.raises(kind, match=re.escape(sentence)):
        filled.sink.search("leave")


def test_an_index_that_is_not_there_yet(scene: Scene) -> None:
    with pytest.raises(
        IndexUnavailable, match=r"there is no intranet at .*, neither an alias nor an index: `scrapy crawl demo` creates it"
    ):
        scene.sink.search("leave")


def test_an_index_in_the_place_of_the_alias(scene: Scene) -> None:
    scene.server.ask("PUT", f"/{INDEX}")
    with pytest.raises(IndexUnavailable, match=r"intranet at .* is an index, and must be an alias: give the sink another index"):
        scene.sink.search("leave")


def test_an_alias_that_may_not_be_looked_at_is_searched(filled: Scene) -> None:
    with closing(FaultProxy(filled.server.url, path="/_alias")) as proxy:
        proxy.rest = answers(403, error("security_exception"))
        assert filled.of(url=proxy.url).search("leave").total == 2
        assert proxy.bulks == 1


def test_a_server_that_does_not_answer(tmp_path: Path) -> None:
    with closing(sink_of(tmp_path, {"type": "opensearch", "url": "http://127.0.0.1:9", "index": INDEX})) as sink:
        with pytest.raises(IndexUnavailable, match=r"http://127\.0\.0\.1:9 cannot be reached"):
            sink.search("leave")
