"""What reaches the log."""

from __future__ import annotations

import io
import json
import logging
import os

import pytest
from scrapy import Request
from scrapy.http import Response
from scrapy.settings import Settings
from scrapy.utils.log import _uninstall_scrapy_root_handler, install_scrapy_root_handler

from crawlspace.runtime.components.logformat import JsonFormatter, QuietLogFormatter, make_printable

LOGGED = [
    (("redirected to %s", "http://user:SECRET@h/\x1b]0;t\x07"), "redirected to http://…@h/\\x1b]0;t\\x07\n"),
    (("stats:\n%s \u202e", {"a": 1}), "stats:\n{'a': 1} \\u202e\n"),
    (("%s", "x" * 3_000_000), "x" * 2047 + "…\n"),
    (("100 %",), "100 %\n"),
]


@pytest.mark.parametrize(("arguments", "written"), LOGGED)
def test_what_is_logged_is_fit_to_be_printed(arguments: tuple[str, object], written: str) -> None:
    assert log(*arguments) == written


def test_a_traceback_is_fit_too() -> None:
    try:
        raise ValueError("http://user:SECRET@h/\x9b")
    except ValueError as error:
        written = log("failed", exc_info=error)
    assert "SECRET" not in written
    assert written.endswith("ValueError: http://…@h/\\u009b\n")


def test_a_record_is_a_line_of_json() -> None:
    handler = logging.StreamHandler(stream := io.StringIO())
    handler.setFormatter(JsonFormatter("demo"))
    try:
        raise KeyError("http://user:SECRET@h/\x9b")
    except KeyError as error:
        seen = (type(error), error, error.__traceback__)
    record = logging.LogRecord("crawlspace.crawl", logging.ERROR, __file__, 1, 'two\nlines "%s"', ("http://u:SECRET@h/",), seen)
    record.created = 1_700_000_000.25
    handler.handle(record)
    handler.handle(logging.LogRecord("scrapy", logging.INFO, __file__, 1, "100 %", None, None))
    first, second = map(json.loads, stream.getvalue().splitlines())
    trace = first.pop("error.stack_trace")
    assert trace.startswith("Traceback (most recent call last):\n")
    assert "SECRET" not in stream.getvalue()
    assert first == {
        "@timestamp": "2023-11-14T22:13:20.250Z",
        "log.level": "error",
        "message": 'two\nlines "http://…@h/"',
        "ecs.version": "1.6.0",
        "log.logger": "crawlspace.crawl",
        "service.name": "crawlspace",
        "process.pid": os.getpid(),
        "labels.collection": "demo",
        "error.type": "KeyError",
        "error.message": "'http://…@h/\\x9b'",
    }
    assert (second["message"], second["log.level"], "error.type" in second) == ("100 %", "info", False)


def test_the_stack_of_a_record_is_in_its_line_of_json() -> None:
    formatter, stack = JsonFormatter("demo"), "Stack (most recent call last):\n  here"
    record = logging.LogRecord("scrapy", logging.INFO, __file__, 1, "where", None, None, sinfo=stack)
    assert json.loads(formatter.format(record))["error.stack_trace"] == stack
    record.exc_text = "Traceback"
    assert json.loads(formatter.format(record))["error.stack_trace"] == f"Traceback\n{stack}"


def log(message: str, *values: object, exc_info: Exception | None = None) -> str:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    make_printable(handler)
    make_printable(handler)
    assert len(handler.filters) == 1
    seen = (type(exc_info), exc_info, exc_info.__traceback__) if exc_info is not None else None
    handler.handle(logging.LogRecord("crawlspace", logging.WARNING, __file__, 1, message, values, seen))
    return stream.getvalue()


MESSAGES_OF_PAGES = [  # level of the handler (LOG_LEVEL), level of the logger, made
    ("DEBUG", "NOTSET", True),
    ("INFO", "NOTSET", False),
    ("WARNING", "NOTSET", False),
    ("DEBUG", "WARNING", False),
]


@pytest.mark.parametrize(("shown", "logged", "is_made"), MESSAGES_OF_PAGES)
def test_messages_for_each_page_are_made_only_where_they_are_shown(shown: str, logged: str, *, is_made: bool) -> None:
    scrapy, root_level = logging.getLogger("scrapy"), logging.root.level
    level = scrapy.level
    try:
        install_scrapy_root_handler(Settings({"LOG_LEVEL": shown}))
        scrapy.setLevel(logged)
        formatter, response = QuietLogFormatter(), Response("http://h/")
        made = [formatter.crawled(Request("http://h/"), response, None), formatter.scraped({}, response, None)]
    finally:
        _uninstall_scrapy_root_handler()
        scrapy.setLevel(level)
        logging.root.setLevel(root_level)
    assert [message is not None for message in made] == [is_made] * 2
