"""The text of OpenDocument files: body with notes, comments and text boxes, then headers and footers (OASIS OpenDocument 1.3)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import BinaryIO

from crawlspace.content.dates import iso_time
from crawlspace.content.documents.contents import FileContents, FileLimits, TextStatus, UnreadableFile
from crawlspace.content.documents.kinds import ODP, ODS
from crawlspace.content.documents.package import Leaves, Package, ignoring_damage, page_count
from crawlspace.content.documents.text_buffer import Flow, TextBuffer, TextFull

_ASIDES = frozenset({"note-body", "annotation", "text-box", "desc", "object", "custom-shape", "notes"})
_SKIPPED = frozenset(
    {"tracked-changes", "creator", "date", "note-citation", "binary-data", "sender-initials", "creator-initials"}
)
_BREAKS = frozenset({"s", "tab", "line-break", "table-cell", "list-item", "page"})
_PAGES = {ODP: "page", ODS: "table"}


def read_open_document(file: BinaryIO, contents: FileContents, limits: FileLimits) -> None:
    """Read a text, spreadsheet or presentation."""
    package = Package(file, limits)
    if any(name == "encryption-data" for name, _ in Leaves.of(package, "META-INF/manifest.xml").elements):
        raise UnreadableFile(TextStatus.ENCRYPTED)
    if "content.xml" not in package:
        raise UnreadableFile(TextStatus.DAMAGED, "it has no content.xml")
    _read_metadata(package, contents)
    buffer = TextBuffer(limits)
    body = OpenDocumentText(buffer, limits, pages=_PAGES.get(contents.kind, ""), root="body")
    with suppress(TextFull):
        package.parse("content.xml", body)
        for part in package.names("object "):  # embedded charts, formulas and tables
            if part.lower().endswith("/content.xml"):
                with ignoring_damage():
                    package.parse(part, OpenDocumentText(buffer, limits, root="body"))
        with ignoring_damage():
            package.parse("styles.xml", OpenDocumentText(buffer, limits, root="master-styles"))
    contents.pages = body.pages or contents.pages
    buffer.complete(contents)


def _read_metadata(package: Package, contents: FileContents) -> None:
    meta = Leaves.of(package, "meta.xml")
    contents.title = meta.get("title")
    contents.author = meta.get("initial-creator", "creator")
    contents.created, contents.modified = iso_time(meta.get("creation-date")), iso_time(meta.get("date"))
    contents.language = meta.get("language")
    pages = next((given.get("page-count", "") for name, given in meta.elements if name == "document-statistic"), "")
    contents.pages = page_count(pages)


class OpenDocumentText:
    """Collects the text below one element, `root`. `pages` names the elements that are counted as pages."""

    def __init__(self, buffer: TextBuffer, limits: FileLimits, *, root: str, pages: str = "") -> None:
        self._buffer, self._root, self._page = buffer, root, pages
        self._flow = Flow(buffer, limits)
        self.pages = 0
        self._in_root = self._skipping = self._paragraphs = 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == self._root:
            self._in_root += 1
        elif not self._in_root:
            return
        elif self._skipping or name in _SKIPPED:
            self._skipping += 1
        elif name in ("p", "h"):
            self._paragraphs += 1
        elif name in _ASIDES:
            self._flow.begin_aside()
        elif name in _BREAKS:
            self._flow.end_word()
        elif name == "a" and "href" in attributes:
            self._buffer.add_link(attributes["href"])
        if name == self._page:
            self.pages += 1

    def end(self, name: str) -> None:
        if not self._in_root:
            return
        if name == self._root:
            self._in_root -= 1
        elif self._skipping:
            self._skipping -= 1
        elif name in ("p", "h"):
            self._paragraphs -= 1
            text = self._flow.end_paragraph()
            if name == "h":
                self._buffer.add_heading(text)
        elif name in _ASIDES:
            self._flow.end_aside()
            if not self._paragraphs:
                self._flow.end_paragraph()
        elif name in _BREAKS:
            self._flow.end_word()

    def text(self, text: str) -> None:
        if self._paragraphs and not self._skipping:
            self._flow.add(text)
