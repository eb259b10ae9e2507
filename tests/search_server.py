"""A server that answers as OpenSearch does: one a test process, started when it is first asked for; each test has an empty one of its own."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from multiprocessing.util import Finalize
from typing import Any

from osmem_server import OsmemServer  # type: ignore[import-untyped]

from crawlspace.config.sinks import made, read_sinks
from crawlspace.document import Document
from crawlspace.index.opensearch.sink import OpenSearchSink
from crawlspace.urls import document_id
from tests.contract.sinks import part_as
from tests.notifications import LONGEST_WAIT_S

LONGEST_START_S = 120.0
INDEX = "intranet"


def answer_to(request: urllib.request.Request) -> bytes:
    """Send a request, and return the body that is answered, whatever the status."""
    try:
        with urllib.request.urlopen(request, timeout=LONGEST_WAIT_S) as answer:
            return bytes(answer.read())
    except urllib.error.HTTPError as error:
        return error.read()


class SearchServer:
    """An empty server, by its URL."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Send a request, and return the JSON that is answered, whatever the status."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}{path}", data, {"Content-Type": "application/json"}, method=method)
        return json.loads(answer_to(request) or b"null")

    def documents(self, index: str = INDEX) -> dict[str, dict[str, Any]]:
        """Return the documents of an index by URL; markers have none."""
        self.ask("POST", f"/{index}/_refresh")
        query = {"size": 1000, "version": True, "query": {"exists": {"field": "url"}}}
        found = self.ask("POST", f"/{index}/_search", query)
        return {hit["_source"]["url"]: hit["_source"] | {"_version": hit["_version"]} for hit in found["hits"]["hits"]}

    def versions(self) -> dict[str, int]:
        return {url: int(one["_version"]) for url, one in self.documents().items()}

    def searched(self) -> str:
        """Return the index that the alias leads to."""
        return str(next(iter(self.ask("GET", f"/_alias/{INDEX}"))))

    def remove(self, url: str) -> None:
        """Remove a document without a trace."""
        self.ask("POST", f"/{INDEX}/_delete_by_query?refresh=true", {"query": {"term": {"url": url}}})

    def everything(self) -> list[dict[str, Any]]:
        """Return all that it has, markers too."""
        self.ask("POST", f"/{INDEX}/_refresh")
        return list(self.ask("POST", f"/{INDEX}/_search", {"size": 100, "version": True})["hits"]["hits"])

    def put_back(
        self, everything: list[dict[str, Any]], *, mappings: Callable[[dict[str, Any]], dict[str, Any]] = lambda made: made
    ) -> None:
        """Make the index again with what it had once, as from a snapshot; `mappings` may change the present ones."""
        name = self.searched()
        made = self.ask("GET", f"/{name}")[name]
        self.ask("DELETE", f"/{name}")
        settings = {"analysis": made["settings"]["index"].get("analysis", {}), "number_of_replicas": 0}
        body = {"mappings": mappings(made["mappings"]), "settings": settings, "aliases": {INDEX: {"is_write_index": True}}}
        assert "error" not in self.ask("PUT", f"/{name}", body)
        for one in everything:
            path = f"/{name}/_doc/{one['_id']}?version={one['_version']}&version_type=external"
            assert "error" not in self.ask("PUT", path, one["_source"])
        self.ask("POST", f"/{name}/_refresh")

    def document(self, url: str, index: str = INDEX) -> dict[str, Any] | None:
        """Return one as it is at this moment."""
        found = self.ask("GET", f"/{index}/_doc/{document_id(url)}")
        return dict(found["_source"]) if found.get("found") else None

    def options(self, **more: object) -> dict[str, object]:
        """The options of a sink that sends to it."""
        patience = {} if REAL is None else {"timeout": LONGEST_WAIT_S}
        return {"type": TYPE, "url": self.url, "index": INDEX, "replicas": 0, **patience, **more}


REAL = os.environ.get("CRAWLSPACE_TEST_OPENSEARCH_URL")
"""A real server that `make test-servers` has started, in place of the emulator; its tests run one after the other."""
TYPE = os.environ.get("CRAWLSPACE_TEST_SEARCH_TYPE", "opensearch")
"""The type of the sinks that send to it."""


@contextmanager
def search_server() -> Iterator[SearchServer]:
    if REAL is not None:
        server = SearchServer(REAL)
        for index in server.ask("GET", f"/{INDEX}*/_settings"):  # by their names: a pattern is refused by a current Elasticsearch
            server.ask("DELETE", f"/{index}")
        yield server
        return
    with _server().clone() as clone:
        yield SearchServer(clone.url)


@lru_cache
def _server() -> OsmemServer:
    server = OsmemServer.start(startup_timeout=LONGEST_START_S)
    Finalize(None, server.process.kill, exitpriority=1)
    return server


def sink_of(tmp_path: Any, options: dict[str, object], *, collection: str = "demo") -> Any:
    """The sink that options in a settings file make."""
    (one,) = read_sinks({"search": options}, collection=collection, data_folder=tmp_path).options
    return made(one)


def document_of(found: dict[str, Any], text: Callable[[str], Any], *, fields: dict[str, Any]) -> Document:
    """The document that was pushed, of what a server has of it; `text` returns the one of a name in any language."""
    return Document(
        found["url"],
        text("title"),
        text("description"),
        found.get("language", ""),
        text("text"),
        text("headings") or [],
        found.get("content_type", ""),
        found.get("modified", ""),
        fields,
        found.get("duplicates", []),
        found.get("markdown", ""),
        [part_as(json.loads(part) if isinstance(part, str) else part) for part in found.get("parts", [])],
    )


class ReadableOpenSearch:
    """The sink, and what the server has of a URL, as the document that was pushed."""

    def __init__(self, sink: OpenSearchSink, server: SearchServer) -> None:
        self.name = sink.name
        self.mark, self.send, self.close = sink.mark, sink.send, sink.close
        self._server = server

    def get(self, url: str) -> Document | None:
        found = self._server.document(url)
        if found is None:
            return None

        def text(name: str) -> Any:
            return next(iter(found.get(name, {"": ""}).values()))

        return document_of(found, text, fields=found.get("fields", {}))
