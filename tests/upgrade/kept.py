"""The files that are kept of each version, and what is found in them: the same that was found when they were made.

A folder of this one has the name of a version. `sqlite.tar.xz` is the data folder of a collection whose states are in a file, `redis.tar.xz`
that of the same collection whose states are in Redis, with the keys by type in `KEYS`, so that a server of any kind and version takes them.
`expected.json` is what is found in either.
"""

from __future__ import annotations

import json
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import msgspec
import redis

from crawlspace.index import embedded_schema
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.state.redis.encoding import FORMAT
from crawlspace.state.sqlite import schema
from tests.conftest import Project
from tests.integration.stored import archived, opened, states
from tests.long.shared_crash import text_of
from tests.servers import another_client
from tests.upgrade.scene import HOME

FOLDER = Path(__file__).parent
EXPECTED = "expected.json"
VERSIONS = sorted(folder.name for folder in FOLDER.iterdir() if (folder / EXPECTED).is_file())
PLACES = ("sqlite", "redis")
ALLOWED_BYTES = 500_000
"""Bytes of the files of a version."""
FORMATS = {"state": schema.VERSION, "index": embedded_schema.VERSION, "redis": FORMAT}
"""Of this version."""
KEYS = "redis.keys"
_PREFIX = "{demo}:"
_NAME = "demo"


def expected(version: str) -> dict[str, Any]:
    """Return what was found in the files of a version, and their formats."""
    found: dict[str, Any] = json.loads((FOLDER / version / EXPECTED).read_text(encoding="utf-8"))
    return found


def unpack(version: str, project: Project) -> None:
    """Put copies of the files of a version into a project, its states where the project has them."""
    place = "redis" if project.store_url else "sqlite"
    with tarfile.open(FOLDER / version / f"{place}.tar.xz") as packed:
        packed.extractall(project.data, filter="data")
    if project.store_url:
        with closing(another_client()) as client:
            _restore_keys(client, (project.data / KEYS).read_bytes())


def pack(project: Project, folder: Path) -> None:
    """Write what a project's collection has stored to a folder."""
    for name in ("index.db", *(() if project.store_url else ("state.db",))):
        with closing(apsw.Connection(str(project.data / _NAME / name))) as db:
            db.execute("VACUUM")
            db.pragma("wal_checkpoint(truncate)")
    if project.store_url:
        with closing(another_client()) as client:
            client.delete(f"{_PREFIX}index")  # the place of the index, as docs/machines.md has it for one that is moved
            (project.data / KEYS).write_bytes(dumped_keys(client))
    with tarfile.open(folder / f"{'redis' if project.store_url else 'sqlite'}.tar.xz", "w:xz", preset=9) as packed:
        for file in sorted(project.data.iterdir()):
            packed.add(file, file.name, filter=_of_nobody)


def found(project: Project) -> dict[str, Any]:
    """Return what commands and readers find of the collection. It is the same for each version and each place of the states."""
    status = json.loads(printed(project, "status", _NAME, "--json"))
    urls = [json.loads(line) for line in printed(project, "urls", _NAME, "--json").splitlines()]
    links = json.loads(printed(project, "links", _NAME, HOME, "--out", "--all", "--json"))
    with opened(project) as store:
        archive = {state.url: archived(project, path) for path, state in states(project).items()}
        refused = sorted(f"{link.url} on {page.url}" for link in store.refused_links() if (page := store.get_by_id(link.page)))
    with closing(EmbeddedIndex(project.data / _NAME / "index.db", read_only=True)) as index:
        documents = {document.url: document for document in index.documents(_NAME)}
    return {
        "status": {name: status[name] for name in ("urls", "status", "orphaned", "refused", "index", "held", "hosts")},
        "paused": {host: pause["reason"] for host, pause in status["paused"].items()},
        "waiting": {sink["name"]: sink["waiting"] for sink in status["sinks"]},
        "urls": {url["url"]: {name: url[name] for name in _OF_URL} for url in urls},
        "links": sorted(link["url"] for link in links["links_out"]["urls"]),
        "refused": refused,
        "documents": {
            url: {"title": one.title, "text": one.text[:60], "fields": one.fields, "duplicates": sorted(one.duplicates)}
            for url, one in sorted(documents.items())
        },
        "archive": {
            url: [response.status, None if document is None else document.title]
            for url, (response, document) in archive.items()
            if response is not None
        },
    }


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Return what differs between two results of `found`, a line each; of the first, without the formats."""
    return [
        f"{part}: {name}: {one[part].get(name)} and {other[part].get(name)}"
        for part in one
        if isinstance(one[part], dict)
        for name in {**one[part], **other[part]}
        if one[part].get(name) != other[part].get(name)
    ] + [f"{part}: {one[part]} and {other[part]}" for part in one if isinstance(one[part], list) and one[part] != other[part]]


_OF_URL = ("state", "status", "depth", "shift", "errors", "orphaned", "indexed", "held", "duplicate_of", "detail")


def printed(project: Project, *command: str) -> str:
    """Return what a command that succeeds has printed."""
    return project.scrapy(*command).succeeded().stdout


def dumped_keys(client: redis.Redis) -> bytes:
    """Return the keys of the collection with types and values, but for those that expire."""
    kept = [name for name in sorted(client.scan_iter(f"{_PREFIX}*")) if client.ttl(name) == -1]
    return msgspec.msgpack.encode([(name, kind := text_of(client.type(name)), _value(client, kind, name)) for name in kept])


def _value(client: redis.Redis, kind: str, name: bytes) -> object:
    match kind:
        case "string":
            return client.get(name)
        case "list":
            return client.lrange(name, 0, -1)
        case "set":
            return sorted(client.smembers(name))
        case "zset":
            return client.zrange(name, 0, -1, withscores=True)
        case _:
            return sorted(client.hgetall(name).items())


def _restore_keys(client: redis.Redis, dumped: bytes) -> None:
    for name, kind, value in msgspec.msgpack.decode(dumped):
        match kind:
            case "string":
                client.set(name, value)
            case "list":
                client.rpush(name, *value)
            case "set":
                client.sadd(name, *value)
            case "zset":
                client.zadd(name, dict(value))
            case _:
                client.hset(name, mapping=dict(value))


def _of_nobody(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Leave out who made the file, and what SQLite has emptied."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return None if member.name.endswith(("-wal", "-shm")) else member
