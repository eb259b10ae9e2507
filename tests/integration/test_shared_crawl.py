"""A collection that several workers crawl together over Redis: what is fetched and indexed, whoever dies or joins."""

from __future__ import annotations

import shutil
import socket
from collections import Counter
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from crawlspace.config.sinks import EMBEDDED
from crawlspace.document import Document, IndexOrder, Op
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.model import State, UrlState
from tests.conftest import MakeProject, assert_same
from tests.http import Reply, Request
from tests.integration import stored
from tests.integration.workers import MakeTeam, all_of, fetched, hold, tree
from tests.quick import some
from tests.servers import another_client, redis_server
from tests.sites import Server, Site, held, page, redirect, serve, status

HOST = socket.gethostname()


def seen(state: UrlState) -> tuple[object, ...]:
    return state.url, state.state, state.status, state.depth, state.indexed, state.checksum, state.source


def test_the_result_is_that_of_a_file(team: MakeTeam, project: MakeProject) -> None:
    site = tree(60)
    site["/0"] = page("Zero", text="zero", links=["/1", "/2", "/3", "/gone", "/moved", "/same", "/hidden", "/3?x"])
    site |= {
        "/gone": status(404),
        "/moved": redirect("/5"),
        "/same": page("Page 1", text="text of page 1"),
        "/hidden": page("Hidden", head='<meta name="robots" content="noindex">', links=["/4"]),
        "/robots.txt": status(404),
    }
    with serve(site) as server:
        alone = project(stored.collection(server.url("/")))
        alone.crawl("demo").succeeded()
        shared = team(server.url("/"))
        shared.start()
        shared.wait()
        assert_same(map(seen, shared.states().values()), map(seen, stored.states(alone).values()))
        assert_same({urlsplit(url).path for url in shared.indexed()}, {path.partition("?")[0] for path in stored.indexed(alone)})
        first = server.counts()
        shared.start()
        shared.wait()
        assert server.counts() == first, "nothing is due"


def test_orders_of_an_expired_worker_are_sent_before_the_end(team: MakeTeam) -> None:
    """One on another machine, of which nobody knows yet that it is dead when the last page has been recorded."""
    site = tree(20)
    site["/7"] = late = held(page("Late", text="late"))
    with serve(site) as server:
        shared = team(server.url("/"))
        shared.start()
        shared.until_in_redis(lambda: shared.store.counts().by_state.get("done", 0) > 3, "url:0")
        for command, key, *values in (
            ("ZADD", "workers", shared.store.server.command("ZRANGE", "workers", 0, 0, "WITHSCORES")[0][1], "elsewhere:1:dead"),
            ("HSET", "drain", EMBEDDED, "elsewhere:1:dead"),
        ):
            shared.store.server.command(command, key, *values)
        late.release()
        shared.until_in_redis(lambda: shared.store.counts().by_state.get("done", 0) == len(site), "url:0")
        assert shared.store.backlog(EMBEDDED) > 0, "they are that worker's to send"
        shared.store.server.command("ZADD", "workers", 0, "elsewhere:1:dead")
        shared.wait()
        assert shared.store.backlog(EMBEDDED) == 0
        assert {urlsplit(url).path for url in shared.indexed()} == set(site)
        assert "left for" not in shared.output()


@pytest.mark.full
def test_a_document_that_another_collection_deleted_is_sent_again(team: MakeTeam) -> None:
    with serve(tree(20)) as server:
        shared = team(server.url("/"))
        shared.start()
        shared.wait()
        lost, everything, before = server.url("/7"), shared.indexed(), server.counts()
        with closing(EmbeddedIndex(shared.data(0) / "demo" / "index.db", owner="other")) as index:
            index.send([IndexOrder(1, Op.PUSH, lost, Document(lost, text="of the other one")), IndexOrder(2, Op.DELETE, lost)])
        assert shared.indexed() == everything - {lost}
        assert "deleted there by another collection" in shared.run("status", "demo").stdout
        shared.start("-s", f"CRAWLSPACE_DATA_DIR={shared.data(0)}")  # where the index is
        shared.start()
        shared.wait()
        assert shared.indexed() == everything
        assert server.counts() - before == Counter({"/7": 1})


