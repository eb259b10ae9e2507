"""Scrapy's log messages, less those for each single page: making them costs more than the frontier does.

All messages are made printable here, whichever component logs them: no credentials, no control characters, lines of 2 KB.
"""

from __future__ import annotations

import json
import logging
import sys
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Self

from scrapy.logformatter import LogFormatter
from scrapy.utils.log import get_scrapy_root_handler

from crawlspace.config.sentences import read
from crawlspace.settings import MonitoringSettings
from crawlspace.text import MESSAGE, cut, escaped, printable, without_credentials

JSON = "json"
"""The value of CRAWLSPACE_LOG_FORMAT."""


class QuietLogFormatter(LogFormatter):
    """Messages for each request and item are made only where DEBUG is logged."""

    @classmethod
    def from_crawler(cls, crawler: Any) -> Self:
        handler = get_scrapy_root_handler()
        if handler is not None:
            make_printable(handler)
            is_json = read(MonitoringSettings, crawler.settings).log_format == JSON
            if is_json and not isinstance(handler.formatter, JsonFormatter):
                handler.setFormatter(JsonFormatter(crawler.spidercls.name))  # of a script; `scrapy crawl` logs so from its start
        return super().from_crawler(crawler)

    def crawled(self, request: Any, response: Any, spider: Any) -> Any:
        return super().crawled(request, response, spider) if _shows_debugging() else None

    def scraped(self, item: Any, response: Any, spider: Any) -> Any:
        return super().scraped(item, response, spider) if _shows_debugging() else None

    def dropped(self, item: Any, exception: Any, response: Any, spider: Any) -> Any:
        return super().dropped(item, exception, response, spider) if _debugging() else None


class JsonFormatter(logging.Formatter):
    """Makes a line of JSON of each record, with the field names of the Elastic Common Schema (ECS)."""

    def __init__(self, collection: str) -> None:
        super().__init__()
        self._collection = collection

    def format(self, record: logging.LogRecord) -> str:
        printable_record(record)
        line: dict[str, object] = {
            "@timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "log.level": record.levelname.lower(),
            "message": record.getMessage(),
            "ecs.version": "1.6.0",
            "log.logger": record.name,
            "service.name": "crawlspace",
            "process.pid": record.process,
            "labels.collection": self._collection,
        }
        kind, error, _ = record.exc_info or (None, None, None)
        if kind is not None:
            line["error.type"] = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
            line["error.message"] = _shown(str(error))
        traces = [*([record.exc_text] if record.exc_text else []), *([_shown(record.stack_info)] if record.stack_info else [])]
        if traces:
            line["error.stack_trace"] = "\n".join(traces)
        return json.dumps(line, ensure_ascii=False)


def log_as_json(collection: str) -> None:
    """Log all that this process logs from now on as JSON, in each handler that Scrapy makes: it has no setting for the formatter."""
    formatter, usual = JsonFormatter(collection), logging.getLogRecordFactory()

    def make_record(*args: Any, **kwargs: Any) -> logging.LogRecord:
        handler = get_scrapy_root_handler()
        if handler is not None and handler.formatter is not formatter:
            handler.setFormatter(formatter)
        return usual(*args, **kwargs)

    logging.setLogRecordFactory(make_record)
    if logging.lastResort is not None:  # for what is logged before Scrapy has a handler
        logging.lastResort.setFormatter(formatter)


def make_libraries_printable() -> None:
    """Shorten what libraries log of header lines, cookies and lines of robots.txt (DEBUG), for every handler."""
    for name in _OF_SERVERS:
        make_printable(logging.getLogger(name))


_OF_SERVERS = (
    "scrapy.core.downloader.handlers.http11",
    "scrapy.downloadermiddlewares.cookies",
    "protego._protego",
    "protego._ruleset",
)


def make_printable(where: logging.Handler | logging.Logger) -> None:
    """Make the messages and tracebacks of a handler or logger printable."""
    if printable_record not in where.filters:
        where.addFilter(printable_record)


class LogFileWatch:
    """Reports once that a log file cannot be written any more, as on a full disk; without it, each line would be a traceback.

    For all log files of the process, and before Scrapy makes its own, which writes at once.
    """

    def __init__(self) -> None:
        self.error: OSError | None = None
        usual = logging.Handler.handleError

        def report(handler: logging.FileHandler, record: logging.LogRecord) -> None:
            error = sys.exc_info()[1]
            if not isinstance(error, OSError):
                usual(handler, record)
                return
            logging.getLogger().removeHandler(handler)
            with suppress(OSError):
                if handler.stream is not None:
                    handler.stream.close()
            handler.stream = None  # else it is written once more at the end
            if self.error is None:
                self.error = error
                sys.stderr.write(
                    f"the log {printable(handler.baseFilename)} cannot be written: {error.strerror}; the crawl goes on without it\n"
                )

        logging.FileHandler.handleError = report  # type: ignore[method-assign, assignment]


def printable_record(record: logging.LogRecord) -> bool:
    """Make a record printable. A filter, because that comes before any formatter, and keeps its colours."""
    text = record.getMessage()
    shown = _shown(text)
    if shown != text:
        record.msg, record.args = shown, None
    if record.exc_info and not record.exc_text:
        record.exc_text = _shown(_FORMATTER.formatException(record.exc_info))
    return True


_FORMATTER = logging.Formatter()


def _shown(text: str) -> str:
    return "\n".join(cut(line, MESSAGE) for line in escaped(without_credentials(text), keep_lines=True).split("\n"))


def _debugging() -> bool:
    return logging.getLogger("scrapy").isEnabledFor(logging.DEBUG)


def _shows_debugging() -> bool:
    """Whether anybody sees messages at DEBUG: LOG_LEVEL sets the level of the handler, not that of the logger."""
    handler = get_scrapy_root_handler()
    return (handler is None or handler.level <= logging.DEBUG) and _debugging()
