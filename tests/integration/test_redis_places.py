"""Servers of all kinds that a shared collection may be kept on: behind a socket, a user's name, Sentinels; a cluster."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event

import pytest
import redis

from tests.conftest import MakeProject, Project
from tests.integration import stored
from tests.servers import PROGRAM
from tests.sites import Server, Site, page, serve, slow

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


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@contextmanager
def started(folder: Path, *options: str, port: int | None = None, kind: Sequence[str] = ()) -> Iterator[redis.Redis]:
    """A server with these options; a client of it that decodes."""
    port = port or free_port()
    folder.mkdir(exist_ok=True)
    command = [str(PROGRAM), *kind, "--port", str(port), "--dir", str(folder), "--bind", "127.0.0.1", *options]
    with (folder / "log.txt").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    client = redis.Redis(port=port, decode_responses=True)
    try:
        soon(lambda: answers(client))
        yield client
    except BaseException:
        sys.stderr.write((folder / "log.txt").read_text())
        raise
    finally:
        client.close()
        process.kill()
        process.wait()


def answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.exceptions.ConnectionError:
        return False


def soon(holds: Callable[[], bool]) -> None:
    """Wait until it holds, for half a minute at most."""
    for _ in range(1500):
        if holds():
            return
        Event().wait(0.02)
    raise AssertionError("it took too long")


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


def test_a_server_that_cannot_write_to_its_disk(project: MakeProject, site: Server, tmp_path: Path) -> None:
    site.site["/3"] = slow(page("Page 3", text="text of 3", links=["/4"]), 1.0)
    folder = tmp_path / "server"
    with started(folder, "--save", "3600 100000", "--dbfilename", "no.rdb") as client:
        port = client.connection_pool.connection_kwargs["port"]
        shared = demo(project, site, f"redis://127.0.0.1:{port}/0")
        crawl = shared.start("crawl", "demo")
        soon(lambda: "/3" in site.paths())
        (folder / "no.rdb").mkdir()  # what it writes cannot be put there
        client.bgsave()
        soon(lambda: "Redis takes nothing at present: MISCONF" in (shared.folder / "output.txt").read_text())
        (folder / "no.rdb").rmdir()
        client.bgsave()
        assert crawl.wait(timeout=60) == 0, (shared.folder / "output.txt").read_text()
        assert len(stored.indexed(shared)) == PAGES + 1
        assert set(site.counts().values()) == {1}, "nothing was fetched twice"


def test_a_server_that_is_overtaken_by_its_replica(project: MakeProject, site: Server, tmp_path: Path) -> None:
    site.site["/3"] = slow(page("Page 3", text="text of 3", links=["/4"]), 1.0)
    with ExitStack() as stack:
        first = stack.enter_context(ExitStack())
        master = first.enter_context(started(tmp_path / "one", "--repl-diskless-sync-delay", "0"))
        port = master.connection_pool.connection_kwargs["port"]
        replica = stack.enter_context(started(tmp_path / "two", "--replicaof", f"127.0.0.1 {port}"))
        soon(lambda: replica.info("replication")["master_link_status"] == "up")
        settings = f"sentinel monitor here 127.0.0.1 {port} 1\nsentinel down-after-milliseconds here 300\nsentinel failover-timeout here 3000\n"
        watching = free_port()
        (tmp_path / "sentinel.conf").write_text(f"port {watching}\n{settings}")
        stack.enter_context(started(tmp_path / "three", port=watching, kind=(str(tmp_path / "sentinel.conf"), "--sentinel")))
        shared = demo(project, site, f"sentinel://127.0.0.1:{watching}/here/0")
        crawl = shared.start("crawl", "demo")
        soon(lambda: "/3" in site.paths())
        first.close()
        assert crawl.wait(timeout=60) == 0, (shared.folder / "output.txt").read_text()
        said = (shared.folder / "output.txt").read_text()
        assert said.count("Redis answers again") == 1
        assert "Traceback" not in said
        assert len(stored.indexed(shared)) == PAGES + 1
        assert replica.hlen("{demo}:url:0") == PAGES + 1


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
        soon(lambda: all(node.execute_command("CLUSTER INFO")["cluster_state"] == "ok" for node in nodes))
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
