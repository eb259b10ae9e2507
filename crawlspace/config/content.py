"""Read the settings that say what a page yields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from crawlspace import settings as defaults
from crawlspace.parsing import boolean, choice_of, integer, optional_boolean


@dataclass(frozen=True, slots=True)
class ContentSettings:
    link_tags: frozenset[str]
    max_links: int
    checksum_cut_off: int
    checksum_title: bool
    obey_meta_robots: bool


def read_content(settings: Mapping[str, object], *, robots_obey: bool) -> ContentSettings:
    """Return the settings of content; meta robots are obeyed as robots.txt is, unless they are set apart. Raises SettingError."""
    meta_robots = optional_boolean("CRAWLSPACE_META_ROBOTS", settings["CRAWLSPACE_META_ROBOTS"])
    return ContentSettings(
        link_tags=_link_tags(settings),
        max_links=integer("CRAWLSPACE_MAX_LINKS", settings["CRAWLSPACE_MAX_LINKS"], low=1),
        checksum_cut_off=integer("CRAWLSPACE_CHECKSUM_CUT_OFF", settings["CRAWLSPACE_CHECKSUM_CUT_OFF"], low=0),
        checksum_title=boolean("CRAWLSPACE_CHECKSUM_TITLE", settings["CRAWLSPACE_CHECKSUM_TITLE"]),
        obey_meta_robots=robots_obey if meta_robots is None else meta_robots,
    )


def _link_tags(settings: Mapping[str, object]) -> frozenset[str]:
    tags = frozenset(choice_of("CRAWLSPACE_LINK_TAGS", settings["CRAWLSPACE_LINK_TAGS"], defaults.CRAWLSPACE_LINK_TAGS))
    return tags if boolean("METAREFRESH_ENABLED", settings.get("METAREFRESH_ENABLED", True)) else tags - {"meta"}
