"""Servers of all kinds that a shared collection may be kept on: behind a socket, a user's name, Sentinels; a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
import redis

from tests.conftest import MakeProject, Project
from tests.integration import stored
from tests.notifications import wait_until
from tests.servers import free_port, started
from tests.sites import Server, Site, held, page, serve

PAGES = 12
CLUSTER = "REDIS_PARAMS = {'redis_cls': 'redis.cluster.RedisCluster'}\n"


@pytest.fixture
def site() -> Iterator[Server]:
    pages = {f"/{n}": page(f"Page {n}", text=f"text of {n}", links=[f"/{n + 1}"] if n + 1 < PAGES else []) for n in range(PAGES)}
    with serve(Site({"/": page("Home", text="home", links=["/0"]), **pages})) as server:
        yield server


def demo(project: MakeProject, server: Server, url: str, settings: str = "") -> Project:
    return project(
        {
            "demo/start_urls.txt": server.url("/"),
            "demo/crawl.rules": "",
            "demo/settings.py": f"{stored.FAST}CRAWLSPACE_STORE_URL = {url!r}\n{settings}",
        }
    )


def test_a_socket_and_a_user(project: MakeProject, site: Server, tmp_path: Path) -> None:
    path = tmp_path / "r.sock"
    with started(tmp_path / "server", "--unixsocket", str(path)) as client:
        client.acl_setuser(
            "crawler", enabled=True, passwords=["+secret"], categories=["+@all"], keys=["{demo}:*", "demo:start_urls"]
        )
        shared = demo(project, site, f"unix://crawler:secret@{path}?db=1")
        shared.crawl("demo").succeeded()
        assert len(stored.indexed(shared)) == PAGES + 1
        assert client.config_get("maxclients")
        refused = demo(project, site, f"unix://crawler:wrong@{path}?db=1").crawl("demo")
        assert (refused.returncode, refused.stderr.count("Redis refuses the user or the password")) == (1, 1)


def test_a_server_that_is_busy(project: MakeProject, site: Server, tmp_path: Path) -> None:
    with started(tmp_path / "server", "--busy-reply-threshold", "1") as client, ThreadPoolExecutor() as threads:
        port = client.connection_pool.connection_kwargs["port"]
        other = redis.Redis(port=port, socket_timeout=None)
        running = threads.submit(other.eval, "while true do end", 0)
        with closing(other):
            wait_until(lambda: _is_busy(client))
            refused = demo(project, site, f"redis://127.0.0.1:{port}/0").crawl("demo")
            client.script_kill()
            with pytest.raises(redis.ResponseError, match="Script killed"):
                running.result()
    assert "Redis refuses requests at present: BUSY" in refused.stderr
    assert "try again when it is ready" in refused.stderr
    assert (refused.returncode, site.paths()) == (1, [])


def _is_busy(client: redis.Redis) -> bool:
    try:
        return not client.ping()
    except redis.ResponseError as error:
        return str(error).startswith("BUSY")


@pytest.mark.full
def test_a_server_that_cannot_write_to_its_disk(project: MakeProject, site: Server, tmp_path: Path) -> None:
    site.site["/3"] = third = held(page("Page 3", text="text of 3", links=["/4"]))
    folder = tmp_path / "server"
    with started(folder, "--save", "3600 100000", "--dbfilename", "no.rdb") as client:
        port = client.connection_pool.connection_kwargs["port"]
        shared = demo(project, site, f"redis://127.0.0.1:{port}/0")
        crawl = shared.start("crawl", "demo")
        shared.until(lambda: "/3" in site.paths())
        (folder / "no.rdb").mkdir()  # what it writes cannot be put there
        client.bgsave()
        wait_until(lambda: client.info("persistence")["rdb_last_bgsave_status"] == "err")
        third.release()
        shared.until(lambda: "Redis refuses requests at present: MISCONF" in shared.output())
        (folder / "no.rdb").rmdir()
        client.bgsave()
        assert crawl.wait() == 0, shared.output()
        assert len(stored.indexed(shared)) == PAGES + 1
        assert set(site.counts().values()) == {1}, "nothing was fetched twice"


@pytest.mark.full
def test_a_server_that_is_overtaken_by_its_replica(project: MakeProject, site: Server, tmp_path: Path) -> None:
    site.site["/3"] = third = held(page("Page 3", text="text of 3", links=["/4"]))
    with ExitStack() as stack:
        first = stack.enter_context(ExitStack())
        master = first.enter_context(started(tmp_path / "one", "--repl-diskless-sync-delay", "0"))
        port = master.connection_pool.connection_kwargs["port"]
        replica = stack.enter_context(started(tmp_path / "two", "--replicaof", f"127.0.0.1 {port}"))
        wait_until(lambda: replica.info("replication")["master_link_status"] == "up")
        settings = f"sentinel monitor here 127.0.0.1 {port} 1\nsentinel down-after-milliseconds here 2000\nsentinel failover-timeout here 6000\n"
        watching = free_port()
        (tmp_path / "sentinel.conf").write_text(f"port {watching}\n{settings}")
        sentinel = stack.enter_context(
            started(tmp_path / "three", port=watching, kind=(str(tmp_path / "sentinel.conf"), "--sentinel"))
        )
        wait_until(lambda: len(sentinel.sentinel_slaves("here")) == 1)  # it logs that it has found the replica
        shared = demo(project, site, f"sentinel://127.0.0.1:{watching}/here/0")
        crawl = shared.start("crawl", "demo")
        shared.until(lambda: "/3" in site.paths())
        first.close()
        third.release()
        assert crawl.wait() == 0, shared.output()
        reported = shared.output()
        assert reported.count("Redis answers again") >= 1
        assert "Traceback" not in reported
        assert len(stored.indexed(shared)) == PAGES + 1
        assert replica.hlen("{demo}:url:0") == PAGES + 1


@pytest.mark.full
def test_a_cluster(project: MakeProject, site: Server, tmp_path: Path) -> None:
    with ExitStack() as stack:
        nodes = [
            stack.enter_context(started(tmp_path / f"node{n}", "--cluster-enabled", "yes", "--cluster-port", str(free_port())))
            for n in range(2)
        ]
        nodes[0].execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 8000)
        nodes[1].execute_command("CLUSTER", "ADDSLOTSRANGE", 8001, 16383)
        port = nodes[1].connection_pool.connection_kwargs["port"]
        bus = nodes[1].config_get("cluster-port")["cluster-port"]
        nodes[0].execute_command("CLUSTER", "MEET", "127.0.0.1", port, bus)
        wait_until(lambda: all(node.execute_command("CLUSTER INFO")["cluster_state"] == "ok" for node in nodes))
        for name in ("demo", "other"):
            shared = demo(project, site, f"redis://127.0.0.1:{port}/0", CLUSTER)
            (shared.collections / "demo").rename(shared.collections / name)
            client = redis.RedisCluster(host="127.0.0.1", port=port)
            client.lpush(f"{name}:start_urls", site.url("/5"))
            client.close()
            shared.crawl(name).succeeded()
            assert shared.scrapy("status", name).succeeded().stdout.count(f"{PAGES + 1}") >= 1
            shared.scrapy("recrawl", name, site.url("/1")).succeeded()
        assert sorted(key for node in nodes for key in node.keys("*:url:0")) == ["{demo}:url:0", "{other}:url:0"]


EVICTS = ("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
UNFIT = [
    # options of a server, exit status of a crawl, what it and lint say
    (EVICTS, 1, "Redis evicts records when its memory is full (maxmemory-policy allkeys-lru)"),
    (("--replicaof", "127.0.0.1 1"), 1, "Redis is a replica of 127.0.0.1:1"),
    (("--save", ""), 0, "Redis keeps no append-only file and writes no snapshots"),
]


@pytest.mark.parametrize(("options", "status", "sentence"), UNFIT, ids=["evicts", "replica", "keeps nothing"])
def test_a_server_that_would_lose_records(
    project: MakeProject, site: Server, tmp_path: Path, options: tuple[str, ...], status: int, sentence: str
) -> None:
    with started(tmp_path / "server", *options) as client:
        url = f"redis://127.0.0.1:{client.connection_pool.connection_kwargs['port']}/0"
        shared = demo(project, site, url)
        linted = shared.scrapy("lint", "demo")
        assert (linted.returncode, linted.stdout.count(sentence)) == (1, 1)
        assert f"CRAWLSPACE_STORE_URL: {'error' if status else 'warning'}: {sentence}" in linted.stdout
        run = shared.crawl("demo")
        assert (run.returncode, run.stderr.count(sentence), "Traceback" in run.stderr) == (status, 1, False), run.stderr
        assert (site.paths() == []) is (status == 1)
        assert bool(client.keys("*")) is (status == 0)
        filled = shared.scrapy("add", "demo", site.url("/3"))
        assert (filled.returncode, filled.stderr.count(sentence)) == (status, status), filled.stderr
