"""The attributes of a Crawler of Exalead CloudView, and the settings of ours that do the same.

An attribute that is in no table is reported as not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from crawlspace.errors import ConfigError, SettingError, did_you_mean
from crawlspace.frontier.source_weights import DEFAULT_WEIGHTS, NAME, read_weights
from crawlspace.importers.access import proxies
from crawlspace.importers.exalead.xml import ConfigElement
from crawlspace.importers.translation import (
    Defaults,
    Fate,
    Translate,
    Translation,
    WrongValue,
    always,
    as_switch,
    as_text,
    as_whole,
    lost,
    near_duplicates,
    never,
    one_value,
    setting,
    sitemaps,
    whole,
    yes_or_no,
)
from crawlspace.model import Source
from crawlspace.text import quoted

CONFIRMED = frozenset(
    {
        *("name", "documentsType", "fetcher", "crawlerServer", "connectorServer", "buildGroup", "dataModel", "storeTextOnly"),
        *("nthreads", "aggressive", "throttleTimeMS", "ignoreRobotsTxt", "enableConvertProcessor", "nearDuplicateDetector"),
        *("crawlSitemaps", "disableConditionalGet", "defaultAccept"),
    }
)
"""Attributes whose meaning public documentation states; the others are known by experience."""
THROTTLE_MS = 2500
"""The documented default of throttleTimeMS."""
SMART_REFRESH = "CRAWLSPACE_SMART_REFRESH"


def throttle(values: Sequence[str], defaults: Defaults) -> Translation:
    """Return the delay for throttleTimeMS."""
    seconds = whole(values) / 1000
    return setting(defaults, "DOWNLOAD_DELAY", int(seconds) if seconds.is_integer() else seconds)


def _robots(values: Sequence[str], defaults: Defaults) -> Translation:
    found = setting(defaults, "ROBOTSTXT_OBEY", not yes_or_no(values))
    if not found.settings:
        return found
    settings = {**found.settings, "CRAWLSPACE_META_ROBOTS": True}
    return Translation(Fate.TRANSLATED, f"{found.text}, and CRAWLSPACE_META_ROBOTS = True: META tags are obeyed", settings)


def _text_only(values: Sequence[str], defaults: Defaults) -> Translation:
    if yes_or_no(values):
        return Translation(
            Fate.DEFAULT, "documents have their text; the archive, too, keeps what was fetched (CRAWLSPACE_ARCHIVE)"
        )
    return setting(defaults, "CRAWLSPACE_ARCHIVE", True)  # noqa: FBT003 - the value of the setting


def _smart_refresh(values: Sequence[str], defaults: Defaults) -> Translation:
    note = ": nothing is due by age; write the times of the scheduled refresh into CRAWLSPACE_REFRESH_SCHEDULE"
    return setting(defaults, SMART_REFRESH, yes_or_no(values), note=note)


def _verbose(values: Sequence[str], defaults: Defaults) -> Translation:
    if yes_or_no(values):
        return setting(defaults, "LOG_LEVEL", "DEBUG")
    return Translation(Fate.DEFAULT, "LOG_LEVEL sets the level of the log")


def listed(text: str) -> list[str]:
    """Return the words of a list."""
    return [word for word in re.split(r"[\s,;|]+", text) if word]


def mime_types(values: Sequence[str], defaults: Defaults, *, is_include: bool) -> Translation:
    """Return the accepted types for mimeTypes; `is_include`: those are accepted, else all of ours except those."""
    name = "CRAWLSPACE_MIME_TYPES"
    types = [word.lower() for word in listed(one_value(values))]
    wrong = next((word for word in types if not re.fullmatch(r"[\w.+*-]+/[\w.+*-]+", word)), None)
    if wrong is not None or (is_include and not types):
        raise WrongValue("it is a list of types such as text/html, separated by commas")
    if is_include:
        return setting(defaults, name, types)
    ours = defaults[name]
    assert isinstance(ours, list)
    kept = [one for one in ours if not any(_is_of(one, word) for word in types)]
    note = ": which other types Exalead takes is not known, so these are ours without those"
    if not kept:
        return lost("no type would be left")
    return setting(defaults, name, kept, note=note)


def _is_of(one: str, pattern: str) -> bool:
    return one == pattern or (pattern.endswith("/*") and one.startswith(pattern[:-1])) or pattern == "*/*"


_OF_SERVERS = (
    "it names servers and parts of CloudView; several machines crawl one collection by a shared store (docs/machines.md)"
)
_OF_INDEX = "it is about the index of CloudView; documents are sent to CRAWLSPACE_SINKS: write those of yours"
_COLLAPSING = "it groups the results of a search by site; documents have their host, by which a search groups or counts them"

OPTIONS: Mapping[str, Translate] = {
    "name": lambda _, __: Translation(Fate.TRANSLATED, "the name of the collection, unless another one is given"),
    "documentsType": never(_OF_INDEX),
    "crawlerServer": never(_OF_SERVERS),
    "connectorServer": never(_OF_SERVERS),
    "buildGroup": never(_OF_INDEX),
    "dataModel": never(_OF_INDEX),
    "dataModelClass": never(_OF_INDEX),
    "storeTextOnly": _text_only,
    "nthreads": as_whole("CONCURRENT_REQUESTS", low=1),
    "ignoreRobotsTxt": _robots,
    "enableConvertProcessor": as_switch("CRAWLSPACE_FOLLOW_FILE_LINKS"),
    "nearDuplicateDetector": near_duplicates,
    "patternsDetector": always(usual=False, same="no patterns are looked for in pages"),
    "crawlSitemaps": sitemaps,
    "disableConditionalGet": lambda values, defaults: setting(defaults, "CRAWLSPACE_CONDITIONAL_GET", not yes_or_no(values)),
    "defaultAccept": as_switch("CRAWLSPACE_DEFAULT_ACCEPT"),
    "defaultIndex": as_switch("CRAWLSPACE_DEFAULT_INDEX"),
    "defaultFollow": as_switch("CRAWLSPACE_DEFAULT_FOLLOW"),
    "indexRedirectSources": always(
        usual=False,
        same="a URL that redirects is not indexed, but its target",
        otherwise="a URL that redirects has no content of its own: its target is indexed, and `scrapy explain` shows where it leads",
    ),
    "smartRefresh": _smart_refresh,
    "enableSimpleSiteCollapsing": always(usual=False, same=_COLLAPSING),
    "siteCollapsing": always(usual=False, same=_COLLAPSING),
    "simpleSiteCollapsingDepth": lambda values, _: lost(_COLLAPSING) if whole(values) else Translation(Fate.DEFAULT, _COLLAPSING),
    "userAgent": as_text("USER_AGENT"),
    "verbose": _verbose,
}
"""Options that depend on their value only. `collection.py` has the others."""


# --- The settings of a fetcher. Their names are not documented; those that say by themselves what they are for are translated ---
# A value that is not translated is not printed: it may be a password.


class TranslatedOption(NamedTuple):
    line: int
    option: str
    translation: Translation


def is_fetcher(element: ConfigElement) -> bool:
    return re.match(r"(default)?fetch(er|ing)?([A-Z_]|$)", element.name, re.IGNORECASE) is not None and not element.is_foreign


def fetcher_options(element: ConfigElement, defaults: Defaults, *, collection: str) -> Iterator[TranslatedOption]:
    """Yield the translation of each setting of a fetcher: attributes, and elements with a text or a value."""
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
        yield TranslatedOption(line, name, translation)


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
        return lost("no host of a proxy is named with it: set CRAWLSPACE_PROXY")
    user = next((given[key] for key in ("proxyuser", "proxyusername", "proxylogin") if given.get(key)), "")
    netloc = f"{host}:{port}" if port and ":" not in host else host
    return proxies([f"{user}:-@{netloc}" if user else netloc], collection=collection)


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


# --- The weights of the crawler's queues ("fifos") as CRAWLSPACE_SOURCE_WEIGHTS ------------------------------------
# How a CrawlSchedulerConfig is written is not documented. What is understood: an attribute or element that is named after a queue,
# with its weight, and elements that have the name or number of a queue and a weight.

_NAMING = frozenset({"name", "fifo", "source", "key", "id", "number", "type"})
_WEIGHING = frozenset({"weight", "priority", "value"})
_BY_NAME = {source.label.replace("_", ""): source for source in Source}
_BY_NUMBER = {str(number): source for number, source in enumerate(Source)}


def queue_weights(config: ConfigElement) -> tuple[list[TranslatedOption], Mapping[str, int]]:
    """Return the fate of each attribute and element, and CRAWLSPACE_SOURCE_WEIGHTS; empty if equal to ours."""
    found: list[TranslatedOption] = []
    weights: dict[str, int] = {}
    for line, option, source, text in _named(config, config.name):
        if source is None:
            found.append(
                TranslatedOption(
                    line, option, lost("it names no queue that is known with its weight: set CRAWLSPACE_SOURCE_WEIGHTS")
                )
            )
            continue
        try:
            weight = whole([text.strip()])
            read_weights({**weights, source.label: weight})
        except (WrongValue, SettingError) as error:
            found.append(TranslatedOption(line, option, lost(f"its value cannot be used: {error}")))
            continue
        is_default = weight == DEFAULT_WEIGHTS[source]
        if not is_default:
            weights[source.label] = weight
        fate = Fate.DEFAULT if is_default else Fate.TRANSLATED
        found.append(TranslatedOption(line, option, Translation(fate, f"{quoted(source.label)}: {weight} in {NAME}")))
    return found, weights


def _named(element: ConfigElement, path: str) -> Iterator[tuple[int, str, Source | None, str]]:
    """Yield line, name, queue and weight of the attributes of an element, and of nested ones; None if no queue is named."""
    attributes = dict(element.attributes)
    whose = next((source for key in attributes if key.lower() in _NAMING and (source := _source(attributes[key].value))), None)
    whose = whose or _source(element.name)
    weight = next((one for key, one in attributes.items() if key.lower() in _WEIGHING), None)
    text = element.text.strip()
    if whose is not None and (weight is not None or text):
        yield element.line, f"{path} {whose.label}", whose, weight.value if weight is not None else text
        attributes = {key: one for key, one in attributes.items() if one is not weight and _source(one.value) is not whose}
    elif text:
        yield element.line, path, None, text
    for one in attributes.values():
        yield one.line, f"{path}/{one.name}", _source(one.name), one.value
    for child in element.elements:
        yield from _named(child, f"{path}/{child.name}")


def _source(name: str) -> Source | None:
    """Return the queue of a name such as `index_follow`, `fifo:indexFollow`, `indexFollowWeight`, or of a number."""
    plain = re.sub(r"fifo|weight|priority|source|queue|smart|[^a-z0-9]", "", name.lower())
    return _BY_NAME.get(plain) or _BY_NUMBER.get(name.strip())
