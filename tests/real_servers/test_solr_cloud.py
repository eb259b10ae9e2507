"""What is different in a collection of several shards on several nodes."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from crawlspace.errors import IndexUnavailable
from crawlspace.index.sink import Copies
from tests.search_server import sink_of
from tests.solr_server import INDEX, SolrServer, rebuildable_solr, solr_server
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


def test_a_collection_that_is_no_alias(tmp_path: Path) -> None:
    with rebuildable_solr() as server:
        with closing(sink_of(tmp_path, server.options(index=INDEX))) as sink:
            with pytest.raises(
                IndexUnavailable, match=r"intranet at .* is a collection, and must be an alias .*: call .*CREATEALIAS&name="
            ):
                sink.begin_next()
        server.ask("/admin/collections", action="CREATEALIAS", name=f"{INDEX}_search", collections=INDEX)
        with closing(sink_of(tmp_path, server.options(index=f"{INDEX}_search"))) as sink:
            sink.begin_next()
            assert sink.copies() == Copies(INDEX, f"{INDEX}_search_000001", "")
            sink.give_up_next()
            assert sink.copies().next == ""


def test_a_new_collection_is_made_as_the_present_one(tmp_path: Path) -> None:
    with rebuildable_solr() as server, closing(sink_of(tmp_path, server.options())) as sink:
        sink.begin_next()
        found = server.ask("/admin/collections", action="CLUSTERSTATUS")["cluster"]["collections"]
        present, following = (found[name] for name in (sink.copies().present, sink.copies().next))
        same = ("configName", "nrtReplicas", "tlogReplicas", "pullReplicas", "router")
        assert {name: following[name] for name in same} == {name: present[name] for name in same}
        assert following["shards"].keys() == present["shards"].keys() == {"shard1", "shard2"}