def test_begun_with_a_file_and_finished_by_two(team: MakeTeam, project: MakeProject, four: list[Server]) -> None:
    four[0].site["/same"] = page("/7", text=f"/7 of {four[0].netloc}")
    four[0].site["/0"] = page("/0", text="zero", links=["/same", "/gone", *(f"/{n}" for n in range(1, 7))])
    four[0].site["/gone"] = status(404)
    starts = [server.url("/") for server in four]
    alone = project(stored.collection("\n".join(starts)))
    alone.crawl("demo").succeeded()
    for server in four:
        server.requests.clear()
    shared = team(*starts)
    first = shared.data(0)
    shared.run("crawl", "demo", "-s", "CRAWLSPACE_STORE_URL=", "-s", "CLOSESPIDER_PAGECOUNT=60").succeeded()
    moved = shared.run("move-store", "demo", "file", f"redis://127.0.0.1:{redis_server().port}/0").succeeded()
    assert "compared with" in moved.stdout
    assert f"Its index stays where it is, at {HOST}:{first / 'demo' / 'index.db'}" in moved.stdout
    (first / "demo" / "state.db").unlink()
    assert 50 < len(fetched(four)) < len(all_of(four)) - 50
    shared.start()
    shared.start()
    shared.wait()
    assert fetched(four) == Counter(dict.fromkeys(all_of(four), 1)), "nothing was fetched twice"
    assert_same(map(seen, shared.states().values()), map(seen, stored.states(alone).values()))
    assert shared.indexed() == {state.url for state in stored.states(alone).values() if state.indexed}


@pytest.mark.parametrize(
    "settings", some(["", "CRAWLSPACE_REFRESH_MIN = 1\nCRAWLSPACE_REFRESH_MAX = 1\n"], 1), ids=["once", "due again at once"]
)
def test_two_workers_fetch_each_page_once(team: MakeTeam, four: list[Server], settings: str) -> None:
    shared = team(*(server.url("/") for server in four), settings=settings)
    release = hold(four, 49)
    shared.start()
    shared.until(lambda: len(fetched(four)) > 2)
    shared.start()
    shared.until_in_redis(lambda: len(shared.names()) == 2, "workers")
    release()
    shared.wait()
    assert fetched(four) == Counter(dict.fromkeys(all_of(four), 1))
    assert shared.indexed(0) == all_of(four), "one of them sends all to the index"
    assert {state.state for state in shared.states().values()} == {State.DONE}
    for number in range(2):
        assert "done." in shared.output(number)


def test_a_killed_worker_costs_no_page(team: MakeTeam, four: list[Server]) -> None:
    shared = team(*(server.url("/") for server in four))
    release = hold(four, 43)
    dying = shared.start()
    shared.until(lambda: len(fetched(four)) > 60)
    shared.start()
    shared.until_in_redis(lambda: len(shared.names()) == 2, "workers")
    shared.until(lambda: len(fetched(four)) > 90)
    dying.kill()
    shared.expire(dying)
    release()
    shared.wait()
    assert set(fetched(four)) == all_of(four)
    assert {state.state for state in shared.states().values()} == {State.DONE}
    assert sum(fetched(four).values()) - len(all_of(four)) < 200
    assert "left for the next start" in shared.output(1), "the index is on the machine of the one that was killed"
    shared.start("-s", stored.index_at(shared.data(0)))
    shared.wait()
    assert shared.indexed(0) == all_of(four)


@pytest.mark.full
def test_the_index_moves_to_another_machine(team: MakeTeam, four: list[Server]) -> None:
    """As docs/machines.md says it is done."""
    shared = team(*(server.url("/") for server in four))
    shared.start("-s", "CLOSESPIDER_PAGECOUNT=60")
    shared.wait()
    sent = shared.indexed(0)
    assert set() < sent < all_of(four)
    shutil.copytree(shared.data(0) / "demo", shared.data(1) / "demo")
    assert shared.store.server.command("DEL", "index") == 1
    shared.start()
    shared.wait()
    assert shared.indexed(1) == all_of(four)
    assert shared.indexed(0) == sent


