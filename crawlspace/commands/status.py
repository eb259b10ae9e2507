"""`scrapy status`: show the state of a collection in numbers, once or while it changes."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from crawlspace.access.login_states import often_sentence
from crawlspace.access.sessions import next_login_at
from crawlspace.admin.rendering import RenderingReport, counts_sentence
from crawlspace.admin.report import Report, status_sentence
from crawlspace.admin.run_numbers import lines_of_run
from crawlspace.admin.sink_report import is_plain, lines_of
from crawlspace.clock import local_time
from crawlspace.crawl.findings import MOST_ROUTES
from crawlspace.crawl.timed.lastmod import MOST_LISTED
from crawlspace.decision import OF_PAGES, Reason
from crawlspace.errors import StoreError, UsageError
from crawlspace.runtime.components.command import CollectionCommand, EscapingOutput, exactly_one, hanging, print_json, shortened
from crawlspace.runtime.session.collection_status import CollectionStatus, collection_status
from crawlspace.runtime.session.paths import CollectionPaths
from crawlspace.state.views import Crawler, Share
from crawlspace.status import SITEMAPS
from crawlspace.text import counted, escaped, printable, quoted

SITES_SHOWN = 20
WATCH_S = 2
LEAST_S, MOST_S = 0.1, 86_400
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
        "collection is being crawled at this moment, by whom, and how fast. --watch shows it again every two seconds, until Ctrl-C. "
        "`scrapy urls` lists the URLs behind the numbers. Exit status: 0 shown, 1 the store has a fault, 2 wrong use."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print the numbers for a program")
        parser.add_argument(
            "--watch",
            nargs="?",
            const=WATCH_S,
            metavar="SECONDS",
            help=f"show the state again every so many seconds ({WATCH_S}), until Ctrl-C; with --json a line each time",
        )

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        paths = self.paths(exactly_one(args, example="scrapy status demo"))
        if opts.watch is not None:
            return _watch(paths, every_s=_seconds(opts.watch), is_json=opts.json)
        found = collection_status(paths, with_warnings=not opts.json)
        if opts.json:
            print_json(found.as_json())
        else:
            print("\n".join(_lines_of(found, paths)))
        return 0


def _seconds(given: object) -> float:
    """Raises UsageError."""
    try:
        seconds = float(str(given))
    except ValueError:
        seconds = 0.0
    if not LEAST_S <= seconds <= MOST_S:
        raise UsageError(
            f"--watch takes a number of seconds from {LEAST_S:g} to {MOST_S:,}, not {quoted(given)}; the name of the collection"
            " stands before it, as in: scrapy status demo --watch 5"
        )
    return seconds


def _watch(paths: CollectionPaths, *, every_s: float, is_json: bool) -> int:
    """Show the state again and again, until Ctrl-C; on a terminal the last state stays there. Raises UsageError, and with JSON StoreError."""
    shows = _print_each if is_json else _redraw
    if not is_json and not sys.stdout.isatty():
        raise UsageError(
            "--watch draws on a terminal; where the output is a file or a pipe, add --json: it prints a line each time"
        )
    with suppress(KeyboardInterrupt):
        asyncio.run(shows(paths, every_s))
    return 0


async def _print_each(paths: CollectionPaths, every_s: float) -> None:
    while True:
        began = time.monotonic()
        print_json(collection_status(paths).as_json())
        sys.stdout.flush()
        await _pause(every_s, began)


async def _redraw(paths: CollectionPaths, every_s: float) -> None:
    from rich.console import Console  # noqa: PLC0415 - a tenth of a second that only --watch has to pay
    from rich.live import Live  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    terminal = sys.stdout.unescaped if isinstance(sys.stdout, EscapingOutput) else sys.stdout
    shown = ""
    try:
        with Live(console=Console(file=terminal), screen=True, auto_refresh=False, redirect_stdout=False) as screen:
            while True:
                began = time.monotonic()
                try:
                    shown = escaped("\n".join(_lines_of(collection_status(paths, with_warnings=True), paths)), keep_lines=True)
                except StoreError as error:  # it may be back at the next look
                    shown = str(error)
                title = f"{time.strftime('%H:%M:%S')}, again every {every_s:g} s; Ctrl-C ends\n\n"
                screen.update(Text(title + shown, no_wrap=True, overflow="ellipsis"), refresh=True)
                await _pause(every_s, began)
    finally:
        print(shown)


async def _pause(every_s: float, began: float) -> None:
    """Wait for the next look, so that half of the time at most is spent on looking."""
    await asyncio.sleep(max(every_s, time.monotonic() - began))


def _lines_of(found: CollectionStatus, paths: CollectionPaths) -> Iterator[str]:
    """Yield the state of a collection, as a person reads it."""
    if not found.was_crawled:
        yield f"{paths.name} has never been crawled: `scrapy crawl {paths.name}` does"
        return
    yield from _lines(found)
    if found.disk is not None:
        yield from ("", hanging("Disk    ", found.disk.sentence))
    if not is_plain(list(found.sinks)):
        yield from ("", *lines_of(list(found.sinks), paths.name))
    for line in (*_of_logins(found), *found.warnings):
        yield from ("", line)


def _of_logins(found: CollectionStatus) -> Iterator[str]:
    refused = found.refused
    for pattern, session in found.sessions.items():
        if pattern not in refused:
            ends = f", until {_local(session.expires)}" if session.expires is not None else ""
            yield f"logged in to {printable(pattern)} since {_local(session.since)}{ends} (log-in {session.number:,})"
        if pattern not in refused and (at := next_login_at(session.recent, now=time.time())) is not None:
            yield often_sentence(pattern, at)
    for site, offered in found.wanted.items():
        yield f"{printable(site)} asks for a log-in ({', '.join(map(printable, offered))}), and CRAWLSPACE_SITES has none for it"
    for pattern, one in refused.items():
        yield f"{one.sentence(pattern)} (since {_local(one.since)})"
    for pattern, failed in found.waiting.items():
        yield f"{failed.sentence(pattern)} (since {_local(failed.since)})"


def _lines(found: CollectionStatus) -> Iterator[str]:
    numbers = found.numbers
    if numbers.workers:
        yield from _of_workers(numbers.collection, numbers.workers)
    elif numbers.crawling is not None and numbers.since is not None:
        yield f"{numbers.collection} is being crawled by process {numbers.crawling} since {_local(numbers.since)}"
    else:
        yield f"{numbers.collection} is not being crawled at present"
    if found.run is not None:
        yield from ("", f"Run {found.run.kept.run}")
        waiting = numbers.urls["pending"] + numbers.urls["leased"]
        yield from (hanging(f"  {label:<11}", text) for label, text in lines_of_run(found.run, waiting=waiting))
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
        has_more = sum(numbers.status.get(int(status), 0) for status in SITEMAPS) > MOST_LISTED
        some = f", of the first {MOST_LISTED:,} that were read" if has_more else ""
        yield from ("", f"Sitemaps with lastmod{some} (scrapy sitemaps {numbers.collection})")
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


def _table(rows: Iterable[tuple[str, int, str]]) -> Iterator[str]:
    for label, count, meaning in rows:
        yield hanging(f"  {label:<18}{count:>12,}   ", meaning)


def _sentence(reason: str) -> str:
    try:
        return Reason(reason).sentence
    except ValueError:  # counted by another version
        return ""
