"""Check that a Redis server is durable: it evicts nothing, is no replica, and writes to its disk.

Managed servers may refuse CONFIG, and some a part of INFO: unreported values are no faults.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from crawlspace.errors import StoreError
from crawlspace.text import printable

if TYPE_CHECKING:
    import redis

OLDEST = (7, 0)
REPLICA = "redis-replica"


class ServerFault(NamedTuple):
    """A fault of a server: an error or a warning; `code` is that of lint."""

    level: Literal["error", "warning"]
    code: str
    message: str


class ServerReport(NamedTuple):
    """The report of a server. `save` are its times for snapshots: empty for none, None if unreported."""

    info: Mapping[str, object]
    save: str | None


def read_servers(client: redis.Redis) -> list[ServerReport]:
    """Return the report of the server, or of each primary of a cluster. Raises the client's errors if it can't be reached."""
    primaries = getattr(client, "get_primaries", None)
    if primaries is None:
        return [_read(client)]
    client.ping()  # a cluster finds its nodes on the first call
    return [_read(client, target_nodes=node) for node in primaries()]


def _read(client: redis.Redis, **of_node: object) -> ServerReport:
    from redis.exceptions import NoPermissionError, ResponseError  # noqa: PLC0415 - with the client

    try:
        info = client.info(None, **of_node)
    except NoPermissionError:
        return ServerReport({}, None)
    save: str | None = None
    try:
        found = {_text(name): _text(value) for name, value in client.config_get("save", **of_node).items()}
        save = found.get("save")
    except ResponseError:  # also NoPermissionError
        pass
    return ServerReport(info, save)


def refuse_old(server: ServerReport) -> None:
    """Raise StoreError for a server of a version that lacks what a collection needs."""
    version = str(server.info.get("valkey_version") or server.info.get("redis_version") or "")
    numbers = version.split(".")[:2]
    if version and all(number.isdigit() for number in numbers) and tuple(map(int, numbers)) < OLDEST:
        raise StoreError(
            f"the server is Redis {version}; a shared collection needs {'.'.join(map(str, OLDEST))} or newer, or Valkey"
        )


def faults(server: ServerReport) -> Iterator[ServerFault]:
    """Yield the faults of a server for a collection."""
    info, policy = server.info, _text(server.info.get("maxmemory_policy", ""))
    if _text(info.get("role", "")) in ("slave", "replica"):
        master = f"{printable(_text(info.get('master_host', '?')))}:{printable(_text(info.get('master_port', '?')))}"
        message = f"Redis is a replica of {master}, which loses what is written to it: name that server in CRAWLSPACE_STORE_URL, or Sentinels"
        yield ServerFault("error", REPLICA, message)
    if policy not in ("", "noeviction") and _number(info.get("maxmemory")):
        message = (
            f"Redis evicts records when its memory is full (maxmemory-policy {printable(policy)}): set it to noeviction, with"
            " `CONFIG SET maxmemory-policy noeviction` and in its configuration"
        )
        yield ServerFault("error", "redis-evicts", message)
    if not {"maxmemory_policy", "role", "aof_enabled"} & info.keys():
        message = (
            "Redis does not report whether it evicts records, is a replica or writes to its disk (INFO); see docs/machines.md"
        )
        yield ServerFault("warning", "redis-not-known", message)
    elif "aof_enabled" in info and not (_number(info["aof_enabled"]) or _writes_snapshots(server)):
        how = "Redis keeps no append-only file"
        how += ", and does not report whether it writes snapshots" if server.save is None else " and writes no snapshots"
        message = f"{how}: after a restart the collection is lost; set `appendonly yes`, see docs/machines.md"
        yield ServerFault("warning", "redis-persists-nothing", message)


def _writes_snapshots(server: ServerReport) -> bool:
    return bool(server.save) if server.save is not None else _number(server.info.get("rdb_saves")) > 0


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _number(value: object) -> int:
    text = _text(value)
    return int(text) if text.isdigit() else 0