@pytest.mark.full
def test_a_document_that_cannot_be_stored_costs_no_other(team: MakeTeam, four: list[Server]) -> None:
    """Those of its transaction are recorded one by one, while the worker says that it is alive, and takes and lets go of sites."""
    odd = ("/3", "/17", "/30", "/44")
    for server in four:
        for path in odd:
            server.site[path] = page("breaks", text=f"{path} of {server.netloc}")
    shared = team(
        *(server.url("/") for server in four),
        settings="EXTENSIONS = {'tests.integration.own_spiders.spiders.Picky': 0}\n",
    )
    shared.start()
    shared.start()
    shared.wait()
    assert "recorded one by one" in shared.output(0) + shared.output(1)
    reached = {url for url in all_of(four) if urlsplit(url).path not in ("/19", "/20", "/21", "/22", "/23", "/24")}
    states = {url: (state.state, state.status) for url, state in shared.states().items()}
    assert states == {url: (State.FAILED, 699) if urlsplit(url).path in odd else (State.DONE, 200) for url in reached}


def test_other_rules_are_refused(team: MakeTeam, four: list[Server]) -> None:
    shared = team(*(server.url("/") for server in four))
    release = hold(four, 49)
    shared.start()
    shared.until(lambda: len(fetched(four)) > 5)
    shared.project.write({"demo/crawl.rules": "forbid prefix http://127.0.0.1/3\n"})
    second = shared.start()
    assert second.wait() == 1
    release()
    assert "crawls by other rules or settings" in shared.output(1)
    assert "Traceback" not in shared.output(1)


def test_a_crawl_that_cannot_begin_leaves_no_worker_behind(team: MakeTeam) -> None:
    """On another machine one would wait for it."""
    shared = team("http://localhost/", rules="forbid domain *\n")
    assert shared.start().wait() == 1
    assert "no start URL is in the crawl space" in shared.output()
    assert shared.store.server.command("ZCARD", "workers") == 0


def test_the_scheduler_of_scrapy_redis_is_refused(team: MakeTeam) -> None:
    shared = team("http://localhost/", settings="SCHEDULER = 'scrapy_redis.scheduler.Scheduler'\n")
    assert shared.start().wait() == 1
    assert shared.output() == (
        "SCHEDULER is 'scrapy_redis.scheduler.Scheduler', which applies no rules and records no states: remove that setting;"
        " for a crawl by several machines CRAWLSPACE_STORE_URL is enough\n"
    )


@pytest.mark.full
def test_what_is_fed_to_a_running_crawl(team: MakeTeam, four: list[Server]) -> None:
    shared = team(four[0].url("/"), rules="forbid domain elsewhere.example\n")
    four[0].site["/fed"] = page("Fed", text="fed")
    four[0].site["/plain"] = page("Plain", text="plain")
    release = hold(four, 49)
    client = another_client()
    shared.start()
    shared.until(lambda: len(fetched(four)) > 5)
    client.lpush(
        "demo:start_urls",
        f'{{"url": "{four[0].url("/fed")}", "meta": {{"x": 1}}}}',
        four[0].url("/plain"),
        "no message of ours",
        b"\xff\xfe",
        '{"address": "http://a.example/"}',
        '{"url": "http://elsewhere.example/"}',
    )
    release()
    shared.wait()
    assert client.llen("demo:start_urls") == 0
    client.close()
    assert {four[0].url("/fed"), four[0].url("/plain")} <= set(fetched(four))
    reported = shared.output()
    assert "demo:start_urls holds a message without a URL, which is left out: 'no message of ours'" in reported
    assert "demo:start_urls: http://elsewhere.example/ is refused" in reported
    assert reported.count("message without a URL") == 3
    assert "Traceback" not in reported


@pytest.mark.full
def test_what_is_fed_when_all_else_is_done(team: MakeTeam) -> None:
    """In the last moment, between two looks at what is fed."""
    client = another_client()
    with serve(Site({"/": page("Home", text="home"), "/fed": page("Fed", text="fed")})) as server:

        def last(_: Request) -> Reply:
            client.lpush("demo:start_urls", server.url("/fed"))
            return page("Last", text="last")

        server.site["/last"] = last
        server.site["/"] = page("Home", text="home", links=["/last"])
        shared = team(server.url("/"))
        shared.start()
        shared.wait()
        assert client.llen("demo:start_urls") == 0
        assert server.counts()["/fed"] == 1
    client.close()
