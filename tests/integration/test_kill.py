"""Killed at any moment, a crawl goes on where it was: nothing is lost, and nothing is fetched twice but what was under way."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import apsw
import pytest

from crawlspace.model import NewUrl, Source
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.urls import parse
from tests.conftest import MakeProject, assert_same
from tests.http import Reply, Request
from tests.integration.killed_at_commit import crawl_killed
from tests.integration.stored import collection, indexed, states
from tests.notifications import LONGEST_WAIT_S
from tests.sites import Server, Site, hang, held, page, serve, status

PAGES = 400
KILLS = 4
AT_ONCE = 8
UNRECORDED = 64 + 2 * AT_ONCE + 64
"""Outcomes that wait for their transaction, and requests under way: what a kill may cost."""


class UpTo(Site):
    """Answers so many requests and no more, until it may."""

    limit = 0

    def reply_to(self, request: Request) -> Reply:
        self.limit -= 1
        return super().reply_to(request) if self.limit >= 0 else hang()


def links_of(number: int) -> list[str]:
    return [f"/{child}" for child in range(number * 6 + 1, number * 6 + 7) if child < PAGES] + ["/", f"/{number // 6}"]


def has_been_asked(server: Server, times: int) -> Callable[[], bool]:
    return lambda: len(server.requests) >= times


def test_kill_9(project: MakeProject) -> None:
    site = UpTo({f"/{n}": page(f"Page {n}", text=f"text of page {n}", links=links_of(n)) for n in range(PAGES)})
    site["/"] = page("Home", links=["/0"])
    chance = random.Random(7)
    with serve(site) as server:
        settings = f"DOWNLOAD_DELAY = 0\nCONCURRENT_REQUESTS_PER_DOMAIN = {AT_ONCE}\n"
        demo = project(collection(server.url("/"), settings=settings))
        for _ in range(KILLS):
            before, site.limit = len(server.paths()), chance.randint(20, 90)
            wanted = before + site.limit
            process = demo.start("crawl", "demo")
            demo.until(has_been_asked(server, wanted))
            process.send_signal(signal.SIGKILL)
            process.wait()
        site.limit = 10 * PAGES
        demo.crawl("demo").succeeded()
        assert_same(indexed(demo), ["/", *(f"/{n}" for n in range(PAGES))])
        again = sum(server.counts().values()) - len(server.counts())
        assert again <= KILLS * UNRECORDED
    database = apsw.Connection(str(demo.data / "demo" / "state.db"))
    assert database.pragma("quick_check") == "ok"


def test_ctrl_c_once_ends_cleanly_and_reports_what_is_left(project: MakeProject) -> None:
    site = Site({"/": page("Home", links=[f"/{n}" for n in range(200)])}, otherwise=page("Any"))
    site["/9"] = tenth = held(page("Any"))
    with serve(site) as server:
        demo = project(collection(server.url("/"), settings="DOWNLOAD_DELAY = 0.05\n"))
        process = demo.start("crawl", "demo")
        demo.until(lambda: "/9" in server.paths())
        process.send_signal(signal.SIGINT)
        demo.until(lambda: "Received SIGINT" in demo.output())
        tenth.release()
        assert process.wait() == 0
        reported = demo.output()
        assert "demo: stopped." in reported
        assert "left for the next start:" in reported
        fetched = set(server.paths())
        server.forget()
        demo.crawl("demo", "-s", "DOWNLOAD_DELAY=0").succeeded()
        assert fetched.isdisjoint(server.paths())


def test_ctrl_c_twice_ends_at_once_and_loses_nothing(project: MakeProject) -> None:
    site = Site({"/": page("Home", links=["/slow", *(f"/{n}" for n in range(60))])}, otherwise=page("Any", text="any"))
    site["/slow"] = hang()
    site["/robots.txt"] = status(404)
    with serve(site) as server:
        never = 10 * LONGEST_WAIT_S  # the page is not waited for
        demo = project(collection(server.url("/"), settings=f"DOWNLOAD_DELAY = 0.02\nDOWNLOAD_TIMEOUT = {never}\n"))
        process = demo.start("crawl", "demo")
        demo.until(lambda: "/slow" in server.paths())
        process.send_signal(signal.SIGINT)
        demo.until(lambda: "Received SIGINT" in demo.output())
        process.send_signal(signal.SIGINT)
        process.wait()
        reported = demo.output()
        assert "demo: stopped." in reported
        assert "Traceback" not in reported
        site["/slow"] = page("Slow", text="in time")
        demo.crawl("demo", "-s", "DOWNLOAD_DELAY=0").succeeded()
        assert len(states(demo)) == 62
        assert {state.status for state in states(demo).values()} == {200}


@pytest.mark.full
def test_kill_9_within_each_transaction_of_a_change_of_the_rules(project: MakeProject) -> None:
    """The states are many enough for several transactions; what the killed starts left undone, the last one does."""
    pages = 12_000
    with serve(Site({"/": page("Home")})) as server:
        demo = project(collection(server.url("/"), settings="DOWNLOAD_DELAY = 0\nCRAWLSPACE_SITEMAP_GUESS = False\n"))
        demo.crawl("demo").succeeded()
        file = demo.data / "demo" / "state.db"
        fill(file, server.url("/private/"), pages)
        demo.write({"demo/crawl.rules": f"forbid prefix {server.url('/private/')}\n"})
        done: list[int] = []
        while pages not in done:
            process = crawl_killed(len(done) + 1, output=demo.folder / "output.txt", env=demo.env)
            assert process.wait() == -signal.SIGKILL, process.output()
            done.append(excluded(file))
        assert done == sorted(done)
        assert len(set(done)) > 2, "some were killed when a part was excluded"
        demo.crawl("demo").succeeded()
        assert excluded(file) == pages
        assert_same(server.counts().elements(), ["/robots.txt", "/"])


@pytest.mark.full
def test_kill_9_within_transactions_while_known_urls_are_folded(project: MakeProject) -> None:
    """At no moment is a page without a document in the index, and the last start ends as if none had been killed."""
    pages = [f"/p{number}" for number in range(6)]
    spellings = [*(f"{path}?sid=1" for path in pages), *(f"{path}?sid=2" for path in pages[:3]), *pages[:2]]
    site = Site({"/": page("Home", links=spellings)})
    for path in {*spellings, *pages}:
        site[path] = page(path[:3], text=f"text of {path[:3]}", links=["/"])
    with serve(site) as server:
        demo = project(collection(server.url("/"), settings="DOWNLOAD_DELAY = 0\n"))
        demo.crawl("demo").succeeded()
        assert {path[:3] for path in indexed(demo)} == {"/", *pages}
        demo.write({"demo/settings.py": "DOWNLOAD_DELAY = 0\nCRAWLSPACE_URL_DROP_PARAMETERS = ['sid']\n"})
        file = demo.data / "demo" / "state.db"
        folded: list[int] = []
        while True:
            number = 6 * len(folded) + 5
            process = crawl_killed(number, output=demo.folder / "output.txt", env=demo.env, changed_at_once=2)
            status = process.wait()
            with closing(SqliteStore(file, read_only=True)) as store:
                known = [state for state in store.urls() if state.url != server.url("/")]
            paths = {urlsplit(state.url).path for state in known if state.indexed}
            assert_same(paths, pages)
            folded.append(sum("sid" in state.url for state in known))
            if status != -signal.SIGKILL:
                break
        assert status == 0, process.output()
        assert folded == sorted(folded, reverse=True)
        assert len(set(folded)) > 2, "some were killed when a part was folded"
        assert_same(indexed(demo), ["/", *pages])
        assert_same(list(states(demo)), ["/", *pages])


def fill(file: Path, prefix: str, pages: int) -> None:
    """Have URLs be known that were found and not crawled."""
    with closing(SqliteStore(file)) as store:
        urls = [parse(f"{prefix}{number}") for number in range(pages)]
        store.discover([NewUrl(url.key, url.text, url.site, Source.INDEX_FOLLOW, 0, 1, 0, len(url.path)) for url in urls], now=1)


def excluded(file: Path) -> int:
    with closing(SqliteStore(file, read_only=True)) as store:
        return store.counts().by_status.get(760, 0)
