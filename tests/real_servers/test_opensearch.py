"""What a real OpenSearch or Elasticsearch makes of our documents: languages, facets, folders, and the query of the docs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from crawlspace.document import Document, IndexOrder, Op
from tests.command_line import ROOT
from tests.search_server import INDEX, SearchServer, search_server, sink_of

DOCUMENTS = [
    Document(
        "http://www.example.com/handbook/leave",
        "Annual leave",
        language="en",
        text="Requests for annual leave go here",
        modified="2026-02-01",
    ),
    Document(
        "http://www.example.com/handbook/old/leave",
        "Annual leave",
        language="en",
        text="Annual leaves of 2024",
        modified="2024-02-01T10:00:00Z",
    ),
    Document(
        "http://de.example.com/urlaub",
        "Urlaubsanträge",
        language="de",
        text="Alle Anträge auf Urlaub",
        fields={"since": "2026-01-01", "rank": "7"},
    ),
    Document("http://ja.example.com/", "休暇", language="ja", text="年次休暇の申請", fields={"since": "soon", "rank": "first"}),
    Document("http://x.example.com/", "Klingon", language="tlh", text="jatlh", fields={"color": "red", "x" * 300: "y" * 40_000}),
]


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[SearchServer]:
    with search_server() as server, closing(sink_of(tmp_path, server.options())) as sink:
        orders = [IndexOrder(number, Op.PUSH, one.url, one, number) for number, one in enumerate(DOCUMENTS, 1)]
        sent = sink.send(orders)
        assert (sent.refused, sent.later) == ([], [])
        server.ask("POST", f"/{INDEX}/_refresh")
        yield server


def found(server: SearchServer, query: dict[str, Any]) -> list[str]:
    answer = server.ask("POST", f"/{INDEX}/_search", query)
    return [hit["_source"]["url"] for hit in answer["hits"]["hits"]]


def test_more_than_a_server_takes_is_sent_by_reference_or_refused(tmp_path: Path) -> None:
    """Both servers take 100 MB (104,857,600 bytes) of a request, and answer 413 to more before they have read it."""
    urls = [f"http://www.example.com/{name}" for name in "ab"]
    text = "x" * 105_000_000
    place = "one.warc.gz:4711"
    with search_server() as server, closing(sink_of(tmp_path, server.options())) as sink:
        archived = IndexOrder(1, Op.PUSH, urls[0], Document(urls[0], text=text), 1, content_place=place)
        other = IndexOrder(2, Op.PUSH, urls[1], Document(urls[1], text=text), 2)
        sent = sink.send([archived, other])
        assert [(one.order.url, one.reason) for one in sent.refused] == [(urls[1], "it is too large for the server")]
        assert sent.later == []
        assert {url: one["content_place"] for url, one in server.documents().items()} == {urls[0]: place}
        assert found(server, {"query": {"term": {"content_place": place}}}) == [urls[0]]


QUERIES: list[tuple[dict[str, Any], list[int]]] = [
    ({"multi_match": {"query": "leaves", "fields": ["title.*", "text.*"]}}, [0, 1]),
    ({"multi_match": {"query": "Antrag", "fields": ["title.*", "text.*"]}}, [2]),
    ({"multi_match": {"query": "休暇", "fields": ["title.*", "text.*"]}}, [3]),
    ({"multi_match": {"query": "JATLH", "fields": ["text.*"]}}, [4]),
    ({"term": {"folder": "www.example.com/handbook"}}, [0, 1]),
    ({"term": {"folder": "www.example.com/handbook/old"}}, [1]),
    ({"match": {"address": "urlaub"}}, [2]),
    ({"term": {"fields.color": "red"}}, [4]),
    ({"term": {"fields.since": "2026-01-01"}}, [2]),
    ({"term": {"fields.since": "soon"}}, [3]),
    ({"terms": {"fields.rank": ["7", "first"]}}, [2, 3]),
    ({"range": {"modified": {"gte": "2026-01-01"}}}, [0]),
    ({"terms": {"language": ["de", "ja"]}}, [2, 3]),
]


@pytest.mark.parametrize(("query", "expected"), QUERIES)
def test_queries(filled: SearchServer, query: dict[str, Any], expected: list[int]) -> None:
    assert set(found(filled, {"query": query})) == {DOCUMENTS[number].url for number in expected}


def test_the_query_of_the_docs(filled: SearchServer) -> None:
    text = (ROOT / "docs" / "sinks.md").read_text(encoding="utf-8")
    query = json.loads(next(block for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL) if '"query"' in block))
    answer = filled.ask("POST", f"/{INDEX}/_search", query)
    (hit,) = answer["hits"]["hits"]
    assert hit["_source"]["url"] == DOCUMENTS[0].url
    assert "<em>annual</em> <em>leave</em>" in hit["highlight"]["text.en"][0]
    assert answer["aggregations"]["hosts"]["buckets"] == [{"key": "www.example.com", "doc_count": 1}]
