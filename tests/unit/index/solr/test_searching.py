"""A search in Solr that fails: each error is a sentence. What it finds: `tests/contract/test_search.py`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from crawlspace.errors import CrawlspaceError, IndexUnavailable, UsageError
from crawlspace.index.solr.sink import SolrSink
from tests.fault_proxy import FaultProxy, answers
from tests.search_server import sink_of
from tests.solr_server import BARE, INDEX, solr_server


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
