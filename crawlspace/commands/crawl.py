"""`scrapy crawl <collection>`: Scrapy's command, with errors as sentences, a summary at the end, and a meaningful exit status."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import sys
import time
from typing import TYPE_CHECKING

from scrapy.commands.crawl import Command as ScrapyCrawl
from scrapy.exceptions import UsageError as ScrapyUsageError
from scrapy.settings import SETTINGS_PRIORITIES
from twisted.logger import globalLogBeginner

from crawlspace.admin.url_changes import Stopped
from crawlspace.config.collection import collection_folder
from crawlspace.crawl.run import RunCounters
from crawlspace.decision import OF_PAGES, Reason
from crawlspace.errors import CrawlspaceError
from crawlspace.model import OutcomeKind
from crawlspace.plural import counted
from crawlspace.printable import escaped, printable
from crawlspace.runtime.exports.feeds import check_exports
from crawlspace.runtime.loader import CollectionLoader
from crawlspace.runtime.scheduler import open_session
from crawlspace.runtime.session import Session
from crawlspace.runtime.setting_kinds import faults, refuse_unreadable
from crawlspace.state.views import Counts

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)

SITES_SHOWN = 3
REASONS_SHOWN = 6


class Command(ScrapyCrawl):
    """Crawl a collection until nothing is left to do."""

    default_settings = {"LOG_LEVEL": "INFO"}  # noqa: RUF012 - as Scrapy's commands do

    def syntax(self) -> str:
        return "[options] <collection>"

    def short_desc(self) -> str:
        return "Crawl a collection"

    def long_desc(self) -> str:
        return (
            "Crawl a collection until nothing in it is pending, leased or due (with CRAWLSPACE_CONTINUOUS, until it is stopped). What the rules now "
            "exclude leaves the index first; scrapy plan shows beforehand what that is. Ctrl-C once ends cleanly: requests in flight are finished and "
            "recorded, the rest stays pending for the next start. -O items.jsonl exports the documents fetched in this run, "
            "-o items.jsonl adds them to those of earlier runs. "
            "Exit status: 0 done or stopped by Ctrl-C; 1 the collection, the disk or an export has a fault, no start site could be reached, nothing could "
            "be fetched although something was due, every page of the run failed, or your own code failed on every page: the first words of the summary "
            "say why; "
            "2 wrong use, 130 stopped by Ctrl-C before anything was fetched."
        )

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Open the collection before Scrapy sets anything up, so that a mistake gives one sentence and no side effects."""
        refuse_unreadable(opts.set)
        super().process_options(args, opts)
        unknown = [arg for arg in args if arg.startswith("-")]
        if unknown:
            raise ScrapyUsageError(f"there is no option {unknown[0]}; scrapy crawl --help lists the options", print_help=False)
        if len(args) != 1:
            raise ScrapyUsageError("name one collection, as in: scrapy crawl demo (scrapy list shows them)", print_help=False)
        assert self.settings is not None
        try:
            collection_folder(args[0], self.settings)
            settings = self.settings.copy()
            spider = CollectionLoader.from_settings(settings).load(args[0])
            spider.update_settings(settings)
            self._quiet = (settings.getpriority("LOG_LEVEL") or 0) <= SETTINGS_PRIORITIES["command"]
            if self._quiet:  # Scrapy resets the level when it creates the process; a filter remains
                logging.getLogger("scrapy.utils.log").addFilter(_is_warning)
            for fault in faults(settings):
                raise fault
            check_exports(settings)
            self._session = open_session(spider, settings)
            self._first_loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self._first_loop)
        except CrawlspaceError as error:
            sys.stderr.write(f"{error}\n")
            sys.exit(error.exit_status)
        except KeyboardInterrupt:
            sys.stderr.write("stopped before anything was fetched; the next start continues from here\n")
            sys.exit(Stopped.exit_status)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if self._quiet:
            quiet_scrapy()
        session = self._session
        _close_unless_used(self._first_loop)
        _reduce_garbage_collection()
        assert self.crawler_process is not None
        try:
            session.log_warnings()
            crawler = self.crawler_process.create_crawler(args[0])
            crawl = self.crawler_process.crawl(crawler, session=session, **opts.spargs)
            self.crawler_process.start()
        finally:
            session.close()
        if isinstance(crawl, asyncio.Future) and crawl.done() and crawl.exception() is not None:
            sys.stderr.write(
                f"the crawl could not be set up: {printable(str(crawl.exception()))}; see the settings of Scrapy and of your components\n"
            )
            self.exitcode = 1
            return
        if session.error is not None:
            sys.stderr.write(f"{session.error}\n")
            self.exitcode = session.error.exit_status
        elif session.all_faults():
            self.exitcode = 1
        lines = summary(session)
        if _is_quiet(self.settings):
            lines = lines.partition("\n")[0] if self.exitcode and session.error is None else ""
        if lines:
            sys.stderr.write(f"{escaped(lines, keep_lines=True)}\n")


