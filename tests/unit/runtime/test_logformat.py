"""What reaches the log."""

from __future__ import annotations

import io
import logging

import pytest

from crawlspace.runtime.logformat import make_printable

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


def log(message: str, *values: object, exc_info: Exception | None = None) -> str:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    make_printable(handler)
    make_printable(handler)
    assert len(handler.filters) == 1
    seen = (type(exc_info), exc_info, exc_info.__traceback__) if exc_info is not None else None
    handler.handle(logging.LogRecord("crawlspace", logging.WARNING, __file__, 1, message, values, seen))
    return stream.getvalue()
