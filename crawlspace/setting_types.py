"""Types of settings."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


def seconds(low: float) -> Meta:
    """Return the bound of a duration: a number of seconds, or text with a unit as in "90s", "30m", "12h", "7d"."""
    return Meta(ge=low, extra={"unit": "s"})


Words = Annotated[tuple[str, ...], Meta(extra={"separators": ", |"})]
"""A list, or text with commas, blanks or bars."""
Listed = Annotated[tuple[str, ...], Meta(extra={"separators": ","})]
"""A list, or text with commas; what it holds may have blanks."""
Count = Annotated[int, Meta(ge=1)]
MOST_PROCESSES = 32
Processes = Annotated[int, Meta(ge=1, le=MOST_PROCESSES)]
"""Processes of one crawl."""
Whole = Annotated[int, Meta(ge=0)]


class Section(Struct, frozen=True, kw_only=True):
    """Settings that belong together, as in a section of docs/settings.md. What is an `object` is read by its own function."""
