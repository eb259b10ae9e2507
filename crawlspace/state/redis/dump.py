"""A collection on a Redis server as one side of a move; `lua/move.lua` writes the URLs.

Ownership of sites is not moved: the first worker finds the work.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeVar
from urllib.parse import quote

import msgspec
import redis
from msgspec import structs
from redis.sentinel import SentinelConnectionPool

from crawlspace.document import Document, Op, packed_text
from crawlspace.errors import StoreLocked
from crawlspace.model import UrlState
from crawlspace.state.changes import Effects
from crawlspace.state.dump import (
    MOVING,
    NOT_KEPT,
    CopyMark,
    OrderRecord,
    Record,
    RefusedLinksRecord,
    RobotsRecord,
    SiteRecord,
    UrlRecord,
    ValueRecord,
    read_mark,
    refused_links_records,
)
from crawlspace.state.inherited_metadata import compared_fields
from crawlspace.state.redis.encoding import (
    FORMAT,
    PART,
    Row,
    bytes_of,
    decode_all,
    decode_state,
    document_of,
    kept_document,
    key_bytes,
    number,
    raw,
    understood,
    written,
)
from crawlspace.state.redis.keys import Key, Prefix
from crawlspace.state.redis.server import redis_errors
from crawlspace.state.redis.sites import encode_robots, encode_unreachable, wait_of
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.redis.workers import workers
from crawlspace.state.site_health import NEW_SITE, health_of
from crawlspace.state.views import Counts

_PAGE = 250
_KEYS = 1_000
_LISTS = (("delete", Op.DELETE), ("push", Op.PUSH), ("parked", Op.DELETE), ("parked", Op.PUSH))
"""The lists of a sink's orders, in the order of records."""
_OPS = (Op.PUSH, Op.DELETE)
_TALLIES = {"id": "urls", "sequence": "orders"}
"""The names of the last numbers given out."""
_Field = TypeVar("_Field", bytes, int)
_read_parts = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode


