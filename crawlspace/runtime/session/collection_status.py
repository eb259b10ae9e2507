"""The state of a collection as a whole, for `scrapy status`, the console and its JSON interface."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from http import HTTPStatus

import msgspec

from crawlspace.access.login_states import RefusedLogin, WaitingLogin, refused_logins, waiting_logins, wanted_logins
from crawlspace.access.sessions import KeptSession, kept_sessions, next_login_at
from crawlspace.admin.refresh import refreshing
from crawlspace.admin.rendering import rendering_report
from crawlspace.admin.report import Report, report
from crawlspace.admin.run_numbers import ShownRun, running
from crawlspace.admin.sink_report import SinkReport, as_json, sink_reports
from crawlspace.clock import iso
from crawlspace.config.collection import load_collection
from crawlspace.config.refresh import read_refresh
from crawlspace.config.sinks import EMBEDDED
from crawlspace.crawl.findings import kept_error_examples, kept_routes, kept_traps
from crawlspace.crawl.run_log import run_records
from crawlspace.crawl.sinks.repair import Resending
from crawlspace.crawl.startup import applied_rules, build_space, hash_of
from crawlspace.errors import CrawlspaceError
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.marks import Agreement
from crawlspace.runtime.operations.disk_use import DiskUse, disk_use
from crawlspace.runtime.session.paths import CollectionPaths, OpenStore, folder_of, lost_documents
from crawlspace.state.store import Store
from crawlspace.text import counted, printable


@dataclass(frozen=True, slots=True)
class CollectionStatus:
    """The numbers of a collection, its sinks and its log-ins."""

    numbers: Report
    was_crawled: bool
    sinks: Sequence[SinkReport] = ()
    refused: Mapping[str, RefusedLogin] = field(default_factory=dict)
    """Log-ins that are refused, by their entry in CRAWLSPACE_SITES."""
    wanted: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Sites that ask for a log-in of which the settings have none, with the kinds they offer."""
    waiting: Mapping[str, WaitingLogin] = field(default_factory=dict)
    sessions: Mapping[str, KeptSession] = field(default_factory=dict)
    disk: DiskUse | None = None
    """None: it was never crawled."""
    run: ShownRun | None = None
    """The run that crawls now, with the numbers of its last seconds."""
    rules_changed: bool | None = None
    """Whether the known URLs were checked by other rules than those on disk; None: not asked for, never checked, or there are errors."""
    warnings: Sequence[str] = ()
    """Sentences about rules, refreshes and the index; empty if they were not asked for."""

    def as_json(self) -> dict[str, object]:
        """Return the numbers as JSON has them."""
        return {
            **self.numbers.as_json(),
            "run": None if self.run is None else self.run.as_json(),
            "sinks": as_json(list(self.sinks)),
            "refused_logins": [
                {"entry": printable(pattern), "site": one.site, "why": one.why, "since": iso(one.since)}
                for pattern, one in self.refused.items()
            ],
            "waiting_logins": [
                {"entry": printable(pattern), "why": one.why, "since": iso(one.since)} for pattern, one in self.waiting.items()
            ],
            "sessions": [_session_as_json(pattern, one) for pattern, one in self.sessions.items()],
            "wanted_logins": dict(self.wanted),
            "disk": None if self.disk is None else msgspec.to_builtins(self.disk),
        }


def collection_status(paths: CollectionPaths, *, with_warnings: bool = False) -> CollectionStatus:
    """Read the state of a collection. `with_warnings` loads its configuration too. Raises StoreError and its kinds."""
    with paths.store.reading() as opened:
        return status_of(paths, opened, with_warnings=with_warnings)


