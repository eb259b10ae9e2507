"""The settings of a fetcher. Their names are not documented; those that say by themselves what they are for are translated.

A value that is not translated is not printed: it may be a password.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from crawlspace.errors import ConfigError, did_you_mean
from crawlspace.importers.exalead.xml import ConfigElement
from crawlspace.importers.outcomes import (
    Defaults,
    Translate,
    Translation,
    WrongValue,
    as_switch,
    as_text,
    as_whole,
    lost,
    never,
    setting,
    whole,
)
from crawlspace.importers.proxies import proxies
from crawlspace.text import quoted


class FetcherOption(NamedTuple):
    line: int
    option: str
    translation: Translation


def is_fetcher(element: ConfigElement) -> bool:
    return re.match(r"(default)?fetch(er|ing)?([A-Z_]|$)", element.name, re.IGNORECASE) is not None and not element.is_foreign


def fetcher_options(element: ConfigElement, defaults: Defaults, *, collection: str) -> Iterator[FetcherOption]:
    """Yield what becomes of each setting of a fetcher: attributes, and elements with a text or a value."""
    found = list(_settings(element, element.name))
    by_name = {_plain(name.rpartition("/")[2]): text for _, name, text in found}
    for line, name, text in found:
        plain = _plain(name.rpartition("/")[2])
        try:
            if plain in _PROXY:
                translation = _proxy(by_name, collection=collection)
            elif plain in _OPTIONS:
                translation = _OPTIONS[plain]([text], defaults)
            else:
                known = [*_OPTIONS, *_PROXY]
                translation = lost(
                    f"{quoted(name)} is not known: {did_you_mean(plain, known, 'set what it is for in settings.py')}"
                )
        except (WrongValue, ConfigError) as error:
            translation = lost(f"its value cannot be used: {error}")
        yield FetcherOption(line, name, translation)


def _settings(element: ConfigElement, path: str) -> Iterator[tuple[int, str, str]]:
    attributes = dict(element.attributes)
    name = path
    if path != element.name:
        named = next(
            (key for key in ("key", "name") if key in attributes and ("value" in attributes or element.text.strip())), ""
        )
        if named:
            name = f"{path}/{attributes.pop(named).value}"
        value = attributes.pop("value", None) or attributes.pop("val", None)
        if value is not None or element.text.strip():
            yield element.line, name, (value.value if value is not None else element.text).strip()
    for one in attributes.values():
        if (path, one.name) != (element.name, "name"):
            yield one.line, f"{path}/{one.name}", one.value.strip()
    for child in element.elements:
        yield from _settings(child, f"{path}/{child.name}")


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _milliseconds(values: list[str], defaults: Mapping[str, object]) -> Translation:
    seconds = whole(values, low=1) / 1000
    return setting(defaults, "DOWNLOAD_TIMEOUT", int(seconds) if seconds.is_integer() else seconds)


def _proxy(given: Mapping[str, str], *, collection: str) -> Translation:
    host, port = given.get("proxyhost", given.get("proxy", "")), given.get("proxyport", "")
    if not host:
        return lost("no host of a proxy is named beside it: set CRAWLSPACE_PROXY")
    user = next((given[key] for key in ("proxyuser", "proxyusername", "proxylogin") if given.get(key)), "")
    place = f"{host}:{port}" if port and ":" not in host else host
    return proxies([f"{user}:-@{place}" if user else place], collection=collection)


_SECONDS = as_whole("DOWNLOAD_TIMEOUT", low=1)
_NO_UNIT = never("its unit is not known: set DOWNLOAD_TIMEOUT, in seconds")
_NO_SIZE = never("its unit is not known: set DOWNLOAD_MAXSIZE and CRAWLSPACE_FILE_MAXSIZE, in bytes")
_PROXY = frozenset({"proxy", "proxyhost", "proxyport", "proxyuser", "proxyusername", "proxylogin", "proxypassword"})
_OPTIONS: Mapping[str, Translate] = {
    "useragent": as_text("USER_AGENT"),
    "timeout": _NO_UNIT,
    "fetchtimeout": _NO_UNIT,
    "connecttimeout": _NO_UNIT,
    "connectiontimeout": _NO_UNIT,
    "readtimeout": _NO_UNIT,
    "timeoutms": lambda values, defaults: _milliseconds(list(values), defaults),
    "timeouts": _SECONDS,
    "timeoutsec": _SECONDS,
    "timeoutseconds": _SECONDS,
    "maxredirects": as_whole("REDIRECT_MAX_TIMES"),
    "maxredirections": as_whole("REDIRECT_MAX_TIMES"),
    "maxsize": _NO_SIZE,
    "maxdocumentsize": _NO_SIZE,
    "maxcontentlength": _NO_SIZE,
    "cookies": as_switch("COOKIES_ENABLED"),
    "enablecookies": as_switch("COOKIES_ENABLED"),
    "usecookies": as_switch("COOKIES_ENABLED"),
    "login": never("log-ins are not translated: write the log-in of the site into CRAWLSPACE_SITES (docs/logins.md)"),
    "password": never("log-ins are not translated: write the log-in of the site into CRAWLSPACE_SITES (docs/logins.md)"),
}
