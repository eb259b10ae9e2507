"""A store in Redis, which several processes and machines share: the same contract as SQLite's, kept by functions of the server.

Each method that writes is one call of a function, which writes all or nothing. `server` calls them, `encoding` has the form of the values,
`workers` what only several workers need.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import redis

from crawlspace.model import IndexOrder, NewUrl, Op, Queue, State, UrlState
from crawlspace.state.changes import Change, Effects, Reclassified
from crawlspace.state.hastening import AT_ONCE
from crawlspace.state.redis import sites as redis_sites
from crawlspace.state.redis.archive import RedisArchive
from crawlspace.state.redis.depths import RedisDepths, pairs
from crawlspace.state.redis.due_times import RedisDueTimes
from crawlspace.state.redis.encoding import (
    batch_of,
    bytes_of,
    change_of,
    decode_all,
    decode_state,
    document_of,
    effects_of,
    ids_of,
    knowns_of,
    leased,
    leased_one_by_one,
    new_urls,
    number,
    raw,
    site_text,
    states_of,
    understood,
    written,
)
from crawlspace.state.redis.inherited_metadata import RedisInheritance, encode_pages
from crawlspace.state.redis.keys import Key, Prefix
from crawlspace.state.redis.refused_links import RedisRefusedLinks
from crawlspace.state.redis.server import RedisServer
from crawlspace.state.redis.values import RedisValues
from crawlspace.state.refused_links import by_reason
from crawlspace.state.site_health import NEW_SITE, Health, health_of
from crawlspace.state.unreachable import UnreachableSite
from crawlspace.state.views import MOST_BYTES_AT_ONCE, Counts, FoldedUrl, KnownUrl, RobotsEntry, Site, folded_url
from crawlspace.urls import url_key

_PAGE = 500
_FILES = 20
"""robots.txt read at once: one may have half a megabyte."""
_read_robots = msgspec.msgpack.Decoder(tuple[int, str, int]).decode


class RedisStore(RedisArchive, RedisDepths, RedisDueTimes, RedisRefusedLinks, RedisValues):
    """The store of one collection on a Redis server. `client` decodes nothing and is this store's own."""

    changed_at_once = 10_000  # a function keeps the server busy, which serves other workers between two

    def __init__(self, client: redis.Redis, collection: str, *, sinks: Sequence[str] = ("index",), crawls: bool = False) -> None:
        self.server = RedisServer(client, collection, sinks=sinks, crawls=crawls)
        self.inheritance = RedisInheritance(self.server, self._write)
        self._own_writes = 0

    # discovery
    def discover(self, urls: Sequence[NewUrl], *, now: int) -> Effects:
        return effects_of(self._write("discover", urls=new_urls(urls), now=now))

    # the frontier's queue
    def sites(self) -> Iterator[Site]:
        pending: defaultdict[str, list[Queue]] = defaultdict(list)
        due: defaultdict[str, list[tuple[Queue, int]]] = defaultdict(list)
        for kind in (Key.PENDING, Key.DUE):
            all_places = list(self._command("SMEMBERS", kind))
            for places in (all_places[first : first + 1000] for first in range(0, len(all_places), 1000)):
                reply = self._read("first_due", places=[place.decode(errors="replace") for place in places])
                for place, site, at in zip(places, reply[::2], reply[1::2], strict=True):
                    queue = _queue_of(place)
                    if kind is Key.PENDING:
                        pending[site_text(site)].append(queue)
                    elif at >= 0:
                        due[site_text(site)].append((queue, at))
        waits = {}
        for site_number, wait in self.server.hash(Key.WAIT).items():
            waits[site_text(self._command("HGET", Key.SITE_NAME, site_number) or b"")] = redis_sites.wait_of(wait)
        for name in sorted(pending.keys() | due.keys() | waits.keys()):
            yield Site(name, tuple(sorted(pending.get(name, ()))), tuple(sorted(due.get(name, ()))), *waits.get(name, ()))

    def lease(self, site: str, limit: int, *, now: int, until: int, queue: Queue | None = None) -> list[UrlState]:
        if limit <= 0:
            return []
        chosen = {} if queue is None else {"queue_index": queue.queue_index}
        return urls_leased(self.server, site, self._write("lease", site=site, limit=limit, now=now, until=until, **chosen), until)

    def release(self, ids: Iterable[int]) -> None:
        self._write("release", ids=list(ids))

    def begin_run(self, at: int | None, *, goes_on: bool = False) -> None:
        has_more = not goes_on
        while has_more:
            has_more = self._write("restore_set_aside", limit=AT_ONCE) == 1
        self._write("begin_run", began=at, joins=goes_on)
        self.inheritance.settle(Effects())

    def reclaim(self, *, now: int, keep: Collection[int] = ()) -> dict[str, int]:
        ended = self._write("reclaim", now=now, keep=list(keep))
        return {site_text(site): count for site, count in zip(ended[::2], ended[1::2], strict=True)}

    def due(self, site: str) -> list[tuple[Queue, int]]:
        reply = self._read("due", site=site)
        return [(Queue.of_index(queue_index), at) for queue_index, at in zip(reply[::2], reply[1::2], strict=True)]

    def wait_site(self, site: str, until: int | None, *, wait_s: int = 0) -> None:
        self._write("wait_site", site=site, until=until, wait_s=wait_s)

    # results
    def record(self, changes: Sequence[Change], *, now: int, health: Mapping[str, Health] | None = None) -> Effects:
        effects = self._record(changes, now, health or {})
        assert effects is not None  # nothing was expected
        return effects

    def revise(self, ids: Iterable[int], change: Callable[[UrlState], Change | None], *, now: int) -> Effects:
        wanted = list(dict.fromkeys(ids))
        while True:
            found = decode_all(self._read("get_ids", ids=wanted))
            seen = {reply.id: bytes_of(reply.row) or b"" for reply in found}
            changes = [made for reply in found if (made := change(decode_state(reply))) is not None]
            effects = self._record(changes, now, {}, {change.state.id: seen[change.state.id] for change in changes})
            if effects is not None:
                return effects

    def reclassify(self, found: Reclassified, *, now: int) -> Effects:
        return effects_of(
            self._write(
                "reclassify",
                excluded=list(found.excluded),
                given_up=list(found.given_up),
                held=list(found.held),
                returned=list(found.returned),
                unindexed=list(found.unindexed),
                held_unindexed=list(found.held_unindexed),
                held_folded=list(found.held_folded),
                forgotten=list(found.forgotten),
                due=list(found.due),
                moved=[(id, int(queue.source), queue.shift) for id, queue in found.moved],
                now=now,
            )
        )

    def drop_inherited(self) -> None:
        self.inheritance.drop()

    def health(self, site: str) -> Health:
        reply = self._command("HGET", Key.HEALTH, site)
        with understood(f"how {site} has answered"):
            return NEW_SITE if reply is None else health_of(reply)

    def is_duplicate(self, id: int, *, checksum: bytes, canonical: int | None) -> bool:
        key = None if canonical is None else number(canonical)
        return bool(self._read("is_duplicate", id=id, checksum=raw(checksum), canonical=key))

    def lost_links(self, ids: Collection[int]) -> set[int]:
        return set(self._read("lost_links", ids=list(ids)))

    # looking
    def scan(self, after: int, limit: int) -> list[KnownUrl]:
        found: list[KnownUrl] = []
        while len(found) < limit:
            after, reply = self._read("scan", after=after, limit=min(limit - len(found), _PAGE))
            found += knowns_of(reply)
            if not after:
                break
        left = self.left_to_others([one.id for one in found]) if self._command("SCARD", Key.LEFT) else ()
        return [one._replace(left_to_others=True) if one.id in left else one for one in found] if left else found

    def urls_to_fold(self, ids: Collection[int]) -> list[FoldedUrl]:
        left = self.left_to_others(ids)
        return [folded_url(state, left_to_others=state.id in left) for state in self.get_by_ids(list(ids))]

    def left_to_others(self, ids: Collection[int]) -> set[int]:
        return {id for id, left in zip(ids, self._command("SMISMEMBER", Key.LEFT, *ids), strict=True) if left} if ids else set()

    def version(self) -> int:
        return int(self._command("HGET", Key.COUNTERS, "edits") or 0) - self._own_writes

    def get(self, url: str) -> UrlState | None:
        return next(iter(states_of(self._read("get", url=url, key=number(url_key(url))))), None)

    def get_by_id(self, id: int) -> UrlState | None:
        return next(iter(self.get_by_ids([id])), None)

    def get_by_ids(self, ids: Sequence[int]) -> list[UrlState]:
        return states_of(self._read("get_ids", ids=list(ids)))

    def urls(
        self,
        *,
        state: State | None = None,
        leased: bool = False,
        status: int | None = None,
        host: str | None = None,
        held: bool = False,
    ) -> Iterator[UrlState]:
        """Read in pages, so that neither memory nor the server is occupied while the caller works."""
        after = 0
        wanted = {"state": None if state is None else int(state), "leased": leased, "status": status, "host": host, "held": held}
        while True:
            after, reply = self._read("urls", after=after, limit=_PAGE, **wanted)
            yield from states_of(reply)
            if not after:
                return

    def counts(self) -> Counts:
        reply = self._read("counts")
        held = self._held(folded=False)
        with understood("its numbers"):
            return counts_of(reply, held=len(held))

    def folded_urls(self) -> Iterator[UrlState]:
        ids = sorted(self._held(folded=True))
        for first in range(0, len(ids), _PAGE):
            yield from self.get_by_ids(ids[first : first + _PAGE])

    def _held(self, *, folded: bool) -> set[int]:
        held: set[int] = set()
        cursor = None
        while cursor != "0":
            next_, ids = self._read("held_some", cursor=cursor or "0", limit=AT_ONCE, folded=folded)
            cursor = next_.decode()
            held.update(ids)
        return held

    def known_of_host(self, host: str) -> int:
        return self._number_of(Key.HOST, host)

    def host_count(self, host: str) -> int:
        return self._number_of(Key.HOST, host) - self._number_of(Key.HOST_UNCOUNTED, host)

    def _number_of(self, key: str, host: str) -> int:
        reply = self._command("HGET", key, host)
        with understood(f"the number of URLs of {host}"):
            return int(reply or 0)

    # sites that cannot be reached
    def unreachable(self) -> list[UnreachableSite]:
        return redis_sites.rows_of(self.server.hash(Key.UNREACHABLE))

    def set_unreachable(self, site: str, row: UnreachableSite | None) -> None:
        self._write("set_unreachable", site=site, row=redis_sites.encode_unreachable(row))

    def documents(self, sites: Iterable[str]) -> dict[str, int]:
        names = list(sites)
        return dict(zip(names, self._read("documents", sites=names), strict=True))

    def schemes(self, site: str) -> frozenset[str]:
        return redis_sites.schemes_of(site, lambda noted: bool(self._command("SISMEMBER", Key.SCHEMES, noted)))

    # robots.txt
    def robots(self, site: str, scheme: str) -> RobotsEntry | None:
        reply = self._command("HGET", Key.ROBOTS, f"{scheme} {site}")
        return None if reply is None else robots_entry(site, scheme, reply)

    def save_robots(self, entry: RobotsEntry) -> None:
        self._write("save_robots", **encode_robots(entry))

    def forget_robots(self, *, read_after: int) -> None:
        cursor = 0
        while True:
            cursor, some = self._command("HSCAN", Key.ROBOTS, cursor, "COUNT", _FILES)
            late = [key for key, body in pairs(some) if robots_entry("", "", body).fetched_at > read_after]
            if late:
                self._command("HDEL", Key.ROBOTS, *late)
            if not int(cursor):
                return

    # the outbox
    def orders(self, sink: str, limit: int, *, now: int, most_bytes: int = MOST_BYTES_AT_ONCE) -> list[IndexOrder]:
        return [
            IndexOrder(sequence, Op.DELETE if op else Op.PUSH, url.decode(), document_of(document), archived=archived)
            for sequence, op, url, document, archived in self._read("orders", sink=sink, limit=limit, bytes=most_bytes)
        ]

    def acknowledge(self, sink: str, orders: Sequence[IndexOrder]) -> None:
        self._write("acknowledge", sink=sink, orders=[(order.sequence, order.url) for order in orders])

    def park(self, sink: str, order: IndexOrder, reason: str) -> None:
        self._write("park", sink=sink, number=order.sequence, url=order.url, reason=reason)

    def parked(self, sink: str) -> list[tuple[Op, str, str]]:
        reply = self._read("parked", sink=sink)
        with understood("orders that were put aside"):
            return [(Op.DELETE if op else Op.PUSH, url.decode(), reason.decode()) for op, url, reason in reply]

    def backlog(self, sink: str) -> int:
        return sum(self._command("ZCARD", f"{Prefix.OUTBOX}{sink}:{kind}") for kind in ("delete", "push"))

    def check(self) -> None:
        self._command("HGET", Key.META, "format")

    def close(self) -> None:
        self.server.close()

    # private
    def _record(
        self, changes: Sequence[Change], now: int, health: Mapping[str, Health], expected: Mapping[int, bytes] | None = None
    ) -> Effects | None:
        """Record changes; return None where one of the URLs is not as expected any more."""
        reply = self._write(
            "record",
            changes=list(map(change_of, changes)),
            now=now,
            health=[(site, how.as_text()) for site, how in health.items()],
            expected={id: raw(seen) for id, seen in (expected or {}).items()},
            **encode_pages(changes),
        )
        return None if reply is None else self.effects_with_metadata(reply)

    def effects_with_metadata(self, reply: Sequence[Any]) -> Effects:
        """Return what `record` did, and what followed for inherited metadata."""
        effects = effects_of(reply)
        if reply[-1]:
            self.inheritance.settle(effects)
        return effects

    def _read(self, operation: str, **args: object) -> Any:
        return self.server.call(operation, **args)

    def _command(self, command: str, key: str, *args: Any) -> Any:
        return self.server.command(command, key, *args)

    def _write(self, operation: str, **args: object) -> Any:
        reply = self._read(operation, **args)
        self._own_writes += 1
        return reply


