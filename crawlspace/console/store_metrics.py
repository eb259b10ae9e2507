"""The metrics that are read from the stores of all collections.

A collection is read again only after a multiple of the time that it took last, so that a scrape costs a crawl little, however often it comes.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from crawlspace.access.login_states import refused_logins, waiting_logins
from crawlspace.admin.report import STATE_LABELS
from crawlspace.admin.runs import kept_runs, silent_since
from crawlspace.admin.site_report import held_by_reason
from crawlspace.console.console import Console
from crawlspace.console.routes import NotNow
from crawlspace.crawl.sinks.deliveries import known_sinks
from crawlspace.errors import ConfigError, CrawlspaceError
from crawlspace.index.notes import noted_standstill, standstill_meta
from crawlspace.model import Held, Source
from crawlspace.runtime.monitoring import metrics
from crawlspace.runtime.monitoring.metrics import OF_HOSTS, OF_STORES, Exposition, Metric, exposition
from crawlspace.runtime.session.paths import CollectionPaths, OpenStore
from crawlspace.state.store import Store
from crawlspace.urls import DEFAULT_PORTS

logger = logging.getLogger(__name__)

SHARE = 20
"""A collection is read again only after so many times the seconds that it took."""
LEAST_S = 5.0
MOST_HOSTS = 20
"""Hosts of one request."""
READY_S = 5.0
"""Seconds for which the answer to /ready is kept."""


class Sample(NamedTuple):
    """A value of a metric; `labels` are those after `collection`."""

    metric: Metric
    labels: tuple[str, ...]
    value: float


class _Read(NamedTuple):
    samples: Sequence[Sample]
    until: float


_Key = TypeVar("_Key")


class StoreMetrics:
    """The metrics of all collections of a console, and whether it is ready."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._all, self._some, self._looking = threading.Lock(), threading.Lock(), threading.Lock()
        """Of the metrics of all collections, of those of hosts, and of what is ready: one at a time."""
        self._read: dict[str, _Read] = {}
        self._of_some: dict[tuple[str, tuple[str, ...]], _Read] = {}
        self._others_from = float("-inf")
        """When those of other hosts may be read: whoever asks for many hosts, one after the other, costs a crawl little, too."""
        self._ready = ("", float("-inf"))

    def exposition(self, hosts: Sequence[str], accept: str) -> Exposition:
        """Return the metrics of all collections, or some of them for hosts.

        Raises ConfigError if the collections cannot be listed, and NotNow shortly after those of other hosts were read.
        """
        names = self._names()
        found: dict[str, Sequence[Sample]]
        if hosts:
            key = tuple(sorted(set(hosts)))
            with self._some:
                now = self._console.clock.monotonic()
                self._of_some = {of: read for of, read in self._of_some.items() if now < read.until}
                is_kept = all((name, key) in self._of_some for name in names)
                if not is_kept and now < self._others_from:
                    raise NotNow(f"those of other hosts have just been read: ask again in {self._others_from - now:.1f} s")
                found = {name: self._kept(self._of_some, (name, key), name, lambda of: self._of_hosts(of, key)) for name in names}
                if not is_kept:
                    end = self._console.clock.monotonic()
                    self._others_from = end + SHARE * (end - now)
        else:
            with self._all:
                self._read = {name: read for name, read in self._read.items() if name in names}
                found = {name: self._kept(self._read, name, name, self._of_collection) for name in names}
        families = []
        for metric in OF_HOSTS if hosts else OF_STORES:
            family = metric.family()
            for name, samples in found.items():
                for sample in samples:
                    if sample.metric is metric:
                        family.add_metric([name, *sample.labels], sample.value)
            families.append(family)
        return exposition(families, accept)

    def fault(self) -> str:
        """Return why the console cannot do its work; empty if it can: the folder is readable, and each store that exists opens."""
        with self._looking:
            fault, until = self._ready
            now = self._console.clock.monotonic()
            if now >= until:
                fault = self._look()
                self._ready = (fault, now + READY_S)
            return fault

    def _look(self) -> str:
        try:
            names = self._names()
        except CrawlspaceError as error:
            logger.warning("not ready: %s", error)
            return "the folder of the collections cannot be read; the log of the console has the reason"
        broken = 0
        for name in names:
            try:
                with self._console.paths(name).store.reading() as opened:
                    if opened is not None:
                        opened.store.version()
            except CrawlspaceError as error:
                logger.warning("not ready: %s: %s", name, error)
                broken += 1
        return f"{broken} of {len(names)} stores cannot be opened; the log of the console has the reasons" if broken else ""

    def _names(self) -> list[str]:
        """Return the names of all collections. Raises ConfigError; a folder that is missing is not one without collections."""
        folder = self._console.collections.folder
        try:
            with os.scandir(folder):
                return self._console.names()
        except OSError as error:
            raise ConfigError(f"the folder of the collections, {folder}, cannot be read: {error.strerror}") from error

    def _kept(self, reads: dict[_Key, _Read], key: _Key, name: str, read: Callable[[str], Iterable[Sample]]) -> Sequence[Sample]:
        """Return the samples of a collection that were read last, or read them again if that was long ago."""
        clock = self._console.clock
        known, begun = reads.get(key), clock.monotonic()
        if known is not None and begun < known.until:
            return known.samples
        try:
            samples = list(read(name))
        except CrawlspaceError as error:
            logger.warning("the metrics of %s cannot be read: %s", name, error)
            samples = [Sample(metrics.UP, (), 0)]
        except Exception:
            logger.exception("the metrics of %s cannot be read", name)
            samples = [Sample(metrics.UP, (), 0)]
        now = clock.monotonic()
        reads[key] = _Read(samples, now + max(LEAST_S, SHARE * (now - begun)))
        return samples

    def _of_collection(self, name: str) -> Iterator[Sample]:
        paths = self._console.paths(name)
        with paths.store.reading() as opened:
            yield Sample(metrics.UP, (), 1)
            if opened is not None:
                yield from _counted(opened.store)
                yield from _unfinished(paths, opened, now=self._console.clock.now())
                yield from self._of_snapshot(paths, opened)

    def _of_snapshot(self, paths: CollectionPaths, opened: OpenStore) -> Iterator[Sample]:
        found = self._console.snapshots.totals(paths, opened)
        if found is None:
            return
        totals, _ = found
        for source in Source:
            yield Sample(metrics.QUEUE, (source.label,), totals.queue.get(source.label, 0))
        yield Sample(metrics.OVERDUE, (), totals.overdue)
        for quantile, fetched_at in totals.fetched_at.items():
            yield Sample(metrics.DOCUMENT_AGE, (quantile,), max(0.0, self._console.clock.now() - fetched_at))

    def _of_hosts(self, name: str, hosts: Sequence[str]) -> Iterator[Sample]:
        now = int(self._console.clock.now())
        with self._console.paths(name).store.reading() as opened:
            if opened is None:
                return
            store = opened.store
            for host in hosts:
                bare, sites = _sites_of(host)
                if not store.known_of_host(bare):
                    continue
                waiting = store.waiting_urls(sites, now=now).values()
                yield Sample(metrics.HOST_DOCUMENTS, (host,), sum(store.documents(sites).values()))
                yield Sample(metrics.HOST_QUEUE, (host,), sum(one.pending + one.due for one in waiting))
                yield Sample(metrics.HOST_OVERDUE, (host,), sum(one.due for one in waiting))


