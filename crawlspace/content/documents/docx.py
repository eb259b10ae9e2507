"""The text of Word files: body, footnotes, comments, headers and footers, text boxes where they are anchored (ECMA-376, 17)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import BinaryIO

from crawlspace.content.documents.contents import FileContents, FileLimits
from crawlspace.content.documents.ooxml import Relationship, link_of, main_part, read_drawings, read_properties, relationships
from crawlspace.content.documents.package import Leaves, Package, ignoring_damage, page_count
from crawlspace.content.documents.text_buffer import Flow, TextBuffer, TextFull

_OTHER_PARTS = ("footnotes", "endnotes", "comments", "header", "footer")
_DRAWINGS = ("diagramData", "chart")
_BREAKS = frozenset({"tab", "br", "cr", "ptab", "tc"})
_SKIPPED = frozenset({"Fallback", "moveFrom", "del", "numPicBullet", "sdtPr"})
"""`Fallback` repeats what its `Choice` has; the others are not shown."""
_HYPERLINK = re.compile(r"""HYPERLINK\s+"([^"]+)\"""")


def read_docx(file: BinaryIO, contents: FileContents, limits: FileLimits) -> None:
    """Read a Word file."""
    package = Package(file, limits)
    main = main_part(package, "word/document.xml")
    read_properties(package, contents)
    buffer = TextBuffer(limits)
    related = relationships(package, main)
    with suppress(TextFull):
        package.parse(main, WordText(buffer, limits, related, is_body=True))
        for kind in _OTHER_PARTS:
            for part in dict.fromkeys(one.target for one in related.values() if one.kind == kind and not one.is_external):
                with ignoring_damage():
                    package.parse(part, WordText(buffer, limits, relationships(package, part)))
        read_drawings(package, (one.target for one in related.values() if one.kind in _DRAWINGS), buffer)
    buffer.complete(contents)
    contents.pages = page_count(Leaves.of(package, "docProps/app.xml").get("Pages"))


class WordText:
    """Collects the text of one part."""

    def __init__(
        self, buffer: TextBuffer, limits: FileLimits, related: Mapping[str, Relationship], *, is_body: bool = False
    ) -> None:
        self._buffer, self._related, self._is_body = buffer, related, is_body
        self._flow = Flow(buffer, limits)
        self._skipping = 0
        self._in_text = self._in_code = self._is_heading = False
        self._code: list[str] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if self._skipping or name in _SKIPPED:
            self._skipping += 1
        elif name == "t":
            self._in_text = True
        elif name in _BREAKS:
            self._flow.end_word()
        elif name == "noBreakHyphen":
            self._flow.add("-")
        elif name == "txbxContent":
            self._flow.begin_aside()
        elif name == "pStyle":
            style = attributes.get("val", "").lower()
            self._is_heading = self._is_body and style.startswith(("heading", "title"))
        elif name == "instrText":
            self._in_code = True
        elif name in ("hyperlink", "hlinkClick") and (link := link_of(attributes, self._related)) is not None:
            self._buffer.add_link(link)

    def end(self, name: str) -> None:
        if self._skipping:
            self._skipping -= 1
        elif name == "t":
            self._in_text = False
        elif name == "p":
            text = self._flow.end_paragraph()
            if self._is_heading:
                self._buffer.add_heading(text)
            self._is_heading = False
        elif name == "txbxContent":
            self._flow.end_aside()
        elif name == "tc":
            self._flow.end_word()
        elif name == "instrText":
            self._in_code = False
        elif name == "fldChar" and self._code:
            match = _HYPERLINK.search("".join(self._code))
            self._code = []
            if match is not None:
                self._buffer.add_link(match[1])

    def text(self, text: str) -> None:
        if self._in_text and not self._skipping:
            self._flow.add(text)
        elif self._in_code and len(self._code) < 100:
            self._code.append(text)
