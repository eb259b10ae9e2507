"""What a real Solr makes of our documents: languages, facets, folders, commits, and the requests of the docs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from crawlspace.document import Document, IndexOrder, Op
from crawlspace.index.opensearch.mapping import ANALYZERS
from tests.command_line import ROOT
from tests.real_servers.test_opensearch import DOCUMENTS
from tests.search_server import sink_of
from tests.solr_server import INDEX, SolrServer, rebuildable_solr, solr_server


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[SolrServer]:
    with solr_server() as server, closing(sink_of(tmp_path, server.options())) as sink:
        orders = [IndexOrder(number, Op.PUSH, one.url, one, number) for number, one in enumerate(DOCUMENTS, 1)]
        orders.append(IndexOrder(98, Op.PUSH, "http://gone.example/", Document("http://gone.example/", "Annual leave"), 98))
        sent = sink.send(orders)
        assert (sent.refused, sent.later) == ([], [])
        sink.send([IndexOrder(99, Op.DELETE, "http://gone.example/", version=99)])
        server.ask(f"/{INDEX}/update", {"commit": {}})
        yield server


def found(server: SolrServer, **query: str) -> set[str]:
    answer = server.ask(f"/{server.index}/select", **query)
    return {hit["url"] for hit in answer["response"]["docs"]}


QUERIES: list[tuple[str, str, list[int]]] = [
    ("leaves", "", [0, 1]),
    ("annual leave", "", [0, 1]),
    ("Antrag", "", [2]),
    ("休暇", "", [3]),
    ("JATLH", "", [4]),
    ("title:leave", "", [0, 1]),
    ("text_txt_de:antrag", "", [2]),
    ("", "", [0, 1, 2, 3, 4]),
    ("*:*", "{!term f=folder}www.example.com/handbook", [0, 1]),
    ("*:*", "{!term f=folder}www.example.com/handbook/old", [1]),
    ("address:urlaub", "", [2]),
    ("*:*", "{!term f=fields}color=red", [4]),
    ("*:*", "modified:[2026-01-01T00:00:00Z TO *]", [0]),
    ("*:*", "language:(de OR ja)", [2, 3]),
    ("*:*", "deleted:true", []),
]


@pytest.mark.parametrize(("query", "restricted", "expected"), QUERIES)
def test_queries(filled: SolrServer, query: str, restricted: str, expected: list[int]) -> None:
    asked = {"q": query} | ({"fq": restricted} if restricted else {})
    assert found(filled, **asked) == {DOCUMENTS[number].url for number in expected}


def test_a_copied_document_is_found_as_before(tmp_path: Path) -> None:
    (one,) = (document for document in DOCUMENTS if "urlaub" in document.url)
    with rebuildable_solr() as server, closing(sink_of(tmp_path, server.options())) as sink:
        sink.send([IndexOrder(1, Op.PUSH, one.url, one, 1)])
        sink.begin_next()
        sink.next_copy().carry_over([one.url])
        sink.switch()
        server.documents()
        for query in ("address:urlaub", f"{{!term f=host}}{one.url.split('/')[2]}", "text_txt_de:antrag"):
            assert found(server, q=query, defType="lucene") == {one.url}


def of_the_docs(word: str) -> Any:
    text = (ROOT / "docs" / "sinks.md").read_text(encoding="utf-8").partition("\n## Solr\n")[2]
    return json.loads(next(block for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL) if f'"{word}"' in block))


def test_the_query_of_the_docs(filled: SolrServer) -> None:
    answer = filled.ask(f"/{INDEX}/select", of_the_docs("query"))
    (hit,) = answer["response"]["docs"]
    assert (hit["url"], hit["title_txt_en"]) == (DOCUMENTS[0].url, "Annual leave")
    assert "text_txt_en" not in hit
    assert "<em>annual</em> <em>leave</em>" in answer["highlighting"][hit["id"]]["text_txt_en"][0]
    assert answer["facets"]["hosts"]["buckets"] == [{"val": "www.example.com", "count": 1}]


def test_what_is_left_of_deleted_documents_can_be_removed_as_the_docs_say(filled: SolrServer) -> None:
    gone = "http://gone.example/"
    old = {"id": "old", "version": 1, "deleted": True, "pushed_at": "2020-01-01T00:00:00Z"}
    filled.ask(f"/{INDEX}/update", [old])
    filled.ask(f"/{INDEX}/update", of_the_docs("delete"))
    assert filled.ask(f"/{INDEX}/get", {"params": {"ids": "old"}})["response"]["docs"] == []
    assert (filled.stored(gone) or {})["deleted"], "it is of today"
    assert found(filled, q="*:*") == {one.url for one in DOCUMENTS}


@pytest.mark.parametrize("language", [*ANALYZERS, "other"])
def test_each_language_has_its_fields(filled: SolrServer, tmp_path: Path, language: str) -> None:
    document = Document("http://x.example/", "x", "x", language, "x", ["x", "y"])
    with closing(sink_of(tmp_path, filled.options())) as sink:
        sink.send([IndexOrder(200, Op.PUSH, document.url, document, 200)])
    there = filled.documents()[document.url]
    names = {f"{name}_txt_{language}" for name in ("title", "headings", "description", "text")}
    assert {name for name in there if "_txt_" in name} == names
