"""An index on a server that was put back from an older copy: the crawl says so, and what it lacks is sent again."""

from __future__ import annotations

from contextlib import closing

import pytest

from crawlspace.admin.reindex import meta_of
from tests.conftest import MakeProject
from tests.integration.stored import collection, opened
from tests.integration.test_sinks import LOCAL, sinks, there, three_pages
from tests.quick import some
from tests.search_server import INDEX, search_server, sink_of
from tests.sites import page, serve
from tests.solr_server import solr_server

BEHIND = "the sink search: the index is older than the stored state of the pages"
WAY = "`scrapy audit demo --sink search --repair` sends what is missing there"
ALL = {"/", "/a", "/b", "/c"}


@pytest.mark.parametrize("kind", some(["opensearch", "solr"], 1))
def test_a_crawl_says_so_until_it_is_repaired(project: MakeProject, kind: str) -> None:
    site = three_pages(without="c")
    with solr_server() if kind == "solr" else search_server() as search, serve(site) as server:
        demo = project(collection(server.url("/"), settings=sinks(local=LOCAL, search=search.options())))
        demo.crawl("demo").succeeded()
        older = search.everything()
        site["/c"] = page("Page c", text="text of c")
        site["/"] = page("Home", links=["/a", "/b", "/c"], text="and one more")
        demo.scrapy("recrawl", "demo", server.url("/")).succeeded()
        assert BEHIND not in demo.crawl("demo").succeeded().stderr
        assert there(search) == ALL
        search.put_back(older)
        idle = demo.crawl("demo").succeeded().stderr
        assert "nothing was due" in idle
        assert (idle.count(BEHIND), idle.count(WAY)) == (1, 1)
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


def test_a_reindex_that_was_stopped_begins_again_with_another_index(project: MakeProject) -> None:
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
        search.ask("DELETE", f"/{INDEX}-000001")
        assert reindex() == "demo: 4 documents were sent again to search\n"
        assert there(search) == ALL
        search.put_back([])
        assert reindex() == "demo: 4 documents were sent again to search\n"
        assert there(search) == ALL


def test_a_reindex_that_was_stopped_begins_again_with_an_emptied_core(project: MakeProject) -> None:
    with solr_server() as search, serve(three_pages()) as server:
        demo = project(collection(server.url("/"), settings=sinks(local=LOCAL, search=search.options())))
        demo.crawl("demo").succeeded()
        search.put_back([])
        with opened(demo) as store:
            store.set_meta(meta_of("search"), '{"after":3,"sent":3}')
        again = demo.scrapy("reindex", "demo", "--sink", "search").succeeded().stdout
        assert again == "demo: 4 documents were sent again to search\n"
        assert there(search) == ALL
