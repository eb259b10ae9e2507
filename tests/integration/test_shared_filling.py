"""A sink that lacks documents is sent them by a crawl over Redis, also by one that finds nothing to fetch."""

from __future__ import annotations

import pytest

from crawlspace.crawl.sinks.deliveries import lacks_documents
from tests.conftest import MakeProject
from tests.integration.stored import collection, opened, shared
from tests.integration.test_sinks import DOWN, LOCAL, PACE, sinks, there, three_pages
from tests.search_server import INDEX, search_server
from tests.sites import Site, page, serve

ALL = {"/", "/a", "/b", "/c"}
MOST_WAITING = 100


@pytest.mark.full
def test_on_request(project: MakeProject) -> None:
    with search_server() as search, serve(three_pages()) as server:
        demo = shared(project(collection(server.url("/"), settings=sinks(local=LOCAL, search=search.options()))))
        demo.crawl("demo").succeeded()
        search.ask("DELETE", f"/{INDEX}-000001")
        server.forget()
        demo.scrapy("sinks", "demo", "--fill", "search").succeeded()
        crawled = demo.crawl("demo").succeeded()
        assert "the sink search gets all documents: 4 were sent from the archive" in crawled.stderr
        assert there(search) == ALL
        assert server.paths() == []


def test_a_new_one(project: MakeProject) -> None:
    with search_server() as search, serve(three_pages()) as server:
        demo = shared(project(collection(server.url("/"), settings=PACE)))
        demo.crawl("demo").succeeded()
        server.forget()
        demo.write({"demo/settings.py": sinks(local=LOCAL, search=search.options())})
        demo.crawl("demo").succeeded()
        assert there(search) == ALL
        assert server.paths() == []


@pytest.mark.full
def test_one_whose_pushes_were_dropped(project: MakeProject) -> None:
    names = [f"/{number}" for number in range(MOST_WAITING)]
    site = Site({"/": page("Home", links=names), **{name: page(f"Page {name}", text=f"text of {name}") for name in names}})
    down, few = sinks(search={"type": "opensearch", "url": DOWN, "index": INDEX}), f"CRAWLSPACE_MAX_BACKLOG = {MOST_WAITING}\n"
    with search_server() as search, serve(site) as server:
        demo = shared(project(collection(server.url("/"), settings=down)))
        demo.crawl("demo").succeeded()
        server.forget()
        demo.write({"demo/settings.py": few + down})
        crawled = demo.crawl("demo").succeeded()
        assert crawled.stderr.count("the pushes among them are dropped") == 1
        with opened(demo) as store:
            assert lacks_documents(store, "search")
            assert not store.backlog("search")
        demo.write({"demo/settings.py": few + sinks(search=search.options())})
        demo.crawl("demo").succeeded()
        assert there(search) == {"/", *names}
        assert server.paths() == []
