"""Workers that share the crawl of one collection, through its store in Redis.

A worker owns whole sites and leases some of their URLs, so that it keeps their delays without a call for each request. It reports with
`heartbeat`; after `timeout_s` without one it has expired, and the others get its sites and URLs. A worker that
continues after that owns nothing, and its outcomes of former sites are ignored.

Each call that leases or records has a number: when it is repeated because its reply was lost, it returns the same again. Each attempt of a
call also has a number: after a network failure an abandoned attempt may arrive late, and the server refuses it when a later one has arrived;
otherwise URLs would be leased, or sites released, without the worker knowing. So the calls of a worker are sequential, from one thread,
except those that only determine which worker sends an index its orders.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from secrets import token_hex
from typing import Any

import msgspec

from crawlspace.errors import StoreError
from crawlspace.model import SHIFTS, Source, UrlState
from crawlspace.state.changes import Change, Effects
from crawlspace.state.due_times import AT_ONCE
from crawlspace.state.redis.encoding import change_of, site_text, understood, written
from crawlspace.state.redis.inherited_metadata import encode_pages
from crawlspace.state.redis.keys import Key
from crawlspace.state.redis.sites import encode_robots, encode_unreachable, robots_entry, row_of
from crawlspace.state.redis.store import RedisStore, urls_leased
from crawlspace.state.site_health import Health, health_of
from crawlspace.state.site_pauses import Pauses, read_pauses
from crawlspace.state.unreachable import UnreachableSite
from crawlspace.state.views import RobotsEntry


class Info(msgspec.Struct):
    """The process and host of a worker, for messages."""

    host: str
    process: int


@dataclass(frozen=True, slots=True)
class AcquiredSite:
    """A site with its leased URLs."""

    site: str
    states: Sequence[UrlState]
    known: SiteKnowledge | None
    """None if the worker owned the site already, and has newer state than the server."""


@dataclass(frozen=True, slots=True)
class SiteKnowledge:
    """The state of a site that a worker acquires."""

    last_request_ago_s: float | None
    """Seconds since the last request to it, by any worker; None without one."""
    wait_until: int | None
    health: Health | None
    robots: Sequence[RobotsEntry]
    unreachable: UnreachableSite | None = None
    """Set if it did not respond in its last runs."""


@dataclass(frozen=True, slots=True)
class Acquired:
    sites: Sequence[AcquiredSite]
    dry: Sequence[str]
    """Sites of `refill` without URLs that may be fetched now."""
    share: int | None = None
    """The fair share of this worker, if other workers wait for sites; None if sites are free."""


@dataclass(frozen=True, slots=True)
class SiteRelease:
    """A site that is released: seconds since its last request, seconds that it must wait, and the leased URLs that were not fetched."""

    site: str
    last_request_ago_s: float | None = None
    rest_s: float = 0.0
    ids: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Cluster:
    """The state of the crawl that a worker gets with each heartbeat."""

    workers: int
    sites: int
    """Sites that have work, owned or not."""
    leased: int
    free: int
    """Sites that have work and no owner."""
    retrying: int
    """Outstanding retries of this run, without those of given-up sites and paused sources."""
    edition: int
    """A number that changes whenever URLs were forgotten, or a command has written."""
    waiting: Sequence[int]
    """Orders that wait for each sink, in the order of the sinks."""
    broken: int
    """Records that were quarantined, because they are not ours or have an unknown version."""
    deleted: int
    """Deletions of this run by the others."""
    pauses: Pauses
    """The hosts that a person has paused."""
    claimed: Sequence[str] = ()
    """Sites of this worker that others have claimed."""

    @property
    def is_nothing_left(self) -> bool:
        """Whether nothing is pending, leased or to be retried in this run; given-up sites and paused sources do not count."""
        return not (self.sites or self.leased or self.retrying)

    @property
    def fair_share(self) -> int:
        """Sites for each worker, rounded up."""
        return -(-self.sites // self.workers)


@dataclass(frozen=True, slots=True)
class WorkerSeen:
    """A worker as others see it."""

    name: str
    host: str
    process: int
    since: int
    unseen_s: float
    sites: int
    urls: int
    """URLs that it has leased."""
    report: bytes
    """The report of its last heartbeat."""


class WorkerExpired(StoreError):
    """This worker did not report for so long that others got its sites."""


class RulesDiffer(StoreError):
    """Other workers crawl this collection with other rules."""


class Worker:
    """One worker of a collection; `name` is its own."""

    def __init__(self, store: RedisStore, *, timeout_s: float, sources: Iterable[Source] = tuple(Source)) -> None:
        self._store = store
        self._server = store.server
        self.broken_key = f"{store.server.prefix}broken"
        """The key of quarantined records."""
        self.timeout_s = timeout_s
        self._timeout_ms = int(timeout_s * 1000)
        self._sources = sorted(sources)
        self._queue_indexes = self._indexes_of(tuple(Source))
        self.name = f"{socket.gethostname()}:{os.getpid()}:{token_hex(4)}"
        self._number = 0
        self._tries = count(1)
        self._rules = ""
        self._index: tuple[str, str] | None = None

    def _indexes_of(self, wanted: Collection[Source]) -> list[list[int]]:
        """Return the queue indexes of each of these sources that is not paused."""
        return [list(range(source * SHIFTS, (source + 1) * SHIFTS)) for source in self._sources if source in wanted]

    def next_number(self) -> int:
        """Return a number for a call that may be repeated."""
        self._number += 1
        return self._number

    def begin(self, rules: str, *, index: tuple[str, str] | None = None) -> str | None:
        """Join the workers of the collection, or begin a new run where there are none. Return the worker to wait for; None: joined.

        That is one that still applies the rules to the store, or one with other rules that may have been killed. `index` is a sink and the location of
        its index on this machine, which becomes the sink's if it has none and a run begins. Raises RulesDiffer.
        """
        self._rules, self._index = rules, index
        info = written(Info(socket.gethostname(), os.getpid())).decode("latin-1")
        answer, *more = self._run("begin", rules=rules, info=info, index=index, timeout_ms=self._timeout_ms)
        if answer == b"refused":
            other, theirs = (value.decode(errors="replace") for value in more)
            raise RulesDiffer(
                f"worker {other} crawls by other rules or settings ({theirs}) than those here ({rules}): give all machines the same collection folder"
                " and the same -s, or stop the others first"
            )
        if answer == b"opening":
            return more[0].decode(errors="replace")
        if answer == b"first":
            try:
                self._begin_run_of_all()
            except WorkerExpired:
                return self.begin(rules, index=index)
        return None

    def _begin_run_of_all(self) -> None:
        """Prepare the run of which this worker is the first. Raises WorkerExpired."""
        while self._prepare("release_deferred"):
            pass
        self._store.inheritance.settle(Effects())
        self._prepare_in_parts("enter_earlier")
        for kind in (Key.PENDING, Key.DUE):
            self._prepare_in_parts("offer_some", kind=kind)

    def _prepare_in_parts(self, operation: str, **args: object) -> None:
        cursor = None
        while cursor != "0":
            cursor = self._prepare(operation, cursor=cursor or "0", **args).decode()

    def _prepare(self, operation: str, **args: object) -> Any:
        answer = self._run(operation, limit=AT_ONCE, **args)
        if answer is None:
            raise WorkerExpired("this worker did not report for too long before it was ready; others have begun the run")
        return answer

    def begin_again(self) -> None:
        """Join once more after this worker expired. Raises RulesDiffer."""
        if self.begin(self._rules, index=self._index) is None:
            self.ready()

    def expire(self, names: Iterable[str]) -> None:
        """Release the sites of workers whose processes have ended on this machine."""
        for name in names:
            self._run("expire", worker_name=name)

    def ready(self) -> None:
        """Let other workers join: the rules have been applied to the store."""
        self._run("ready")

    def heartbeat(self, report: str = "", *, deleted: int = 0) -> Cluster:
        """Report that this worker is running, and how many documents it has deleted. Raises WorkerExpired."""
        answer = self._run(
            "heartbeat", report=report, deleted=deleted, queue_indexes=self._queue_indexes, timeout_ms=self._timeout_ms
        )
        if answer is None:
            raise WorkerExpired("this worker did not report for too long; others have its sites now")
        answer[-2:] = read_pauses(answer[-2]), list(map(site_text, answer[-1]))
        return Cluster(*answer)

    def take(
        self,
        *,
        refill: Mapping[str, int],
        sources: Mapping[str, Collection[Source]] | None = None,
        new: int,
        limit: int,
        now: int,
        until: int,
        number: int | None = None,
    ) -> Acquired:
        """Lease more URLs of owned sites, so many of each source, and acquire up to `new` further sites with up to `limit` URLs each.

        `sources` are those of which a site of `refill` gets more, where not all. `number` repeats an earlier call.
        Raises WorkerExpired.
        """
        answer = self._run(
            "take",
            number=number or self.next_number(),
            refill=[(site, many, self._indexes_of((sources or {}).get(site, tuple(Source)))) for site, many in refill.items()],
            new=new,
            limit=limit,
            now=now,
            until=until,
            queue_indexes=self._queue_indexes,
        )
        if answer is None:
            raise WorkerExpired("this worker did not report for too long; others have its sites now")
        sites, dry, share = answer
        acquired = [self._acquired(*reply, until=until) for reply in sites]
        return Acquired(acquired, list(map(site_text, dry)), None if share < 0 else share)

    def _acquired(self, name: bytes, urls: bytes | list[bytes], *known: Any, until: int) -> AcquiredSite:
        site = site_text(name)
        states = urls_leased(self._server, site, urls, until)
        with understood(f"the site {site}"):
            return AcquiredSite(site, states, _known(site, *known) if known else None)

    def claim(self, sites: Sequence[str], *, now: int) -> list[AcquiredSite]:
        """Acquire these sites, without URLs; those of others are claimed, and released by their owners.

        Raises WorkerExpired.
        """
        answer = self._run("claim", sites=list(sites), now=now)
        if answer is None:
            raise WorkerExpired("this worker did not report for too long; others have its sites now")
        return [self._acquired(*reply, until=0) for reply in answer]

    def record(
        self,
        changes: Sequence[Change],
        *,
        now: int,
        health: Mapping[str, Health] | None = None,
        number: int | None = None,
    ) -> Effects:
        """Record like the store, without URLs that this worker has lost."""
        reply = self._run(
            "record",
            number=number or self.next_number(),
            changes=list(map(change_of, changes)),
            now=now,
            health=[(site, how.as_text()) for site, how in (health or {}).items()],
            **encode_pages(changes),
        )
        return self._store.effects_with_metadata(reply)

    def release_sites(self, sites: Iterable[SiteRelease]) -> None:
        """Give up ownership of sites."""
        self._run(
            "release_sites",
            sites=[
                (
                    one.site,
                    -1 if one.last_request_ago_s is None else int(one.last_request_ago_s * 1000),
                    int(one.rest_s * 1000),
                    list(one.ids),
                )
                for one in sites
            ],
        )

    def drains(self, sink: str, location: str) -> tuple[bool, str]:
        """Return whether this worker is the one that sends the sink its orders, and the location of its index.

        The location is fixed with the first order; a worker with another one never sends.
        """
        drains, there = self._server.call("drains", worker=self.name, sink=sink, location=location)
        return bool(drains), there.decode(errors="replace")

    def sender(self, sink: str) -> tuple[str, float] | None:
        """Return the worker that sends the sink its orders, and the seconds since its last heartbeat; None where there is none."""
        reply = self._server.call("sender", sink=sink)
        return (reply[0].decode(errors="replace"), reply[1] / 1000) if reply else None

    def begin_run(self, at: int | None) -> None:
        """Set the start of the run of all workers to that time, unless it is earlier; None: a continuous run."""
        self._run("begin_run", began=at, joins=True)

    def release(self, ids: Sequence[int]) -> None:
        """Release leased URLs that were not fetched."""
        self._run("release", ids=list(ids))

    def site_pauses(self) -> Pauses:
        """Return the hosts that a person has paused, like the store."""
        return self._store.site_pauses()

    def give_up(self, site: str) -> None:
        """Give up the site for all workers in this run."""
        self._run("give_up", site=site)

    def wait_site(self, site: str, until: int | None, *, wait_s: int = 0) -> None:
        """Wait like the store; if this worker has lost the site, only if that is longer."""
        self._run("wait_site", site=site, until=until, wait_s=wait_s)

    def set_unreachable(self, site: str, row: UnreachableSite | None) -> None:
        """Write the row like the store, unless another worker owns the site."""
        self._run("set_unreachable", site=site, row=encode_unreachable(row))

    def resume(self, site: str) -> None:
        """Let workers fetch the site again in this run."""
        self._run("resume", site=site)

    def save_robots(self, entry: RobotsEntry) -> None:
        """Save robots.txt like the store, if this worker still owns the site."""
        self._run("save_robots", **encode_robots(entry))

    def leave(self) -> None:
        """Release all owned sites."""
        self._run("leave", timeout_ms=self._timeout_ms)

    def _run(self, operation: str, **args: object) -> Any:
        """Call an operation; the server refuses it after a later call of this worker."""
        return self._server.call(operation, worker=self.name, at=next(self._tries), **args)


def workers(store: RedisStore) -> list[WorkerSeen]:
    """Return the workers of the collection that have not expired."""
    found = []
    for name, info, since, reply, unseen_ms, sites, urls in store.server.call("workers"):
        if not info:
            continue  # it only sends orders to the index
        called = name.decode(errors="replace")
        try:
            who = msgspec.msgpack.decode(info.decode().encode("latin-1"), type=Info)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):  # of another version
            who = Info(called, 0)
        began = int(since) // 1000 if since.isdigit() else 0
        found.append(WorkerSeen(called, who.host, who.process, began, unseen_ms / 1000, sites, urls, reply))
    return found


def _known(
    site: str, last_request_ago_ms: int, wait: int, health: bytes, http: bytes, https: bytes, unreachable: bytes
) -> SiteKnowledge:
    return SiteKnowledge(
        None if last_request_ago_ms < 0 else last_request_ago_ms / 1000,
        wait or None,
        health_of(health) if health else None,
        [robots_entry(site, scheme, entry) for scheme, entry in (("http", http), ("https", https)) if entry],
        row_of(site, unreachable) if unreachable else None,
    )
