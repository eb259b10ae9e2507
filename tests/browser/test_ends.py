"""The browser ends with the crawl, and a crawl goes on without its browser."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import psutil
import pytest

from crawlspace.status import Status
from tests.browser.pages import app, data, paths, words_of
from tests.browser.test_rendering import ALWAYS, TIMEOUT, texts
from tests.conftest import MakeProject, assert_same
from tests.integration.stored import collection, indexed, statuses
from tests.notifications import wait_until
from tests.sites import held, serve

_MINUTES_S = 180.0


def browsers_of(pid: int) -> list[psutil.Process]:
    """The processes of the browser and its driver that a crawl has started."""
    try:
        return [one for one in psutil.Process(pid).children(recursive=True) if one.is_running()]
    except psutil.NoSuchProcess:
        return []


def gone(processes: list[psutil.Process]) -> bool:
    """Wait until processes have ended; return whether they have."""
    return not psutil.wait_procs(processes, timeout=_MINUTES_S)[1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_browser_ends_with_the_crawl_however_that_ends(project: MakeProject, number: signal.Signals) -> None:
    site = app(12)
    gate = held(data({"title": "Page 2", "text": words_of("/p/2"), "links": ["/p/11"]}))
    site["/data/p/2.json"] = gate
    with serve(site) as server:
        demo = project(collection(server.url("/"), settings=ALWAYS + "DOWNLOAD_TIMEOUT = 100\n"))
        crawl = demo.start("crawl", "demo")
        demo.until(lambda: server.counts()["/data/p/2.json"] > 0)
        processes = browsers_of(crawl.pid)
        assert any("chrom" in one.name() for one in processes)
        crawl.send_signal(number)
        gate.release()
        crawl.wait()
        assert gone(processes)
        demo.started.clear()
        demo.crawl("demo", timeout=TIMEOUT).succeeded()
        assert_same(indexed(demo), paths(12))


def test_a_browser_that_is_killed_is_replaced_and_no_page_is_lost(project: MakeProject) -> None:
    site = app(30)
    gate = held(data({"title": "Page 2", "text": words_of("/p/2"), "links": ["/p/11", "/p/12", "/p/13", "/p/14", "/p/15"]}))
    site["/data/p/2.json"] = gate
    with serve(site) as server:
        demo = project(collection(server.url("/"), settings=ALWAYS + "DOWNLOAD_TIMEOUT = 100\n"))
        crawl = demo.start("crawl", "demo")
        demo.until(lambda: server.counts()["/data/p/2.json"] > 0)
        browser = next(one for one in browsers_of(crawl.pid) if "chrom" in one.name())
        browser.kill()
        gate.release()
        wait_until(lambda: crawl.poll() is not None, timeout_s=_MINUTES_S)
        assert crawl.poll() == 0, demo.output()
        assert_same(indexed(demo), paths(30))
        assert all(words_of(path) in text for path, text in texts(demo).items())


def test_a_driver_that_ends_while_it_starts_is_reported_as_a_browser_that_cannot_be_started(project: MakeProject) -> None:
    with serve(app(3)) as server:
        demo = project(collection(server.url("/"), settings=ALWAYS + "RETRY_TIMES = 0\n"))
        demo.env["PLAYWRIGHT_NODEJS_PATH"] = "/bin/true"
        crawled = demo.crawl("demo", timeout=TIMEOUT)
        assert "cannot be started: its driver, Node.js, has ended" in crawled.stderr
        assert "Traceback" not in crawled.stderr
        assert statuses(demo)["/"] == Status.NOT_RENDERED


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """No process of a test outlives it."""
    before = {one.pid for one in psutil.Process().children(recursive=True)}
    yield
    left = [one for one in psutil.Process().children(recursive=True) if one.pid not in before and "chrom" in one.name()]
    assert not left
