"""Whether settings hold the kind of value that Scrapy reads them as: a wrong one would end in a traceback of Scrapy.

The kind is that of Scrapy's own default, so every setting that Scrapy knows is covered.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from scrapy.exceptions import UsageError
from scrapy.settings import default_settings
from scrapy.utils.misc import load_object

from crawlspace.errors import SettingError
from crawlspace.text import quoted

COMPONENTS = ("DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES", "ITEM_PIPELINES", "EXTENSIONS", "DOWNLOAD_HANDLERS")
REACTOR = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"
CLASSES = (
    "SCHEDULER",
    "STATS_CLASS",
    "LOG_FORMATTER",
    "TWISTED_DNS_RESOLVER",
    "ITEM_PROCESSOR",
    "DOWNLOADER",
)
_TABLES = (*COMPONENTS, "FEEDS", "FEED_EXPORTERS", "FEED_STORAGES", "DOWNLOAD_SLOTS", "DEFAULT_REQUEST_HEADERS", "REDIS_PARAMS")
_READ_BY_CONFIG = frozenset(
    "DOWNLOAD_DELAY CONCURRENT_REQUESTS CONCURRENT_REQUESTS_PER_DOMAIN DOWNLOAD_TIMEOUT DOWNLOAD_MAXSIZE RETRY_TIMES RETRY_ENABLED"
    " RETRY_HTTP_CODES REDIRECT_MAX_TIMES REDIRECT_ENABLED URLLENGTH_LIMIT DEPTH_LIMIT ROBOTSTXT_OBEY".split()
)
"""`config` validates these more precisely."""
_TRUTHS = ("0", "1", "True", "False", "true", "false")


def check_kinds(settings: Mapping[str, Any], names: Iterable[str]) -> None:
    """Raise SettingError for the first of the named settings whose value Scrapy could not read."""
    for name in names:
        value = settings[name]
        default = getattr(default_settings, name, None)
        if value is None or name in _READ_BY_CONFIG:
            continue
        if name in _TABLES or isinstance(default, dict):
            _check_table(name, value)
        elif isinstance(default, bool):
            _check_truth(name, value)
        elif isinstance(default, (int, float)):
            _check_number(name, value)
        elif name == "LOG_LEVEL":
            _check_level(value)


def faults(settings: Mapping[str, Any]) -> Iterator[SettingError]:
    """Yield what would keep a crawl from being set up: classes that cannot be imported, another reactor, a log that cannot be written."""
    reactor = settings["TWISTED_REACTOR"]
    if reactor != REACTOR or not settings.get("TWISTED_REACTOR_ENABLED", True):
        yield SettingError(f"TWISTED_REACTOR is {quoted(reactor)}; a collection is crawled on {REACTOR}: remove that setting")
    for name in COMPONENTS:
        value = settings[name]
        for component, order in value.items() if isinstance(value, Mapping) else ():
            named = order if name == "DOWNLOAD_HANDLERS" else component
            if order is not None and isinstance(named, str):
                yield from _import(name, named)
    for name in CLASSES:
        if isinstance(settings.get(name), str):
            yield from _import(name, settings[name])
    yield from _log_file(settings.get("LOG_FILE"))


def refuse_unreadable(arguments: Iterable[str]) -> None:
    """Raise Scrapy's UsageError for a `-s NAME=VALUE` that Scrapy could not read, before it tries."""
    for argument in arguments:
        name, _, value = argument.partition("=")
        try:
            check_kinds({name: value}, [name])
        except SettingError as error:
            raise UsageError(f"-s: {error}", print_help=False) from error


def _log_file(file: object) -> Iterator[SettingError]:
    try:
        if file:  # a pipe that nobody reads would keep the start waiting
            os.close(os.open(str(file), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o666))
            if Path(str(file)).is_file() and not shutil.disk_usage(str(file)).free:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError as error:
        yield SettingError(f"LOG_FILE is {quoted(str(file))}, which cannot be written: {error.strerror}; name another file")


def _import(name: str, path: str) -> Iterator[SettingError]:
    try:
        load_object(path)
    except Exception as error:  # noqa: BLE001 - it is a component of the user's, and may raise anything
        yield SettingError(f"{name} names {quoted(path)}, which cannot be imported: {type(error).__name__}: {error}")


def _check_table(name: str, value: Any) -> None:
    what = "a table of numbers by component" if name in COMPONENTS else "a table"
    example = '{"myproject.MyComponent": 500}' if name in COMPONENTS else "{…}"
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = None
    if not isinstance(value, Mapping):
        raise SettingError(f"{name} must be {what}, as in {name} = {example}")
    if name == "FEEDS":
        for uri, options in value.items():
            if not isinstance(options, Mapping):
                raise SettingError(
                    f'FEEDS[{quoted(str(uri))}] is {quoted(options)}; it must be a table, as in {{"format": "jsonlines"}}'
                )
    if name in COMPONENTS and name != "DOWNLOAD_HANDLERS":
        for component, order in value.items():
            if order is not None and (isinstance(order, bool) or not isinstance(order, (int, float))):
                raise SettingError(
                    f"{name}[{quoted(component)}] is {quoted(order)}; it must be a number, or None to leave it out"
                )


def _check_truth(name: str, value: Any) -> None:
    if not (isinstance(value, (bool, int)) or str(value) in _TRUTHS):
        raise SettingError(f"{name} is {quoted(value)}; it must be True or False")


def _check_number(name: str, value: Any) -> None:
    try:
        float(value)
    except (TypeError, ValueError):
        raise SettingError(f"{name} is {quoted(value)}; it must be a number") from None


def _check_level(value: Any) -> None:
    levels = logging.getLevelNamesMapping()
    if not isinstance(value, int) and str(value) not in levels and not str(value).isdigit():
        raise SettingError(f"LOG_LEVEL is {quoted(value)}; it must be one of {', '.join(levels)}")
