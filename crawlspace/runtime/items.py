"""What the spider yields for each response: one outcome, and the item that a person gets for it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from itemadapter import ItemAdapter

from crawlspace.model import Document, Outcome


@dataclass(slots=True)
class Fetched:
    """The one item of a fetch. `item` is what goes on to the feeds: the document, or what a spider's own parsing made of it."""

    outcome: Outcome
    item: Any = None
    collapsed: bool = False
    """The item's text is as the page's was read: words apart by single spaces."""


_OWN_FIELDS = {field.name for field in fields(Document)} - {"fields", "duplicates"}


def document_of(item: Any, *, url: str) -> Document:
    """Return an item of any type as a document: fields of a document's names are its own, all others become its `fields`."""
    if isinstance(item, Document):
        return item
    document = Document(url)
    for name, value in ItemAdapter(item).items():
        if value is None or name == "url":
            continue
        if name == "headings":
            document.headings = [str(heading) for heading in value]
        elif name in _OWN_FIELDS:
            setattr(document, name, str(value))
        else:
            document.fields[str(name)] = value if isinstance(value, str) else repr(value)
    return document
