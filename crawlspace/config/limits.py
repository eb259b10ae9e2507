"""Read the limits of the crawl space from the settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from crawlspace.config.file_reading import CONVERTERS, read_converters
from crawlspace.parsing import boolean, choice_of, integer, optional_integer, words
from crawlspace.rules.limits import DEFAULT_EXCLUDED_EXTENSIONS, Limits
from crawlspace.urls import DEFAULT_PORTS


def read_limits(settings: Mapping[str, object]) -> Limits:
    """Return the limits of a collection, those of single sites apart. Raises SettingError."""
    extensions = words("CRAWLSPACE_EXCLUDE_EXTENSIONS", settings["CRAWLSPACE_EXCLUDE_EXTENSIONS"], separators="|, ")
    if not extensions:
        excluded = DEFAULT_EXCLUDED_EXTENSIONS
    elif extensions == ["none"]:
        excluded = frozenset()
    else:
        excluded = frozenset(word.lstrip(".").lower() for word in extensions)
    return Limits(
        schemes=frozenset(choice_of("CRAWLSPACE_SCHEMES", settings["CRAWLSPACE_SCHEMES"], tuple(DEFAULT_PORTS))),
        max_url_length=integer("URLLENGTH_LIMIT", settings["URLLENGTH_LIMIT"], low=16, high=65_536),
        follow_query_strings=boolean("CRAWLSPACE_FOLLOW_QUERY_STRINGS", settings["CRAWLSPACE_FOLLOW_QUERY_STRINGS"]),
        exclude_extensions=excluded,
        mime_types=tuple(dict.fromkeys(_types(settings))),
        max_path_depth=optional_integer("CRAWLSPACE_MAX_PATH_DEPTH", settings["CRAWLSPACE_MAX_PATH_DEPTH"], low=0),
        max_link_depth=integer("DEPTH_LIMIT", settings["DEPTH_LIMIT"], low=0) or None,
        follow_offsite_links=boolean("CRAWLSPACE_FOLLOW_OFFSITE_LINKS", settings["CRAWLSPACE_FOLLOW_OFFSITE_LINKS"]),
        index_entire_site=boolean("CRAWLSPACE_INDEX_ENTIRE_SITE", settings["CRAWLSPACE_INDEX_ENTIRE_SITE"]),
        max_repeated_segments=integer("CRAWLSPACE_MAX_REPEATED_SEGMENTS", settings["CRAWLSPACE_MAX_REPEATED_SEGMENTS"], low=1),
        max_urls_per_host=optional_integer("CRAWLSPACE_MAX_URLS_PER_HOST", settings["CRAWLSPACE_MAX_URLS_PER_HOST"], low=1),
    )


def _types(settings: Mapping[str, object]) -> Iterator[str]:
    """Yield the types that are taken: those of the setting, and those that a converter is for."""
    for word in words("CRAWLSPACE_MIME_TYPES", settings["CRAWLSPACE_MIME_TYPES"], separators="|, "):
        yield word.lower()
    yield from read_converters(settings[CONVERTERS])
