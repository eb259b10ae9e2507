"""Common parts of Word, PowerPoint and Excel files: relationships and metadata (ECMA-376 part 2), diagrams, charts, shapes and comments
(ECMA-376 part 1, 20 and 21)."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from crawlspace.content.dates import iso_time
from crawlspace.content.documents.contents import FileContents, TextStatus, UnreadableFile
from crawlspace.content.documents.package import Leaves, Package, ignoring_damage, resolved
from crawlspace.content.documents.text_buffer import TextBuffer


@dataclass(frozen=True, slots=True)
class Relationship:
    """`kind` is the last part of its type, such as `hyperlink`; `target` a part, or a URL if it is external."""

    id: str
    kind: str
    target: str
    is_external: bool


def relationships(package: Package, part: str) -> dict[str, Relationship]:
    """Return the relationships of a part by id; of the package, for an empty name."""
    folder, name = posixpath.split(part)
    found: dict[str, Relationship] = {}
    for element, attributes in Leaves.of(package, posixpath.join(folder, "_rels", f"{name}.rels")).elements:
        if element == "Relationship" and "Target" in attributes:
            is_external = attributes.get("TargetMode") == "External"
            target = attributes["Target"] if is_external else resolved(part, attributes["Target"])
            id = attributes.get("Id", "")
            found[id] = Relationship(id, attributes.get("Type", "").rpartition("/")[2], target, is_external)
    return found


def link_of(attributes: Mapping[str, str], related: Mapping[str, Relationship]) -> str | None:
    """Return the URL of a hyperlink element; None if it leads nowhere outside the file."""
    relationship = related.get(attributes.get("id", ""))
    return relationship.target if relationship is not None and relationship.is_external else None


def main_part(package: Package, usual: str) -> str:
    """Return the part that the document begins with. Raises UnreadableFile without one."""
    roots = relationships(package, "").values()
    part = next((one.target for one in roots if one.kind == "officeDocument" and one.target in package), usual)
    if part not in package:
        raise UnreadableFile(TextStatus.DAMAGED, f"it has no {usual}")
    return part


def read_properties(package: Package, contents: FileContents) -> None:
    """Set title, author, dates and language from the metadata."""
    roots = relationships(package, "").values()
    core = Leaves.of(package, next((one.target for one in roots if one.kind == "core-properties"), "docProps/core.xml"))
    contents.title = core.get("title")
    contents.author = core.get("creator", "lastModifiedBy")
    contents.created, contents.modified = iso_time(core.get("created")), iso_time(core.get("modified"))
    contents.language = contents.language or core.get("language")


_NAMES = frozenset({"strCache", "multiLvlStrCache"})
"""The names of series and categories in a chart."""
_ENDS_WORD = frozenset({"p", "br", "tab", "tc", "sp", "v", "text", "comment", "cm", "threadedComment"})


def read_drawings(package: Package, parts: Iterable[str], buffer: TextBuffer) -> None:
    """Add the text of parts; a damaged one is left out."""
    for part in dict.fromkeys(parts):
        with ignoring_damage():
            package.parse(part, DrawingText(buffer))


class DrawingText:
    """Collects the text of one part: paragraphs and comments, and the names in a chart, without its numbers."""

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
