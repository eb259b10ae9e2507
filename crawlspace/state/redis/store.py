"""A store in Redis, which several processes and machines share: it fulfils the same contract as SQLite's, by functions of the server.

Each method that writes is one call of a function, which is atomic. `server` calls them, `encoding` has the form of the values, `workers`
the operations for several workers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import redis

from crawlspace.model import Held, NewUrl, Queue, State, UrlState
from crawlspace.state.changes import Change, Effects, Reclassified
from crawlspace.state.due_times import AT_ONCE, DueChanges, due_changes
from crawlspace.state.redis.encoding import (
    batch_of,
    bytes_of,
    change_of,
    decode_all,
    decode_state,
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
)
from crawlspace.state.redis.inherited_metadata import RedisInheritance, encode_pages
from crawlspace.state.redis.keys import Key, Prefix
from crawlspace.state.redis.links import RedisLinks
from crawlspace.state.redis.outbox import RedisOutbox
from crawlspace.state.redis.server import RedisServer
from crawlspace.state.redis.sites import RedisSites, wait_of
from crawlspace.state.refused_links import by_reason
from crawlspace.state.site_health import Health
from crawlspace.state.views import Counts, FoldedUrl, KnownUrl, Site, folded_url
from crawlspace.urls import url_key

_PAGE = 500
_IDS = 10_000
_COUNTED = 2_000


class RedisStore(RedisLinks, RedisOutbox, RedisSites):
    """The store of one collection on a Redis server. `client` decodes nothing and is not shared."""

    changed_at_once = 10_000  # a function occupies the server, which serves other workers between calls

    def __init__(self, client: redis.Redis, collection: str, *, sinks: Sequence[str] = ("index",), crawls: bool = False) -> None:
        self.server = RedisServer(client, collection, sinks=sinks, crawls=crawls)
        self.inheritance = RedisInheritance(self.server)

    # discovery
    def discover(self, urls: Sequence[NewUrl], *, now: int) -> Effects:
        return effects_of(self.server.write("discover", urls=new_urls(urls), now=now))

    # the frontier's queue
    def sites(self) -> Iterator[Site]:
        pending: defaultdict[str, list[Queue]] = defaultdict(list)
        due: defaultdict[str, list[tuple[Queue, int]]] = defaultdict(list)
        for kind in (Key.PENDING, Key.DUE):
            all_names = list(self.server.command("SMEMBERS", kind))
            for names in (all_names[first : first + 1000] for first in range(0, len(all_names), 1000)):
                reply = self.server.call("first_due", queues=[name.decode(errors="replace") for name in names])
                for name, site, at in zip(names, reply[::2], reply[1::2], strict=True):
                    queue = _queue_of(name)
                    if kind is Key.PENDING:
                        pending[site_text(site)].append(queue)
                    elif at >= 0:
                        due[site_text(site)].append((queue, at))
        waits = {}
        for site_number, wait in self.server.hash(Key.WAIT).items():
            waits[site_text(self.server.command("HGET", Key.SITE_NAME, site_number) or b"")] = wait_of(wait)
        for name in sorted(pending.keys() | due.keys() | waits.keys()):
            yield Site(name, tuple(sorted(pending.get(name, ()))), tuple(sorted(due.get(name, ()))), *waits.get(name, ()))

    def lease(self, site: str, limit: int, *, now: int, until: int, queue: Queue | None = None) -> list[UrlState]:
        if limit <= 0:
            return []
        chosen = {} if queue is None else {"queue_index": queue.queue_index}
        return urls_leased(
            self.server, site, self.server.write("lease", site=site, limit=limit, now=now, until=until, **chosen), until
        )

    def release(self, ids: Iterable[int]) -> None:
        self.server.write("release", ids=list(ids))

    def begin_run(self, at: int | None, *, resumes: bool = False) -> None:
        has_more = not resumes
        while has_more:
            has_more = self.server.write("release_deferred", limit=AT_ONCE) == 1
        self.server.write("begin_run", began=at, joins=resumes)
        self.inheritance.settle(Effects())

    def reclaim(self, *, now: int, keep: Collection[int] = ()) -> dict[str, int]:
        ended = self.server.write("reclaim", now=now, keep=list(keep))
        return {site_text(site): count for site, count in zip(ended[::2], ended[1::2], strict=True)}

    def due(self, site: str) -> list[tuple[Queue, int]]:
        reply = self.server.call("due", site=site)
        return [(Queue.of_index(queue_index), at) for queue_index, at in zip(reply[::2], reply[1::2], strict=True)]

    # due times
    def make_due_by(
        self, latest: int, *, after: int = 0, limit: int = AT_ONCE, fetched_by: int | None = None, until: int | None = None
    ) -> DueChanges:
        return self._changed("make_due_by", latest=latest, after=after, limit=limit, fetched_by=fetched_by, before=until)

    def make_retries_due_by(self, latest: int) -> int:
        total = 0
        while count := self.server.write("make_retries_due_by", latest=latest):
            total += count
        return total

    def schedule(self, at: int, *, fetched_by: int, after: int = 0, limit: int = AT_ONCE) -> DueChanges:
        return self._changed("schedule", latest=at, after=after, limit=limit, fetched_by=fetched_by)

    def set_due_by_age(self, *, counts: bool, latest: int, after: int = 0, limit: int = AT_ONCE) -> DueChanges:
        return self._changed("set_due_by_age", counts=counts, latest=latest, after=after, limit=limit)

    def _changed(self, operation: str, **args: object) -> DueChanges:
        count, last, queues = self.server.write(operation, **args)
        with understood("the names of its sites"):
            return due_changes(count, last, ((site.decode(), Queue.of_index(int(index)), int(at)) for site, index, at in queues))

    # results
    def record(self, changes: Sequence[Change], *, now: int, health: Mapping[str, Health] | None = None) -> Effects:
        effects = self._record(changes, now, health or {})
        assert effects is not None  # nothing was expected
        return effects

    def revise(self, ids: Iterable[int], change: Callable[[UrlState], Change | None], *, now: int) -> Effects:
        wanted = list(dict.fromkeys(ids))
        while True:
            found = decode_all(self.server.call("get_ids", ids=wanted))
            seen = {reply.id: bytes_of(reply.row) or b"" for reply in found}
            changes = [made for reply in found if (made := change(decode_state(reply))) is not None]
            effects = self._record(changes, now, {}, {change.state.id: seen[change.state.id] for change in changes})
            if effects is not None:
                return effects

    def reclassify(self, found: Reclassified, *, now: int) -> Effects:
        return effects_of(
            self.server.write(
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

    def is_duplicate(self, id: int, *, checksum: bytes, canonical: int | None, simhash: bytes | None = None) -> bool:
        key = None if canonical is None else number(canonical)
        text = None if simhash is None else raw(simhash)
        return bool(self.server.call("is_duplicate", id=id, checksum=raw(checksum), canonical=key, simhash=text))

    def leading_text(self, simhash: bytes) -> bytes | None:
        found: bytes | None = self.server.call("leading_text", simhash=raw(simhash))
        return found

    def lost_links(self, ids: Collection[int]) -> set[int]:
        return set(self.server.call("lost_links", ids=list(ids)))

    # reading
    def scan(self, after: int, limit: int) -> list[KnownUrl]:
        found: list[KnownUrl] = []
        while len(found) < limit:
            after, reply = self.server.call("scan", after=after, limit=min(limit - len(found), _PAGE))
            found += knowns_of(reply)
            if not after:
                break
        left = self.left_to_others([one.id for one in found]) if self.server.command("SCARD", Key.LEFT) else ()
        return [one._replace(left_to_others=True) if one.id in left else one for one in found] if left else found

    def urls_to_fold(self, ids: Collection[int]) -> list[FoldedUrl]:
        left = self.left_to_others(ids)
        return [folded_url(state, left_to_others=state.id in left) for state in self.get_by_ids(list(ids))]

    def left_to_others(self, ids: Collection[int]) -> set[int]:
        return (
            {id for id, left in zip(ids, self.server.command("SMISMEMBER", Key.LEFT, *ids), strict=True) if left}
            if ids
            else set()
        )

    def version(self) -> int:
        return int(self.server.command("HGET", Key.COUNTERS, "edits") or 0) - self.server.writes

    def get(self, url: str) -> UrlState | None:
        return next(iter(states_of(self.server.call("get", url=url, key=number(url_key(url))))), None)

    def get_by_id(self, id: int) -> UrlState | None:
        return next(iter(self.get_by_ids([id])), None)

    def get_by_ids(self, ids: Sequence[int]) -> list[UrlState]:
        return states_of(self.server.call("get_ids", ids=list(ids)))

    def urls(
        self,
        *,
        state: State | None = None,
        leased: bool = False,
        status: int | None = None,
        host: str | None = None,
        held: bool = False,
        reason: Held | None = None,
        after: int = 0,
    ) -> Iterator[UrlState]:
        """Read in pages, so that neither memory nor the server is occupied while the caller works."""
        if held or reason is not None:
            for found in self._held(after=after, reason=reason, host=host):
                if (
                    (state is None or found.state is state)
                    and (not leased or found.lease_until is not None)
                    and status in (None, found.status)
                ):
                    yield found
            return
        wanted = {"state": None if state is None else int(state), "leased": leased, "status": status, "host": host}
        while True:
            after, reply = self.server.call("urls", after=after, limit=_PAGE, **wanted)
            yield from states_of(reply)
            if not after:
                return

    def counts(self) -> Counts:
        reply = self.server.call("counts")
        with understood("its numbers"):
            return counts_of(reply)

    def folded_urls(self) -> Iterator[UrlState]:
        return self._held(folded=True)

    def held_numbers(self) -> dict[tuple[Held, str], int]:
        found = Counter[tuple[Held, str]]()
        seen: set[int] = set()
        cursor = "0"
        while True:
            next_, groups = self.server.call("held_some", cursor=cursor, limit=_COUNTED)
            for reason, site, ids in groups:
                new = {*ids} - seen  # a scan may return one twice
                found[Held(reason), site.decode()] += len(new)
                seen |= new
            cursor = next_.decode()
            if cursor == "0":
                return dict(found)

    def _held(self, *, after: int = 0, **wanted: object) -> Iterator[UrlState]:
        """Yield some of the URLs that are held, from the one after that id on: the ids of all are read first, and the URLs in pages."""
        held: set[int] = set()
        cursor = 0
        while True:
            cursor, some = self.server.command("SSCAN", Key.HELD, cursor, "COUNT", _IDS)
            with understood("its held deletions"):
                held.update(map(int, some))
            if not int(cursor):
                break
        ids = sorted(held)
        for first in range(bisect_right(ids, after), len(ids), _PAGE):
            yield from states_of(self.server.call("held_urls", ids=ids[first : first + _PAGE], **wanted))

    # values by name
    def get_meta(self, name: str) -> str | None:
        return self.get_metas([name])[0]

    def get_metas(self, names: Sequence[str]) -> list[str | None]:
        values = self.server.command("HMGET", Key.META, *names) if names else []
        with understood(f"its {', '.join(names[:3])}"):
            return [None if value is None else value.decode() for value in values]

    def set_meta(self, name: str, value: str) -> None:
        self.server.command("HSET", Key.META, name, value)

    def replace_meta(self, name: str, before: str | None, after: str) -> bool:
        return bool(self.server.write("replace_meta", name=name, before=before, after=after))

    def claim(self, name: str, *, seconds: int) -> bool:
        return self.server.command("SET", f"{Prefix.CLAIM}{name}", 1, "NX", "EX", seconds) is not None

    def end_claim(self, name: str) -> None:
        self.server.command("DEL", f"{Prefix.CLAIM}{name}")

    def check(self) -> None:
        self.server.command("HGET", Key.META, "format")

    def close(self) -> None:
        self.server.close()

    # private
    def _record(
        self, changes: Sequence[Change], now: int, health: Mapping[str, Health], expected: Mapping[int, bytes] | None = None
    ) -> Effects | None:
        """Record changes; return None if one of the URLs has changed."""
        reply = self.server.write(
            "record",
            changes=list(map(change_of, changes)),
            now=now,
            health=[(site, how.as_text()) for site, how in health.items()],
            expected={id: raw(seen) for id, seen in (expected or {}).items()},
            **encode_pages(changes),
        )
        return None if reply is None else self.effects_with_metadata(reply)

    def effects_with_metadata(self, reply: Sequence[Any]) -> Effects:
        """Return the effects of `record`, including those on inherited metadata."""
        effects = effects_of(reply)
        if reply[-1]:
            self.inheritance.settle(effects)
        return effects


def _queue_of(name: bytes) -> Queue:
    """Return the queue in a queue's name, `site number:queue index`. Raises StoreDamaged."""
    with understood("where URLs wait"):
        return Queue.of_index(int(name.partition(b":")[2]))


def urls_leased(server: RedisServer, site: str, reply: bytes | Sequence[bytes], until: int) -> list[UrlState]:
    """Return the URLs in a reply of `lease` or `take`: a batch, or a list of ids where a call is repeated. Damaged records are quarantined."""
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
        server.call("quarantine", ids=broken)
    return states


def counts_of(reply: Sequence[Any]) -> Counts:
    """Return the counts of a reply of the server."""
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
        refused=by_reason((name[8:], count) for name, count in numbers.items() if name.startswith("refused ")),
        left_to_others=left,
        orphaned=orphaned,
        duplicates=numbers.get("with document", 0) - numbers.get("indexed", 0),
    )
