"""What a document is in Solr: fields of the schema that is in `conf`.

Title, headings, description and text have a field for each language (`text_txt_de`), so that each has its own analyser; what has another
language, or none, is in `text_txt_other`. Fields of the user's own are values of the one field `fields`, as in `color=red`, so that no page
adds fields to an index. What is left of a deleted document is its id and version, with `deleted`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime

from crawlspace.document import Document, IndexOrder
from crawlspace.index.json_client import MOST_SHOWN, items, shown, table
from crawlspace.index.opensearch.mapping import address_of, source_of
from crawlspace.index.search_server.documents import OTHER, language_field
from crawlspace.index.search_server.items import Item, ItemResult, Judged
from crawlspace.text import printable
from crawlspace.urls import document_id

FIELDS = frozenset(
    (
        "id version deleted pushed_at url address scheme host folder collection language content_type modified duplicates fields"
        " content_place content_url"
    ).split()
) | {f"headings_txt_{OTHER}"}
"""Fields that the schema of an index must have; a text that has none for its language needs `*_txt_other`, too."""
DYNAMIC = "*_txt_"
_TEXTS = ("title", "headings", "description", "text")
_MOST_STRING = 8_000
"""Characters. A string has up to 32,766 bytes in Lucene, and a character up to four."""


def languages_of(schema: Mapping[str, object]) -> frozenset[str]:
    """Return the languages that texts have fields for, from what Luke tells of a schema."""
    fields = table(schema.get("fields"))
    found = (name.removeprefix(DYNAMIC) for name in table(schema.get("dynamicFields")) if name.startswith(DYNAMIC))
    return frozenset(language for language in found if f"headings_txt_{language}" in fields)


def missing_of(schema: Mapping[str, object]) -> list[str]:
    """Return the fields that a schema lacks."""
    missing = sorted(FIELDS - table(schema.get("fields")).keys())
    other = f"{DYNAMIC}{OTHER}"
    return missing if other in table(schema.get("dynamicFields")) else [*missing, other]


def copied_to(schema: Mapping[str, object]) -> frozenset[str]:
    """Return the fields that Solr fills by itself, from others (copyField)."""
    return frozenset(name for name, field in table(schema.get("fields")).items() if table(field).get("copySources"))


def pushed(order: IndexOrder, document: Document, *, owner: str, now: float, languages: Collection[str]) -> dict[str, object]:
    """Return a document as Solr takes it; empty fields are left out."""
    found = source_of(order, document, id=document_id(order.url), owner=owner, now=now, languages=None)
    code = language_field(document.language, languages)
    for name in _TEXTS:
        if name in found:
            found[f"{name}_txt_{code}"] = found.pop(name)
    for name in ("language", "content_type"):
        if name in found:
            found[name] = str(found[name])[:_MOST_STRING]
    if "fields" in found:
        found["fields"] = [
            f"{name}={value}"[:_MOST_STRING]
            for name, values in table(found["fields"]).items()
            for value in (values if isinstance(values, list) else [values])
        ]
    modified = _moment(str(found.pop("modified", "")))
    return found | {"version": order.version} | ({"modified": modified} if modified else {})


def deleted(order: IndexOrder, *, now: float) -> dict[str, object]:
    """Return what takes the place of a document that is deleted. Solr itself writes the same for a deletion with a version."""
    pushed_at = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"id": document_id(order.url), "version": order.version, "deleted": True, "pushed_at": pushed_at}


def copied(document: Mapping[str, object], *, without: Collection[str]) -> dict[str, object]:
    """Return a document that Solr has stored as it takes it; `without` are fields that it fills by itself.

    `address` is not stored, and made again. What begins with an underscore, as `_version_`, is of Solr's own.
    """
    kept = {name: value for name, value in document.items() if not name.startswith("_") and name not in without}
    return kept | {"address": address_of(str(document.get("url", "")))}


def _moment(written: str) -> str:
    """Return a day or moment of ISO 8601 as Solr writes it; empty for anything else, and where a zone leads out of the calendar."""
    try:
        moment = datetime.fromisoformat(written)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return ""
    return f"{moment.replace(tzinfo=None).isoformat(timespec='seconds')}Z"


# --- updates -------------------------------------------------------------------------------------------------------


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
