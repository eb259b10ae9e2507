"""An order as a line of JSON, for sinks whose reader is a program of the user's."""

from __future__ import annotations

import json
from dataclasses import asdict

from crawlspace.document import IndexOrder, with_values
from crawlspace.index.by_reference import reference_fields
from crawlspace.urls import document_id


def line_of(order: IndexOrder, *, owner: str) -> bytes:
    """Return `{"op", "id", "url", "version", "collection"}`, and for a push the `document`, which says where its text is if it is without.
    Raises UnicodeEncodeError.

    What has a smaller version than an earlier line of the same id is out of date.
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
