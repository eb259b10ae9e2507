"""What is different in a collection of several shards on several nodes."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from tests.search_server import sink_of
from tests.solr_server import INDEX, SolrServer, solr_server
from tests.unit.index.faulty import delete, push


def made_read_only(server: SolrServer, value: str) -> None:
    answer = server.ask("/admin/collections", action="MODIFYCOLLECTION", collection=INDEX, readOnly=value)
    assert answer["responseHeader"]["status"] == 0


def test_a_collection_that_is_read_only_parks_nothing(tmp_path: Path) -> None:
    with solr_server() as server, closing(sink_of(tmp_path, server.options())) as sink:
        sink.send([push("a", 1)])
        made_read_only(server, "true")
        try:
            sent = sink.send([push("b", 2), push("c", 3), delete("a", 4)])
            assert (sent.refused, len(sent.later), sent.is_slow) == ([], 3, False)
            assert "read-only" in sent.why_later
        finally:
            made_read_only(server, "")
        sent = sink.send([push("b", 2), push("c", 3), delete("a", 4)])
        assert (sent.refused, sent.later) == ([], [])
        assert {url[-1] for url in server.documents()} == {"b", "c"}


def test_documents_of_all_shards_are_listed(tmp_path: Path) -> None:
    with solr_server() as server, closing(sink_of(tmp_path, server.options())) as sink:
        assert not sink.send([push(f"{number}", number) for number in range(1, 101)]).later
        clusters = server.ask("/admin/collections", action="CLUSTERSTATUS", collection=INDEX)["cluster"]
        assert set(clusters["collections"][INDEX]["shards"]) == {"shard1", "shard2"}
        for shard in ("shard1", "shard2"):
            query = {"query": "*:*", "limit": 0, "params": {"shards": shard}}
            assert server.ask(f"/{INDEX}/update", {"commit": {}})["responseHeader"]["status"] == 0
            assert 0 < server.ask(f"/{INDEX}/select", query)["response"]["numFound"] < 100
        assert len([entry for page in sink.entries(owner="demo") for entry in page]) == 100
