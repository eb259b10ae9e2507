"""What Word, PowerPoint and Excel files have in common: relationships between parts, and metadata (ECMA-376 part 2)."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass

from crawlspace.content.dates import iso_time
from crawlspace.content.documents.contents import FileContents, TextStatus, UnreadableFile
from crawlspace.content.documents.package import Leaves, Package, resolved


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
    """Return where a hyperlink element leads to outside the file; None if nowhere."""
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