class RedisSide:
    """The store of a collection on the server of `client`, which decodes nothing and is not shared.

    Raises StoreLocked while a worker crawls it that has reported in the last `timeout_s` seconds.
    """

    def __init__(self, client: redis.Redis, collection: str, *, timeout_s: float) -> None:
        self.name = address_of(client)
        self._client = client
        self._collection = collection
        self._store = RedisStore(client, collection)
        self._run = self._store.server.call
        self._command = self._store.server.command
        self._hash = self._store.server.hash
        self._mark: str | None = None
        crawling = self._command("EXISTS", Key.WORKERS) and [who for who in workers(self._store) if who.unseen_s < timeout_s]
        for who in crawling or ():
            raise StoreLocked(
                f"{collection} is being crawled by process {who.process} on {who.host}, with {self.name}: wait for it or stop it"
            )
        self._store.inheritance.settle(Effects())

    def close(self) -> None:
        self._store.close()

    def version(self) -> str:
        return " ".join((value or b"0").decode() for value in self._command("HMGET", Key.COUNTERS, "writes", "edits"))

    def mark(self) -> CopyMark | None:
        self._mark = self._store.get_meta(MOVING)
        return read_mark(self._mark)

    def count(self) -> int:
        last_part = int(self._command("HGET", Key.COUNTERS, "urls") or 0) // PART
        return sum(int(self._command("HLEN", f"{Prefix.RECORDS}{part}")) for part in range(last_part + 1))

    def counts(self) -> Counts:
        return RedisStore(self._client, self._collection, sinks=self._sinks()).counts()

    # reading
    def records(self) -> Iterator[Record]:
        for what, found in (
            ("its sites", self._sites()),
            ("its robots.txt files", self._robots()),
            ("its URLs", self._urls()),
            ("its sample of refused links", refused_links_records(self._store.refused_links())),
            ("its index orders", self._orders()),
            ("its metadata and numbers", self._values()),
        ):
            with understood(what):
                yield from found

    def _sites(self) -> Iterator[SiteRecord]:
        names, healths = self._hash(Key.SITE_NAME), self._hash(Key.HEALTH)
        waits = {names[site]: wait_of(wait) for site, wait in self._hash(Key.WAIT).items()}
        failed = {row.site.encode(): row for row in self._store.unreachable()}
        for name in sorted({*waits, *healths, *failed}):
            health = health_of(healths[name]) if name in healths else NEW_SITE
            until, wait_s = waits.get(name, (None, 0))
            record = SiteRecord(name.decode(), until, wait_s, health, failed.get(name))
            if record != SiteRecord(record.site):
                yield record

    def _robots(self) -> Iterator[RobotsRecord]:
        for field in sorted(self._command("HKEYS", Key.ROBOTS), key=lambda field: field.partition(b" ")[::-1]):
            scheme, _, site = field.decode().partition(" ")
            entry = self._store.robots(site, scheme)
            if entry is not None:
                yield RobotsRecord(entry)

    def _urls(self) -> Iterator[UrlRecord]:
        last = int(self._command("HGET", Key.COUNTERS, "urls") or 0)
        for first in range(1, last + 1, _PAGE):
            wanted = list(range(first, min(first + _PAGE, last + 1)))
            states = [decode_state(reply) for reply in decode_all(self._run("get_ids", ids=wanted))]
            if states:
                yield from self._whole(states)

    def _whole(self, states: Sequence[UrlState]) -> Iterator[UrlRecord]:
        ids = [state.id for state in states]
        links, documents, alternates, near, link_metadata, pages, marks = (
            self._get(key, ids) for key in (Key.LINKS, Key.DOCUMENT, Key.ALTERNATE, Key.NEAR, Key.LINK_METADATA, Key.BY, Key.MARK)
        )
        left = self._store.left_to_others(ids)
        groups = {state.id: alternates.get(state.id, state.checksum) for state in states if state.checksum is not None}
        representatives = self._get(Key.REPRESENTATIVE, list(groups.values()))
        brings = {one.id: one.checksum for one in states if one.checksum and (one.indexed or groups[one.id] != one.checksum)}
        texts = self._get(Key.TEXT, list(brings.values()))
        for state in states:
            id, state.lease_until = state.id, None
            if len(links.get(id, b"")) % 8:
                raise ValueError(f"the links of URL {id} are cut off")
            document = document_of([b"", documents[id], b""] if id in documents else [])
            kept = (
                links.get(id, b""),
                document,
                _text(texts.get(brings.get(id, b""))),
                alternates.get(id),
                id in near,
                state.indexed and representatives.get(groups[id]) == str(id).encode(),
                id in left,
                _text(link_metadata.get(id)),
                int(pages[id]) if id in pages else None,
                int(marks[id]) if id in marks else None,
            )
            yield UrlRecord(*(*structs.astuple(state), *kept))

    def _orders(self) -> Iterator[OrderRecord]:
        for sink in self._sinks():
            for kind, op in _LISTS:
                yield from (order for order in self._list(sink, kind) if order.op is op)

    def _list(self, sink: str, kind: str) -> Iterator[OrderRecord]:
        key, last = f"{Prefix.OUTBOX}{sink}", 0
        while numbers := self._command("ZRANGEBYSCORE", f"{key}:{kind}", f"({last}", "+inf", "LIMIT", 0, _PAGE):
            orders, reasons, kept = (self._get(f"{key}:{part}", numbers) for part in ("order", "reason", "kept"))
            for each in numbers:
                op, id, url = orders[each].decode().split(":", 2)
                reason = reasons.get(each, b"").decode() if kind == "parked" else None
                yield OrderRecord(sink, _OPS[int(op)], int(each), int(id), url, reason, _kept_document(kept.get(each)))
            last = int(numbers[-1])

    def _sinks(self) -> list[str]:
        """Return the sinks that have orders."""
        prefix = f"{self._store.server.prefix}{Prefix.OUTBOX}"
        with redis_errors():
            keys = [key.decode() for key in self._client.scan_iter(match=f"{prefix}*:url", count=_KEYS)]
        return sorted(key.removeprefix(prefix).removesuffix(":url") for key in keys)

    def _values(self) -> Iterator[ValueRecord]:
        for file, name in sorted((str(file), name) for file, name in self._store.archive_files().items()):
            yield ValueRecord("archive_file", file, name)
        marks = self._store.depth_marks()
        for key, mark in sorted((str(key), f"{mark.page} {mark.depth}") for key, mark in marks.items()):
            yield ValueRecord("depth_mark", key, mark)
        for field, value in sorted(self._hash(Key.META).items()):
            if field.decode() not in NOT_KEPT:
                yield ValueRecord("meta", field.decode(), value.decode())
        for own, name in _TALLIES.items():
            last_number = self._command("HGET", Key.COUNTERS, name)
            if last_number is not None:
                yield ValueRecord("tally", own, int(last_number))

    def _get(self, key: str, fields: Sequence[_Field]) -> dict[_Field, bytes]:
        """Return the values of some fields of a hash, by field. An empty hash needs one call."""
        found = self._command("HMGET", key, *fields) if fields and self._command("EXISTS", key) else [None] * len(fields)
        return {field: value for field, value in zip(fields, found, strict=True) if value is not None}

    # writing
    def write(self, batch: Sequence[Record], mark: CopyMark | None) -> None:
        urls = [one for one in batch if isinstance(one, UrlRecord)]
        sites = [one for one in batch if isinstance(one, SiteRecord) and one.wait_until is not None]
        now = None if mark is None else mark.encoded()
        if not self._run(
            "move_part",
            before=self._mark,
            mark=now,
            urls=[
                (one.id, _row(one), one.site, one.alternate_in and raw(one.alternate_in), one.indexed, one.near) for one in urls
            ],
            waits=[(one.site, one.wait_until, one.wait_s) for one in sites],
            commands=list(_commands(batch)),
        ):
            raise StoreLocked(
                f"{self._collection} on {self.name} is being crawled or moved by another process: wait for that, and run the same command again"
            )
        self._mark = now

    def index_locations(self) -> dict[str, str]:
        """Return the locations of the sinks' indexes, by sink, among all machines."""
        return {sink.decode(): location.decode() for sink, location in self._hash(Key.INDEX).items()}

    def keep_index_locations(self, locations: Mapping[str, str]) -> None:
        for sink, location in locations.items():
            self._command("HSET", Key.INDEX, sink, location)

    def clear(self) -> None:
        """Remove an unfinished copy, its mark last."""
        prefix = self._store.server.prefix
        meta = f"{prefix}meta".encode()
        with redis_errors():
            keys = (key for key in self._client.scan_iter(match=f"{prefix}*", count=_KEYS) if key != meta)
            while some := list(islice(keys, _KEYS)):
                self._client.unlink(*some)
            self._client.unlink(meta)
        self._mark = None


