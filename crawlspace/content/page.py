"""The contents of a page or file, for any kind of document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec

from crawlspace.content.robots_directives import NO_LIMITS, RobotsDirectives
from crawlspace.document import Part
from crawlspace.outcome import Link

MAX_TEXT = 10_000_000
"""Maximal characters of a page's text."""
EXTRACTION = 5
"""The version of the extraction: with another one, an unchanged page may have other links, another title or text."""


@dataclass(frozen=True, slots=True)
class Page:
    """The contents of a page or a file."""

    base: str
    """The URL that its links are relative to."""
    title: str = ""
    """That of the `title` element, else the first heading, else `og:title`."""
    description: str = ""
    """That of `meta name=description`."""
    language: str = ""
    """A language tag such as `en-GB`, or empty."""
    headings: tuple[str, ...] = ()
    """`h1` to `h3`."""
    text: str = ""
    """Words separated by single spaces, without the title."""
    hrefs: tuple[str, ...] = ()
    """The page's links, each once, as written, with white space stripped as in browsers."""
    tags: tuple[str, ...] = ()
    """The element of the first occurrence of each link."""
    nofollow: frozenset[str] = frozenset()
    """The links that must not be followed."""
    feeds: tuple[str, ...] = ()
    """Feeds that it names as those of the site."""
    canonical: str | None = None
    """The URL of its canonical page, as written."""
    robots: RobotsDirectives = NO_LIMITS
    """Whether it may be indexed, and its links followed."""
    meta_refresh: tuple[float, str] | None = None
    """Seconds, URL as written."""
    charset: str = "utf-8"
    """Python's name of the codec that decoded the body."""
    links_left_out: int = 0
    """Number of links beyond the limit."""
    text_left_out: int = 0
    """Characters of text beyond the limit."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Further fields of its document: the standard fields of a page, and the user's own; author, created, pages, text_status of a file."""
    modified: str = ""
    """The time of its modification, by its own metadata."""
    markdown: str = ""
    """Its content as Markdown; empty without CRAWLSPACE_MARKDOWN."""
    parts: Sequence[Part] = ()
    """Its sections, with CRAWLSPACE_PARTS."""
    may_need_browser: bool = False
    """The page has scripts, and next to no text and links."""

    @property
    def links(self) -> tuple[Link, ...]:
        """The links as objects, created at each call: most callers need only `hrefs` or `followed`."""
        return tuple(Link(href, href in self.nofollow, tag) for href, tag in zip(self.hrefs, self.tags, strict=True))

    @property
    def followed(self) -> list[str]:
        """The links without nofollow."""
        return [href for href in self.hrefs if href not in self.nofollow] if self.nofollow else list(self.hrefs)


def has_trafilatura() -> bool:
    """Return whether the library is installed that finds the main content of pages without elements for it."""
    return find_spec("trafilatura") is not None
