"""What a search finds on a server: of one collection, with the same filters, facets and snippets as in the embedded index; and its errors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from crawlspace.errors import CrawlspaceError, IndexUnavailable, UsageError
from crawlspace.index.closeness import REORDERED
from crawlspace.index.filters import read_filter
from crawlspace.index.opensearch.sink import OpenSearchSink
from crawlspace.model import Document, IndexOrder, Op
from tests.conftest import assert_same
from tests.fault_proxy import Fault, FaultProxy, answers, error
from tests.search_server import INDEX, REAL, SearchServer, search_server, sink_of

DOCUMENTS = (
    Document(
        "http://a.test/handbook/leave",
        "Annual leave",
        language="en",
        text="Requests for annual leave go here.",
        modified="2026-02-01",
    ),
    Document(
        "http://a.test/handbook/old/leave",
        "Annual leave",
        language="en-GB",
        text="Annual leaves of 2024.",
        modified="2024-02-01T10:00:00Z",
    ),
    Document(
        "http://b.test:8080/urlaub",
        "Urlaubsanträge",
        language="de",
        text="Alle Anträge auf Urlaub.",
        content_type="application/pdf; a=b",
    ),
    Document("http://b.test/B%C3%BCcher", "Liste", language="de-AT", text="Die Firma", content_type="text/html"),
    Document("http://ja.test/", "休暇", language="ja", text="年次休暇の申請", content_type="text/html", modified="2026-01-31"),
    Document(
        "http://x.test/k", "", language="tlh", text="jatlh the e-mail", fields={"color": "red"}, duplicates=["http://x.test/l"]
    ),
)


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

    def found(self, words: str, **options: Any) -> list[str]:
        return [hit.url for hit in self.sink.search(words, **options).hits if hit.has_all_words]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with ExitStack() as stack:
        server = stack.enter_context(search_server())
        proxy = stack.enter_context(closing(FaultProxy(server.url, path="/_search")))

        def of(collection: str = "demo", **options: object) -> OpenSearchSink:
            made = sink_of(tmp_path, {**server.options(**options), "url": proxy.url}, collection=collection)
            stack.callback(made.close)
            return made  # type: ignore[no-any-return]

        yield Scene(server, proxy, of(), of)


@pytest.fixture
def filled(scene: Scene) -> Scene:
    scene.fill(scene.sink, DOCUMENTS)
    return scene


# Words, and the documents that have all of them, by their place above.
WORDS: tuple[tuple[str, list[int]], ...] = (
    ("leave", [0, 1]),
    ("LEAVES", [0, 1]),
    ("annual leave", [0, 1]),
    ("leave annual requests", [0]),
    ('"annual leave"', [0, 1]),
    ('"leave annual"', []),
    ("requests the leave", [0]),
    ("handbook leave", [0, 1]),
    ("leave -2024", [0]),
    ('leave -"annual leaves"', []),
    ("req*", [0]),
    ("leav* -req*", [1]),
    ("2024", [1]),
    ("2025", []),
    ("antrag", [2]),
    ("bücher", [3]),
    ("休暇", [4]),
    ("e-mail", [5]),
    ("jatlh zebra", []),
)


@pytest.mark.parametrize(("words", "expected"), WORDS)
def test_words(filled: Scene, words: str, expected: list[int]) -> None:
    assert_same(filled.found(words), [DOCUMENTS[number].url for number in expected])


FILTERED: tuple[tuple[list[str], list[int]], ...] = (
    (["language=de"], [2, 3]),
    (["language=DE-at"], [3]),
    (["language=d"], []),
    (["language=ja", "language=tlh"], [4, 5]),
    (["host=A.test"], [0, 1]),
    (["host=b.test:8080", "language=de"], [2]),
    (["type=pdf"], [2]),
    (["type=application/pdf"], [2]),
    (["type=text/*"], []),
    (["modified=2026-01-01.."], [0, 4]),
    (["modified=2026-01-01..2026-01-31"], [4]),
    (["modified=2024-02-01"], [1]),
    (["modified=..2024-01-31"], []),
)


@pytest.mark.parametrize(("filters", "expected"), FILTERED)
def test_filters(filled: Scene, filters: list[str], expected: list[int]) -> None:
    found = filled.sink.search("test", filters=list(map(read_filter, filters)))
    assert_same([hit.url for hit in found.hits], [DOCUMENTS[number].url for number in expected])
    assert found.total == len(expected)


def test_facets_count_what_is_found_and_not_filtered(filled: Scene) -> None:
    html = [read_filter("type=html")]
    assert filled.sink.search("test", facets=["host", "language", "type"], limit=1).facets == {
        "host": [("a.test", 2), ("b.test", 2), ("ja.test", 1), ("x.test", 1)],
        "language": [("de", 1), ("de-AT", 1), ("en", 1), ("en-GB", 1), ("ja", 1), ("tlh", 1)],
        "type": [("text/html", 2), ("application/pdf; a=b", 1)],
    }
    assert filled.sink.search("test", filters=html, facets=["type"]).facets == {"type": [("text/html", 2)]}


def test_other_collections_in_the_index_are_left_out(filled: Scene) -> None:
    other = filled.of("other")
    filled.fill(other, [Document("http://o.test/", "Annual leave", language="fr", text="leave")])
    assert_same(filled.found("leave"), [DOCUMENTS[0].url, DOCUMENTS[1].url])
    assert [hit.url for hit in other.search("leave").hits] == ["http://o.test/"]
    assert filled.sink.search("test", facets=["host"]).total == len(DOCUMENTS)


def test_what_a_hit_shows(filled: Scene) -> None:
    (hit,) = filled.sink.search("jatlh", marks=("<", ">")).hits
    assert (hit.url, hit.title, hit.snippet) == ("http://x.test/k", "", "<jatlh> the e-mail")
    assert (hit.language, hit.fields, hit.duplicates) == ("tlh", {"color": "red"}, ("http://x.test/l",))


def test_pages_with_some_of_the_words_follow_where_few_have_all(filled: Scene) -> None:
    found = filled.sink.search("requests annual")
    assert [(hit.url, hit.has_all_words) for hit in found.hits] == [(DOCUMENTS[0].url, True), (DOCUMENTS[1].url, False)]
    assert (found.total, found.hits[1].snippet) == (1, "[Annual] leaves of 2024.")
    assert len(filled.sink.search("requests annual", limit=1).hits) == 1
    assert filled.sink.search("requests annual", offset=1).hits == ()
    assert filled.sink.search('"requests for" zebra').hits == ()


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


def test_more_than_are_put_in_order_come_in_pages_too(scene: Scene) -> None:
    number = REORDERED + 30
    scene.fill(scene.sink, [Document(f"http://e.test/{at}", "Word", text=f"word {'filler ' * at}") for at in range(number)])
    whole = scene.sink.search("word", limit=number).hits
    assert len({hit.url for hit in whole}) == number
    paged = [hit for offset in range(0, number, 20) for hit in scene.sink.search("word", limit=20, offset=offset).hits]
    assert [hit.url for hit in paged] == [hit.url for hit in whole]
    if REAL is not None:  # the emulator reports the best score of the page in place of that of all hits
        assert [pytest.approx(hit.score) for hit in paged] == [hit.score for hit in whole]


def test_the_best_of_many_is_shown_where_few_are_asked_for(scene: Scene) -> None:
    often = Document("http://e.test/often", "word of all the others", text="word " * 20)
    heading = Document("http://e.test/other", "Title", text="word", headings=["Word", "filler " * 200])
    scene.fill(scene.sink, [often, heading])
    assert [hit.url for hit in scene.sink.search("word", limit=1).hits] == [heading.url]


def test_a_shard_that_fails_is_an_error_and_not_fewer_hits(filled: Scene) -> None:
    filled.sink.search("requests annual", facets=["host"])
    assert len(filled.proxy.paths) > 1
    assert all("allow_partial_search_results=false" in path for path in filled.proxy.paths)


def test_plain_texts_of_a_template_of_the_users_own(scene: Scene, tmp_path: Path) -> None:
    keyword = {"type": "keyword"}
    fields = dict.fromkeys(("url", "id", "host", "collection", "language", "content_type"), keyword)
    texts = {name: {"type": "text"} for name in ("title", "text", "headings", "description")}
    path = tmp_path / "template.json"
    path.write_text(json.dumps({"mappings": {"dynamic": False, "properties": fields | texts}}))
    sink = scene.of(template=str(path))
    scene.fill(sink, DOCUMENTS)
    found = sink.search("annual leave", facets=["host"], filters=[read_filter("language=en")])
    assert_same([hit.url for hit in found.hits], [DOCUMENTS[0].url, DOCUMENTS[1].url])
    assert found.hits[0].title == "Annual leave"
    assert {hit.snippet for hit in found.hits} == {"Requests for [annual] [leave] go here.", "[Annual] leaves of 2024."}


ERRORS: tuple[tuple[int, object, type[CrawlspaceError], str], ...] = (
    (
        401,
        "",
        IndexUnavailable,
        "refuses access to intranet (HTTP status 401): check user and password, or the API key, of the sink",
    ),
    (403, error("security_exception"), IndexUnavailable, "refuses access to intranet (HTTP status 403)"),
    (404, error("index_not_found_exception"), IndexUnavailable, "`scrapy crawl demo` makes it if it was never there"),
    (404, "no such page", IndexUnavailable, "cannot search intranet: it answers 404 no such page"),
    (400, error("index_closed_exception", "closed"), IndexUnavailable, "cannot search intranet: index_closed_exception: closed"),
    (503, error("search_phase_execution_exception", "all shards failed"), IndexUnavailable, "all shards failed"),
    (
        400,
        error("query_shard_exception", "too_many_nested_clauses: maxClauseCount is 1024"),
        UsageError,
        "more words than the server takes",
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
        IndexUnavailable, match=r"there is no intranet at .*, neither an alias nor an index: `scrapy crawl demo` makes it"
    ):
        scene.sink.search("leave")


def test_a_server_that_does_not_answer(tmp_path: Path) -> None:
    with closing(sink_of(tmp_path, {"type": "opensearch", "url": "http://127.0.0.1:9", "index": INDEX})) as sink:
        with pytest.raises(IndexUnavailable, match=r"http://127\.0\.0\.1:9 cannot be reached"):
            sink.search("leave")


@pytest.mark.parametrize(("limit", "offset"), [(10, 10_000), (10_001, 0), (11, 9_990)])
def test_a_server_shows_the_first_ten_thousand_hits(filled: Scene, limit: int, offset: int) -> None:
    with pytest.raises(UsageError, match="a search server shows the first 10,000: narrow the search"):
        filled.sink.search("leave", limit=limit, offset=offset)


@pytest.mark.parametrize("words", ["", "-leave", "+"])
def test_nothing_to_search_for(filled: Scene, words: str) -> None:
    with pytest.raises(UsageError, match="nothing to search for"):
        filled.sink.search(words)
