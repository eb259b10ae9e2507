"""A crawl that never ends: it rests, fetches what commands beside it ask for, and is stopped by Ctrl-C."""

from __future__ import annotations

import signal

from tests.conftest import MakeProject, Project, assert_same
from tests.integration.stored import FAST, collection, indexed
from tests.quick_start import Running
from tests.sites import Server, Site, page, serve

PAGES = {"/": page("Home", links=["/a", "/b"]), "/a": page("A", text="a"), "/b": page("B", text="b"), "/c": page("C", text="c")}


def wait_for(server: Server, path: str, times: int, demo: Project, process: Running) -> None:
    while server.counts()[path] < times:
        assert process.poll() is None, (demo.folder / "output.txt").read_text()


def test_commands_beside_a_crawl_that_goes_on(project: MakeProject) -> None:
    with serve(Site(PAGES)) as server:
        demo = project(collection(server.url(), settings=FAST + "CRAWLSPACE_CONTINUOUS = True\n"))
        process = demo.start("crawl", "demo")
        for path in ("/", "/a", "/b"):
            wait_for(server, path, 1, demo, process)
        demo.scrapy("recrawl", "demo", server.url("/a"), server.url("/c")).succeeded()
        wait_for(server, "/a", 2, demo, process)
        wait_for(server, "/c", 1, demo, process)
        demo.scrapy("forget", "demo", server.url("/b")).succeeded()
        assert f"is being crawled by process {process.pid}" in demo.scrapy("status", "demo").stdout
        assert "is being crawled by process" in demo.crawl("demo").stderr, "there is one crawl at a time"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0
        assert "demo: stopped." in (demo.folder / "output.txt").read_text()
        demo.crawl("demo", "-s", "CRAWLSPACE_CONTINUOUS=False").succeeded()
        assert_same(indexed(demo), ["/", "/a", "/c"])
