"""A Solr for a test: a stand-in, or the real one that `make test-servers` has started. Each test has an empty one."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from crawlspace.document import Document
from crawlspace.index.solr.sink import SolrSink
from crawlspace.urls import document_id
from tests.notifications import LONGEST_WAIT_S
from tests.search_server import answer_to, document_of
from tests.solr_stand_in import SolrStandIn

INDEX, BARE = "intranet", "bare"
"""A core of the configuration that we ship, and one that has neither our fields nor our update chain."""
MOST = 1_000


class SolrServer:
    """An empty server, by its URL."""

    def __init__(self, url: str, stand_in: SolrStandIn | None = None) -> None:
        self.url, self.index = url, INDEX
        self._stand_in = stand_in

    def ask(self, path: str, body: object = None, **parameters: str) -> Any:
        """Send a request, and return the JSON that is answered, whatever the status; None for a page."""
        data = None if body is None else json.dumps(body).encode()
        query = f"?{urlencode(parameters)}" if parameters else ""
        request = urllib.request.Request(f"{self.url}{path}{query}", data, {"Content-Type": "application/json"})
        try:
            return json.loads(answer_to(request))
        except ValueError:
            return None

    def documents(self, index: str = "") -> dict[str, dict[str, Any]]:
        """Return the documents of a core or collection by URL."""
        index = index or self.index
        self.ask(f"/{index}/update", {"commit": {}})
        query = {"query": "*:*", "filter": ["-deleted:true"], "limit": MOST, "fields": ["*"], "params": {"defType": "lucene"}}
        return {one["url"]: one for one in self.ask(f"/{index}/select", query)["response"]["docs"]}

    def stored(self, url: str) -> dict[str, Any] | None:
        """Return what there is of a URL at this moment, if it is deleted, too."""
        found = self.ask(f"/{self.index}/get", {"params": {"ids": document_id(url)}})["response"]["docs"]
        return found[0] if found else None

    def everything(self) -> list[dict[str, Any]]:
        """Return all that it has, as it is stored: markers, and what is left of deleted documents, too."""
        self.ask(f"/{self.index}/update", {"commit": {}})
        ids = {"ids": {"type": "terms", "field": "id", "limit": MOST, "domain": {"query": "{!prefix f=id}"}}}
        found = self.ask(f"/{self.index}/select", {"query": "*:*", "limit": 0, "facet": ids, "params": {"defType": "lucene"}})
        names = ",".join(one["val"] for one in found["facets"]["ids"]["buckets"])
        return list(self.ask(f"/{self.index}/get", {"params": {"ids": names, "fl": "*"}})["response"]["docs"])

    def put_back(self, everything: list[dict[str, Any]]) -> None:
        """Have what it had once, as from a backup."""
        self.ask(f"/{self.index}/update", {"delete": {"query": "*:*"}, "commit": {}})
        kept = [{name: value for name, value in one.items() if name != "_version_"} for one in everything]
        assert self.ask(f"/{self.index}/update", kept, commit="true")["responseHeader"]["status"] == 0

    def unload(self, core: str = INDEX) -> None:
        assert self.ask("/admin/cores", action="UNLOAD", core=core)["responseHeader"]["status"] == 0

    def load(self, core: str = INDEX) -> None:
        """Load a core that was unloaded."""
        assert self.ask("/admin/cores", action="CREATE", name=core, instanceDir=core)["responseHeader"]["status"] == 0

    def options(self, **more: object) -> dict[str, object]:
        """The options of a sink that sends to it."""
        patience = {} if REAL is None else {"timeout": LONGEST_WAIT_S}
        return {"type": "solr", "url": self.url, "index": self.index, **patience, **more}

    # rebuilding
    @property
    def is_cloud(self) -> bool:
        return bool(self.ask("/admin/info/system")["mode"] == "solrcloud")

    def cores(self) -> dict[str, str]:
        """Return the folder of each core."""
        found = self.ask("/admin/cores", action="STATUS", indexInfo="false")["status"]
        return {name: one["instanceDir"] for name, one in found.items()}

    def move_configuration(self, source: str, target: str) -> bool:
        """Move the configuration of a folder in the home of Solr; return whether there was one."""
        if self._stand_in is not None:
            is_there = source in self._stand_in.configured
            self._stand_in.configured ^= {source, target} if is_there else set()
            return is_there
        home = Path(self.searched()).parent
        if not (home / source / "conf").exists():
            return False
        (home / target).mkdir(parents=True, exist_ok=True)
        (home / source / "conf").rename(home / target / "conf")
        return True

    def aliases(self) -> dict[str, str]:
        return dict(self.ask("/admin/collections", action="LISTALIASES")["aliases"])

    def beside(self) -> set[str]:
        """Return the other cores or collections of the index."""
        if not self.is_cloud:
            return {name for name in self.cores() if name.startswith(f"{self.index}_")}
        found = self.ask("/admin/collections", action="LIST")["collections"]
        return {name for name in found if name.startswith(f"{self.index}_")} - {self.searched()}

    def searched(self) -> str:
        """Return the collection that is searched, or the folder of the core."""
        return self.aliases().get(self.index, "") if self.is_cloud else self.cores()[self.index]

    def versions(self) -> dict[str, int]:
        return {url: one["version"] for url, one in self.documents().items()}

    def remove(self, url: str) -> None:
        """Remove a document without a trace."""
        self.ask(f"/{self.index}/update", {"delete": {"id": document_id(url)}, "commit": {}})


REAL = os.environ.get("CRAWLSPACE_TEST_SOLR_URL")


@contextmanager
def solr_server() -> Iterator[SolrServer]:
    if REAL is None:
        with closing(SolrStandIn()) as stand_in:
            yield SolrServer(stand_in.url, stand_in)
        return
    server = SolrServer(REAL)
    server.ask(f"/{INDEX}/update", {"delete": {"query": "*:*"}, "commit": {}})
    yield server


@contextmanager
def rebuildable_solr() -> Iterator[SolrServer]:
    """An empty index that can be rebuilt: a core, or an alias of SolrCloud."""
    with solr_server() as server:
        if not server.is_cloud:
            remove_beside(server)
            yield server
            return
        server.index = "rebuilt"
        name, shards = "rebuilt_000001", {"numShards": "2", "nrtReplicas": "2", "waitForFinalState": "true"}
        remove_beside(server)
        made = server.ask("/admin/collections", action="CREATE", name=name, **{"collection.configName": "crawlspace"}, **shards)
        assert made["responseHeader"]["status"] == 0, made
        server.ask("/admin/collections", action="CREATEALIAS", name=server.index, collections=name)
        yield server
        remove_beside(server)


def remove_beside(server: SolrServer) -> None:
    """Remove all copies but the core that is searched."""
    if server.is_cloud:
        for alias in server.aliases():
            server.ask("/admin/collections", action="DELETEALIAS", name=alias)
    for name in server.beside():
        if server.is_cloud:
            done = server.ask("/admin/collections", action="DELETE", name=name)
        else:
            done = server.ask("/admin/cores", action="UNLOAD", core=name, deleteIndex="true", deleteDataDir="true")
        assert done["responseHeader"]["status"] == 0, done


class ReadableSolr:
    """The sink, and what the server has of a URL, as the document that was pushed."""

    def __init__(self, sink: SolrSink, server: SolrServer) -> None:
        self.name = sink.name
        self.mark, self.send, self.close = sink.mark, sink.send, sink.close
        self._server = server

    def get(self, url: str) -> Document | None:
        found = self._server.stored(url)
        if found is None or found.get("deleted"):
            return None

        def text(name: str) -> Any:
            return next((value for key, value in found.items() if key.startswith(f"{name}_txt_")), "")

        found["modified"] = found.get("modified", "").removesuffix("T00:00:00Z")
        return document_of(found, text, fields=dict(one.split("=", 1) for one in found.get("fields", [])))
