"""The update handler of Solr: documents as items of a request, and what its answers mean for each of them.

TolerantUpdateProcessorFactory names the documents that have failed, by a message without a status: it is the same for a document that is
refused for good and for a disk that is full. So each of them is sent again alone, with `maxErrors=0`: then Solr answers with the status of
that error. A document that is not named may not be there all the same: when the node that leads another shard was killed, Solr 9.10.1
answered 200 without errors, and the documents of that shard were nowhere. So what counts as done is looked up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from crawlspace.document import IndexOrder
from crawlspace.index.json_client import MOST_SHOWN, items, shown, table
from crawlspace.index.search_server.items import Item, ItemResult, Judged
from crawlspace.index.solr.documents import FIELDS
from crawlspace.text import printable
from crawlspace.urls import document_id

CHAIN = "crawlspace"
"""The update chain that sees to versions."""
_OLD_VERSION = "user version is not high enough"
NO_CHAIN = "unknown UpdateRequestProcessorChain"
_UNKNOWN_FIELD = re.compile(r"unknown field '([^']+)'")


def item_of(order: IndexOrder, document: Mapping[str, object], *, id: str = "") -> Item:
    """Return an order as an item: a document to be added, for a deletion too. `id` is for one of no URL."""
    return Item(order, id or document_id(order.url), json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode())


def body_of(part: Sequence[Item]) -> bytes:
    """Return the body of a request."""
    return b"[%s]" % b",".join(item.lines for item in part)


def parameters_of(part: Sequence[Item], *, commit_within_s: float) -> dict[str, str]:
    """Return the parameters of a request."""
    found = {
        "update.chain": CHAIN,
        "commitWithin": str(round(commit_within_s * 1000)),
        "wt": "json",
    }
    return found | ({"maxErrors": "0"} if len(part) == 1 else {})


def answers_of(body: object, sent: Sequence[Item]) -> Judged | list[Judged]:
    """Return what a successful answer means for each item of a request; one that is not named as failed counts as done."""
    header = table(table(body).get("responseHeader"))
    if header.get("status") != 0:
        return Judged(ItemResult.AGAIN, f"it does not answer as Solr does: {shown(body)}")
    failed = dict(reversed([(str(error.get("id")), _reason(error)) for error in map(table, items(header.get("errors")))]))
    nameless = next((why for id, why in failed.items() if id not in {item.id for item in sent}), "")

    def judged(item: Item) -> Judged:
        why = failed.get(item.id, nameless)
        if _OLD_VERSION in why:
            return Judged(ItemResult.CONFLICT, why)
        return Judged(ItemResult.ITS_OWN, why, may_pass=True) if why else Judged(ItemResult.DONE)

    return [judged(item) for item in sent]


def refused_whole(status: int, body: object) -> Judged:
    """Return what it means that a whole request was refused with a status."""
    why = why_of(status, body)
    if status in (401, 403):
        return Judged(ItemResult.STOP, f"it refuses access ({why})")
    if status == 404:
        return Judged(ItemResult.STOP, f"the core or collection is not there ({why})")
    unknown = _UNKNOWN_FIELD.search(why)
    if NO_CHAIN in why or (unknown is not None and unknown[1] in FIELDS):
        return Judged(ItemResult.STOP, why)
    if status == 409:
        return Judged(ItemResult.CONFLICT, why)
    if status in (429, 503):
        return Judged(ItemResult.SLOW_DOWN, why)
    if status == 413:
        return Judged(ItemResult.TOO_LARGE, "it is too large for the server")
    if status == 400:
        return Judged(ItemResult.ITS_OWN, why)
    return Judged(ItemResult.AGAIN, why)


def why_of(status: int, body: object) -> str:
    """Return the reason that an answer gives. In a collection, that of a document is clearer than the one of the request, which is a node's."""
    errors = items(table(table(body).get("responseHeader")).get("errors"))
    if errors:
        return _reason(table(errors[0]))
    message = table(table(body).get("error")).get("msg")
    return printable(str(message))[:MOST_SHOWN] if message else f"HTTP status {status}"


def _reason(error: Mapping[str, object]) -> str:
    return printable(str(error.get("message") or "no reason given"))[:MOST_SHOWN]
