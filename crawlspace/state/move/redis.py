"""A collection on a Redis server as one side of a move. See `moving` for what is moved, and `lua/move.lua` for how it is written.

What says which worker holds what is not moved: the first one to begin finds what there is to do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar
from urllib.parse import quote

import redis
from redis.sentinel import SentinelConnectionPool

from crawlspace.errors import StoreLocked
from crawlspace.model import Op
from crawlspace.state.move.move import MOVING, Mark, read_mark
from crawlspace.state.move.records import NOT_MOVED, PARKED, OrderRecord, Record, RestRecord, SiteRecord, Stage, UrlRecord
from crawlspace.state.move.redis_parts import KINDS, Commands, kept_document, row_of, url_records
from crawlspace.state.redis.encoding import PART, raw, understood
from crawlspace.state.redis.scripts import said
from crawlspace.state.redis.sites import wait_of
from crawlspace.state.redis.store import RedisStore, robots_entry
from crawlspace.state.redis.workers import workers
from crawlspace.state.site_health import NEW_SITE, health_of
from crawlspace.state.views import Counts

_PAGE = 250
_KEYS = 1_000
Field = TypeVar("Field", bytes, int)


class RedisSide:
    """The store of a collection on the server of `client`, which decodes nothing and is this side's own.

    Raises StoreLocked while somebody crawls it, who has been heard of in the last `timeout_s` seconds.
    """

    def __init__(self, client: redis.Redis, collection: str, *, timeout_s: float) -> None:
        self.name = address_of(client)
        self._client = client
        self._collection = collection
        self._store = RedisStore(client, collection)
        self._run = self._store.scripts.run
        self._command = self._store.scripts.command
        self._mark: str | None = None
        self.found = self.version()
        crawling = self._command("EXISTS", "workers") and [who for who in workers(self._store) if who.unseen_s < timeout_s]
        for who in crawling or ():
            raise StoreLocked(
                f"{collection} is being crawled by process {who.process} on {who.host}, with {self.name}: wait for it or stop it"
            )

    def close(self) -> None:
        self._store.close()

    def version(self) -> str:
        return " ".join((value or b"0").decode() for value in self._command("HMGET", "n", "writes", "edits"))

    def holds_anything(self) -> bool:
        return any(self._command("EXISTS", key) for key in ("site", "robots", "refusal")) or bool(self._sinks())

    def mark(self) -> Mark | None:
        self._mark = self._store.get_meta(MOVING)
        return read_mark(self._mark)

    def count(self) -> int:
        last_part = int(self._command("HGET", "n", "urls") or 0) // PART
        return sum(int(self._command("HLEN", f"url:{part}")) for part in range(last_part + 1))

    def counts(self) -> Counts:
        return RedisStore(self._client, self._collection, sinks=self._sinks()).counts()

    # reading
    def read(self, stage: Stage) -> Iterator[Record]:
        with understood(f"its {stage}"):
            match stage:
                case Stage.SITES:
                    yield from self._read_sites()
                case Stage.URLS:
                    yield from self._read_urls()
                case Stage.ORDERS:
                    for sink in self._sinks():
                        for kind in range(len(KINDS)):
                            yield from self._read_list(sink, kind)
                case Stage.REST:
                    yield self._read_rest()

    def _read_sites(self) -> Iterator[SiteRecord]:
        numbers = self._store.scripts.hash("site")
        waits = self._store.scripts.hash("wait")
        fields: defaultdict[bytes, list[bytes]] = defaultdict(list)
        for field in self._command("HKEYS", "robots"):
            fields[field.partition(b" ")[2]].append(field)
        failed = {row.site: row for row in self._store.unreachable()}
        names = sorted({*numbers, *fields, *self._command("HKEYS", "health"), *(site.encode() for site in failed)})
        for name, health in self._with("health", names):
            site = name.decode()
            wait = waits.get(numbers.get(name, b""))
            how = health_of(health) if health else NEW_SITE
            robots = [
                robots_entry(site, field.partition(b" ")[0].decode(), entry)
                for field, entry in self._with("robots", sorted(fields.get(name, ())))
                if entry is not None
            ]
            row = failed.get(site)
            if wait is not None or how != NEW_SITE or robots or row is not None:
                until, wait_s = (None, 0) if wait is None else wait_of(wait)
                yield SiteRecord(site, until, None if how == NEW_SITE else how, robots, wait_s, row)

    def _read_urls(self) -> Iterator[UrlRecord]:
        last = int(self._command("HGET", "n", "urls") or 0)
        for first in range(1, last + 1, _PAGE):
            ids = list(range(first, min(first + _PAGE, last + 1)))
            yield from url_records(self._run("get_ids", ids=ids, whole=True))

    def _read_list(self, sink: str, kind: int) -> Iterator[OrderRecord]:
        place, last = f"out:{sink}", 0
        while numbers := self._command("ZRANGEBYSCORE", f"{place}:{KINDS[kind]}", f"({last}", "+inf", "LIMIT", 0, _PAGE):
            kept, reasons = dict(self._with(f"{place}:kept", numbers)), dict(self._with(f"{place}:reason", numbers))
            for each, order in self._with(f"{place}:order", numbers):
                op, id, url = (order or b"").decode().split(":", 2)
                packed = kept[each]
                document = None if packed is None else kept_document(packed)
                yield OrderRecord(
                    sink,
                    int(each),
                    Op.PUSH if op == "0" else Op.DELETE,
                    int(id),
                    url,
                    (reasons[each] or b"").decode() if kind == PARKED else None,
                    None if document is None else replace(document, url=""),
                )
            last = int(numbers[-1])

    def _sinks(self) -> list[str]:
        """Those that have orders."""
        prefix = f"{self._store.scripts.prefix}out:"
        with said():
            keys = [key.decode() for key in self._client.scan_iter(match=f"{prefix}*:url", count=_KEYS)]
        return sorted(key.removeprefix(prefix).removesuffix(":url") for key in keys)

    def _read_rest(self) -> RestRecord:
        last_id, last_order = self._command("HMGET", "n", "urls", "orders")
        meta = {name.decode(): value.decode() for name, value in self._store.scripts.hash("meta").items()}
        return RestRecord(
            int(last_id or 0),
            int(last_order or 0),
            dict(self._store.refusals()),
            {name: value for name, value in meta.items() if name not in NOT_MOVED},
        )

    def _with(self, key: str, fields: Iterable[Field]) -> Iterator[tuple[Field, bytes | None]]:
        """Yield fields with what stands there in a hash."""
        wanted = list(fields)
        for first in range(0, len(wanted), _PAGE):
            part = wanted[first : first + _PAGE]
            yield from zip(part, self._command("HMGET", key, *part), strict=True)

    # writing
    def write(self, part: Sequence[Record], mark: Mark | None) -> None:
        commands = Commands()
        urls: list[tuple[object, ...]] = []
        waits: list[tuple[str, int, int]] = []
        for one in part:
            match one:
                case SiteRecord():
                    commands.add_site(one)
                    if one.wait_until is not None:
                        waits.append((one.site, one.wait_until, one.wait_s))
                case UrlRecord():
                    commands.add_url(one)
                    aside = None if one.aside_in is None else raw(one.aside_in)
                    urls.append((one.state.id, row_of(one.state), one.state.site, aside, one.state.indexed))
                case OrderRecord():
                    commands.add_order(one)
                case RestRecord():
                    commands.add_rest(one)
        now = None if mark is None else mark.written()
        if not self._run("move_part", before=self._mark, mark=now, urls=urls, waits=waits, commands=list(commands.all())):
            raise StoreLocked(
                f"{self._collection} on {self.name} is being crawled or moved by somebody else: wait for that, and run the same again"
            )
        self._mark = now

    def index_places(self) -> dict[str, str]:
        """Return where the indexes are that the sinks send to, by sink, among all machines."""
        return {sink.decode(): place.decode() for sink, place in self._store.scripts.hash("index").items()}

    def keep_index_places(self, places: Mapping[str, str]) -> None:
        for sink, place in places.items():
            self._command("HSET", "index", sink, place)

    def clear(self) -> None:
        """Remove all of an unfinished copy, last of all what says that it is one."""
        prefix = self._store.scripts.prefix
        meta = f"{prefix}meta".encode()
        found: list[bytes] = []
        with said():
            for key in self._client.scan_iter(match=f"{prefix}*", count=_KEYS):
                found += [key] if key != meta else []
                if len(found) >= _KEYS:
                    self._client.unlink(*found)
                    found = []
            self._client.unlink(meta, *found)
        self._mark = None


def address_of(client: redis.Redis | redis.RedisCluster) -> str:
    """Return the URL of a server, without user and password."""
    if isinstance(client, redis.RedisCluster):
        node: redis.cluster.ClusterNode = client.get_default_node()  # type: ignore[no-untyped-call]
        return f"the cluster of {node.name}"
    where = client.connection_pool.connection_kwargs
    db = where.get("db") or 0
    if isinstance(client.connection_pool, SentinelConnectionPool):
        return f"sentinel://{client.connection_pool.service_name}/{db}"
    if "path" in where:
        return f"unix://{quote(str(where['path']))}?db={db}"
    kind = "rediss" if issubclass(client.connection_pool.connection_class, redis.SSLConnection) else "redis"
    return f"{kind}://{where.get('host', 'localhost')}:{where.get('port', 6379)}/{db}"
