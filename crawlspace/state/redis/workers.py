"""Workers that crawl one collection side by side, over its store in Redis.

A worker holds sites as a whole, and some of their URLs: so it keeps their delays by itself, without asking anybody for each request.
It lives as long as it says so (`beat`); one that has been silent for `timeout_s` is dead to the others, who get its sites and URLs.
A worker that comes back after that finds that it holds nothing, and what it records of what it held is passed over.

Each call that hands out or records has a number, and one that is repeated because its answer was lost returns the same again. Each try of
a call has a number as well: a network that was cut may hand over a try when it is back that was given up long before, and the server
refuses one that comes after a later one. Else URLs would be leased, or sites let go, without the worker knowing. So the calls of a worker
come one after the other, from one thread; but for those that only ask who sends an index its orders.
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
from crawlspace.state.hastening import AT_ONCE
from crawlspace.state.redis.encoding import change_of, site_text, understood, written
from crawlspace.state.redis.sites import encode_unreachable, row_of
from crawlspace.state.redis.store import RedisStore, counted, effects_of, encode_robots, robots_entry, urls_leased
from crawlspace.state.site_health import Health, health_of
from crawlspace.state.store import Change, Effects, RobotsEntry
from crawlspace.state.unreachable import UnreachableSite


class Info(msgspec.Struct):
    """Who a worker is, for people."""

    host: str
    process: int


@dataclass(frozen=True, slots=True)
class AcquiredSite:
    """URLs that were leased at a site."""

    site: str
    states: Sequence[UrlState]
    known: SiteKnowledge | None
    """None where the worker held the site already: then nobody knows more of it than itself."""


@dataclass(frozen=True, slots=True)
class SiteKnowledge:
    """What the others know of a site that a worker takes."""

    asked_ago_s: float | None
    """How long ago it was last asked, by whomever; None where it never was."""
    wait_until: int | None
    health: Health | None
    robots: Sequence[RobotsEntry]
    unreachable: UnreachableSite | None = None
    """Its row, where it gave no answer in its last runs."""


@dataclass(frozen=True, slots=True)
class Acquired:
    sites: Sequence[AcquiredSite]
    dry: Sequence[str]
    """Sites of which more was wanted, and that have nothing that may be fetched now."""
    share: int | None = None
    """So many sites are this worker's, where others can get none but from those with more than theirs; None where some are free."""


