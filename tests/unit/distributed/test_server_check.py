"""What a Redis server must be like to keep a collection: by what it reports, and with real servers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from crawlspace.distributed.server_check import ServerFault, ServerReport, faults, read_servers, refuse_old
from crawlspace.errors import StoreError
from tests.servers import started

GOOD = {"redis_version": "7.2.0", "maxmemory": 0, "maxmemory_policy": "noeviction", "role": "master", "aof_enabled": 1}

REPORTS: list[tuple[Mapping[str, object], str | None, list[str]]] = [
    # what INFO has beside that, CONFIG GET save (None: refused), what is wrong
    ({}, "", []),
    ({"maxmemory_policy": "allkeys-lru"}, "", []),
    ({"maxmemory": 1}, "", []),
    ({"maxmemory": 1, "maxmemory_policy": "allkeys-lru"}, "", ["error redis-evicts"]),
    ({"maxmemory": 1, "maxmemory_policy": "volatile-ttl"}, "", ["error redis-evicts"]),
    ({"maxmemory": b"1", "maxmemory_policy": b"allkeys-lru"}, "", ["error redis-evicts"]),
    ({"role": "slave", "master_host": "a", "master_port": 6379}, "", ["error redis-replica"]),
    ({"role": "replica"}, "", ["error redis-replica"]),
    ({"aof_enabled": 0}, "", ["warning redis-persists-nothing"]),
    ({"aof_enabled": 0}, "3600 1", []),
    ({"aof_enabled": 0}, None, ["warning redis-persists-nothing"]),
    ({"aof_enabled": 0, "rdb_saves": 3}, None, []),
    ({"aof_enabled": 0, "rdb_saves": 3}, "", ["warning redis-persists-nothing"]),
    (
        {"aof_enabled": 0, "role": "slave", "maxmemory": 1, "maxmemory_policy": "allkeys-lru"},
        "",
        ["error redis-replica", "error redis-evicts", "warning redis-persists-nothing"],
    ),
]


@pytest.mark.parametrize(("reported", "save", "wrong"), REPORTS)
def test_what_is_wrong_with_a_server(reported: Mapping[str, object], save: str | None, wrong: list[str]) -> None:
    assert shown(faults(ServerReport({**GOOD, **reported}, save))) == wrong


SILENT: list[tuple[Mapping[str, object], list[str]]] = [
    # INFO of a server that refuses CONFIG, and what it gives: one warning at most
    ({}, ["warning redis-not-known"]),
    ({"redis_version": "7.2.0"}, ["warning redis-not-known"]),
    ({"role": "master"}, []),
    ({"aof_enabled": 1}, []),
    ({"aof_enabled": 0}, ["warning redis-persists-nothing"]),
]


@pytest.mark.parametrize(("reported", "wrong"), SILENT)
def test_a_server_that_tells_little(reported: Mapping[str, object], wrong: list[str]) -> None:
    assert shown(faults(ServerReport(reported, None))) == wrong


@pytest.mark.parametrize(
    ("reported", "is_refused"),
    [
        ({"redis_version": "6.2.1"}, True),
        ({"redis_version": "7.0.0"}, False),
        ({"redis_version": "7.2.4", "valkey_version": "6.0.0"}, True),
        ({"redis_version": "unknown"}, False),
        ({}, False),
    ],
)
def test_versions(reported: Mapping[str, object], *, is_refused: bool) -> None:
    found = ""
    try:
        refuse_old(ServerReport(reported, None))
    except StoreError as error:
        found = str(error)
    assert ("a shared collection needs 7.0 or newer" in found) is is_refused


KEEPS = ("--appendonly", "yes")
SERVERS: list[tuple[Sequence[str], list[str]]] = [
    # options of a server, what is wrong with it
    (KEEPS, []),
    (("--save", "3600 1"), []),
    (("--save", ""), ["warning redis-persists-nothing"]),
    ((*KEEPS, "--save", ""), []),
    ((*KEEPS, "--maxmemory", "100mb"), []),
    ((*KEEPS, "--maxmemory-policy", "allkeys-lru"), []),
    ((*KEEPS, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"), ["error redis-evicts"]),
    ((*KEEPS, "--maxmemory", "100mb", "--maxmemory-policy", "volatile-lfu"), ["error redis-evicts"]),
    (("--save", "", "--rename-command", "CONFIG", ""), ["warning redis-persists-nothing"]),
    ((*KEEPS, "--rename-command", "CONFIG", ""), []),
]


@pytest.mark.parametrize(("options", "wrong"), SERVERS)
def test_real_servers(tmp_path: Path, options: Sequence[str], wrong: list[str]) -> None:
    with started(tmp_path / "server", *options) as client:
        [server] = read_servers(client)
        assert shown(faults(server)) == wrong


def test_a_real_replica_and_a_user_who_may_ask_nothing(tmp_path: Path) -> None:
    with ExitStack() as stack:
        master = stack.enter_context(started(tmp_path / "one", *KEEPS))
        port = master.connection_pool.connection_kwargs["port"]
        replica = stack.enter_context(started(tmp_path / "two", *KEEPS, "--replicaof", f"127.0.0.1 {port}"))
        [server] = read_servers(replica)
        [fault] = faults(server)
        assert (fault.code, f"a replica of 127.0.0.1:{port}" in fault.message) == ("redis-replica", True)
        master.acl_setuser("crawler", enabled=True, nopass=True, categories=["+@all"], commands=["-info", "-config"])
        master.execute_command("AUTH", "crawler", "")
        assert [shown(faults(one)) for one in read_servers(master)] == [["warning redis-not-known"]]


def shown(found: Iterable[ServerFault]) -> list[str]:
    return [f"{one.level} {one.code}" for one in found]