def status_of(
    paths: CollectionPaths, opened: OpenStore | None, *, with_rules: bool = False, with_warnings: bool = False
) -> CollectionStatus:
    """Return the state of a collection whose store is open; None for one that was never crawled. `with_rules` loads the rules on disk.

    Raises StoreError and its kinds.
    """
    if opened is None:
        return CollectionStatus(report(paths.name, None, is_shared=paths.store.is_shared), was_crawled=False)
    store = opened.store
    numbers, run = _numbers(paths, opened)
    changed = _have_rules_changed(paths, store) if with_rules or with_warnings else None
    warnings = []
    if with_warnings:
        warnings = [_of_the_rules(paths, store) if changed else "", _of_refresh(paths, store)]
        warnings += [] if numbers.crawling else [_of_the_index(paths, store)]
    return CollectionStatus(
        numbers,
        was_crawled=True,
        run=run,
        disk=_disk_use(paths, store),
        sinks=sink_reports(store, paths.sinks),
        refused=refused_logins(store),
        wanted={} if HTTPStatus.UNAUTHORIZED not in numbers.status else wanted_logins(store),
        waiting=waiting_logins(store),
        sessions=kept_sessions(store),
        rules_changed=changed,
        warnings=tuple(filter(None, warnings)),
    )


def _numbers(paths: CollectionPaths, opened: OpenStore) -> tuple[Report, ShownRun | None]:
    store, crawlers = opened.store, opened.crawlers()
    numbers = report(
        paths.name,
        store,
        crawlers=crawlers,
        is_shared=paths.store.is_shared,
        sites=paths.unreachable(store),
        errors=kept_error_examples(store),
        traps=kept_traps(store),
        routes=kept_routes(store),
    )
    with lost_documents(paths, opened) as lost:
        return replace(numbers, lost=lost.count, rendering=rendering_report(store) or None), running(store, crawlers)


def _disk_use(paths: CollectionPaths, store: Store) -> DiskUse:
    index = paths.index_file if paths.sinks.has_embedded else None
    return disk_use(paths.state_file, index_file=index, archive=folder_of(paths), runs=run_records(store))


def _session_as_json(pattern: str, one: KeptSession) -> dict[str, object]:
    return {
        "entry": printable(pattern),
        "since": iso(one.since),
        "expires": None if one.expires is None else iso(one.expires),
        "log_ins": one.number,
        "next_log_in": None if (at := next_login_at(one.recent, now=time.time())) is None else iso(at),
    }


def _have_rules_changed(paths: CollectionPaths, store: Store) -> bool | None:
    """Whether the known URLs were checked by other rules than those on disk; None if those can't be loaded, or never were applied."""
    applied = applied_rules(store)
    if applied is None:
        return None
    try:
        collection = load_collection(paths.name, paths.settings)
        return applied != hash_of(collection, build_space(collection))
    except CrawlspaceError:
        return None


def _of_the_rules(paths: CollectionPaths, store: Store) -> str:
    """Return a warning that the known URLs were not checked by the rules on disk."""
    if not applied_rules(store):
        return f"the next start checks all known URLs again: scrapy plan {paths.name} shows what that does"
    return f"the rules have changed since the last start: scrapy plan {paths.name} shows what that does"


def _of_refresh(paths: CollectionPaths, store: Store) -> str:
    """Return a sentence about refreshes; empty if each page has its own interval, or if the settings can't be loaded."""
    try:
        return refreshing(read_refresh(paths.settings), store, now=time.time()).sentence(time.time())
    except CrawlspaceError:
        return ""


def _of_the_index(paths: CollectionPaths, store: Store) -> str:
    """Return a warning if the index lacks documents that it should have; empty otherwise."""
    documents = store.counts().indexed
    if not paths.sinks.has_embedded:
        return ""
    if not paths.index_file.exists():
        if paths.store.is_shared or not documents or store.backlog(EMBEDDED):
            return ""  # it is on another machine, or got no orders
        return f"there is no index at {paths.index_file}: `scrapy reindex {paths.name}` rebuilds it"
    try:
        with closing(EmbeddedIndex(paths.index_file, read_only=True, owner=paths.name)) as index:
            resending = Resending(store, index, owner=paths.name, now=int(time.time()))
            why, there = resending.compared(), index.count(of=paths.name)
            if why is Agreement.SAME and not resending.lacks_documents():
                return ""
    except CrawlspaceError as error:
        return str(error)
    now = f"{paths.index_file} has {counted(there, 'document')} of {paths.name} at present"
    if why is Agreement.SAME:
        return f"{now}: the others are being sent again"
    return f"{now}: {why.value}; the next crawl fetches and sends again what is missing"
