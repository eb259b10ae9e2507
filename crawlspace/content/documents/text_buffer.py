"""Collects the text, headings and links of a file while it is read, up to the limits.

Text boxes, footnotes and comments are anchored within a word, and their text follows the paragraph.
"""

from __future__ import annotations

import re
import unicodedata

from crawlspace.content.documents.contents import MAX_HREF, MAX_TITLE, FileContents, FileLimits

MAX_HEADINGS = 100
_WEB = ("http://", "https://")
_DROPPED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\xad\ufffe\uffff]|[\ud800-\udfff]")
"""Control characters, soft hyphens, and characters that no text has."""
_SAMPLE = 2_000
"""Characters that are examined."""


class TextFull(Exception):
    """The text has reached its limit; the text so far is valid."""


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
        """Separate the following text."""
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
    """Return whether a text has more readable characters than unreadable ones, as fonts without Unicode maps produce them."""
    unreadable = readable = 0
    for character in text[:: 1 + len(text) // _SAMPLE]:
        if character.isalnum():
            readable += 1
        elif character == "\ufffd" or unicodedata.category(character) in ("Co", "Cn"):
            unreadable += 1
    return readable > 0 and readable >= unreadable


class Flow:
    """Adds text to a buffer, with the asides of each paragraph after its end."""

    def __init__(self, buffer: TextBuffer, limits: FileLimits) -> None:
        self._buffer = buffer
        self._left = limits.max_text
        """Characters that asides may still have."""
        self._open: list[list[str]] = []
        """The text of each aside that is open."""
        self._ended: list[list[str]] = [[]]
        """The asides of the present paragraph, on each level."""
        self._paragraph: list[str] = []

    def add(self, text: str) -> None:
        """Add text that continues the present word."""
        if self._open:
            self._left -= len(text)
            if self._left < 0:
                self._buffer.is_cut = True
                raise TextFull
            self._open[-1].append(text)
        else:
            if len(self._paragraph) < 1_000:
                self._paragraph.append(text)
            self._buffer.add(text)

    def end_word(self) -> None:
        """Separate the following text."""
        if self._open:
            self._open[-1].append(" ")
        else:
            self._paragraph.append(" ")
            self._buffer.end_word()

    def begin_aside(self) -> None:
        """Begin an aside: text until `end_aside` does not belong to the paragraph."""
        self._open.append([])
        self._ended.append([])

    def end_aside(self) -> None:
        """End the innermost aside."""
        if self._open:
            self.end_paragraph()
            self._ended.pop()
            self._ended[-1].append("".join(self._open.pop()))

    def end_paragraph(self) -> str:
        """End a paragraph and add its asides. Return its text, unless it is part of an aside."""
        self.end_word()
        text = "" if self._open else "".join(self._paragraph)
        asides, self._ended[-1] = self._ended[-1], []
        for aside in asides:
            self.add(aside)
            self.end_word()
        if not self._open:
            self._paragraph = []
        return text
