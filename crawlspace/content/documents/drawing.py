"""The text of what stands beside the text of an Office file: diagrams, charts, shapes and comments (ECMA-376, 20 and 21)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from crawlspace.content.documents.package import Package, ignoring_damage
from crawlspace.content.documents.text_buffer import TextBuffer

_NAMES = frozenset({"strCache", "multiLvlStrCache"})
"""The names of series and categories in a chart."""
_ENDS_WORD = frozenset({"p", "br", "tab", "tc", "sp", "v", "text", "comment", "cm", "threadedComment"})


def read_drawings(package: Package, parts: Iterable[str], buffer: TextBuffer) -> None:
    """Add the text of parts; a damaged one is left out."""
    for part in dict.fromkeys(parts):
        with ignoring_damage():
            package.parse(part, DrawingText(buffer))


class DrawingText:
    """Takes the text of one part: that of paragraphs and comments, and the names in a chart, without its numbers."""

    def __init__(self, buffer: TextBuffer) -> None:
        self._buffer = buffer
        self._in_text = self._in_names = False
        self._skipping = 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if self._skipping or name == "Fallback":
            self._skipping += 1
        elif name in ("t", "text"):  # a `text` that holds paragraphs has white space only
            self._in_text = True
        elif name in _NAMES:
            self._in_names = True
        elif name == "v":
            self._in_text = self._in_names
        elif name in _ENDS_WORD:
            self._buffer.end_word()

    def end(self, name: str) -> None:
        if self._skipping:
            self._skipping -= 1
            return
        if name in ("t", "text", "v"):
            self._in_text = False
        elif name in _NAMES:
            self._in_names = False
        if name in _ENDS_WORD:
            self._buffer.end_word()

    def text(self, text: str) -> None:
        if self._in_text:
            self._buffer.add(text)
