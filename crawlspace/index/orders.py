"""Orders as sinks send them: as lines of JSON, and without the text of a document that is too large, with where it is instead."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from hashlib import sha256
from typing import Protocol, TypedDict
from urllib.parse import quote

from crawlspace.document import Document, IndexOrder, Op, Part, Values, with_values
from crawlspace.index.sink import Refusal
from crawlspace.urls import document_id

logger = logging.getLogger(__name__)

PLACE, URL = "content_place", "content_url"
"""The fields of a document in an index that say where its text is."""
_ALWAYS_WRITTEN = tuple(one.name for one in fields(Document) if one.name not in ("markdown", "parts"))
NO_DOCUMENT = "a push without a document"
_IN_FRAGMENT = "!$&'()*+,;=:@/?-._~"
HALF_SURROGATE = "the document holds characters that cannot be written as UTF-8 (half of a surrogate pair)"


class ContentReferences(Protocol):
    """Knows where documents are stored, and which are too large to be sent whole."""

    def of(self, orders: Sequence[IndexOrder]) -> tuple[IndexOrder, ...]:
        """Return the orders with where their documents are, and those that are too large by reference. Raises StoreError."""


def by_reference(order: IndexOrder) -> IndexOrder | None:
    """Return an order without the text of its document; None if it has none already, or it is not known where the text is."""
    if order.document is None or not order.content_place or not order.document.text:
        return None
    return replace(order, document=replace(order.document, text="", markdown="", parts=[]), is_by_reference=True)


def log_by_reference(sink: str, order: IndexOrder) -> None:
    """Log that an index has refused a document as too large, and gets it without its text."""
    logger.warning(
        "%s is too large for the sink %s, and is sent without its text, which is at %s", order.url, sink, order.content_place
    )


def reference_fields(order: IndexOrder) -> Mapping[str, str]:
    """Return the fields that say where the text of a document is; none for a document with its text."""
    if not order.is_by_reference:
        return {}
    return {PLACE: order.content_place} | ({URL: order.content_url} if order.content_url else {})


def part_id(url: str, key: str) -> str:
    """Return the id of a part of the page with a URL."""
    return document_id(f"{url}#{key}")


def part_url(url: str, anchor: str) -> str:
    """Return the URL of a part: that of its page with the anchor, where there is one and the URL has no fragment of its own."""
    return f"{url}#{quote(anchor, safe=_IN_FRAGMENT)}" if anchor and "#" not in url else url


class SentPart(TypedDict):
    """A part of a document as sinks send it. `digest` changes whenever anything of it but its position does."""

    id: str
    key: str
    position: int
    url: str
    title: str
    headings: list[str]
    text: str
    digest: str
    fields: dict[str, Values]


def sent_parts(document: Document) -> list[SentPart]:
    """Return the parts of a document as sinks send them."""
    return [
        {
            "id": part_id(document.url, part.key),
            "key": part.key,
            "position": position,
            "url": part_url(document.url, part.anchor),
            "title": part.title,
            "headings": part.headings,
            "text": part.text,
            "digest": part_digest(part),
            "fields": with_values(part.fields),
        }
        for position, part in enumerate(document.parts)
    ]


def part_digest(part: Part) -> str:
    """Return the SHA-256 of a part, hexadecimal."""
    written = json.dumps(asdict(part), ensure_ascii=False, sort_keys=True)
    return sha256(written.encode("utf-8", "surrogatepass")).hexdigest()


def written_document(document: Document) -> dict[str, object]:
    """Return a document as JSON has it: several values of a field as a list, Markdown and parts where it has any."""
    found: dict[str, object] = {name: getattr(document, name) for name in _ALWAYS_WRITTEN}
    found["fields"] = with_values(document.fields)
    if document.markdown:
        found["markdown"] = document.markdown
    if document.parts:
        found["parts"] = sent_parts(document)
    return found


def line_of(order: IndexOrder, *, owner: str) -> bytes:
    """Return `{"op", "id", "url", "version", "collection"}`, and for a push the `document`. Raises UnicodeEncodeError.

    A line with a smaller version than an earlier line of the same id is out of date.
    """
    line: dict[str, object] = {
        "op": order.op.value,
        "id": document_id(order.url),
        "url": order.url,
        "version": order.version,
        "collection": owner,
    }
    if order.document is not None:
        line["document"] = {**written_document(order.document), **reference_fields(order)}
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def lines_of(orders: Iterable[IndexOrder], *, owner: str) -> tuple[list[tuple[IndexOrder, bytes]], list[Refusal]]:
    """Return orders with their lines, and those that cannot be written."""
    lines: list[tuple[IndexOrder, bytes]] = []
    refused: list[Refusal] = []
    for order in orders:
        if order.op is Op.PUSH and order.document is None:
            refused.append(Refusal(order, NO_DOCUMENT))
            continue
        try:
            lines.append((order, line_of(order, owner=owner)))
        except UnicodeEncodeError:
            refused.append(Refusal(order, HALF_SURROGATE))
    return lines, refused
