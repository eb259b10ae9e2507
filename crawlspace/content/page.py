"""What was found in a page, whatever kind of document it is."""

from __future__ import annotations

from dataclasses import dataclass

from crawlspace.content.robots_directives import NO_LIMITS, RobotsDirectives
from crawlspace.model import Link

MAX_TEXT = 10_000_000
"""Characters of a page's text that are kept."""


@dataclass(frozen=True, slots=True)
class Page:
    """What was found in a page. `hrefs` are its links as written, white space stripped as browsers do; `base` is what they are
    relative to. `canonical` and the URL of `meta_refresh` are as written too."""

    base: str
    title: str = ""
    description: str = ""
    language: str = ""
    """A language tag like `en-GB`, or empty."""
    headings: tuple[str, ...] = ()
    """`h1` to `h3`."""
    text: str = ""
    """Words apart by single spaces; the title is not part of it."""
    hrefs: tuple[str, ...] = ()
    """What the page links to, each once."""
    tags: tuple[str, ...] = ()
    """The element that each of them is in first."""
    nofollow: frozenset[str] = frozenset()
    """Those of them that the page asks not to follow."""
    canonical: str | None = None
    robots: RobotsDirectives = NO_LIMITS
    meta_refresh: tuple[float, str] | None = None
    """Seconds, URL."""
    charset: str = "utf-8"
    """Python's name of the codec the body was read with."""
    links_left_out: int = 0
    """Links beyond the limit."""
    text_left_out: int = 0
    """Characters of text beyond the limit."""

    @property
    def links(self) -> tuple[Link, ...]:
        """The links as objects, made afresh at each call: most callers need no more than `hrefs` or `followed`."""
        return tuple(Link(href, href in self.nofollow, tag) for href, tag in zip(self.hrefs, self.tags, strict=True))

    @property
    def followed(self) -> list[str]:
        """What the page links to without asking not to follow it."""
        return [href for href in self.hrefs if href not in self.nofollow] if self.nofollow else list(self.hrefs)
