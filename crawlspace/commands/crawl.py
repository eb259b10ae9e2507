"""`scrapy crawl <collection>`: Scrapy's command, with errors as sentences, a summary at the end, and a meaningful exit status."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

# Imported before what needs it: it inspects the whole call stack, which takes the longer the more modules are being imported
# (Scrapy's `create_deprecated_class`).
import scrapy.core.downloader.contextfactory  # noqa: F401
from scrapy.commands.crawl import Command as ScrapyCrawl
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from twisted.logger import globalLogBeginner

from crawlspace.admin.url_changes import Stopped
from crawlspace.config.collection import collection_folder, collection_names
from crawlspace.config.content import check_converters, read_file_settings
from crawlspace.config.on_finish import read_on_finish
from crawlspace.config.sentences import read
from crawlspace.errors import ConfigError, CrawlspaceError, StoreLocked, UsageError
from crawlspace.parsing import boolean
from crawlspace.runtime.components.command import reduce_garbage_collection, refuse_without_collections
from crawlspace.runtime.components.exports import check_exports
from crawlspace.runtime.components.loader import CollectionLoader, collection_settings
from crawlspace.runtime.components.logformat import JSON, LogFileWatch, log_as_json
from crawlspace.runtime.components.setting_kinds import faults, refuse_unreadable
from crawlspace.runtime.session.crawl_sequence import CrawlSequence, FinishedCrawl, table_of, worst_status
from crawlspace.runtime.session.paths import collection_paths, running_here
from crawlspace.runtime.session.summary import RunReport, run_finish_command, summary
from crawlspace.settings import MonitoringSettings
from crawlspace.text import escaped, printable

logger = logging.getLogger(__name__)

PLACEHOLDER = "%(name)s"
"""Placeholder for the name of the collection in the name of an export."""


class Command(ScrapyCrawl):
    """Crawl a collection until nothing is left to do."""

    default_settings = {"LOG_LEVEL": "INFO"}  # noqa: RUF012 - as Scrapy's commands do

    def syntax(self) -> str:
        return "[options] <collection> [<collection> ...] | --all"

    def short_desc(self) -> str:
        return "Crawl a collection"

    def long_desc(self) -> str:
        return (
            "Crawl a collection until nothing in it is pending, leased or due (with CRAWLSPACE_CONTINUOUS, until it is stopped). What the rules now "
            "exclude leaves the index first; scrapy plan shows beforehand what that is. Ctrl-C once ends cleanly: requests in flight are finished and "
            "recorded, the rest stays pending for the next start. -O items.jsonl exports the documents fetched in this run, "
            "-o items.jsonl adds them to those of earlier runs. Several collections are crawled one after the other; a fault in one does not keep the "
            "next from being crawled, and Ctrl-C ends them all. With --unless-running, a start while the collection is crawled already ends with status 0. "
            "Exit status: 0 done or stopped by Ctrl-C; 1 the collection, the disk or an export has a fault, a log-in is refused and pages wait for it, no start site could be reached, "
            "nothing could be fetched although something was due, every page of the run failed because its site does, or was only redirected back to itself (691), or your own code failed on every page, or gave no item for any: "
            "the first words of the summary say why; "
            "2 wrong use, 130 stopped by Ctrl-C before anything was fetched; of several collections 1 if it is that of one."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--all", action="store_true", help="crawl all collections, one after the other")
        parser.add_argument(
            "--unless-running",
            action="store_true",
            help="do nothing where the collection is being crawled already, on this machine if its store is on a server",
        )
        parser.add_argument(
            "--summary", metavar="FILE", help="write how the crawl ended to FILE, as JSON; a line for each collection"
        )

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Open the collection before Scrapy sets anything up, so that a mistake produces one sentence and no side effects."""
        refuse_unreadable(opts.set)
        arguments = list(opts.spargs)
        super().process_options(args, opts)
        self._began = time.time()
        self._log_file = LogFileWatch()
        self._is_json = False
        self._sequence: CrawlSequence | None = None
        self._summary_file = Path(opts.summary) if opts.summary else None
        self._unless_running = bool(opts.unless_running)
        assert self.settings is not None
        with _errors_as_sentences():
            refuse_without_collections(self.settings)
            names = _names(args, self.settings, is_all=opts.all)
            if self._summary_file is not None:
                _make_empty(self._summary_file)
            if len(names) == 1:
                self._name = names[0]
                self._open(self.settings.copy())
            else:
                _check_sequence(names, self.settings, opts)
                self._sequence = CrawlSequence(names, _options(opts, arguments))
                self.requires_crawler_process = False

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if self._sequence is not None:
            self._run_sequence(self._sequence)
            return
        if self._quiet:
            quiet_scrapy()
        session = self._session
        _close_unless_used(self._first_loop)
        reduce_garbage_collection()
        assert self.crawler_process is not None
        try:
            session.log_warnings()
            crawler = self.crawler_process.create_crawler(self._name)
            crawl = self.crawler_process.crawl(crawler, session=session, **opts.spargs)
            self.crawler_process.start()
        finally:
            session.has_lost_log = self._log_file.error is not None
            session.close()
        if isinstance(crawl, asyncio.Future) and crawl.done() and (error := crawl.exception()) is not None:
            fault = f"the crawl could not be set up: {printable(str(error))}; see the settings of Scrapy and of your components"
            self._tell(fault, is_fault=True)
            self.exitcode = 1
            self._report(RunReport(self._name, 1, [fault], self._began, session))
            return
        report = RunReport.of(session, began=self._began)
        self.exitcode = report.exit_status
        if session.error is not None:
            self._tell(str(session.error), is_fault=True)
        lines = summary(session)
        if _is_quiet(self.settings):
            lines = lines.partition("\n")[0] if self.exitcode and session.error is None else ""
        if lines:
            self._tell(escaped(lines, keep_lines=True), is_fault=bool(self.exitcode))
        self._report(report)

    def _open(self, settings: BaseSettings) -> None:
        """Open the collection; where that fails, report it and exit."""
        from crawlspace.runtime.components.scheduler import open_session  # noqa: PLC0415 - Scrapy loads this module for each command

        self._own_settings = settings
        try:
            collection_folder(self._name, settings)
            spider = CollectionLoader.from_settings(settings).load(self._name)
            spider.update_settings(settings)
            if read(MonitoringSettings, settings).log_format == JSON:
                log_as_json(self._name)
                self._is_json = True
            self._quiet = (settings.getpriority("LOG_LEVEL") or 0) <= SETTINGS_PRIORITIES["command"]
            if self._quiet:  # Scrapy resets the level when it creates the process; a filter remains
                logging.getLogger("scrapy.utils.log").addFilter(_is_warning)
            for fault in faults(settings):
                raise fault
            check_exports(settings)
            on_finish = read_on_finish(settings)
            if on_finish is not None:
                on_finish.check()
            check_converters(read_file_settings(settings))
            reduce_garbage_collection()  # a change of the rules processes all known URLs
            if self._unless_running:
                process = running_here(collection_paths(self._name, collection_folder(self._name, settings), settings))
                if process is not None:
                    self._skip(f"{self._name} is being crawled by process {process} already: nothing is done (--unless-running)")
            self._session = open_session(spider, settings)
            self._first_loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self._first_loop)
        except StoreLocked as error:
            if self._unless_running:  # another start was faster
                self._skip(f"{error}: nothing is done (--unless-running)")
            self._could_not_begin(str(error), error.exit_status)
        except CrawlspaceError as error:
            self._could_not_begin(str(error), error.exit_status)
        except _Skipped:
            raise
        except SystemExit as error:  # by the loader, if the code of a spider fails
            self._could_not_begin(str(error.code), 1)
        except KeyboardInterrupt:
            self._could_not_begin("stopped before anything was fetched; the next start continues from here", Stopped.exit_status)

    def _tell(self, text: str, *, is_fault: bool) -> None:
        """Write text to standard error; as a record of the log where that is JSON."""
        if self._is_json and self.settings is not None and self.settings.getbool("LOG_ENABLED"):
            fault = logging.CRITICAL if _is_quiet(self.settings) else logging.ERROR  # so that it is shown
            logger.log(fault if is_fault else logging.INFO, "%s", text)
        else:
            sys.stderr.write(f"{text}\n")

    def _skip(self, sentence: str) -> NoReturn:
        self._tell(sentence, is_fault=False)
        self.exitcode = 0
        raise _Skipped(0)

    def _could_not_begin(self, fault: str, exit_status: int) -> NoReturn:
        self._tell(fault, is_fault=True)
        self.exitcode = exit_status
        if exit_status != UsageError.exit_status:
            self._report(RunReport(self._name, exit_status, [fault], self._began, None))
        sys.exit(exit_status)

    def _report(self, report: RunReport) -> None:
        """Report the end of the crawl to programs: in the file of --summary, and to the command of the user's."""
        line = json.dumps(report.as_json(), ensure_ascii=False) + "\n"
        if self._summary_file is not None:
            _write(self._summary_file, line)
        try:
            on_finish = read_on_finish(self._own_settings)
        except CrawlspaceError:  # the reason why the crawl could not begin
            return
        if on_finish is not None:
            signal.signal(signal.SIGINT, signal.default_int_handler)  # Scrapy's own does nothing any more
            run_finish_command(on_finish, line, collection=self._name)

    def _run_sequence(self, sequence: CrawlSequence) -> None:
        crawls: list[FinishedCrawl] = []
        for one in sequence.run():
            crawls.append(one)
            if self._summary_file is not None and one.report is not None:
                _write(self._summary_file, json.dumps(one.report, ensure_ascii=False) + "\n")
        self.exitcode = worst_status(one.exit_status for one in crawls if one.exit_status is not None)
        if not _is_quiet(self.settings):
            sys.stderr.write(f"\n{table_of(crawls)}\n")