def address_of(client: redis.Redis | redis.RedisCluster) -> str:
    """Return the URL of a server, without user and password."""
    if isinstance(client, redis.RedisCluster):
        node: redis.cluster.ClusterNode = client.get_default_node()
        return f"the cluster of {node.name}"
    where = client.connection_pool.connection_kwargs
    db = where.get("db") or 0
    if isinstance(client.connection_pool, SentinelConnectionPool):
        return f"sentinel://{client.connection_pool.service_name}/{db}"
    if "path" in where:
        return f"unix://{quote(str(where['path']))}?db={db}"
    kind = "rediss" if issubclass(client.connection_pool.connection_class, redis.SSLConnection) else "redis"
    return f"{kind}://{where.get('host', 'localhost')}:{where.get('port', 6379)}/{db}"


def _commands(batch: Sequence[Record]) -> Iterator[list[object]]:
    """Yield the commands that write records, except for URLs, which `move_part` writes. Keys are without their prefix."""
    values: defaultdict[tuple[str, str], list[object]] = defaultdict(list)

    def put(key: str, field: object, value: object) -> None:
        if value is not None:
            values["HSET", key] += (field, value)

    for one in batch:
        match one:
            case SiteRecord():
                put(Key.HEALTH, one.site, one.health.as_text() if one.health != NEW_SITE else None)
                put(Key.UNREACHABLE, one.site, encode_unreachable(one.unreachable))
            case RobotsRecord():
                encoded = encode_robots(one.entry)
                put(Key.ROBOTS, encoded["key"], encoded["entry"])
            case UrlRecord():
                id, checksum = str(one.id), raw(one.checksum or b"")
                put(Key.LINKS, id, raw(one.links) if one.links else None)
                put(Key.DOCUMENT, id, one.document and raw(kept_document(one.document)))
                fields = compared_fields(one.document.fields, one.inherited) if one.document else None
                put(Key.FIELDS, id, raw(written(fields)) if fields else None)
                put(Key.TEXT, checksum, one.text)
                put(Key.REPRESENTATIVE, checksum, id if one.representative else None)  # it is no alternate
                put(Key.INHERITED, id, one.inherited)
                put(Key.LINK_METADATA, id, one.link_metadata)
                put(Key.MARK, id, None if one.inherited_mark is None else str(one.inherited_mark))
                if one.inherited_from is not None:
                    put(Key.BY, id, str(one.inherited_from))
                    values["SADD", f"{Prefix.INHERITING}{one.inherited_from}"].append(id)
                if one.left:
                    values["SADD", Key.LEFT].append(id)
            case RefusedLinksRecord():
                entries = [(url, page, rule or False) for url, page, rule in one.entries]
                put(f"{Prefix.REFUSED}{one.letter}", one.host, raw(written(entries)))
                values["ZADD", f"{Prefix.REFUSED_HOSTS}{one.letter}"] += (0, one.host)
                for page in {page for _, page, _ in entries}:
                    values["ZADD", Key.REFUSED_PAGES] += (0, f"{page}:{one.letter} {one.host}")
            case OrderRecord():
                key, at = f"{Prefix.OUTBOX}{one.sink}", str(one.number)
                put(f"{key}:url", one.url, at)
                put(f"{key}:order", at, f"{_OPS.index(one.op)}:{one.id}:{one.url}")
                put(f"{key}:reason", at, one.reason)
                put(f"{key}:kept", at, one.document and _packed(one.url, one.document))
                values["ZADD", f"{key}:{one.op if one.reason is None else 'parked'}"] += (at, at)
            case ValueRecord():
                put(*_place(one), str(one.value))
    for (command, key), arguments in values.items():
        yield [command, key, *arguments]