def _sites_of(host: str) -> tuple[str, list[str]]:
    """Return a host without its port, and its sites: that with the port, or those with the usual ones. The port of an IPv6 address is behind
    brackets, which a bare address may lack."""
    if host.count(":") > 1 and not host.startswith("["):
        host = f"[{host}]"
    bare, colon, port = host.rpartition(":")
    if colon and not port.endswith("]"):
        return bare, [host]
    return host, [f"{host}:{port}" for port in sorted(set(DEFAULT_PORTS.values()))]


def _counted(store: Store) -> Iterator[Sample]:
    counts = store.counts()
    for label in STATE_LABELS:
        yield Sample(metrics.URLS, (label,), counts.by_state.get(label, 0))
    yield Sample(metrics.DOCUMENTS, (), counts.indexed)


def _unfinished(paths: CollectionPaths, opened: OpenStore, *, now: float) -> Iterator[Sample]:
    """Yield what waits for somebody, or for a crawl."""
    store, crawlers = opened.store, opened.crawlers()
    runs = kept_runs(store, crawlers)
    records = [record for run in runs for record in run.records]
    for sink in dict.fromkeys((*paths.sinks.names, *sorted(known_sinks(store)))):
        waiting, since = store.backlog(sink), store.waiting_since(sink)
        if waiting and since is None:  # orders of an earlier version, which noted no times
            standstill = noted_standstill(store.get_meta(standstill_meta(sink)))
            since = None if standstill is None else standstill.since
        yield Sample(metrics.OUTBOX_ORDERS, (sink,), waiting)
        yield Sample(metrics.OUTBOX_OLDEST, (sink,), 0 if since is None else max(0.0, now - since))
        yield Sample(metrics.PARKED, (sink,), store.backlog(sink, parked=True))
    sites = paths.unreachable(store)
    held = held_by_reason(store, sites)
    for reason in Held:
        yield Sample(metrics.DELETIONS_HELD, (reason.label,), held.get(reason, 0))
    paused = {
        "unreachable": len(sites),
        "person": len(store.site_pauses()),
        "login_refused": len(refused_logins(store)),
        "login_waiting": len(waiting_logins(store)),
    }
    for why, number in paused.items():
        yield Sample(metrics.SITES_PAUSED, (why,), number)
    if crawlers:
        unseen = max(0.0 if one.share is None else one.share.unseen_s for one in crawlers)
        expired = silent_since(runs[0], crawlers) if runs else None
        yield Sample(metrics.WORKER_LAST_SEEN, (), unseen if expired is None else max(unseen, now - expired))
    elif runs:
        yield Sample(metrics.LAST_RUN, (runs[0].outcome,), runs[0].ended or 0)
    successes = [one.ended for one in records if one.ended is not None and (one.summary or {}).get("exit_status") == 0]
    if successes:
        yield Sample(metrics.LAST_SUCCESS, (), max(successes))
