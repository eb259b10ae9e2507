"""Read the settings that say what a page yields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from crawlspace import settings as defaults
from crawlspace.content.links import ANY, LinkAttributes
from crawlspace.content.page import EXTRACTION
from crawlspace.errors import SettingError, did_you_mean
from crawlspace.parsing import boolean, integer, optional_boolean, words
from crawlspace.text import quoted

_TAGS = "CRAWLSPACE_LINK_TAGS"
_PAIR = re.compile(r"""(\*|[a-z][^\s"'<>/=@*]*)@([^\s"'<>/=@*]+)""")
_SAME = {("a", "href"): "a", ("area", "href"): "area"}
"""What is written as a pair, and is meant by the name of the element."""
_LISTS = frozenset({"srcset", "imagesrcset"})
"""Attributes with several URLs, each with a size."""


@dataclass(frozen=True, slots=True)
class ContentSettings:
    link_tags: frozenset[str]
    """Names of elements."""
    link_pairs: frozenset[tuple[str, str]]
    """Elements and attributes of the user's own that hold links."""
    max_links: int
    checksum_cut_off: int
    checksum_title: bool
    obey_meta_robots: bool

    @property
    def link_attributes(self) -> LinkAttributes:
        return LinkAttributes(self.link_pairs)

    @property
    def extraction(self) -> tuple[int, list[str]]:
        """The version of what is taken from pages, and what links are taken from, sorted: `a`, `img@src`."""
        return EXTRACTION, sorted([*self.link_tags, *map("@".join, self.link_pairs)])


def read_content(settings: Mapping[str, object], *, robots_obey: bool) -> ContentSettings:
    """Return the settings of content; meta robots are obeyed as robots.txt is, unless they are set apart. Raises SettingError."""
    meta_robots = optional_boolean("CRAWLSPACE_META_ROBOTS", settings["CRAWLSPACE_META_ROBOTS"])
    tags, pairs = _read_link_tags(settings)
    return ContentSettings(
        link_tags=tags,
        link_pairs=pairs,
        max_links=integer("CRAWLSPACE_MAX_LINKS", settings["CRAWLSPACE_MAX_LINKS"], low=1),
        checksum_cut_off=integer("CRAWLSPACE_CHECKSUM_CUT_OFF", settings["CRAWLSPACE_CHECKSUM_CUT_OFF"], low=0),
        checksum_title=boolean("CRAWLSPACE_CHECKSUM_TITLE", settings["CRAWLSPACE_CHECKSUM_TITLE"]),
        obey_meta_robots=robots_obey if meta_robots is None else meta_robots,
    )


def _read_link_tags(settings: Mapping[str, object]) -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
    """Return the elements and the pairs of element and attribute that links are taken from."""
    found = [word.lower() for word in words(_TAGS, settings[_TAGS], separators=", |")]
    if not found:
        raise SettingError(f"{_TAGS} is {quoted(settings[_TAGS])}; {_MAY_HOLD}")
    pairs = {_pair(word) for word in found if "@" in word}
    tags = {word for word in found if "@" not in word}.union(_SAME[pair] for pair in pairs if pair in _SAME)
    for tag in sorted(tags.difference(defaults.CRAWLSPACE_LINK_TAGS)):
        raise SettingError(f"{_TAGS} has {quoted(tag)}: {_meant(tag)}")
    if not boolean("METAREFRESH_ENABLED", settings.get("METAREFRESH_ENABLED", True)):
        tags.discard("meta")
    return frozenset(tags), frozenset(pairs.difference(_SAME))


_MAY_HOLD = (
    f"it may hold {', '.join(defaults.CRAWLSPACE_LINK_TAGS)}, and pairs of element and attribute, as in img@src, or *@data-url for any"
    " element"
)


def _meant(tag: str) -> str:
    if re.fullmatch(r"[a-z][a-z0-9-]*", tag):
        return did_you_mean(
            tag, defaults.CRAWLSPACE_LINK_TAGS, f"name the attribute that has the link, as in {tag}@src; {_MAY_HOLD}"
        )
    return _MAY_HOLD


def _pair(word: str) -> tuple[str, str]:
    """Raises SettingError."""
    match = _PAIR.fullmatch(word)
    if match is None:
        is_path = re.fullmatch(r"[^/@]+/@[^/@]+", word)
        meant = f"did you mean {quoted(word.replace('/@', '@'))}?" if is_path else _MAY_HOLD
        raise SettingError(f"{_TAGS} has {quoted(word)}: {meant}")
    element, attribute = match.groups()
    if attribute in _LISTS:
        instead = f"{element}@src" if element != ANY else "img@src"
        raise SettingError(
            f"{_TAGS} has {quoted(word)}, and links are not taken from {attribute}, which holds several with their sizes; leave it out, or"
            f" take {quoted(instead)}"
        )
    return element, attribute
