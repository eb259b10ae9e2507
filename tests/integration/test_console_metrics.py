"""The metrics of all collections over HTTP, and what says whether the console is alive and ready."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Semaphore, current_thread

import pytest
from aiohttp import web
from prometheus_client.parser import text_string_to_metric_families

from crawlspace.clock import FakeClock, SystemClock
from crawlspace.console.guard import Access
from crawlspace.console.users import Role, Users
from crawlspace.model import Held, Source
from crawlspace.runtime.monitoring.metrics import OF_CRAWL, OF_STORES
from crawlspace.state.sqlite.store import SqliteStore
from tests.conftest import MakeProject, Project
from tests.consoles import Browser, Got, served
from tests.contract.conftest import NOW, new
from tests.integration.stored import FAST, collection, opened, shared
from tests.integration.test_crawl_metrics import samples
from tests.notifications import LONGEST_WAIT_S
from tests.sites import Site, page, serve, status

PAGES = {"/": page("Home", links=["/a", "/gone"]), "/a": page("A"), "/robots.txt": status(404)}


@pytest.fixture
def demo(project: MakeProject) -> Project:
    return project(collection("http://127.0.0.1:9/"))


@pytest.mark.parametrize("is_shared", [False, True], ids=["sqlite", "redis"])
def test_the_stores_are_exported(project: MakeProject, *, is_shared: bool) -> None:
    with serve(Site(PAGES)) as server:
        files = collection(server.url("/")) | {"other/settings.py": FAST}
        demo = project(files)
        demo = shared(demo) if is_shared else demo
        with served(demo) as browser:
            assert samples(browser.get("/metrics").text) == {("crawlspace_up", name): 1 for name in ("demo", "other")}
        demo.crawl("demo").succeeded()
        clock = FakeClock(time.time())
        with served(demo, clock=clock) as browser:
            queue = "crawlspace_queue"
            got = browser.get_until("/metrics", lambda got: queue in {key[0] for key in samples(got.text)}, clock=clock)
        found = samples(got.text)
    assert found[("crawlspace_urls", "demo", "done")] == 2
    assert found[("crawlspace_urls", "demo", "gone")] == 1
    assert found[("crawlspace_documents", "demo")] == 2
    assert found[("crawlspace_overdue_urls", "demo")] == 0
    assert {found[("crawlspace_queue", "demo", source.label)] for source in Source} == {0}
    assert 0 <= found[("crawlspace_document_age_seconds", "demo", "1")] < 3600
    assert found[("crawlspace_outbox_orders", "demo", "embedded")] == 0
    assert found[("crawlspace_outbox_oldest_seconds", "demo", "embedded")] == 0
    assert found[("crawlspace_parked", "demo", "embedded")] == 0
    assert [found[("crawlspace_deletions_held", "demo", reason.label)] for reason in Held] == [0] * len(Held)
    assert found[("crawlspace_sites_paused", "demo", "unreachable")] == 0
    assert found[("crawlspace_last_success_timestamp_seconds", "demo")] > 1_700_000_000
    assert ("crawlspace_worker_last_seen_seconds", "demo") not in found
    names = {family.name for family in text_string_to_metric_families(got.text)}
    assert names == {one.name for one in OF_STORES}
    assert not names & {one.name.removesuffix("_total") for one in OF_CRAWL}, "no name is exported twice"


def test_what_waits_is_exported(project: MakeProject) -> None:
    site = Site(PAGES)
    with serve(site) as server:
        demo = project(collection(server.url("/")))
        demo.crawl("demo").succeeded()
        demo.scrapy("recrawl", "demo", server.url("/a")).succeeded()
        demo.scrapy("sites", "demo", "--pause", "127.0.0.1").succeeded()
        host = server.url("/").split("/")[2]
        clock = FakeClock(time.time())
        with served(demo, clock=clock) as browser:
            queue = ("crawlspace_queue", "demo", "user")
            got = browser.get_until("/metrics", lambda got: queue in samples(got.text), clock=clock)
            of_host = samples(browser.get(f"/metrics?host={host},other.example").text)
            assert browser.get(f"/metrics?host={','.join('x' * 21)}").status == 400
    found = samples(got.text)
    assert found[("crawlspace_queue", "demo", "user")] == 1
    assert found[("crawlspace_overdue_urls", "demo")] == 1
    assert found[("crawlspace_sites_paused", "demo", "person")] == 1
    assert of_host == {
        ("crawlspace_documents", "demo", host): 2,
        ("crawlspace_queue", "demo", host): 1,
        ("crawlspace_overdue_urls", "demo", host): 1,
    }


def know(project: Project, *urls: str, name: str = "demo") -> None:
    """Discover URLs, as the first crawl of a collection does."""
    (project.data / name).mkdir(exist_ok=True)
    with opened(project, name) as store:
        store.discover(list(map(new, urls)), now=NOW)


class Passing(FakeClock):
    """A clock on which a second passes whenever somebody looks at it."""

    def monotonic(self) -> float:
        self.advance(1)
        return super().monotonic()


def test_the_host_is_an_address_of_ipv6(demo: Project) -> None:
    know(demo, "http://[2001:db8::1]/", "http://[2001:db8::1]:8080/")
    with served(demo) as browser:
        found = samples(browser.get("/metrics?host=[2001:db8::1]:8080,[2001:DB8::1],2001:db8::1,::1").text)
    queue = {key[2]: number for key, number in found.items() if key[0] == "crawlspace_queue"}
    assert queue == {"[2001:db8::1]:8080": 1, "[2001:db8::1]": 1, "2001:db8::1": 1}


def test_hosts_are_read_seldom_however_many_are_asked_for(demo: Project) -> None:
    know(demo, "http://a.example/")
    clock = Passing(NOW)
    with served(demo, clock=clock) as browser:
        first = browser.get("/metrics?host=a.example")
        assert samples(first.text)[("crawlspace_queue", "demo", "a.example")] == 1
        know(demo, "http://a.example/1")
        assert browser.get("/metrics?host=a.example").text == first.text
        refused = browser.get("/metrics?host=b.example")
        assert (refused.status, "those of other hosts have just been read" in refused.text) == (409, True)
        assert browser.get("/metrics").status == 200
        clock.advance(200)
        assert browser.get("/metrics?host=b.example").status == 200


def test_a_store_that_cannot_be_read_leaves_the_hosts_of_others(
    project: MakeProject, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    demo = project(collection("http://127.0.0.1:9/") | {"other/settings.py": FAST})
    for name in ("demo", "other"):
        know(demo, "http://a.example/", name=name)
    known_of_host = SqliteStore.known_of_host

    def fail(store: SqliteStore, host: str) -> int:
        if store.path.parent.name == "demo":
            raise ZeroDivisionError
        return known_of_host(store, host)

    monkeypatch.setattr(SqliteStore, "known_of_host", fail)
    with served(demo) as browser:
        found = samples(browser.get("/metrics?host=a.example").text)
    assert {key[1] for key in found} == {"other"}
    assert "the metrics of demo cannot be read" in caplog.text


def test_a_scrape_of_hosts_does_not_keep_the_others_waiting(demo: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_end, known_of_host = threading.Event(), threading.Event(), SqliteStore.known_of_host
    know(demo, "http://a.example/")

    def wait(store: SqliteStore, host: str) -> int:
        begun.set()
        assert may_end.wait(LONGEST_WAIT_S)
        return known_of_host(store, host)

    monkeypatch.setattr(SqliteStore, "known_of_host", wait)
    with served(demo) as browser, ThreadPoolExecutor(1) as pool:
        of_host = pool.submit(browser.get, "/metrics?host=a.example")
        assert begun.wait(LONGEST_WAIT_S)
        assert [browser.get(path).status for path in ("/metrics", "/ready")] == [200, 200]
        may_end.set()
        assert of_host.result(LONGEST_WAIT_S).status == 200


def test_orders_that_wait_have_an_age(demo: Project) -> None:
    demo.crawl("demo")

    def waiting() -> tuple[float, float]:
        with served(demo) as browser:
            found = samples(browser.get("/metrics").text)
        assert found[("crawlspace_sites_paused", "demo", "unreachable")] == 1
        names = ("crawlspace_outbox_orders", "crawlspace_outbox_oldest_seconds")
        return found[(names[0], "demo", "embedded")], found[(names[1], "demo", "embedded")]

    assert waiting() == (0, 0)
    with opened(demo) as store:
        store.delete_again("embedded", ["http://127.0.0.1:9/"])
    orders, age_s = waiting()
    assert (orders, 0 <= age_s < 3_600) == (1, True)
    with opened(demo) as store:
        store.set_meta("order_times", "[[1, 1700000000]]")
    orders, age_s = waiting()
    assert (orders, age_s > time.time() - 1_700_000_000 - 3_600) == (1, True)
    with opened(demo) as store:
        store.set_meta("order_times", "")
        store.set_meta("standstill:embedded", '{"since": 1700000000, "why": "disk full"}')
    assert waiting()[1] > time.time() - 1_700_000_000 - 3_600, "of an earlier version"


def test_a_store_that_cannot_be_read_leaves_the_others(project: MakeProject) -> None:
    demo = project(collection("http://127.0.0.1:9/") | {"other/settings.py": FAST})
    (demo.data / "demo").mkdir()
    (demo.data / "demo" / "state.db").write_text("this is no database, and long enough to be looked at " * 40)
    with served(demo) as browser:
        assert samples(browser.get("/metrics").text) == {("crawlspace_up", "demo"): 0, ("crawlspace_up", "other"): 1}
        ready = browser.get("/ready")
    assert (ready.status, ready.text) == (
        503,
        "not ready: 1 of 2 stores cannot be opened; the log of the console has the reasons\n",
    )


def test_metrics_need_a_token_where_users_log_in(demo: Project) -> None:
    users = Users(demo.data / "console-users")
    users.set_password("anna", "correct horse battery", Role.VIEWER)
    token = users.add_token("prometheus", Role.VIEWER)
    access = Access(users, hosts=frozenset(), is_local=False)
    with served(demo, access=access) as browser:
        refused = browser.get("/metrics")
        assert (refused.status, "token" in refused.text) == (401, True)
        assert browser.get("/metrics", {"Authorization": "Bearer wrong"}).status == 401
        assert browser.get("/metrics", {"Authorization": f"Bearer {token}"}).status == 200


def test_anybody_may_ask_whether_it_is_there(demo: Project) -> None:
    Users(demo.data / "console-users").set_password("anna", "correct horse battery", Role.VIEWER)

    def answer(got: Got) -> tuple[int, str]:
        return got.status, got.text

    with served(demo) as browser:
        by_container = {"Host": "10.1.2.3:8960"}
        assert answer(browser.get("/live", by_container)) == (200, "alive\n")
        assert answer(browser.get("/ready", by_container)) == (200, "ready\n")
        assert browser.get("/metrics", by_container).status == 421
    with served(demo, public=["demo"], is_search_alone=True) as browser:
        assert browser.get("/live").status == 200
        assert browser.get("/metrics").status == 404


def test_a_folder_that_is_not_there_is_not_ready(demo: Project) -> None:
    with served(demo) as browser:
        demo.collections.rename(demo.folder / "moved")
        assert browser.get("/ready").status == 503
        assert browser.get("/metrics").status == 503


class WaitingClock(SystemClock):
    """Waits on the threads of pages, which read metrics by it, until it is released."""

    def __init__(self) -> None:
        self.asked, self.released = Event(), Event()

    def monotonic(self) -> float:
        if current_thread().name.startswith("asyncio"):
            self.asked.set()
            self.released.wait()
        return super().monotonic()


def test_ready_does_not_wait_for_metrics(demo: Project) -> None:
    clock = WaitingClock()
    with served(demo, clock=clock) as browser, ThreadPoolExecutor(1) as pool:
        metrics = pool.submit(browser.get, "/metrics")
        try:
            clock.asked.wait()
            assert Browser(browser.base).get("/ready").status == 200
        finally:
            clock.released.set()
        assert metrics.result().status == 200


def test_ready_does_not_wait_for_pages(demo: Project) -> None:
    threads, many = min(32, (os.cpu_count() or 1) + 4), 40
    begun, over = Semaphore(0), Event()

    def block() -> None:
        begun.release()
        over.wait()

    async def page(_: web.Request) -> web.Response:
        await asyncio.to_thread(block)
        return web.Response()

    def add_slow(app: web.Application) -> None:
        app.router.add_get("/slow", page)

    with served(demo, add=add_slow) as browser, ThreadPoolExecutor(many) as pool:
        slow = [pool.submit(Browser(browser.base).get, "/slow") for _ in range(many)]
        try:
            for _ in range(threads):
                begun.acquire()
            for path in ("/ready", "/live"):
                assert browser.get(path).status == 200
        finally:
            over.set()
        assert {one.result().status for one in slow} == {200}