class _Skipped(SystemExit):
    """The collection is being crawled already."""


@contextmanager
def _errors_as_sentences() -> Iterator[None]:
    try:
        yield
    except CrawlspaceError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_status)


def _names(args: Sequence[str], settings: BaseSettings, *, is_all: bool) -> list[str]:
    """Return the collections to crawl. Raises UsageError."""
    unknown = [arg for arg in args if arg.startswith("-")]
    if unknown:
        raise UsageError(f"there is no option {unknown[0]}; scrapy crawl --help lists the options")
    if is_all:
        if args:
            raise UsageError("name collections or give --all, not both")
        folder = str(settings["CRAWLSPACE_COLLECTIONS_DIR"])
        names = collection_names(folder)
        if not names:
            raise UsageError(f"there is no collection in {folder} yet: scrapy startcollection makes one")
        return names
    if not args:
        raise UsageError("name a collection, as in: scrapy crawl demo (scrapy list shows them)")
    twice = next((name for number, name in enumerate(args) if name in args[:number]), None)
    if twice is not None:
        raise UsageError(f"{printable(twice)} is named twice; name each collection once")
    return list(args)


def _check_sequence(names: Sequence[str], settings: BaseSettings, opts: argparse.Namespace) -> None:
    """Raise UsageError for options that don't work with several collections."""
    for option in ("profile", "pdb"):
        if getattr(opts, option):
            raise UsageError(f"--{option} is for one collection: name one, and not {len(names)}")
    for uri in opts.overwrite_output or ():
        if PLACEHOLDER not in uri and not uri.startswith("-"):
            raise UsageError(
                f"-O {printable(uri)} would be overwritten by each of the {len(names)} collections:"
                f" write {PLACEHOLDER} for the name of the collection, as in -O items-{PLACEHOLDER}.jsonl, or add to one file with -o"
            )
    for name in names:
        collection_folder(name, settings)
        try:
            own = collection_settings(settings, name)
        except ConfigError:
            continue  # reported by its crawl
        if boolean("CRAWLSPACE_CONTINUOUS", own["CRAWLSPACE_CONTINUOUS"]):
            raise UsageError(
                f"{name} is crawled until it is stopped (CRAWLSPACE_CONTINUOUS), so those after it would not be crawled:"
                " crawl it by itself, or add -s CRAWLSPACE_CONTINUOUS=False"
            )


