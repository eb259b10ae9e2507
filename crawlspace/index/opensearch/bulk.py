"""The bulk interface of OpenSearch and Elasticsearch: requests made of orders, and what their answers mean for each order.

Answers are told apart by the type of the error, not by its status: a closed index answers 400 for each item as a bad document does, and a
disk that is too full 429 as a busy server does. Each was seen of a real server (OpenSearch 2.19, Elasticsearch 7.10).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from crawlspace.document import IndexOrder, Op
from crawlspace.index.json_client import MOST_SHOWN, items, table
from crawlspace.index.search_server.items import Item, ItemResult, Judged
from crawlspace.text import printable
from crawlspace.urls import document_id

_SLOW = frozenset(
    {"es_rejected_execution_exception", "rejected_execution_exception", "circuit_breaking_exception", "task_cancelled_exception"}
)
_STOP = frozenset(
    {
        "cluster_block_exception",
        "index_closed_exception",
        "index_not_found_exception",
        "security_exception",
        "authorization_exception",
        "illegal_state_exception",
    }
)
_ITS_OWN = frozenset(
    {
        "mapper_parsing_exception",
        "document_parsing_exception",
        "strict_dynamic_mapping_exception",
        "illegal_argument_exception",
        "parse_exception",
        "parsing_exception",
        "json_parse_exception",
        "x_content_parse_exception",
        "action_request_validation_exception",
    }
)
_CURRENT = re.compile(r"current version \[(\d+)\]")
_NO_WRITE_INDEX = re.compile(r"no write index|more than one ind(?:ex|ices)|cannot write to an alias", re.IGNORECASE)


def item_of(order: IndexOrder, source: Mapping[str, object] | None, *, id: str = "", pipeline: str = "") -> Item:
    """Return an order as an item; `source` is what is stored of the document of a push, `id` is for one of no URL.

    `pipeline` takes the place of the one that documents go through.
    """
    id = id or document_id(order.url)
    name = "delete" if order.op is Op.DELETE else "index"
    more = {"pipeline": pipeline} if pipeline else {}
    action = _written({name: {"_id": id, "version": order.version, "version_type": "external", **more}})
    return Item(order, id, action if source is None else action + _written(source))


def answers_of(body: object, sent: Sequence[Item]) -> list[Judged]:
    """Return what the answer to a request means for each of its items. One without an answer of its own is sent again."""
    answered: dict[str, Judged] = {}
    for one in items(table(body).get("items")):
        for name, result in table(one).items():
            if isinstance(result, dict):
                answered.setdefault(str(result.get("_id")), _answered(name, result))
    missing = Judged(ItemResult.AGAIN, "the server has not answered for each document that it was sent")
    return [answered.get(item.id, missing) for item in sent]


def refused_whole(status: int, body: object) -> Judged:
    """Return what it means that a whole request was refused with a status."""
    error = table(body).get("error")
    why = _reason(error) or f"HTTP status {status}"
    kind = str(table(error).get("type"))
    if status in (401, 403):
        return Judged(ItemResult.STOP, f"it refuses access ({why})")
    if kind in _STOP:
        return Judged(ItemResult.STOP, why)
    if status in (429, 503) or kind in _SLOW:
        return Judged(ItemResult.SLOW_DOWN, why)
    if status == 413:
        return Judged(ItemResult.TOO_LARGE, "it is too large for the server")
    if status == 400 or kind in _ITS_OWN:
        return Judged(ItemResult.ITS_OWN, why)
    return Judged(ItemResult.AGAIN, why)


def cause_of(body: object) -> str:
    """Return type and reason of what made a search fail; empty without any."""
    error = table(body).get("error")
    causes = items(table(error).get("root_cause"))
    return _reason(causes[0] if causes else error)


def _answered(name: str, result: Mapping[str, object]) -> Judged:
    status, error = result.get("status"), result.get("error")
    if isinstance(status, int) and 200 <= status < 300 and error is None:
        return Judged(ItemResult.DONE)
    if name == "delete" and status == 404 and result.get("result") == "not_found":
        return Judged(ItemResult.DONE)
    kind, why = str(table(error).get("type")), _reason(error) or f"status {status}"
    if kind == "version_conflict_engine_exception":
        found = _CURRENT.search(why)
        return Judged(ItemResult.CONFLICT, why, int(found[1]) if found else 0)
    if kind in _STOP or _NO_WRITE_INDEX.search(why):
        return Judged(ItemResult.STOP, why)
    if kind in _SLOW or status in (429, 503):
        return Judged(ItemResult.SLOW_DOWN, why)
    if kind in _ITS_OWN or status in (400, 500):
        return Judged(ItemResult.ITS_OWN, why, may_pass=status == 500)
    return Judged(ItemResult.AGAIN, why)


def _reason(error: object) -> str:
    """Return type and reason of an error, with that of its cause."""
    if not isinstance(error, dict):
        return printable(str(error or ""))[:MOST_SHOWN]
    cause = str(table(error.get("caused_by")).get("reason") or "")
    reason = f"{error.get('type', 'error')}: {error.get('reason', '')}".rstrip(";")
    return printable(reason if cause in reason else f"{reason} ({cause})")[:MOST_SHOWN]


def _written(value: object) -> bytes:
    return msgspec.json.encode(value) + b"\n"
