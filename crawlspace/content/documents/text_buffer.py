"""Collects the text, headings and links of a file while it is read, up to the limits."""

from __future__ import annotations

import re
import unicodedata

from crawlspace.content.documents.contents import MAX_HREF, MAX_TITLE, FileContents, FileLimits

MAX_HEADINGS = 100
_WEB = ("http://", "https://")
_DROPPED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\xad\ufffe\uffff]|[\ud800-\udfff]")
"""Control characters, soft hyphens, and what no text has."""


_SAMPLE = 2_000
"""Characters that are looked at."""


class TextFull(Exception):
    """The text has reached its limit; what was collected is good."""


class TextBuffer:
    """The text of a file so far. Parts that are added without a break in between are one word."""

    def __init__(self, limits: FileLimits) -> None:
        self._limits = limits
        self._parts: list[str] = []
        self._length = 0
        self._hrefs: dict[str, None] = {}
        self._headings: list[str] = []
        self.is_cut = False

    def add(self, text: str) -> None:
        """Add text. Raises TextFull at the limit."""
        self._parts.append(text)
        self._length += len(text)
        if self._length > self._limits.max_text:
            self.is_cut = True
            raise TextFull

    def end_word(self) -> None:
        """Separate what comes from what was added."""
        if self._parts and self._parts[-1] != " ":
            self._parts.append(" ")

    def add_link(self, href: str) -> None:
        """Add a hyperlink, if it is one of the web."""
        href = href.strip()
        if href.lower().startswith(_WEB) and len(href) <= MAX_HREF and len(self._hrefs) < self._limits.max_links:
            self._hrefs[href] = None

    def add_heading(self, text: str) -> None:
        """Add a heading, which is part of the text already."""
        heading = one_line(text)
        if heading and len(self._headings) < MAX_HEADINGS:
            self._headings.append(heading[:MAX_TITLE])

    def complete(self, contents: FileContents) -> None:
        """Set text, headings and links."""
        words = one_line("".join(self._parts))
        contents.text_left_out = contents.text_left_out or self.is_cut
        contents.text = words[: self._limits.max_text].rstrip()
        contents.headings = contents.headings or tuple(self._headings)
        contents.hrefs = contents.hrefs or tuple(self._hrefs)


def one_line(text: str) -> str:
    """Return text without control characters, its white space collapsed."""
    return " ".join(_DROPPED.sub("", text).split())


def has_words(text: str) -> bool:
    """Return whether a text is more than signs that nobody can read, as a font without a Unicode map gives them."""
    unreadable = readable = 0
    for character in text[:: 1 + len(text) // _SAMPLE]:
        if character.isalnum():
            readable += 1
        elif character == "\ufffd" or unicodedata.category(character) in ("Co", "Cn"):
            unreadable += 1
    return readable > 0 and readable >= unreadable
