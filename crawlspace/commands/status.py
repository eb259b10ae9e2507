"""`scrapy status`: show the state of a collection in numbers."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from http import HTTPStatus

from crawlspace.access.login_states import (
    RefusedLogin,
    WaitingLogin,
    often_sentence,
    refused_logins,
    waiting_logins,
    wanted_logins,
)
from crawlspace.access.sessions import KeptSession, kept_sessions, next_login_at
from crawlspace.admin.refresh import refreshing
from crawlspace.admin.rendering import RenderingReport, counts_sentence, rendering_report
from crawlspace.admin.report import Report, report, status_sentence
from crawlspace.admin.sink_report import as_json, is_plain, lines_of, sink_reports
from crawlspace.clock import iso, local_time
from crawlspace.config.collection import load_collection
from crawlspace.config.refresh import read_refresh
from crawlspace.config.sinks import EMBEDDED
from crawlspace.crawl.findings import MOST_ROUTES, kept_error_examples, kept_routes, kept_traps
from crawlspace.crawl.rule_changes.reconcile import RULES_HASH
from crawlspace.crawl.sinks.repair import Resending
from crawlspace.crawl.startup import build_space, hash_of
from crawlspace.decision import OF_PAGES, Reason
from crawlspace.errors import CrawlspaceError
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.marks import Agreement
from crawlspace.runtime.components.command import CollectionCommand, exactly_one, hanging, print_json, shortened
from crawlspace.runtime.session.paths import CollectionPaths, lost_documents
from crawlspace.state.store import Store
from crawlspace.state.views import Crawler, Share
from crawlspace.text import counted, printable

SITES_SHOWN = 20
_MISSING = {
    Reason.PAGE_TEXT: ("text left out", "pages with more text than is kept"),
    Reason.NEEDS_BROWSER: ("need a browser?", "pages with scripts and next to no text or links"),
    Reason.FIELD_TYPE: ("values left out", "which are not of the type that extract.toml gives their field"),
    Reason.NOT_EXTRACTED: ("no fields taken", "pages to which extract.toml could not be applied"),
}
"""Labels of missing parts of pages, see OF_PAGES."""
_TRUST = {
    "trusted": "which pages are fetched depends on it",
    "ignored": "most pages that it calls changed had not changed",
    "not measured yet": "what it calls changed is fetched, and no request is spared for it",
}
_UNSEEN_S = 5
"""Workers report about every other second."""


class Command(CollectionCommand):
    usage = "[options] <collection>"
    summary = "Show a collection's state in numbers"
    explanation = (
        "Show how many URLs are known by state and by status code, how many links were refused for which reason, what the index has, "
        "what is still to be sent to it and which deletions are held, which sites cannot be reached, whether the rules have changed since they were applied, whether the index has all documents, and whether the "
        "collection is being crawled at this moment, and by whom. "
        "`scrapy urls` lists the URLs behind the numbers. Exit status: 0 shown, 1 the store has a fault, 2 wrong use."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print the numbers for a program")

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        paths = self.paths(exactly_one(args, example="scrapy status demo"))
        with paths.store.reading() as opened:
            store = None if opened is None else opened.store
            crawlers = [] if opened is None else opened.crawlers()
            sites = [] if store is None else paths.unreachable(store)
            errors = [] if store is None else kept_error_examples(store)
            traps = [] if store is None else kept_traps(store)
            routes = {} if store is None else kept_routes(store)
            numbers = report(
                paths.name,
                store,
                crawlers=crawlers,
                is_shared=paths.store.is_shared,
                sites=sites,
                errors=errors,
                traps=traps,
                routes=routes,
            )
            if opened is not None:
                with lost_documents(paths, opened) as lost:
                    numbers = replace(numbers, lost=lost.count)
            warnings = [] if store is None or opts.json else [_of_the_rules(paths, store), _of_refresh(paths, store)]
            if store is not None and not opts.json and not crawlers:
                warnings.append(_of_the_index(paths, store))
            numbers = replace(numbers, rendering=None if store is None else rendering_report(store) or None)
            sinks = [] if store is None else sink_reports(store, paths.sinks)
            refused = {} if store is None else refused_logins(store)
            wanted = {} if store is None or HTTPStatus.UNAUTHORIZED not in numbers.status else wanted_logins(store)
            waiting = {} if store is None else waiting_logins(store)
            sessions = {} if store is None else kept_sessions(store)
        if opts.json:
            of_logins = {
                "refused_logins": _of_logins(refused),
                "waiting_logins": _of_waiting(waiting),
                "sessions": _of_sessions(sessions),
                "wanted_logins": wanted,
            }
            print_json({**numbers.as_json(), "sinks": as_json(sinks), **of_logins})
            return 0
        if store is None:
            print(f"{paths.name} has never been crawled: `scrapy crawl {paths.name}` does")
            return 0
        print("\n".join(_lines(numbers)))
        if not is_plain(sinks):
            print("\n" + "\n".join(lines_of(sinks, paths.name)))
        for pattern, session in sessions.items():
            if pattern not in refused:
                ends = f", until {_local(session.expires)}" if session.expires is not None else ""
                print(f"\nlogged in to {printable(pattern)} since {_local(session.since)}{ends} (log-in {session.number:,})")
            if pattern not in refused and (at := next_login_at(session.recent, now=time.time())) is not None:
                print(f"\n{often_sentence(pattern, at)}")
        for site, offered in wanted.items():
            print(
                f"\n{printable(site)} asks for a log-in ({', '.join(map(printable, offered))}), and CRAWLSPACE_SITES has none for it"
            )
        for pattern, one in refused.items():
            print(f"\n{one.sentence(pattern)} (since {_local(one.since)})")
        for pattern, failed in waiting.items():
            print(f"\n{failed.sentence(pattern)} (since {_local(failed.since)})")
        for warning in filter(None, warnings):
            print(f"\n{warning}")
        return 0


def _lines(numbers: Report) -> Iterator[str]:
    if numbers.workers:
        yield from _of_workers(numbers.collection, numbers.workers)
    elif numbers.crawling is not None and numbers.since is not None:
        yield f"{numbers.collection} is being crawled by process {numbers.crawling} since {_local(numbers.since)}"
    else:
        yield f"{numbers.collection} is not being crawled at present"
    yield ""
    yield f"{'URLs':<20}{numbers.known:>12,}   on {counted(numbers.hosts, 'host')}"
    yield from _table((label, count, "") for label, count in numbers.urls.items() if count)
    if numbers.orphaned:
        orphaned = f"of them, to which no way leads from a start URL (scrapy urls {numbers.collection} --orphaned)"
        yield from _table([("orphaned", numbers.orphaned, orphaned)])
    yield from _of_statuses(numbers)
    refused = {reason: count for reason, count in numbers.refused.items() if reason not in OF_PAGES}
    if refused:
        yield from ("", "Links refused")
        by_count = sorted(refused.items(), key=lambda row: -row[1])
        yield from _table((reason, count, _sentence(reason)) for reason, count in by_count)
    yield from _of_sites(numbers)
    yield from _of_findings(numbers)
    yield from _of_rendering(numbers.rendering)
    if numbers.sitemaps:
        yield from ("", f"Sitemaps with lastmod (scrapy sitemaps {numbers.collection})")
        yield from _table((label, count, _TRUST[label]) for label, count in numbers.sitemaps.items())
    yield from ("", "Index")
    yield from _table([("documents", numbers.documents, "")])
    if numbers.duplicates:
        same = "pages that are in the index under another URL, because they are (nearly) equal or name it as canonical"
        yield from _table([("duplicates", numbers.duplicates, same)])
    yield from _table([("waiting", numbers.outbox, "orders the index has not yet accepted")])
    if numbers.left_to_others:
        left = "documents left in the index for another collection (761)"
        yield from _table([("left", numbers.left_to_others, left)])
    missing = ((label, numbers.refused.get(reason, 0), what) for reason, (label, what) in _MISSING.items())
    yield from _table(row for row in missing if row[1])
    if numbers.lost:
        lost = "of the documents, deleted there by another collection; the next start sends them again"
        yield from _table([("lost", numbers.lost, lost)])
    if numbers.held:
        held = f"deletions that wait for approval (scrapy deletions {numbers.collection})"
        yield from _table([("held", sum(numbers.held.values()), held)])
        yield from _table((f"  {reason.label}", count, reason.sentence) for reason, count in sorted(numbers.held.items()))
    if numbers.parked:
        yield from _table([("parked", numbers.parked, "documents the index refuses")])


def _of_statuses(numbers: Report) -> Iterator[str]:
    """Yield the status codes, those of errors with detailed examples."""
    if numbers.status:
        yield from ("", "Status")
    for code, count in sorted(numbers.status.items()):
        yield from _table([(str(code), count, status_sentence(code))])
        for example in [one for one in numbers.errors if one.status == code]:
            yield hanging("      ", example.sentence)


def _of_sites(numbers: Report) -> Iterator[str]:
    """Yield the sites that cannot be reached, and those that a person has paused."""
    if numbers.unreachable:
        yield from ("", "Sites that cannot be reached")
        for site in numbers.unreachable[:SITES_SHOWN]:
            yield hanging(f"  {site.row.site}   ", site.sentence)
        if len(numbers.unreachable) > SITES_SHOWN:
            yield f"  and {len(numbers.unreachable) - SITES_SHOWN:,} more"
    if numbers.pauses:
        yield from (
            "",
            f"Hosts that are paused: {len(numbers.pauses):,} (scrapy sites {numbers.collection} --paused shows their sites)",
        )
        for pattern, pause in list(numbers.pauses.items())[:SITES_SHOWN]:
            yield hanging(f"  {pattern}   ", pause.sentence)
        if len(numbers.pauses) > SITES_SHOWN:
            yield f"  and {len(numbers.pauses) - SITES_SHOWN:,} more"


def _of_findings(numbers: Report) -> Iterator[str]:
    if numbers.traps:
        yield from ("", "URLs that grow without new documents")
        for trap in numbers.traps:
            yield hanging("  ", trap.sentence)
    if numbers.routes:
        yield from ("", "Routes behind # that are not fetched; CRAWLSPACE_HASH_ROUTES has them followed where pages are rendered")
        for site, routes in list(numbers.routes.items())[:SITES_SHOWN]:
            number = f"{counted(routes.count, 'link')}{' or more' if routes.count >= MOST_ROUTES else ''}"
            yield hanging(f"  {site}   ", f"{number} such as {printable(routes.example)}")


def _of_rendering(rendering: RenderingReport | None) -> Iterator[str]:
    if rendering is not None:
        yield from ("", "Rendering in a browser, in all runs")
        yield hanging("  ", counts_sentence(rendering.counts))
        if rendering.needing:
            yield hanging(
                "  ", f"{counted(rendering.needing, 'folder')} with pages that need it (scrapy explain shows it for a URL)"
            )


def _of_workers(collection: str, workers: Sequence[Crawler]) -> Iterator[str]:
    many = f"{len(workers)} workers" if len(workers) > 1 else "1 worker"
    yield f"{collection} is being crawled by {many}"
    yield ""
    yield f"{'Workers':<42}{'since':<16}{'sites':>8}{'URLs':>9}{'fetched':>12}{'pages/s':>9}"
    shares = [(worker, worker.share) for worker in workers if worker.share is not None]
    for worker, share in shares:
        who = shortened(f"{printable(share.host)}, process {worker.process}", 39)
        yield f"  {who:<40}{_local(worker.since):<16}{_numbers(share)}"
        if share.unseen_s >= _UNSEEN_S:
            yield f"    no report for {share.unseen_s:.0f} s"
    if len(shares) > 1:
        together = Share(
            host="",
            unseen_s=0.0,
            sites=sum(one.sites for _, one in shares),
            urls=sum(one.urls for _, one in shares),
            fetched=sum(one.fetched for _, one in shares),
            per_second=sum(one.per_second for _, one in shares),
        )
        yield f"  {'together':<56}{_numbers(together)}"


def _numbers(share: Share) -> str:
    return f"{share.sites:>8,}{share.urls:>9,}{share.fetched:>12,}{share.per_second:>9,.1f}"


def _local(seconds: int) -> str:
    return local_time(seconds) if seconds else "?"


def _of_logins(refused: Mapping[str, RefusedLogin]) -> list[dict[str, str]]:
    return [
        {"entry": printable(pattern), "site": one.site, "why": one.why, "since": iso(one.since)}
        for pattern, one in refused.items()
    ]


def _of_waiting(waiting: Mapping[str, WaitingLogin]) -> list[dict[str, str]]:
    return [{"entry": printable(pattern), "why": one.why, "since": iso(one.since)} for pattern, one in waiting.items()]


def _of_sessions(sessions: Mapping[str, KeptSession]) -> list[dict[str, object]]:
    return [
        {
            "entry": printable(pattern),
            "since": iso(one.since),
            "expires": None if one.expires is None else iso(one.expires),
            "log_ins": one.number,
            "next_log_in": None if (at := next_login_at(one.recent, now=time.time())) is None else iso(at),
        }
        for pattern, one in sessions.items()
    ]


def _of_the_rules(paths: CollectionPaths, store: Store) -> str:
    """Return a warning if the known URLs were not checked by the rules on disk; empty otherwise, or if those can't be loaded."""
    applied = store.get_meta(RULES_HASH)
    if applied is None:
        return ""
    try:
        collection = load_collection(paths.name, paths.settings)
        if applied == hash_of(collection, build_space(collection)):
            return ""
    except CrawlspaceError:
        return ""
    if not applied:
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


def _table(rows: Iterable[tuple[str, int, str]]) -> Iterator[str]:
    for label, count, meaning in rows:
        yield hanging(f"  {label:<18}{count:>12,}   ", meaning)


def _sentence(reason: str) -> str:
    try:
        return Reason(reason).sentence
    except ValueError:  # counted by another version
        return ""
