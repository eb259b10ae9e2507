"""Search in Solr: queries for search texts, filters and languages, and hits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from crawlspace.errors import CrawlspaceError, IndexUnavailable, UsageError
from crawlspace.index.solr.search import filters_of, query_of
from crawlspace.index.solr.sink import SolrSink
from crawlspace.index.words import Term
from tests.fault_proxy import FaultProxy, answers
from tests.search_server import sink_of
from tests.solr_server import BARE, INDEX, solr_server
from tests.unit.index.search_requests import request


def analysed(_: str, term: Term) -> Sequence[str]:
    """An analyser that leaves out "the"."""
    return [word for word in term.words if word != "the"]


def short(query: Any) -> str:
    """A query in few characters: `w` in any field, `w..` a beginning, `+` both, `|` either, `-` not."""
    ((kind, body),) = query.items()
    match kind:
        case "edismax":
            return str(body["query"])
        case "lucene":
            return str(body["query"])
        case "boost":
            return f"{body['query']['prefix']['query']}.." if body["query"]["prefix"]["f"] == "address" else ""
        case "term":
            return f"{body['f']}={body['query']}"
        case "terms":
            return f"{body['f']}={','.join(body['query'].split(body['separator']))}"
        case "prefix":
            return f"{body['f']}={body['query']}.."
    parts = " + ".join(map(short, body.get("must", [])))
    either = " | ".join(filter(None, map(short, body.get("should", []))))
    without = "".join(f" -{short(one)}" for one in body.get("must_not", []))
    return f"({parts}{either}{without})"


QUERIES: tuple[tuple[str, str], ...] = (
    ("leave", '("leave")'),
    ("annual the leave", '("annual" + "leave")'),
    ("the", "(*:*)"),
    ('"annual leave" now', '("annual leave" + "now")'),
    ("e-mail", '("e-mail")'),
    ("Holi*", "((holi..))"),
    ("e-ma*", '(("e" + (ma..)))'),
    ("leave -old -ol* -the", '("leave" -"old" -(ol..))'),
    ("a\\b OR", '("a\\\\b" + "OR")'),
    ("休暇*", '("休暇")'),
)


@pytest.mark.parametrize(("text", "expected"), QUERIES)
def test_query(text: str, expected: str) -> None:
    assert short(query_of(request(text, fields=()), analysed)) == expected


OF_SOME: tuple[tuple[str, str], ...] = (
    ("annual the leave", "((annual | leave))"),
    ("e-mail title:x", r"((e\-mail | title\:x))"),
    ("OR leave", "((or | leave))"),
    ('a b "c d" -f', '("c d" + (a | b) -"f")'),
    ("the", "-*:*"),
)


@pytest.mark.parametrize(("text", "expected"), OF_SOME)
def test_query_for_some_of_the_words(text: str, expected: str) -> None:
    assert short(query_of(request(text, fields=(), of_some=True), analysed)) == expected


def test_each_language_is_asked_by_its_fields() -> None:
    query: Any = query_of(request("Urlaub", ["de", "de-AT", "fr"]), analysed)
    german, other = (one["bool"] for one in query["bool"]["should"])
    assert german["must"][0]["edismax"]["qf"] == "title_txt_de^10 headings_txt_de^5 description_txt_de^3 text_txt_de^1 address^3"
    assert list(map(short, german["filter"])) == ["language=de,de-AT"]
    assert other["must"][0]["edismax"]["qf"].startswith("title_txt_other^10 ")
    assert list(map(short, other["must_not"])) == ["language=de,de-AT"]


FILTERS: tuple[tuple[list[str], list[str]], ...] = (
    ([], []),
    (["host=A.test"], ["host=a.test"]),
    (["host=a.test:81"], ["(host=a.test + (url=http://a.test:81/.. | url=https://a.test:81/..))"]),
    (["host=a.test", "host=b.test"], ["(host=a.test | host=b.test)"]),
    (["type=Text/html"], ["(content_type=text/html | content_type=text/html;..)"]),
    (["type=pdf*"], [r"content_type:*\/pdf\* OR content_type:*\/pdf\*\;*"]),
    (["modified=2026-01-01.."], ["modified:[2026-01-01T00:00:00Z TO *]"]),
    (["modified=2026-01-02"], ["modified:[2026-01-02T00:00:00Z TO 2026-01-02T23:59:59.999Z]"]),
    (["type=a b) OR *:*"], [r"content_type:*\/a\ b\)\ or\ \*\:\* OR content_type:*\/a\ b\)\ or\ \*\:\*\;*"]),
    (["language=de"], ["language=de,de-AT"]),
    (["language=fr"], ["language="]),
)


@pytest.mark.parametrize(("filters", "expected"), FILTERS)
def test_filters(filters: list[str], expected: list[str]) -> None:
    assert list(map(short, filters_of(request("x", ["de", "de-AT"], filters=filters)))) == expected


@dataclass
class Scene:
    proxy: FaultProxy
    sink: SolrSink


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with ExitStack() as stack:
        server = stack.enter_context(solr_server())
        proxy = stack.enter_context(closing(FaultProxy(server.url, path="/select")))
        yield Scene(proxy, stack.enter_context(closing(sink_of(tmp_path, {**server.options(), "url": proxy.url}))))


def error(message: str, status: int) -> dict[str, object]:
    return {"responseHeader": {"status": status}, "error": {"msg": message, "code": status}}


CLAUSES = "Query contains too many nested clauses; maxClauseCount is set to 1024"
PARTIAL = {"responseHeader": {"status": 0, "partialResults": True}, "response": {"docs": []}}
ERRORS: tuple[tuple[int, object, type[CrawlspaceError], str], ...] = (
    (401, "", IndexUnavailable, f"refuses access to {INDEX} (HTTP status 401): check user and password of the sink"),
    (403, error("Unauthorized", 403), IndexUnavailable, f"refuses access to {INDEX} (HTTP status 403)"),
    (404, "<html>", IndexUnavailable, "the core or collection is not there (HTTP status 404)"),
    (500, error(CLAUSES, 500), UsageError, "the search has more words than the server accepts: leave some out"),
    (400, error(CLAUSES, 400), UsageError, "the search has more words than the server accepts: leave some out"),
    (503, error("no servers hosting shard: shard1", 503), IndexUnavailable, "no servers hosting shard: shard1"),
    (200, "<html>", IndexUnavailable, "does not answer in full: <html>"),
    (200, PARTIAL, IndexUnavailable, "does not answer in full"),
)


@pytest.mark.parametrize(("status", "body", "kind", "sentence"), ERRORS)
def test_errors_are_sentences(scene: Scene, status: int, body: object, kind: type[CrawlspaceError], sentence: str) -> None:
    scene.proxy.rest = answers(status, body)
    with pytest.raises(kind, match=re.escape(sentence)):
        scene.sink.search("leave")


# Of the options: what is wrong, and the error.
WRONG: tuple[tuple[dict[str, object], str], ...] = (
    ({"index": "nowhere"}, r"there is no core or collection nowhere at .*: create it from the files in"),
    ({"index": BARE}, rf"the schema of {BARE} at .* lacks .*: copy schema\.xml"),
    ({"url": "http://127.0.0.1:9/solr"}, r"http://127\.0\.0\.1:9/solr cannot be reached"),
)


@pytest.mark.parametrize(("options", "sentence"), WRONG)
def test_what_is_not_there_is_said(tmp_path: Path, options: dict[str, object], sentence: str) -> None:
    with solr_server() as server, closing(sink_of(tmp_path, {**server.options(), **options})) as sink:
        with pytest.raises(IndexUnavailable, match=sentence):
            sink.search("leave")


def test_a_wrong_password(tmp_path: Path) -> None:
    with solr_server() as server, closing(FaultProxy(server.url, login="crawler:secret")) as proxy:
        options = {**server.options(), "url": proxy.url, "user": "crawler", "password": "wrong"}
        with closing(sink_of(tmp_path, options)) as sink:
            with pytest.raises(IndexUnavailable, match=r"refuses access \(HTTP status 401\): check user and password"):
                sink.search("leave")


def test_nothing_is_written_for_a_search(tmp_path: Path) -> None:
    with solr_server() as server, closing(FaultProxy(server.url, path="/update")) as proxy:
        with closing(sink_of(tmp_path, {**server.options(), "url": proxy.url})) as sink:
            with pytest.raises(UsageError, match="nothing to search for"):
                sink.search("-leave")
        assert proxy.paths == []