def _options(opts: argparse.Namespace, arguments: Sequence[str]) -> list[str]:
    """Return the options for each crawl of a sequence, as on the command line."""
    given: list[tuple[str, Sequence[Any]]] = [
        ("-s", opts.set),
        ("-a", arguments),
        ("-o", opts.output or ()),
        ("-O", opts.overwrite_output or ()),
        ("-L", [opts.loglevel] if opts.loglevel else ()),
        ("--logfile", [opts.logfile] if opts.logfile else ()),
    ]
    return [word for option, values in given for value in values for word in (option, value)] + [
        *(["--nolog"] if opts.nolog else []),
        *(["--unless-running"] if opts.unless_running else []),
    ]


def _make_empty(file: Path) -> None:
    """Raises ConfigError if it cannot be written."""
    try:
        file.write_text("", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"the summary {file} cannot be written: {error.strerror}; name a file that can") from error


def _write(file: Path, line: str) -> None:
    """Add a line to the file of the summary."""
    try:
        with file.open("a", encoding="utf-8") as opened:
            opened.write(line)
    except OSError as error:
        logger.error("the summary %s cannot be written: %s", file, error.strerror)  # noqa: TRY400 - a sentence, without traceback


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
    # An invalid certificate is an ordinary outcome (614): no tracebacks.
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


def _is_warning(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING
