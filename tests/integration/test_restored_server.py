"""An index on a server that was put back from an older copy: the crawl says so, and what it lacks is sent again."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from crawlspace.admin.reindex import meta_of
from crawlspace.index.opensearch.mapping import index_body
from tests.conftest import MakeProject
from tests.integration.stored import collection, opened
from tests.integration.test_sinks import LOCAL, sinks, there, three_pages
from tests.search_server import INDEX, SearchServer, search_server, sink_of
from tests.sites import page, serve
from tests.solr_server import SolrServer, solr_server

BEHIND = "the sink search: the index is older than the stored state of the pages"
WAY = "`scrapy audit demo --sink search --repair` sends what is missing there"
ALL = {"/", "/a", "/b", "/c"}


def copy_of(search: SearchServer) -> tuple[Any, Any]:
    """The mapping and all documents."""
    search.ask("POST", f"/{INDEX}/_refresh")
    (one,) = search.ask("GET", f"/{INDEX}/_mapping").values()
    return one["mappings"], search.ask("POST", f"/{INDEX}/_search", {"size": 100, "version": True})["hits"]["hits"]


def restore(search: SearchServer, copy: tuple[Any, Any]) -> None:
    mappings, documents = copy
    settings = index_body(flat_type="object", shards=1, replicas=0)["settings"]
    search.ask("DELETE", f"/{INDEX}-000001")
    body = {"settings": settings, "mappings": mappings, "aliases": {INDEX: {"is_write_index": True}}}
    assert "error" not in search.ask("PUT", f"/{INDEX}-000001", body)
    for one in documents:
        path = f"/{INDEX}-000001/_doc/{one['_id']}?version={one['_version']}&version_type=external"
        assert "error" not in search.ask("PUT", path, one["_source"])


@pytest.mark.parametrize("kind", ["opensearch", "solr"])
def test_a_crawl_says_so_until_it_is_repaired(project: MakeProject, kind: str) -> None:
    site = three_pages(without="c")
    copied: Any = SolrServer.everything if kind == "solr" else copy_of
    put_back: Any = SolrServer.put_back if kind == "solr" else restore
    with solr_server() if kind == "solr" else search_server() as search, serve(site) as server:
        demo = project(collection(server.url("/"), settings=sinks(local=LOCAL, search=search.options())))
        demo.crawl("demo").succeeded()
        older = copied(search)
        site["/c"] = page("Page c", text="text of c")
        site["/"] = page("Home", links=["/a", "/b", "/c"], text="and one more")
        demo.scrapy("recrawl", "demo", server.url("/")).succeeded()
        assert BEHIND not in demo.crawl("demo").succeeded().stderr
        assert there(search) == ALL
        put_back(search, older)
        for text in ("changed", "changed again"):
            site["/a"] = page("Page a", text=text)
            demo.scrapy("recrawl", "demo", server.url("/a")).succeeded()
            crawled = demo.crawl("demo").succeeded().stderr
            assert (crawled.count(BEHIND), crawled.count(WAY)) == (1, 1)
        assert there(search) == {"/", "/a", "/b"}
        demo.scrapy("audit", "demo", "--sink", "search", "--repair").succeeded()
        assert there(search) == ALL
        site["/a"] = page("Page a", text="and again")
        demo.scrapy("recrawl", "demo", server.url("/a")).succeeded()
        assert BEHIND not in demo.crawl("demo").succeeded().stderr
        with closing(sink_of(demo.data, search.options())) as sink, opened(demo) as store:
            mark = sink.mark()
            assert mark is not None
            assert store.get_meta("sent:search") == mark.written()


def test_a_reindex_that_was_stopped_begins_anew_with_another_index(project: MakeProject) -> None:
    with search_server() as search, serve(three_pages()) as server:
        demo = project(collection(server.url("/"), settings=sinks(local=LOCAL, search=search.options())))
        demo.crawl("demo").succeeded()
        stopped = '{"after":3,"sent":3}'

        def reindex() -> str:
            with opened(demo) as store:
                store.set_meta(meta_of("search"), stopped)
            return demo.scrapy("reindex", "demo", "--sink", "search").succeeded().stdout

        assert reindex() == "demo: 4 documents were sent again to search\n", "it goes on: three were sent before"
        versions = [one["_version"] for one in search.documents().values()]
        assert len([version for version in versions if version == max(versions)]) == 1
        older = copy_of(search)
        search.ask("DELETE", f"/{INDEX}-000001")
        assert reindex() == "demo: 4 documents were sent again to search\n"
        assert there(search) == ALL
        restore(search, (older[0], []))
        assert reindex() == "demo: 4 documents were sent again to search\n"
        assert there(search) == ALL


def test_a_reindex_that_was_stopped_begins_anew_with_an_emptied_core(project: MakeProject) -> None:
    with solr_server() as search, serve(three_pages()) as server:
        demo = project(collection(server.url("/"), settings=sinks(local=LOCAL, search=search.options())))
        demo.crawl("demo").succeeded()
        search.put_back([])
        with opened(demo) as store:
            store.set_meta(meta_of("search"), '{"after":3,"sent":3}')
        again = demo.scrapy("reindex", "demo", "--sink", "search").succeeded().stdout
        assert again == "demo: 4 documents were sent again to search\n"
        assert there(search) == ALL
