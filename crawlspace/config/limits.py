"""Read the limits of the crawl space from the settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from crawlspace.config.content import CONVERTERS, read_converters
from crawlspace.config.sentences import read
from crawlspace.errors import SettingError, did_you_mean
from crawlspace.parsing import words
from crawlspace.rules.limits import DEFAULT_EXCLUDED_EXTENSIONS, Limits
from crawlspace.settings import SpaceLimitsSection, UrlBoundsSection
from crawlspace.text import quoted

EXTENSIONS = "CRAWLSPACE_EXCLUDE_EXTENSIONS"
_SIGNS = ("+", "-")


@dataclass(frozen=True, slots=True)
class ExtensionChoice:
    """The extensions that are excluded, and what was added to the built-in list and taken from it."""

    excluded: frozenset[str]
    added: tuple[str, ...] = ()
    taken: tuple[str, ...] = ()
    where: str = EXTENSIONS
    """The setting, or its place in CRAWLSPACE_SITES."""

    def warnings(self) -> Iterator[str]:
        """Yield entries without effect: already in the built-in list, missing from it, or impossible as an extension."""
        built_in = DEFAULT_EXCLUDED_EXTENSIONS
        for name in self.taken:
            if name not in built_in:
                meant = did_you_mean(name, built_in, "its URLs are not excluded anyway")
                yield f"{self.where} takes {quoted(name)} from the built-in list, which does not have it: {meant}"
        for name in self.added:
            if name in built_in:
                yield f"{self.where} adds {quoted(name)} to the built-in list, which has it already: leave it out"
        for name in sorted(self.excluded):
            if "." in name:
                last = quoted(name.rpartition(".")[2])
                yield f"{self.where} has {quoted(name)}, and no URL has an extension with a dot in it: write {last}"


def read_extensions(settings: Mapping[str, object], *, where: str = EXTENSIONS) -> ExtensionChoice:
    """Return which extensions are excluded. Raises SettingError, also where some of the words have a sign and others have none.

    `where` is the place of the setting in messages.
    """
    value = settings.get(EXTENSIONS, "")
    found = words(where, value, separators="|, ")
    if not found:
        return ExtensionChoice(DEFAULT_EXCLUDED_EXTENSIONS, where=where)
    signed = [word for word in found if word.startswith(_SIGNS)]
    if not signed:
        return ExtensionChoice(frozenset() if found == ["none"] else frozenset(map(_name, found)), where=where)
    if len(signed) < len(found):
        plain = next(word for word in found if not word.startswith(_SIGNS))
        raise SettingError(
            f"{where} has {quoted(signed[0])} with a sign and {quoted(plain)} without one; write all with + or -, to add to the built-in"
            " list and to take from it, or none, for a list of your own"
        )
    added, taken = (tuple(dict.fromkeys(_name(word[1:]) for word in found if word[0] == sign)) for sign in _SIGNS)
    if "" in (*added, *taken):
        raise SettingError(f"{where} is {quoted(value)}, with a sign that no extension follows; write it as in '+log -ps'")
    if both := [name for name in added if name in taken]:
        raise SettingError(f"{where} both adds {quoted(both[0])} and takes it away; write one of '+{both[0]}' and '-{both[0]}'")
    return ExtensionChoice(DEFAULT_EXCLUDED_EXTENSIONS.union(added).difference(taken), added, taken, where)


def _name(word: str) -> str:
    return word.strip().lstrip(".").lower()


def with_converted(types: Iterable[str], converters: Iterable[str]) -> tuple[str, ...]:
    """Return the types that are taken: these, and those of the converters of a collection."""
    return tuple(dict.fromkeys([*map(str.lower, types), *converters]))


def read_limits(settings: Mapping[str, object]) -> Limits:
    """Return the limits of a collection, without those of single sites. Raises SettingError."""
    limits, bounds = read(SpaceLimitsSection, settings), read(UrlBoundsSection, settings)
    return Limits(
        schemes=frozenset(limits.CRAWLSPACE_SCHEMES),
        max_url_length=bounds.URLLENGTH_LIMIT,
        follow_query_strings=limits.CRAWLSPACE_FOLLOW_QUERY_STRINGS,
        exclude_extensions=read_extensions(settings).excluded,
        mime_types=with_converted(limits.CRAWLSPACE_MIME_TYPES, read_converters(settings.get(CONVERTERS))),
        max_path_depth=limits.CRAWLSPACE_MAX_PATH_DEPTH,
        max_link_depth=bounds.DEPTH_LIMIT or None,
        follow_offsite_links=limits.CRAWLSPACE_FOLLOW_OFFSITE_LINKS,
        index_entire_site=limits.CRAWLSPACE_INDEX_ENTIRE_SITE,
        max_repeated_segments=limits.CRAWLSPACE_MAX_REPEATED_SEGMENTS,
        max_urls_per_host=limits.CRAWLSPACE_MAX_URLS_PER_HOST,
    )
