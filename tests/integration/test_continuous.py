"""A crawl that never ends: it rests, fetches what commands beside it ask for, and is stopped by Ctrl-C."""

from __future__ import annotations

import signal

from tests.conftest import MakeProject, assert_same
from tests.integration.stored import FAST, collection, indexed
from tests.sites import Site, page, serve

PAGES = {
    "/": page("Home", links=["/b"]),
    "/b": page("B", text="b", links=["/a"]),
    "/a": page("A", text="a", links=["/last"]),
    "/last": page("Last", text="last"),
    "/c": page("C", text="c"),
}


def test_commands_beside_a_crawl_that_goes_on(project: MakeProject) -> None:
    with serve(Site(PAGES)) as server:
        demo = project(collection(server.url(), settings=FAST + "CRAWLSPACE_CONTINUOUS = True\n"))
        process = demo.start("crawl", "demo")
        demo.until(lambda: "/last" in server.paths())  # the pages that lead to it are recorded
        demo.scrapy("recrawl", "demo", server.url("/a"), server.url("/c")).succeeded()
        demo.until(lambda: server.counts()["/a"] == 2 and server.counts()["/c"] == 1)
        demo.scrapy("forget", "demo", server.url("/b")).succeeded()
        assert f"is being crawled by process {process.pid}" in demo.scrapy("status", "demo").stdout
        assert "is being crawled by process" in demo.crawl("demo").stderr, "there is one crawl at a time"
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0
        assert "demo: stopped." in demo.output()
        demo.crawl("demo", "-s", "CRAWLSPACE_CONTINUOUS=False").succeeded()
        assert_same(indexed(demo), ["/", "/a", "/c", "/last"])