@dataclass(frozen=True, slots=True)
class SiteRelease:
    """A site that is let go: how long ago it was asked, how long it must rest, and the URLs that were not asked for."""

    site: str
    asked_ago_s: float | None = None
    rest_s: float = 0.0
    ids: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a worker learns when it says that it is alive."""

    workers: int
    sites: int
    """Sites that have work, whoever holds them."""
    leased: int
    free: int
    """Sites that have work and that nobody holds."""
    retrying: int
    """Retries of this run that are outstanding, but for those at silent sites and in paused sources."""
    edition: int
    """Another number whenever URLs were forgotten, or a command has changed something."""
    backlog: int
    """Orders that wait for the first sink."""
    broken: int
    """Records that were put aside, because they are not ours or of an unknown version."""
    deleted: int
    """Deletions of this run by the others."""
    claimed: Sequence[str] = ()
    """Sites of this worker that others wait for."""

    @property
    def is_nothing_left(self) -> bool:
        """Nothing is pending, leased or to be tried again in this run, by anybody; silent sites and paused sources do not count."""
        return not (self.sites or self.leased or self.retrying)

    @property
    def fair_share(self) -> int:
        """Of the sites, rounded up."""
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
    """Leased by it."""
    told: bytes
    """What it last said of itself."""


class WorkerExpired(StoreError):
    """This worker was silent for so long that its sites were given to others."""


class RulesDiffer(StoreError):
    """Other workers crawl this collection by other rules."""


class Worker:
    """One worker of a collection; `name` is its own."""

    def __init__(self, store: RedisStore, *, timeout_s: float, sources: Iterable[Source] = tuple(Source)) -> None:
        self._scripts = store.scripts
        self.broken_key = f"{store.scripts.prefix}broken"
        """Where records are put that cannot be read."""
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
        """Return the lanes of each of these sources that is not paused."""
        return [list(range(source * SHIFTS, (source + 1) * SHIFTS)) for source in self._sources if source in wanted]

    def next_number(self) -> int:
        """A number for a call that may have to be repeated."""
        self._number += 1
        return self._number

    def begin(self, rules: str, *, index: tuple[str, str] | None = None) -> str | None:
        """Join the workers of the collection, or begin a new run where there are none. Returns whom to wait for, None: done.

        That is one who is still bringing the store in line, or one with other rules that may be dead.

        `index` is a sink and the place of its index here, which is the sink's from then on where it has none yet and a run begins.

        Raises RulesDiffer.
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
        """Prepare the run that this worker is the first of. Raises TakenForDead."""
        while self._prepare("restore_set_aside"):
            pass
        for kind in ("pending", "due"):
            cursor = None
            while cursor != "0":
                cursor = self._prepare("offer_some", kind=kind, cursor=cursor or "0").decode()

    def _prepare(self, operation: str, **args: object) -> Any:
        answer = self._run(operation, limit=AT_ONCE, **args)
        if answer is None:
            raise WorkerExpired("this worker did not report for too long before it was ready; others have begun the run")
        return answer

    def begin_again(self) -> None:
        """Join once more, after having been taken for dead. Raises RulesDiffer."""
        if self.begin(self._rules, index=self._index) is None:
            self.ready()

    def expire(self, dead: Iterable[str]) -> None:
        """Give what workers held to the others: their machine knows that they are no more."""
        for name in dead:
            self._run("expire", dead=name)

    def ready(self) -> None:
        """The store is in line with the rules: others may join."""
        self._run("ready")

    def heartbeat(self, told: str = "", *, deleted: int = 0) -> Cluster:
        """Say that this worker is alive, and how many documents it has deleted. Raises TakenForDead."""
        answer = self._run(
            "heartbeat", told=told, deleted=deleted, queue_indexes=self._queue_indexes, timeout_ms=self._timeout_ms
        )
        if answer is None:
            raise WorkerExpired("this worker did not report for too long; others have its sites now")
        answer[-1] = list(map(site_text, answer[-1]))
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
        """Lease more URLs of sites that are held, so many of each source, and take up to `new` further sites with up to `limit` each.

        `sources` are those of which a site of `refill` is to get more, where not of all. `number` repeats an earlier call.
        Raises TakenForDead.
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
        taken = [self._taken(*told, until=until) for told in sites]
        return Acquired(taken, list(map(site_text, dry)), None if share < 0 else share)

    def _taken(self, name: bytes, urls: bytes | list[bytes], *known: Any, until: int) -> AcquiredSite:
        site = site_text(name)
        states = urls_leased(self._scripts, site, urls, until)
        with understood(f"what it tells of {site}"):
            return AcquiredSite(site, states, _known(site, *known) if known else None)

    def claim(self, sites: Sequence[str], *, now: int) -> list[AcquiredSite]:
        """Take these sites, with none of their URLs, but for those that others hold: they will be told to let them go.

        Raises TakenForDead.
        """
        answer = self._run("claim", sites=list(sites), now=now)
        if answer is None:
            raise WorkerExpired("this worker did not report for too long; others have its sites now")
        return [self._taken(*told, until=0) for told in answer]

    def record(
        self,
        changes: Sequence[Change],
        *,
        now: int,
        health: Mapping[str, Health] | None = None,
        refused: Mapping[str, int] | None = None,
        number: int | None = None,
    ) -> Effects:
        """As the store does, but that what this worker does not hold any more is passed over; links `refused` by reason are counted."""
        told = self._run(
            "record",
            number=number or self.next_number(),
            changes=list(map(change_of, changes)),
            now=now,
            health=[(site, how.as_text()) for site, how in (health or {}).items()],
            refused=counted(refused or {}),
        )
        return effects_of(told)

    def release_sites(self, sites: Iterable[SiteRelease]) -> None:
        self._run(
            "release_sites",
            sites=[
                (one.site, -1 if one.asked_ago_s is None else int(one.asked_ago_s * 1000), int(one.rest_s * 1000), list(one.ids))
                for one in sites
            ],
        )

    def drains(self, sink: str, place: str) -> tuple[bool, str]:
        """Return whether this worker is the one that sends the sink its orders, and the place of its index.

        That is where it was when the first order was sent; a worker with another place never does.
        """
        drains, there = self._scripts.run("drains", worker=self.name, sink=sink, place=place)
        return bool(drains), there.decode(errors="replace")

    def sender(self, sink: str) -> tuple[str, float] | None:
        """Return the worker that sends the sink its orders, and for how many seconds it has been silent; None where it is no more."""
        told = self._scripts.run("sender", sink=sink)
        return (told[0].decode(errors="replace"), told[1] / 1000) if told else None

    def begin_run(self, at: int | None) -> None:
        """Have the run of all have begun at that time, or earlier; None: one that never ends."""
        self._run("begin_run", began=at, joins=True)

    def release(self, ids: Sequence[int]) -> None:
        """Give back URLs that were not asked for."""
        self._run("release", ids=list(ids))

    def give_up(self, site: str) -> None:
        """Nobody is to ask the site for anything more in this run."""
        self._run("give_up", site=site)

    def wait_site(self, site: str, until: int | None, *, wait_s: int = 0) -> None:
        """As the store does; where the site is not this worker's any more, only if that is longer."""
        self._run("wait_site", site=site, until=until, wait_s=wait_s)

    def set_unreachable(self, site: str, row: UnreachableSite | None) -> None:
        """As the store does, unless the site is another worker's."""
        self._run("set_unreachable", site=site, row=encode_unreachable(row))

    def resume(self, site: str) -> None:
        """The site may be asked again in this run."""
        self._run("resume", site=site)

    def save_robots(self, entry: RobotsEntry) -> None:
        """As the store does, if the site is still this worker's."""
        self._run("save_robots", **encode_robots(entry))

    def leave(self) -> None:
        """Give back all that is held."""
        self._run("leave", timeout_ms=self._timeout_ms)

    def _run(self, operation: str, **args: object) -> Any:
        """Make a call, which the server refuses after a later one of this worker."""
        return self._scripts.run(operation, worker=self.name, at=next(self._tries), **args)


def workers(store: RedisStore) -> list[WorkerSeen]:
    """Return who crawls the collection at present, or was not found dead yet."""
    found = []
    for name, info, since, told, silent_ms, sites, urls in store.scripts.run("workers"):
        if not info:
            continue  # it has come to send the index what waits, and crawls nothing
        called = name.decode(errors="replace")
        try:
            who = msgspec.msgpack.decode(info.decode().encode("latin-1"), type=Info)
        except (msgspec.MsgspecError, UnicodeError):  # not as this version writes it; it lives all the same
            who = Info(called, 0)
        began = int(since) // 1000 if since.isdigit() else 0
        found.append(WorkerSeen(called, who.host, who.process, began, silent_ms / 1000, sites, urls, told))
    return found


def _known(
    site: str, asked_ago_ms: int, wait: int, health: bytes, http: bytes, https: bytes, unreachable: bytes
) -> SiteKnowledge:
    return SiteKnowledge(
        None if asked_ago_ms < 0 else asked_ago_ms / 1000,
        wait or None,
        health_of(health) if health else None,
        [robots_entry(site, scheme, entry) for scheme, entry in (("http", http), ("https", https)) if entry],
        row_of(site, unreachable) if unreachable else None,
    )