def _place(value: ValueRecord) -> tuple[str, object]:
    """Return the hash and the field of a named value."""
    if value.table == "tally":
        return Key.COUNTERS, _TALLIES[value.name]
    return value.table, raw(key_bytes(int(value.name))) if value.table == "depth_mark" else value.name


def _row(url: UrlRecord) -> list[object]:
    """Return a URL in the form of `lua/records.lua`; its site has no number yet."""
    row: dict[str, object] = {name: getattr(url, name, None) for name in Row.__struct_fields__}
    row.update(
        requested_by=int(url.requested_by) or False,
        version=FORMAT,
        site=0,
        key=number(url.key),
        checksum=None if url.checksum is None else raw(url.checksum),
        canonical=None if url.canonical is None else number(url.canonical),
        simhash=None if url.simhash is None else raw(url.simhash),
        history=None if url.history is None else raw(url.history),
        fields_mark=number(url.fields_mark) if url.fields_mark else None,
    )
    return list(row.values())


def _packed(url: str, document: Document) -> msgspec.Raw:
    """Return a document in the form that is stored with an order."""
    return raw(written([url, raw(kept_document(document)), packed_text(document), *document.duplicates]))


def _kept_document(packed: bytes | None) -> Document | None:
    """Return the document that is stored with an order, without its URL."""
    document = None if packed is None else document_of([bytes_of(part) or b"" for part in _read_parts(packed)])
    return None if document is None else replace(document, url="")


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()
