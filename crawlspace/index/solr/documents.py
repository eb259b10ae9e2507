"""Documents in Solr: their fields in the schema of `conf`, the requests of its update handler, and the answers to them.

Title, headings, description and text have a field for each language (`text_txt_de`), so that each has its own analyser; texts in another
language, or none, are in `text_txt_other`. The user's own fields are values of the one field `fields`, as in `color=red`, so that no page
adds fields to an index. The remains of a deleted document are its id and version, with `deleted`.

TolerantUpdateProcessorFactory names the documents that have failed, by a message without a status: it is the same for a document that is
refused for good and for a disk that is full. So each of them is sent again alone, with `maxErrors=0`: then Solr answers with the status of
that error. A document that is not named may be missing nevertheless: when the node that leads another shard was killed, Solr 9.10.1
answered 200 without errors, and the documents of that shard were nowhere. So done documents are looked up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime

from crawlspace.clock import iso
from crawlspace.document import Document, IndexOrder
from crawlspace.index.json_client import MOST_SHOWN, items, shown, table
from crawlspace.index.orders import sent_parts
from crawlspace.index.search_server.documents import (
    MAX_KEYWORD,
    OTHER,
    language_field,
    stored_fields,
    stored_texts,
    url_words,
)
from crawlspace.index.search_server.items import Item, ItemAnswer, ItemResult
from crawlspace.text import printable
from crawlspace.urls import document_id

FIELDS = frozenset(
    (
        "id version deleted pushed_at url address scheme host folder collection language content_type modified duplicates fields"
        " content_place content_url"
    ).split()
) | {f"headings_txt_{OTHER}"}
"""Fields that the schema of an index must have, besides `*_txt_other`."""
DYNAMIC = "*_txt_"


def languages_of(schema: Mapping[str, object]) -> frozenset[str]:
    """Return the languages for which texts have fields, by a schema as Luke shows it."""
    fields = table(schema.get("fields"))
    found = (name.removeprefix(DYNAMIC) for name in table(schema.get("dynamicFields")) if name.startswith(DYNAMIC))
    return frozenset(language for language in found if f"headings_txt_{language}" in fields)


def missing_of(schema: Mapping[str, object]) -> list[str]:
    """Return the fields that a schema lacks."""
    missing = sorted(FIELDS - table(schema.get("fields")).keys())
    other = f"{DYNAMIC}{OTHER}"
    return missing if other in table(schema.get("dynamicFields")) else [*missing, other]


def copied_to(schema: Mapping[str, object]) -> frozenset[str]:
    """Return the fields that Solr fills from others (copyField)."""
    return frozenset(name for name, field in table(schema.get("fields")).items() if table(field).get("copySources"))


def kept_of(schema: Mapping[str, object]) -> frozenset[str]:
    """Return which of Markdown and parts an index has fields for: a schema of an earlier version has none."""
    return frozenset({"markdown", "parts"} & table(schema.get("fields")).keys())


def parts_of(document: Mapping[str, object]) -> list[object]:
    """Return the parts of a stored document."""
    return [json.loads(str(part)) for part in items(document.get("parts"))]


def pushed(
    order: IndexOrder,
    document: Document,
    *,
    owner: str,
    now: float,
    languages: Collection[str],
    kept: Collection[str] = ("markdown", "parts"),
) -> dict[str, object]:
    """Return the document of a push as Solr accepts it; empty fields are left out.

    Parts are JSON in one field, so that they are replaced with their page, and no search finds one as a page.
    """
    found = stored_fields(order, document, owner=owner, now=now)
    code = language_field(document.language, languages)
    found |= {f"{name}_txt_{code}": text for name, text in stored_texts(document).items()}
    for name in ("language", "content_type"):
        if name in found:
            found[name] = str(found[name])[:MAX_KEYWORD]
    if "fields" in found:
        found["fields"] = [
            f"{name}={value}"[:MAX_KEYWORD]
            for name, values in table(found["fields"]).items()
            for value in (values if isinstance(values, list) else [values])
        ]
    if document.markdown and "markdown" in kept:
        found["markdown"] = document.markdown
    if document.parts and "parts" in kept:
        found["parts"] = [json.dumps(part, ensure_ascii=False) for part in sent_parts(document)]
    modified = _moment(str(found.pop("modified", "")))
    return found | {"version": order.version} | ({"modified": modified} if modified else {})


def deleted(order: IndexOrder, *, now: float) -> dict[str, object]:
    """Return the remains of a deleted document. Solr itself writes the same for a deletion with a version."""
    return {"id": document_id(order.url), "version": order.version, "deleted": True, "pushed_at": iso(now)}


def copied(document: Mapping[str, object], *, without: Collection[str]) -> dict[str, object]:
    """Return a stored document as Solr accepts it; `without` are the fields that Solr fills from others.

    `address` is not stored, and computed again. Fields that begin with an underscore, as `_version_`, are Solr's own.
    """
    kept = {name: value for name, value in document.items() if not name.startswith("_") and name not in without}
    return kept | {"address": url_words(str(document.get("url", "")))}


def _moment(written: str) -> str:
    """Return a day or moment of ISO 8601 as Solr writes it; empty for anything else, and for one that its zone moves out of the calendar."""
    try:
        moment = datetime.fromisoformat(written)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return ""
    return f"{moment.replace(tzinfo=None).isoformat(timespec='seconds')}Z"


CHAIN = "crawlspace"
"""The update chain that compares versions."""
_OLD_VERSION = "user version is not high enough"
NO_CHAIN = "unknown UpdateRequestProcessorChain"
_UNKNOWN_FIELD = re.compile(r"unknown field '([^']+)'")


def item_of(order: IndexOrder, document: Mapping[str, object], *, id: str = "") -> Item:
    """Return an order as an item: a document to add, for a deletion too. `id` is that of a document without URL."""
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


def answers_of(body: object, sent: Sequence[Item]) -> ItemAnswer | list[ItemAnswer]:
    """Return the answer to each item of a successful request; one that is not named as failed counts as done."""
    header = table(table(body).get("responseHeader"))
    if header.get("status") != 0:
        return ItemAnswer(ItemResult.RETRY, f"its answer is not one of Solr: {shown(body)}")
    failed = dict(reversed([(str(error.get("id")), _reason(error)) for error in map(table, items(header.get("errors")))]))
    nameless = next((why for id, why in failed.items() if id not in {item.id for item in sent}), "")

    def answer_to(item: Item) -> ItemAnswer:
        why = failed.get(item.id, nameless)
        if _OLD_VERSION in why:
            return ItemAnswer(ItemResult.CONFLICT, why)
        return ItemAnswer(ItemResult.REFUSED, why, may_pass_alone=True) if why else ItemAnswer(ItemResult.DONE)

    return [answer_to(item) for item in sent]


def refused_whole(status: int, body: object) -> ItemAnswer:
    """Return the answer to a request that was refused as a whole."""
    why = why_of(status, body)
    if status in (401, 403):
        return ItemAnswer(ItemResult.BLOCKED, f"it refuses access ({why})")
    if status == 404:
        return ItemAnswer(ItemResult.BLOCKED, f"the core or collection is not there ({why})")
    unknown = _UNKNOWN_FIELD.search(why)
    if NO_CHAIN in why or (unknown is not None and unknown[1] in FIELDS):
        return ItemAnswer(ItemResult.BLOCKED, why)
    if status == 409:
        return ItemAnswer(ItemResult.CONFLICT, why)
    if status in (429, 503):
        return ItemAnswer(ItemResult.SLOW_DOWN, why)
    if status == 413:
        return ItemAnswer(ItemResult.TOO_LARGE, "it is too large for the server")
    if status == 400:
        return ItemAnswer(ItemResult.REFUSED, why)
    return ItemAnswer(ItemResult.RETRY, why)


def why_of(status: int, body: object) -> str:
    """Return the reason in an answer. In a collection, that of a document is clearer than that of the request, which comes from a node."""
    errors = items(table(table(body).get("responseHeader")).get("errors"))
    if errors:
        return _reason(table(errors[0]))
    message = table(table(body).get("error")).get("msg")
    return printable(str(message))[:MOST_SHOWN] if message else f"HTTP status {status}"


def _reason(error: Mapping[str, object]) -> str:
    return printable(str(error.get("message") or "no reason given"))[:MOST_SHOWN]
