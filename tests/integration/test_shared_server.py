"""Workers whose server is full, emptied, away or not to be used, or holds what is not ours."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.integration import stored
from tests.integration.workers import MakeTeam, all_of, fetched, hold
from tests.servers import Server as RedisServer
from tests.servers import another_client, redis_server, started
from tests.sites import Server


@pytest.mark.full
def test_a_full_server_is_waited_for(team: MakeTeam, four: list[Server]) -> None:
    shared = team(*(server.url("/") for server in four))
    release = hold(four, 43)
    client = another_client()
    shared.start()
    shared.until(lambda: len(fetched(four)) > 20)
    client.config_set("maxmemory", 1)
    release()
    try:
        shared.until(lambda: "Redis is full" in shared.output())
    finally:
        client.config_set("maxmemory", 0)
        client.close()
    shared.wait()
    assert fetched(four) == Counter(dict.fromkeys(all_of(four), 1))
    assert shared.indexed(0) == all_of(four)
    assert "Redis answers again" in shared.output()


def test_an_emptied_server_is_no_emptied_web(team: MakeTeam, four: list[Server]) -> None:
    shared = team(*(server.url("/") for server in four))
    release = hold(four, 49)  # the crawl does not end before the server is empty
    client = another_client()
    worker = shared.start()
    shared.until(lambda: len(fetched(four)) > 30)
    shared.until_in_redis(lambda: len(shared.indexed()) > 20)
    client.flushall()
    client.close()
    release()
    assert worker.wait() == 1
    assert "Redis has lost this collection" in shared.output()
    assert "Traceback" not in shared.output()
    assert len(shared.indexed()) > 20, "nothing is deleted"
    again = shared.start("-s", stored.index_at(shared.data(0)))
    assert again.wait() == 1
    assert "Redis has no data of demo" in shared.output(1)


@pytest.mark.parametrize(
    ("url", "reported"),
    [
        ("redis://127.0.0.1:1/0", "Redis cannot be reached"),
        ("sentinel://127.0.0.1:1/here", "Redis cannot be reached: No master found for the service"),
        ("sentinel://127.0.0.1:1", "the URL must name Sentinels and a service, as in sentinel://"),
        ("sentinel://127.0.0.1:x/here/0", "the URL must name Sentinels and a service, as in sentinel://"),
        ("sentinel://127.0.0.1:1/here/x", "the URL must name Sentinels and a service, as in sentinel://"),
        ("redis://:wrong@127.0.0.1:{port}/0", "Redis refuses the user or the password"),
        ("redis://127.0.0.1:{port}/0", "Redis refuses the user or the password"),
        ("http://127.0.0.1/", "CRAWLSPACE_STORE_URL is 'http://127.0.0.1/'"),
    ],
)
def test_a_server_that_cannot_be_used(team: MakeTeam, url: str, reported: str) -> None:
    shared = team("http://127.0.0.1:9/")
    client = another_client()
    client.config_set("requirepass", "right")
    try:
        run = shared.project.crawl("demo", "-s", f"CRAWLSPACE_STORE_URL={url.format(port=redis_server().port)}")
    finally:
        client.config_set("requirepass", "")
        client.close()
    assert run.returncode != 0
    assert reported in run.stderr
    assert len(run.stderr.splitlines()) == 1


def test_records_that_are_not_ours_are_quarantined(team: MakeTeam, four: list[Server]) -> None:
    garbage = [b"\x00garbage", b"\x93\x63\x01\x02", b"cos\nsystem\n(S'true'\ntR.", b""]
    release = hold(four, 4)  # none of the records is that of a page that was fetched before they are written
    shared = team(four[0].url("/"))
    client = another_client()
    shared.start()
    shared.until_in_redis(lambda: client.hlen("{demo}:url:0") > 24, "url:0")
    waiting = sorted(state.id for state in shared.store.urls() if state.status is None)
    unlucky = dict(zip((b"%d" % id for id in waiting[-len(garbage) :]), garbage, strict=True))
    for id, record in unlucky.items():
        client.hset("{demo}:url:0", id, record)
    release()
    shared.wait()
    assert client.hgetall("{demo}:broken") == unlucky
    client.close()
    assert "records of this collection in Redis are not ours" in shared.output()
    assert "Traceback" not in shared.output()
    assert len(fetched(four)) >= len([path for path in four[0].site if path != "/robots.txt"]) - 4 * 10


def test_an_unreachable_server_is_waited_for(team: MakeTeam, four: list[Server], tmp_path: Path) -> None:
    kept = ("--appendonly", "yes", "--appendfsync", "always")
    first = RedisServer(tmp_path / "kept", *kept)
    port = first.port
    shared = team(*(server.url("/") for server in four))
    release = hold(four, 43)
    shared.start("-s", f"CRAWLSPACE_STORE_URL=redis://127.0.0.1:{port}/0")
    shared.until(lambda: len(fetched(four)) > 60)
    first.stop()
    release()
    shared.until(lambda: "Redis cannot be reached" in shared.output())
    with started(tmp_path / "kept", *kept, port=port):
        shared.wait()
    assert fetched(four) == Counter(dict.fromkeys(all_of(four), 1))
    assert shared.indexed(0) == all_of(four)
    assert "Redis answers again" in shared.output()


@pytest.mark.full
def test_a_worker_that_is_stopped_while_the_server_is_unreachable_ends(
    team: MakeTeam, four: list[Server], tmp_path: Path
) -> None:
    kept = ("--appendonly", "yes", "--appendfsync", "always")
    first = RedisServer(tmp_path / "kept", *kept)
    port = first.port
    url = f"CRAWLSPACE_STORE_URL=redis://127.0.0.1:{port}/0"
    shared = team(*(server.url("/") for server in four))
    release = hold(four, 43)
    worker = shared.start("-s", url)
    shared.until(lambda: len(fetched(four)) > 60)
    first.stop()
    release()
    shared.until(lambda: "Redis cannot be reached" in shared.output())
    worker.send_signal(signal.SIGINT)
    assert worker.wait() == 1
    assert "what could not be recorded is fetched again" in shared.output()
    assert "Traceback" not in shared.output()
    with started(tmp_path / "kept", *kept, port=port) as client:
        for name, _ in client.zscan_iter("{demo}:workers"):
            client.zadd("{demo}:workers", {name: 0})  # it could not leave, and has expired by now
        shared.start("-s", url, "-s", stored.index_at(shared.data(0))).wait()
    assert "done." in shared.output(1)
    assert set(fetched(four)) == all_of(four)
    assert shared.indexed(0) == all_of(four)
