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


_OWN_TEXTS = ("title", "description", "language", "text", "content_type", "modified")
_OWN_FIELDS = {field.name for field in fields(Document)} - {"fields", "duplicates"}


def document_of(item: Any, *, url: str) -> Document:
    """Return an item of any type as a document: fields of a document's names are its own, all others become its `fields`."""
    if isinstance(item, Document):
        return _storable(item)
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
    return _storable(document)


def _storable(document: Document) -> Document:
    """Replace what no store and no index can hold: fields that are not text, and halves of surrogate pairs."""
    for name in _OWN_TEXTS:
        value = getattr(document, name)
        if not isinstance(value, str) or not value.isascii():
            setattr(document, name, _text(value))
    if document.headings:
        document.headings = [_text(heading) for heading in document.headings]
    if document.fields:
        document.fields = {_text(name): _text(value) for name, value in document.fields.items()}
    return document


def _text(value: Any) -> str:
    return str(value).encode("utf-8", "replace").decode()
