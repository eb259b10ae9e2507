"""Each query of docs/searching-servers.md for Solr, on a real one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.conftest import assert_same
from tests.real_servers.examples import DOCUMENTS, IN_SOLR, OF_ANOTHER, RECENTLY, examples, fill
from tests.solr_server import INDEX, SolrServer, solr_server

EXAMPLES = [(heading, body) for heading, body in examples() if heading.endswith(IN_SOLR)]
OLD, OF_2024, NEW, UNDATED, URLAUB, _, KLINGON = (one.url for one in DOCUMENTS)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SolrServer]:
    with solr_server() as made:
        fill(made.options(), tmp_path_factory.mktemp("collections"))
        made.ask(f"/{INDEX}/update", {"commit": {}})
        yield made


def urls(answer: Any) -> list[str]:
    return [one["url"] for one in answer["response"]["docs"]]


def buckets(answer: Any, name: str) -> dict[str, int]:
    return {one["val"]: one["count"] for one in answer["facets"][name]["buckets"]}


def highlighted(answer: Any) -> None:
    assert_same(urls(answer), [OLD, OF_2024, NEW, UNDATED])
    assert urls(answer)[0] == OLD
    best = answer["highlighting"][answer["response"]["docs"][0]["id"]]
    assert best["title_txt_en"] == ["<mark>Annual</mark> <mark>leave</mark>"]
    assert best["text_txt_en"] == ["Ask for <mark>annual</mark> &lt;<mark>leave</mark>&gt; here"]


def of_languages(answer: Any) -> None:
    assert_same(urls(answer), [URLAUB, KLINGON])
    found = {one["url"]: answer["highlighting"][one["id"]] for one in answer["response"]["docs"]}
    assert found[URLAUB] == {"text_txt_de": ["<em>Anträge</em> auf <em>Urlaub</em>"]}


def languages(answer: Any) -> None:
    assert buckets(answer, "languages") == {"en": 4, "de": 2, "en-GB": 1, "tlh": 1}


def in_a_folder(answer: Any) -> None:
    assert urls(answer) == [OF_2024]


def facets(answer: Any) -> None:
    assert_same(urls(answer), [OLD, OF_2024, OF_ANOTHER.url])
    assert buckets(answer, "hosts") == {"www.example.com": 3}
    assert buckets(answer, "types") == {"text/html": 3, "application/pdf": 1}
    assert {value[:4]: count for value, count in buckets(answer, "years").items()} == {"2020": 1, "2024": 2, RECENTLY[:4]: 1}


def newer_first(answer: Any) -> None:
    places = [urls(answer).index(one) for one in (NEW, OF_2024, UNDATED)]
    assert places == sorted(places)
    scores = {one["url"]: one["score"] for one in answer["response"]["docs"]}
    if "zkConnected" not in answer["responseHeader"]:  # each shard counts the documents with a word for itself
        assert 1.9 < scores[NEW] / scores[UNDATED] < 2


def by_any_url(answer: Any) -> None:
    assert urls(answer) == [OLD]


def one_of_each_host(answer: Any) -> None:
    (group,) = answer["grouped"]["host"]["groups"]
    assert (group["groupValue"], group["doclist"]["numFound"]) == ("www.example.com", 5)
    assert answer["facets"]["hosts"] == 1


def in_order(answer: Any) -> None:
    assert_same(urls(answer), [one.url for one in DOCUMENTS])
    assert answer["nextCursorMark"] != "*"


EXPECTED: tuple[tuple[str, Callable[[Any], None]], ...] = (
    ("Words, with highlighting in Solr", highlighted),
    ("Several languages in Solr", of_languages),
    ("Several languages in Solr", languages),
    ("One collection, a host, a folder in Solr", in_a_folder),
    ("Facets in Solr", facets),
    ("Newer documents first in Solr", newer_first),
    ("Duplicates, and too much of one host in Solr", by_any_url),
    ("Duplicates, and too much of one host in Solr", one_of_each_host),
    ("All documents, in order, in Solr", in_order),
)


@pytest.mark.parametrize("number", range(len(EXPECTED)))
def test_an_example(server: SolrServer, number: int) -> None:
    _, body = EXAMPLES[number]
    answer = server.ask(f"/{INDEX}/select?expandMacros=false", body)
    assert "error" not in answer, answer
    EXPECTED[number][1](answer)


def test_each_example_is_run() -> None:
    assert [heading for heading, _ in EXAMPLES] == [heading for heading, _ in EXPECTED]
