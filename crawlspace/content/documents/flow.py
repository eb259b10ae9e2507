"""The text of paragraphs in which others are anchored: text boxes, footnotes and comments stand within a word, and are read after it."""

from __future__ import annotations

from crawlspace.content.documents.contents import FileLimits
from crawlspace.content.documents.text_buffer import TextBuffer, TextFull


class Flow:
    """Passes text on to a buffer, with what is anchored in a paragraph after its end."""

    def __init__(self, buffer: TextBuffer, limits: FileLimits) -> None:
        self._buffer = buffer
        self._left = limits.max_text
        """Characters that may still wait for the end of their paragraph."""
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
        """Separate what comes from what was added."""
        if self._open:
            self._open[-1].append(" ")
        else:
            self._paragraph.append(" ")
            self._buffer.end_word()

    def begin_aside(self) -> None:
        """What comes, until `end_aside`, does not belong to the present paragraph."""
        self._open.append([])
        self._ended.append([])

    def end_aside(self) -> None:
        """End the innermost aside."""
        if self._open:
            self.end_paragraph()
            self._ended.pop()
            self._ended[-1].append("".join(self._open.pop()))

    def end_paragraph(self) -> str:
        """End a paragraph and add its asides. Return its own text, if it is no part of an aside."""
        self.end_word()
        text = "" if self._open else "".join(self._paragraph)
        asides, self._ended[-1] = self._ended[-1], []
        for aside in asides:
            self.add(aside)
            self.end_word()
        if not self._open:
            self._paragraph = []
        return text
