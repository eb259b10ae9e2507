"""The bulk interface of OpenSearch and Elasticsearch: orders as items of requests, and the answers to them.

Errors are distinguished by their type, not by their status: a closed index answers 400 for each item, as a bad document does, and a disk
that is too full 429, as a busy server does. All are answers of real servers (OpenSearch 2.19, Elasticsearch 7.10).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from crawlspace.document import IndexOrder, Op
from crawlspace.index.json_client import MOST_SHOWN, items, table
from crawlspace.index.search_server.items import Item, ItemAnswer, ItemResult
from crawlspace.text import printable
from crawlspace.urls import document_id

_SLOW = frozenset(
    {"es_rejected_execution_exception", "rejected_execution_exception", "circuit_breaking_exception", "task_cancelled_exception"}
)
_BLOCKED = frozenset(
    {
        "cluster_block_exception",
        "index_closed_exception",
        "index_not_found_exception",
        "security_exception",
        "authorization_exception",
        "illegal_state_exception",
    }
)
_REFUSED = frozenset(
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
    """Return an order as an item; `source` is the stored form of the document of a push, `id` that of a document without URL.

    `pipeline` replaces the ingest pipeline of the sink.
    """
    id = id or document_id(order.url)
    name = "delete" if order.op is Op.DELETE else "index"
    more = {"pipeline": pipeline} if pipeline else {}
    action = _written({name: {"_id": id, "version": order.version, "version_type": "external", **more}})
    return Item(order, id, action if source is None else action + _written(source))


def answers_of(body: object, sent: Sequence[Item]) -> list[ItemAnswer]:
    """Return the answer to each item of a request. An item without an answer is sent again."""
    answered: dict[str, ItemAnswer] = {}
    for one in items(table(body).get("items")):
        for name, result in table(one).items():
            if isinstance(result, dict):
                answered.setdefault(str(result.get("_id")), _answered(name, result))
    missing = ItemAnswer(ItemResult.RETRY, "the server has not answered for every document of the request")
    return [answered.get(item.id, missing) for item in sent]


def refused_whole(status: int, body: object) -> ItemAnswer:
    """Return the answer to a request that was refused as a whole."""
    error = table(body).get("error")
    why = _reason(error) or f"HTTP status {status}"
    kind = str(table(error).get("type"))
    if status in (401, 403):
        return ItemAnswer(ItemResult.BLOCKED, f"it refuses access ({why})")
    if kind in _BLOCKED:
        return ItemAnswer(ItemResult.BLOCKED, why)
    if status in (429, 503) or kind in _SLOW:
        return ItemAnswer(ItemResult.SLOW_DOWN, why)
    if status == 413:
        return ItemAnswer(ItemResult.TOO_LARGE, "it is too large for the server")
    if status == 400 or kind in _REFUSED:
        return ItemAnswer(ItemResult.REFUSED, why)
    return ItemAnswer(ItemResult.RETRY, why)


def cause_of(body: object) -> str:
    """Return type and reason of the error of a search; empty without one."""
    error = table(body).get("error")
    causes = items(table(error).get("root_cause"))
    return _reason(causes[0] if causes else error)


def _answered(name: str, result: Mapping[str, object]) -> ItemAnswer:
    status, error = result.get("status"), result.get("error")
    if isinstance(status, int) and 200 <= status < 300 and error is None:
        return ItemAnswer(ItemResult.DONE)
    if name == "delete" and status == 404 and result.get("result") == "not_found":
        return ItemAnswer(ItemResult.DONE)
    kind, why = str(table(error).get("type")), _reason(error) or f"status {status}"
    if kind == "version_conflict_engine_exception":
        found = _CURRENT.search(why)
        return ItemAnswer(ItemResult.CONFLICT, why, int(found[1]) if found else 0)
    if kind in _BLOCKED or _NO_WRITE_INDEX.search(why):
        return ItemAnswer(ItemResult.BLOCKED, why)
    if kind in _SLOW or status in (429, 503):
        return ItemAnswer(ItemResult.SLOW_DOWN, why)
    if kind in _REFUSED or status in (400, 500):
        return ItemAnswer(ItemResult.REFUSED, why, may_pass_alone=status == 500)
    return ItemAnswer(ItemResult.RETRY, why)


def _reason(error: object) -> str:
    """Return type and reason of an error, with that of its cause."""
    if not isinstance(error, dict):
        return printable(str(error or ""))[:MOST_SHOWN]
    cause = str(table(error.get("caused_by")).get("reason") or "")
    reason = f"{error.get('type', 'error')}: {error.get('reason', '')}".rstrip(";")
    return printable(reason if cause in reason else f"{reason} ({cause})")[:MOST_SHOWN]


def _written(value: object) -> bytes:
    return msgspec.json.encode(value) + b"\n"
