"""The text of PowerPoint files: each slide with its notes and comments, then the masters (ECMA-376, 19 to 21)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import BinaryIO

from crawlspace.content.documents.contents import FileContents, FileLimits, TextStatus, UnreadableFile
from crawlspace.content.documents.ooxml import Relationship, link_of, main_part, read_drawings, read_properties, relationships
from crawlspace.content.documents.package import Leaves, Package, ignoring_damage
from crawlspace.content.documents.text_buffer import TextBuffer, TextFull

_DRAWINGS = ("comments", "diagramData", "chart")
_TITLES = frozenset({"title", "ctrTitle"})


def read_pptx(file: BinaryIO, contents: FileContents, limits: FileLimits) -> None:
    """Read a PowerPoint file."""
    package = Package(file, limits)
    main = main_part(package, "ppt/presentation.xml")
    read_properties(package, contents)
    buffer = TextBuffer(limits)
    slides = list(dict.fromkeys(_slides(package, main)))
    contents.pages = len(slides)
    contents.text_left_out = len(slides) > limits.max_pages
    is_whole = True
    with suppress(TextFull):
        for slide in slides[: limits.max_pages]:
            related = relationships(package, slide)
            is_whole &= package.parse_readable(slide, SlideText(buffer, related))
            for notes in (one.target for one in related.values() if one.kind == "notesSlide"):
                with ignoring_damage():
                    package.parse(notes, SlideText(buffer, relationships(package, notes)))
            read_drawings(package, (one.target for one in related.values() if one.kind in _DRAWINGS), buffer)
        for part in (*package.names("ppt/slidemasters/slidemaster"), *package.names("ppt/slidelayouts/slidelayout")):
            with ignoring_damage():
                package.parse(part, SlideText(buffer, {}, placeholders=False))
    buffer.complete(contents)
    if not (is_whole or contents.text):
        raise UnreadableFile(TextStatus.DAMAGED, "its slides cannot be read")


def _slides(package: Package, main: str) -> Iterator[str]:
    """Yield the slides in their order."""
    related = relationships(package, main)
    for element, attributes in Leaves.needed(package, main).elements:
        if element == "sldId":
            slide = related.get(attributes.get("id", ""))
            if slide is not None and slide.target in package:
                yield slide.target


class SlideText:
    """Collects the text of a slide, or of a part of it. `placeholders`: including that of shapes that slides fill."""

    def __init__(self, buffer: TextBuffer, related: Mapping[str, Relationship], *, placeholders: bool = True) -> None:
        self._buffer, self._related, self._placeholders = buffer, related, placeholders
        self._skipping = 0
        self._in_text = self._is_title = self._is_empty_placeholder = False
        self._title: list[str] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if self._skipping or name == "Fallback" or (name == "fld" and attributes.get("type") == "slidenum"):
            self._skipping += 1
        elif name == "t":
            self._in_text = True
        elif name in ("br", "tc", "tab"):
            self._buffer.end_word()
        elif name == "sp":
            self._is_title = self._is_empty_placeholder = False
        elif name == "ph":
            self._is_title = attributes.get("type") in _TITLES
            self._is_empty_placeholder = not self._placeholders
        elif name in ("hlinkClick", "hlinkHover") and (link := link_of(attributes, self._related)) is not None:
            self._buffer.add_link(link)

    def end(self, name: str) -> None:
        if self._skipping:
            self._skipping -= 1
        elif name == "t":
            self._in_text = False
        elif name in ("p", "sp"):
            self._buffer.end_word()
            if name == "sp" and self._title:
                self._buffer.add_heading(" ".join(self._title))
                self._title = []

    def text(self, text: str) -> None:
        if self._in_text and not self._skipping and not self._is_empty_placeholder:
            self._buffer.add(text)
            if self._is_title and len(self._title) < 100:
                self._title.append(text)