def _is_quiet(settings: BaseSettings | None) -> bool:
    """Return whether the log level is above WARNING, or logging is off (--nolog)."""
    if settings is None or not settings.getbool("LOG_ENABLED"):
        return True
    level = settings["LOG_LEVEL"]
    number = level if isinstance(level, int) else logging.getLevelNamesMapping().get(str(level), 0)
    return number > logging.WARNING


def quiet_scrapy() -> None:
    """Suppress log messages of Scrapy and Twisted about themselves, but for STATS_DUMP; LOG_LEVEL and `-L INFO` show them."""
    for name in ("scrapy", "twisted", "asyncio"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("scrapy.statscollectors").setLevel(logging.INFO)
    # An invalid certificate is an outcome (614) like any other, without the two tracebacks.
    globalLogBeginner.beginLoggingTo([], discardBuffer=True, redirectStandardIO=False)
    logging.getLogger("twisted").addFilter(lambda record: not record.getMessage().startswith("while verifying certificate"))
    logging.getLogger("scrapy.core.downloader.tls").setLevel(
        logging.ERROR
    )  # warns for each connection without verification of certificates
    stopping = logging.getLogger("scrapy.crawler")  # except for its message after Ctrl-C
    stopping.setLevel(logging.INFO)
    stopping.addFilter(lambda record: record.levelno >= logging.WARNING or str(record.msg).startswith("Received"))


def _close_unless_used(loop: asyncio.AbstractEventLoop) -> None:
    """Close the loop created for Scrapy if Scrapy uses that of ASYNCIO_EVENT_LOOP; left open, it ends in a traceback."""
    from twisted.internet import reactor  # noqa: PLC0415 - importing it installs it

    if getattr(reactor, "_asyncioEventloop", None) is not loop:
        loop.close()


def _reduce_garbage_collection() -> None:
    """Exclude the objects of start-up from later garbage collections, and collect less often.

    The state of a crawl is many small, long-lived objects. Scanning them took a quarter of the time of a polite crawl
    (`python -m benchmarks.politeness`: 16 s of CPU became 12), in pauses without requests.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 5)


def _is_warning(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING


def summary(session: Session) -> str:
    """Return a summary of this run and of what is left, in a few lines."""
    progress = session.engine.progress
    counts = session.final_counts
    how = "done" if session.finish_reason == "finished" and session.error is None else "stopped"
    lines = [f"{session.collection.name}: {'; '.join(session.all_faults()) or how}. {_fetched(progress)}."]
    if counts is not None:
        more = counted(counts.duplicates, "more page is a duplicate", "more pages are duplicates")
        lines.append(
            f"  in the index: {counted(counts.indexed, 'document')} ({progress.pushes:,} pushed, {progress.deletes:,} deleted in this run)"
            + (f"; {more} of these" if counts.duplicates else "")
        )
        lines += _left(session, counts)
    else:
        lines.append(
            f"  what could not be recorded is fetched again  (scrapy status {session.collection.name} shows what is left, once the store can be read)"
        )
    lines += _sites(session)
    if shells := progress.refused[Reason.NEEDS_BROWSER]:
        example = printable(next(iter(progress.browser_pages.values()), ""))
        lines.append(
            f"  may need a browser: {counted(shells, 'page')} with scripts and next to no text or links, such as {example}"
        )
    refused = [(reason, count) for reason, count in progress.refused.most_common() if reason not in OF_PAGES]
    if refused:
        parts = [f"{count:,} {reason}" for reason, count in refused[:REASONS_SHOWN]]
        if len(refused) > REASONS_SHOWN:
            parts.append(f"{sum(count for _, count in refused[REASONS_SHOWN:]):,} for other reasons")
        name = session.collection.name
        lines.append(f"  refused: {', '.join(parts)}  (scrapy refused {name} lists links, scrapy explain {name} URL says why)")
    errors = {code: count for code, count in sorted(progress.by_status.items()) if code >= 400 and code not in _NOT_ERRORS}
    if errors:
        lines.append("  errors: " + ", ".join(f"{count:,} × {code}" for code, count in errors.items()))
    return "\n".join(lines)


def _fetched(progress: RunCounters) -> str:
    """Return `94 fetched: 60 with a document, 20 redirected, 14 errors`; the parts add up to what was fetched."""
    kinds = progress.by_kind
    parts = [f"{kinds[kind]:,} {what}" for kind, what in _OUTCOMES.items() if kinds[kind]]
    errors = kinds[OutcomeKind.FAILED] + kinds[OutcomeKind.GONE]
    if errors:
        parts.append(counted(errors, "error"))
    return f"{progress.fetched:,} fetched" + (f": {', '.join(parts)}" if parts else "")


def _left(session: Session, counts: Counts) -> list[str]:
    """Return lines on what is left to do, and for whom."""
    lines = []
    if session.next_due is not None:
        due = time.strftime("%Y-%m-%d %H:%M", time.localtime(session.next_due))
        lines.append(
            f"  nothing was due: the next page is on {due}  (scrapy recrawl {session.collection.name} makes pages due now)"
        )
    left = counts.by_state.get("pending", 0) + counts.by_state.get("leased", 0)
    if left or counts.outbox:
        rest = [f"{counted(left, 'URL')} pending"] if left else []
        rest += [f"{counted(counts.outbox, 'order')} for the index"] if counts.outbox else []
        others = session.shared.others if session.shared is not None else 0
        whom = "the next start" if not others else "the other worker" if others == 1 else f"the {others} other workers"
        lines.append(f"  left for {whom}: {', '.join(rest)}")
    if session.final_held:
        held = counted(session.final_held, "deletion is", "deletions are")
        lines.append(f"  {held} held  (scrapy deletions {session.collection.name} shows them, and why)")
    return lines


def _sites(session: Session) -> list[str]:
    """Return lines on unreachable sites, and on those given up although they responded."""
    lines = [f"  unreachable: {site.row.site}: {site.sentence}" for site in session.final_sites[:SITES_SHOWN]]
    if len(session.final_sites) > SITES_SHOWN:
        more = len(session.final_sites) - SITES_SHOWN
        lines.append(f"  unreachable: {more:,} more sites  (scrapy status {session.collection.name} shows them)")
    others = sorted(session.engine.frontier.given_up_sites - {site.row.site for site in session.final_sites})
    if others:
        more_others = f" and {len(others) - SITES_SHOWN:,} more" if len(others) > SITES_SHOWN else ""
        lines.append(f"  given up for this run: {', '.join(others[:SITES_SHOWN])}{more_others}")
    return lines


_OUTCOMES = {
    OutcomeKind.DOCUMENT: "with a document",
    OutcomeKind.UNCHANGED: "unchanged",
    OutcomeKind.REDIRECTED: "redirected",
    OutcomeKind.EXCLUDED: "not to be indexed",
}
_NOT_ERRORS = {740, 760, 761, 780, 2004, 3020}
