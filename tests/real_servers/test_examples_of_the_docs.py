"""Each query of docs/searching-servers.md for OpenSearch and Elasticsearch, on a real one; those for Solr: `test_solr_examples.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.conftest import assert_same
from tests.real_servers.examples import DOCUMENTS, IN_SOLR, OF_ANOTHER, RECENTLY, examples, fill
from tests.search_server import INDEX, SearchServer, search_server

EXAMPLES = [(heading, body) for heading, body in examples() if not heading.endswith(IN_SOLR)]
OLD, OF_2024, NEW, UNDATED, URLAUB, _, KLINGON = (one.url for one in DOCUMENTS)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SearchServer]:
    with search_server() as made:
        fill(made.options(), tmp_path_factory.mktemp("collections"))
        made.ask("POST", f"/{INDEX}/_refresh")
        yield made


def urls(answer: Any) -> list[str]:
    return [hit["_source"]["url"] for hit in answer["hits"]["hits"]]


def highlighted(answer: Any) -> None:
    assert_same(urls(answer), [OLD, OF_2024, NEW, UNDATED])
    assert urls(answer)[0] == OLD
    best = answer["hits"]["hits"][0]["highlight"]
    assert best["title.en"] == ["<mark>Annual</mark> <mark>leave</mark>"]
    assert best["text.en"] == ["Ask for <mark>annual</mark> &lt;<mark>leave</mark>&gt; here"]


def of_languages(answer: Any) -> None:
    assert_same(urls(answer), [URLAUB, KLINGON])
    assert answer["hits"]["hits"][0]["highlight"] == {"text.de": ["<em>Anträge</em> auf <em>Urlaub</em>"]}


def languages(answer: Any) -> None:
    counted = {bucket["key"]: bucket["doc_count"] for bucket in answer["aggregations"]["languages"]["buckets"]}
    assert counted == {"en": 4, "de": 2, "en-GB": 1, "tlh": 1}


def in_a_folder(answer: Any) -> None:
    assert urls(answer) == [OF_2024]


def facets(answer: Any) -> None:
    assert_same(urls(answer), [OLD, OF_2024, OF_ANOTHER.url])
    assert answer["hits"]["total"] == {"value": 3, "relation": "eq"}
    counts = {
        name: {bucket.get("key_as_string", bucket["key"]): bucket["doc_count"] for bucket in found["buckets"]}
        for name, found in answer["aggregations"].items()
    }
    assert counts == {
        "hosts": {"www.example.com": 5},
        "types": {"text/html": 3, "application/pdf": 1},
        "years": {"2020": 1, "2024": 2, RECENTLY[:4]: 1},
    }


def newer_first(answer: Any) -> None:
    places = [urls(answer).index(one) for one in (NEW, OF_2024, UNDATED)]
    assert places == sorted(places)
    scores = {hit["_source"]["url"]: hit["_score"] for hit in answer["hits"]["hits"]}
    assert 1.9 < scores[NEW] / scores[UNDATED] < 2


def by_any_url(answer: Any) -> None:
    assert urls(answer) == [OLD]


def one_of_each_host(answer: Any) -> None:
    (hit,) = answer["hits"]["hits"]
    assert hit["inner_hits"]["more"]["hits"]["total"]["value"] == 5
    assert answer["aggregations"]["hosts"]["value"] == 1


def in_order(answer: Any) -> None:
    ids = [hit["sort"][0] for hit in answer["hits"]["hits"]]
    assert ids == sorted(id for id in ids if id > "5")
    assert ids


EXPECTED: tuple[tuple[str, Callable[[Any], None]], ...] = (
    ("Words, with highlighting", highlighted),
    ("Several languages", of_languages),
    ("Several languages", languages),
    ("One collection, a host, a folder", in_a_folder),
    ("Facets", facets),
    ("Newer documents first, a little", newer_first),
    ("Duplicates, and too much of one host", by_any_url),
    ("Duplicates, and too much of one host", one_of_each_host),
    ("All documents, in order", in_order),
)


@pytest.mark.parametrize("number", range(len(EXPECTED)))
def test_an_example(server: SearchServer, number: int) -> None:
    _, body = EXAMPLES[number]
    answer = server.ask("POST", f"/{INDEX}/_search", body)
    assert "error" not in answer, answer
    EXPECTED[number][1](answer)


def test_each_example_is_run() -> None:
    assert [heading for heading, _ in EXAMPLES] == [heading for heading, _ in EXPECTED]