def _queue_of(place: bytes) -> Queue:
    """Return the queue of a place, `site number:queue index`. Raises StoreDamaged."""
    with understood("where URLs wait"):
        return Queue.of_index(int(place.partition(b":")[2]))


def urls_leased(server: RedisServer, site: str, reply: bytes | Sequence[bytes], until: int) -> list[UrlState]:
    """Return what `lease` and `take` tell: a batch, or in a list its ids alone, where a call is repeated. What is damaged is put aside."""
    if isinstance(reply, bytes):
        batch = batch_of(reply)
        states = leased(batch, site, until)
        if states is not None:
            return states
        ids = ids_of(batch.ids)
    else:
        ids = ids_of(reply[0].decode())
    states = leased_one_by_one(server.call("get_ids", ids=ids), until)
    if broken := sorted({*ids} - {state.id for state in states}):
        server.call("put_aside", ids=broken)
    return states


def encode_robots(entry: RobotsEntry) -> dict[str, object]:
    """Return a robots.txt as the functions take it; `robots_entry` reads it again."""
    body = raw(written((entry.status, entry.body, entry.fetched_at)))
    return {"site": entry.site, "key": f"{entry.scheme} {entry.site}", "entry": body}


def counts_of(reply: Sequence[Any], *, held: int) -> Counts:
    by_name, by_status, waiting, parked, hosts, left, orphaned = reply
    numbers = {name.decode(): int(value) for name, value in zip(by_name[::2], by_name[1::2], strict=True)}
    by_state = {}
    for name, count in numbers.items():
        kind, _, state = name.partition(" ")
        if kind == "state" and count:
            by_state["leased" if state == "leased" else State(int(state)).label] = count
    return Counts(
        by_state=by_state,
        by_status={int(status): int(count) for status, count in zip(by_status[::2], by_status[1::2], strict=True)},
        indexed=numbers.get("indexed", 0),
        outbox=waiting,
        parked=parked,
        hosts=hosts,
        retrying=numbers.get("retrying", 0),
        held=held,
        refused=by_reason((name[8:], count) for name, count in numbers.items() if name.startswith("refused ")),
        left_to_others=left,
        orphaned=orphaned,
        duplicates=numbers.get("with document", 0) - numbers.get("indexed", 0),
    )


def robots_entry(site: str, scheme: str, reply: bytes) -> RobotsEntry:
    with understood(f"the robots.txt of {site}"):
        return RobotsEntry(site, scheme, *_read_robots(reply))
