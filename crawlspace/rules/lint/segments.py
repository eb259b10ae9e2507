"""Prefix rules with a `*` in a path segment, as in `http://www.example.com/*fs/`. It matches slashes too, and one segment is meant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class CrossingStar(NamedTuple):
    """What a rule with such a star matches."""

    also: str
    """A URL that it matches over several segments."""
    value: str
    """The value of a Path in rules.xml that matches one segment."""


def star_in_segment(pattern: str) -> CrossingStar | None:
    """Return what a star in a whole segment matches; None where there is none, or where one segment would make no difference.

    `pattern` is that of a prefix rule. A segment that is nothing but a star stands for any number of them, and what is before the
    end of the pattern is no whole segment.
    """
    if "*" not in pattern or "?" in pattern:
        return None
    scheme, _, rest = pattern.partition("://")
    authority, _, path = rest.partition("/")
    segments = path.split("/")
    place = next((place for place, segment in enumerate(segments[:-1]) if _differs(segments, place, segment)), None)
    if place is None:
        return None
    several = [segment.replace("*", "a/b/x", 1) if at == place else segment for at, segment in enumerate(segments)]
    also = "/".join([f"{scheme}://{authority}", *several]).replace("*", "c")
    value = "/".join(["", *(_value(segment, is_whole=at < len(segments) - 1) for at, segment in enumerate(segments))])
    return CrossingStar(f"{also}c" if also.endswith("/") else also, value)


def _differs(segments: Sequence[str], place: int, segment: str) -> bool:
    """Whether a segment has a star, and fewer URLs would match if it did not match slashes."""
    if "*" not in segment or segment == "*":
        return False
    if segment.count("*") > 1:
        return True
    is_last = segments[place + 1 :] == [""]
    return not (
        (segment.endswith("*") and (is_last or segments[place + 1] == "*"))
        or (segment.startswith("*") and place > 0 and segments[place - 1] == "*")
    )


def _value(segment: str, *, is_whole: bool) -> str:
    return segment.replace("*", r"\[\^/\]\*" if is_whole and segment != "*" else r"\.\*")
