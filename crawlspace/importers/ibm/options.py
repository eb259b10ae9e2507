"""The properties of IBM's Web crawler, by the names that its console shows, and the settings of ours that do the same."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crawlspace.errors import did_you_mean
from crawlspace.importers.translation import (
    Defaults,
    Fate,
    Translate,
    Translation,
    WrongValue,
    as_switch,
    as_text,
    as_whole,
    extensions,
    lost,
    mime_types,
    never,
    one_value,
    setting,
    whole,
)
from crawlspace.text import quoted

_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_BYTES = {"b": 1, "kb": 1024, "mb": 1024**2, "gb": 1024**3}
_UNITS = {
    **dict.fromkeys(("ms", "msec", "msecs", "millisecond", "milliseconds", "millis"), "ms"),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), "m"),
    **dict.fromkeys(("h", "hour", "hours"), "h"),
    **dict.fromkeys(("d", "day", "days"), "d"),
    **dict.fromkeys(("w", "week", "weeks"), "w"),
    **dict.fromkeys(("b", "byte", "bytes"), "b"),
    **dict.fromkeys(("kb", "kib", "k", "kilobyte", "kilobytes"), "kb"),
    **dict.fromkeys(("mb", "mib", "megabyte", "megabytes"), "mb"),
    **dict.fromkeys(("gb", "gib", "gigabyte", "gigabytes"), "gb"),
}
_AMOUNT = re.compile(r"(?P<number>\d{1,12}(?:\.\d{1,6})?)\s*(?P<unit>[A-Za-z]*)")
_LISTED = re.compile(r"[\s,;|]+")


@dataclass(frozen=True, slots=True)
class IbmOption:
    """`name` is that of the console; `others` are alternative names, in any case and with any separators between words."""

    name: str
    translate: Translate
    others: tuple[str, ...] = ()
    is_documented: bool = False
    """Whether public documentation names it; else it is known by experience."""
    is_list: bool = False
    is_none_set: bool = False
    """Whether an empty value has a meaning, other than the default."""
    unit: str = ""
    """The unit of a number without one; empty where it has none."""


def _amount(values: Sequence[str], usual: str, factors: Mapping[str, float]) -> tuple[float, str]:
    """Return a number in the smallest unit, and a note where its unit was not named. Raises WrongValue."""
    text = one_value(values)
    found = _AMOUNT.fullmatch(text.strip())
    unit = _UNITS.get(found["unit"].lower(), "") if found and found["unit"] else usual
    if found is None or unit not in factors:
        raise WrongValue(f"it is a number with a unit, as in '5 {_WORDS[usual]}', not {quoted(text)}")
    note = "" if found["unit"] else f" (taken as {_WORDS[usual]}, because it names no unit)"
    return float(found["number"]) * factors[unit], note


_WORDS = {"s": "seconds", "d": "days", "b": "bytes"}


def _as_interval(name: str) -> Translate:
    """Return the translation of a time between two fetches."""

    def translate(values: Sequence[str], defaults: Defaults) -> Translation:
        seconds, note = _amount(values, "d", _SECONDS)
        if not seconds:
            raise WrongValue("it is more than 0")
        return setting(defaults, name, duration_text(seconds), note=note)

    return translate


def duration_text(seconds: float) -> str:
    """Return a duration as in settings, in the largest unit that divides it."""
    unit = next((unit for unit in "dhm" if seconds % _SECONDS[unit] == 0), "s")
    return f"{seconds / _SECONDS[unit]:g}{unit}"


def _as_seconds(name: str, *, low: float = 0) -> Translate:
    def translate(values: Sequence[str], defaults: Defaults) -> Translation:
        seconds, note = _amount(values, "s", _SECONDS)
        if seconds < low or not 0 <= seconds <= 10**9:
            raise WrongValue(f"it is {low:g} seconds or more")
        return setting(defaults, name, int(seconds) if seconds.is_integer() else seconds, note=note)

    return translate


def _page_length(values: Sequence[str], _: Defaults) -> Translation:
    size, note = _amount(values, "b", _BYTES)
    if size < 1:
        raise WrongValue("it is more than 0")
    names = ("DOWNLOAD_MAXSIZE", "CRAWLSPACE_FILE_MAXSIZE")
    text = f"{' and '.join(names)} = {int(size)}{note}; a longer page is not read at all"
    return Translation(Fate.TRANSLATED, text, dict.fromkeys(names, int(size)))


def _link_depth(values: Sequence[str], defaults: Defaults) -> Translation:
    most = whole(values)
    if not most:
        return lost("DEPTH_LIMIT = 0 is no limit; for start URLs alone set CRAWLSPACE_DEFAULT_FOLLOW = False")
    return setting(defaults, "DEPTH_LIMIT", most)


_SENT = "only the user agent is sent to a site; write it there (USER_AGENT), in brackets after the name"

OPTIONS: Sequence[IbmOption] = (
    IbmOption("User agent", as_text("USER_AGENT"), ("user agent name", "agent name", "http user agent"), is_documented=True),
    IbmOption("E-mail address", never(_SENT), ("email", "e-mail", "contact e-mail", "from")),
    IbmOption("Comments", never(_SENT), ("comments address", "comment", "comments e-mail")),
    IbmOption(
        "Minimum recrawl interval",
        _as_interval("CRAWLSPACE_REFRESH_MIN"),
        ("min recrawl time", "recrawl interval min", "min revisit interval"),
        is_documented=True,
        unit="d",
    ),
    IbmOption(
        "Maximum recrawl interval",
        _as_interval("CRAWLSPACE_REFRESH_MAX"),
        ("max recrawl time", "recrawl interval max", "max revisit interval"),
        is_documented=True,
        unit="d",
    ),
    IbmOption(
        "Maximum URL path depth",
        as_whole("CRAWLSPACE_MAX_PATH_DEPTH"),
        ("max path depth", "path depth", "url path depth"),
        is_documented=True,
    ),
    IbmOption("Maximum link depth", _link_depth, ("link depth", "max depth", "max crawl depth"), is_documented=True),
    IbmOption(
        "MIME types",
        mime_types,
        ("accepted mime types", "mime types to include", "include mime types", "allowed mime types", "document types"),
        is_documented=True,
        is_list=True,
    ),
    IbmOption(
        "Excluded file extensions",
        extensions,
        (
            "excluded extensions",
            "exclude extensions",
            "file extensions to exclude",
            "exclude file extensions",
            "file extensions",
            "extensions to exclude",
        ),
        is_documented=True,
        is_list=True,
        is_none_set=True,
    ),
    IbmOption(
        "Time to wait between requests to one host",
        _as_seconds("DOWNLOAD_DELAY"),
        (
            "wait between requests",
            "wait between requests to one host",
            "time between requests",
            "request delay",
            "delay",
            "crawl delay",
            "per host delay",
            "host delay",
            "wait time",
            "time to wait between requests",
            "wait between requests to the same host",
            "time to wait between requests to the same host",
        ),
        unit="s",
    ),
    IbmOption(
        "Maximum number of active hosts",
        as_whole("CRAWLSPACE_MAX_SITES", low=1),
        ("max active hosts", "active hosts", "number of active hosts", "max number active hosts"),
        is_documented=True,
    ),
    IbmOption(
        "Maximum number of active threads",
        as_whole("CONCURRENT_REQUESTS", low=1),
        ("max active threads", "max threads", "active threads", "number of threads", "threads", "number of crawler threads"),
    ),
    IbmOption(
        "Request timeout",
        _as_seconds("DOWNLOAD_TIMEOUT", low=1),
        ("timeout", "page timeout", "read timeout", "http timeout", "fetch timeout", "request time out", "connection timeout"),
        unit="s",
    ),
    IbmOption(
        "Maximum page length",
        _page_length,
        ("max page size", "max document size", "max length", "max document length", "page length"),
        unit="b",
    ),
    IbmOption("Maximum redirects", as_whole("REDIRECT_MAX_TIMES"), ("max number of redirects", "redirects", "redirect limit")),
    IbmOption(
        "Verify certificates",
        as_switch("DOWNLOAD_VERIFY_CERTIFICATES"),
        (
            "verify ssl certificates",
            "verify https certificates",
            "check certificates",
            "validate certificates",
            "verify server certificates",
        ),
    ),
)
PROXY = ("Proxy host", "Proxy port", "Proxy user", "Proxy password")
"""Properties that together are CRAWLSPACE_PROXY."""
_PROXY_NAMES = {
    "Proxy host": ("proxy", "proxy server", "http proxy", "http proxy host", "proxy host name", "proxy url"),
    "Proxy port": ("http proxy port",),
    "Proxy user": ("proxy user name", "proxy user id", "http proxy user"),
    "Proxy password": ("proxy pwd", "http proxy password"),
}


def known(name: str) -> tuple[str, str]:
    """Return the option of a name, and the unit at its end; empty texts if it is unknown."""
    for written in dict.fromkeys((name, name.rpartition(".")[2])):
        words = _words(written)
        for end in (len(words), len(words) - 1, len(words) - 2):
            rest, unit = words[:end], words[end:]
            if not rest or (unit and (unit[-1] not in _UNITS or unit[:-1] not in ([], ["in"]))):
                continue
            found = _BY_KEY.get("".join(rest), "")
            if found:
                return found, _UNITS[unit[-1]] if unit else ""
    return "", ""


def values_of(option: IbmOption, text: str, unit: str) -> list[str]:
    """Return the values of an option, a number with the unit that its name ends in."""
    if option.is_list:
        return [value for value in _LISTED.split(text) if value]
    return [f"{text} {unit}" if unit and text[-1:].isdigit() else text] if text else []


def not_known(name: str) -> Translation:
    reason = f"{quoted(name)} is no property that is known: {did_you_mean(name, [*BY_NAME, *PROXY], 'see docs/from-ibm.md')}"
    return Translation(Fate.NO_COUNTERPART, reason, is_recalled=False)


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SHORT = {
    "maximum": "max",
    "minimum": "min",
    "urls": "url",
    "uri": "url",
    "e": "",
    "mail": "email",
    "of": "",
    "the": "",
    "number": "",
    "file": "",
}


def _words(name: str) -> list[str]:
    """Return the words of a name, without those that only some spellings have."""
    words = [word.lower() for word in _WORD.findall(name)]
    return [short for word in words if (short := _SHORT.get(word, word))]


BY_NAME: Mapping[str, IbmOption] = {option.name: option for option in OPTIONS}
_BY_KEY = {
    "".join(_words(written)): name
    for name, others in [*((option.name, option.others) for option in OPTIONS), *_PROXY_NAMES.items()]
    for written in (name, *others)
}
