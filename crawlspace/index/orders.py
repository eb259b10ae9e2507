"""Orders as sinks send them: as lines of JSON, and without the text of a document that is too large, with where it is instead."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Protocol

from crawlspace.document import IndexOrder, Op, with_values
from crawlspace.index.sink import Refusal
from crawlspace.urls import document_id

logger = logging.getLogger(__name__)

PLACE, URL = "content_place", "content_url"
"""The fields of a document in an index that say where its text is."""
NO_DOCUMENT = "a push without a document"
HALF_SURROGATE = "the document holds characters that cannot be written as UTF-8 (half of a surrogate pair)"


class ContentReferences(Protocol):
    """Knows where documents are stored, and which are too large to be sent whole."""

    def of(self, orders: Sequence[IndexOrder]) -> tuple[IndexOrder, ...]:
        """Return the orders with where their documents are, and those that are too large by reference. Raises StoreError."""


def by_reference(order: IndexOrder) -> IndexOrder | None:
    """Return an order without the text of its document; None if it has none already, or it is not known where the text is."""
    if order.document is None or not order.content_place or not order.document.text:
        return None
    return replace(order, document=replace(order.document, text=""), is_by_reference=True)


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
        fields = {"fields": with_values(order.document.fields)}
        line["document"] = {**asdict(order.document), **fields, **reference_fields(order)}
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
