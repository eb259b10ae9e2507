"""The attributes of a Crawler of Exalead CloudView, and the settings of ours that do the same.

An attribute that is in no table is reported as not known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from crawlspace.importers.outcomes import (
    Defaults,
    Translate,
    Translation,
    WrongValue,
    always,
    as_switch,
    as_text,
    as_whole,
    lost,
    never,
    one_value,
    planned,
    setting,
    whole,
    yes_or_no,
)
from crawlspace.importers.report import Fate

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
    note = ": nothing is due by its age; write the times of the scheduled refresh into CRAWLSPACE_REFRESH_SCHEDULE"
    return setting(defaults, SMART_REFRESH, yes_or_no(values), note=note)


def _verbose(values: Sequence[str], defaults: Defaults) -> Translation:
    if yes_or_no(values):
        return setting(defaults, "LOG_LEVEL", "DEBUG")
    return Translation(Fate.DEFAULT, "the log is as LOG_LEVEL says")


def listed(text: str) -> list[str]:
    """Return the words of a list."""
    return [word for word in re.split(r"[\s,;|]+", text) if word]


def mime_types(values: Sequence[str], defaults: Defaults, *, is_include: bool) -> Translation:
    """Return the types to take for mimeTypes; `is_include`: those are taken, and else all of ours but those."""
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
_COLLAPSING = "results are not grouped by site; a search has facets by host"

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
    "nearDuplicateDetector": planned(
        same="only equal pages are duplicates", otherwise="near duplicates are planned; equal pages are found"
    ),
    "patternsDetector": always(
        usual=False, same="no patterns are looked for in pages", otherwise="no patterns are looked for in pages"
    ),
    "crawlSitemaps": planned(same="sitemaps are not read", otherwise="sitemaps are planned"),
    "disableConditionalGet": always(
        usual=False,
        same="pages are asked for with If-Modified-Since and If-None-Match",
        otherwise="pages are always asked for with If-Modified-Since and If-None-Match, where a site has sent what that needs",
    ),
    "defaultAccept": as_switch("CRAWLSPACE_DEFAULT_ACCEPT"),
    "defaultIndex": as_switch("CRAWLSPACE_DEFAULT_INDEX"),
    "defaultFollow": as_switch("CRAWLSPACE_DEFAULT_FOLLOW"),
    "indexRedirectSources": always(
        usual=False,
        same="a URL that redirects is not indexed, but its target",
        otherwise="a URL that redirects is not indexed, but its target",
    ),
    "smartRefresh": _smart_refresh,
    "enableSimpleSiteCollapsing": always(usual=False, same=_COLLAPSING, otherwise=_COLLAPSING),
    "siteCollapsing": always(usual=False, same=_COLLAPSING, otherwise=_COLLAPSING),
    "simpleSiteCollapsingDepth": lambda values, _: lost(_COLLAPSING) if whole(values) else Translation(Fate.DEFAULT, _COLLAPSING),
    "userAgent": as_text("USER_AGENT"),
    "verbose": _verbose,
}
"""Those that need nothing but their value. `collection.py` has the others."""
