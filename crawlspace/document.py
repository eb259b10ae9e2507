"""Documents: what the index gets of a page, fields of several values, and content types."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import lru_cache

import msgspec


@dataclass(slots=True)
class Part:
    """A part of a page that is found by itself, such as a section. It is pushed and deleted together with the document of its page."""

    key: str
    """Unique in its page, and the same as long as the part is the same one."""
    title: str = ""
    """Its own title."""
    headings: list[str] = field(default_factory=list)
    """The headings that it stands under, the outermost first, its own last."""
    text: str = ""
    """What is searched and shown in snippets."""
    anchor: str = ""
    """Fragment of its URL, as it is written in the page; empty where the page has none for it."""
    fields: dict[str, str] = field(default_factory=dict)
    """Further fields, as those of a document."""


@dataclass(slots=True)
class Document:
    """The document sent to the index for one page."""

    url: str
    """The URL of the page, in normal form."""
    title: str = ""
    """Its title; a page without one has its first heading, or its file name."""
    description: str = ""
    """What the page says of itself (`meta name=description`)."""
    language: str = ""
    """A language tag such as `en-GB`; empty where it is not known."""
    text: str = ""
    """What is searched and shown in snippets."""
    headings: list[str] = field(default_factory=list)
    """`h1` to `h3`, in their order."""
    content_type: str = ""
    """The MIME type, without parameters."""
    modified: str = ""
    """When it was modified, by the page or its server."""
    fields: dict[str, str] = field(default_factory=dict)
    """Further fields by name, from the page, from rules or from a spider's own parsing; several values are a JSON list."""
    duplicates: list[str] = field(default_factory=list)
    """The URLs of equal pages, which it represents."""
    markdown: str = ""
    """Its content as Markdown; empty without CRAWLSPACE_MARKDOWN."""
    parts: list[Part] = field(default_factory=list)
    """Parts that are found by themselves, such as sections."""


OWN_FIELDS = tuple(one.name for one in fields(Document) if one.name != "fields")
"""Fields that every document has, so that none of `fields` has such a name."""
_FIELD = re.compile(r"[A-Za-z_][\w.-]{0,99}", re.ASCII)
_FIELD_NAMES = "a field has letters, digits, _, - and dots, 100 at most, and begins with a letter or _"


def field_fault(name: str) -> str:
    """Return why no field of the user's own can have this name, as the rest of a sentence; empty if one can."""
    if not _FIELD.fullmatch(name):
        return f": {_FIELD_NAMES}"
    return ", which a document has of its page; choose another name" if name in OWN_FIELDS else ""


class _MoreTexts(msgspec.Struct, omit_defaults=True):
    """What is stored together with the text of a document."""

    markdown: str = ""
    parts: list[Part] = []


def packed_more(document: Document) -> str:
    """Return what `packed_text` has after the text of a document: its Markdown and its parts; empty without any."""
    if not (document.markdown or document.parts):
        return ""
    return f"\0{msgspec.json.encode(_MoreTexts(document.markdown, document.parts)).decode()}"


def packed_text(document: Document) -> str:
    """Return the text of a document with its Markdown and its parts, which stores keep only as long as the text is needed."""
    return document.text + (packed_more(document) or ("\0{}" if "\0" in document.text else ""))


def unpack_text(document: Document, packed: str) -> None:
    """Give a document its text, and what is stored with it."""
    document.text, mark, more = packed.rpartition("\0")
    if not (mark and more.startswith("{")):
        document.text = packed
        return
    try:
        texts = msgspec.json.decode(more, type=_MoreTexts)
    except msgspec.MsgspecError:  # a text with a NUL, as earlier versions stored it
        document.text = packed
        return
    document.markdown, document.parts = texts.markdown, texts.parts


KEPT_FIELDS = tuple(one.name for one in fields(Document) if one.name not in ("url", "text", "duplicates", "markdown", "parts"))
"""The fields of a document that a store keeps with its URL: the others are that URL, what `packed_text` has, and URLs of equal pages."""


class Op(StrEnum):
    """What an order wants of the index."""

    PUSH = "push"
    """The document is to be in the index, in the place of an earlier one."""
    DELETE = "delete"
    """The index is to have no document of the URL."""


@dataclass(frozen=True, slots=True)
class IndexOrder:
    """One change of the index."""

    sequence: int
    """Grows with every change that the store orders."""
    op: Op
    """`push` or `delete`."""
    url: str
    """The URL of the document; `crawlspace.urls.document_id` returns its id."""
    document: Document | None = None
    """None for a delete."""
    version: int = 0
    """Grows with `sequence`, and is above every version that the index is known to have; 0 until it is sent."""
    archived: int | None = None
    """The place of the document in the archive, as its URL has it."""
    content_place: str = ""
    """The same as file and offset, as in `name.warc.gz:4711`; empty where it is not archived."""
    content_url: str = ""
    """URL of the whole document; empty without CRAWLSPACE_CONTENT_URL."""
    is_by_reference: bool = False
    """The document is without its text."""


# --- document ------------------------------------------------------------------------------------------------------


_TOKEN = r"[!#$%&'*+.^_`|~0-9a-z-]{1,127}"
"""The maximal length of a type or subtype (RFC 6838, 4.2)."""
_ONE_TYPE = re.compile(rf"\s*({_TOKEN}/{_TOKEN})\s*(?:;[^,]*)?")
_GENERIC = frozenset(
    (
        " application/octet-stream application/x-octet-stream application/octetstream binary/octet-stream application/unknown"
        " unknown/unknown application/x-unknown application/download application/x-download application/force-download"
        " application/x-force-download application/x-forcedownload text/pdf text/x-pdf"
    ).split(" ")
)
"""Types that servers send for files of unknown type (MIME Sniffing standard, 5.1 and 7), or to have a file saved; the empty one too.
PDF is no text, but what is sent as `text/pdf` may be."""


def declared(values: Sequence[str]) -> str | None:
    """Return the values of all Content-Type headers of a response, joined; None without any."""
    if len(values) == 1:
        return values[0]
    return ", ".join(values) if values else None


def essence(declared: str | None) -> str:
    """Return the type of a Content-Type header in lower case, without parameters; empty if it has no valid type."""
    if not declared:
        return ""
    return _essence_of_usual(declared) if len(declared) <= _USUAL_LENGTH else _essence(declared)


def is_generic(declared: str | None) -> bool:
    """Return whether a header doesn't determine the type, so that the first bytes must."""
    return essence(declared) in _GENERIC


def _essence(declared: str) -> str:
    written = declared.lower()
    match = _ONE_TYPE.fullmatch(written)
    if match is not None:
        return "" if match[1] == "*/*" else match[1]
    found = ""
    for part in written.split(","):
        match = _ONE_TYPE.fullmatch(part)
        if match is not None and match[1] != "*/*":
            found = match[1]
    return found


_USUAL_LENGTH = 100
_essence_of_usual = lru_cache(1_000)(_essence)
"""Cached, because it is called several times a page with the same few values; bounded in number and length."""


# --- field values --------------------------------------------------------------------------------------------------


Values = str | list[str]
NO_SNIPPET = "no_snippet"
"""The field with the texts of a document that no snippet may show."""
STANDARD_FIELDS = frozenset(
    {"author", "published", "keywords", "site_name", "image", "type", "alternates", "anchors", NO_SNIPPET}
)
"""Fields that are taken from pages, besides `modified`, which is one of the document's own."""


FOR_PROGRAMS = frozenset({"alternates", "anchors", NO_SNIPPET})
"""Standard fields that say nothing to a reader."""


def packed(values: Sequence[str]) -> str:
    """Return several values as one text."""
    return json.dumps(list(values), ensure_ascii=False)


def values_of(text: str) -> Values:
    """Return the values that a text stands for; the text itself if it is one value."""
    if text.startswith('["') and text.endswith('"]'):
        try:
            return msgspec.json.decode(text, type=list[str])
        except (msgspec.MsgspecError, RecursionError):
            pass
    return text


def listed(text: str) -> list[str]:
    """Return the values that a text stands for as a list."""
    values = values_of(text)
    return [values] if isinstance(values, str) else values


def with_values(fields: Mapping[str, str]) -> dict[str, Values]:
    """Return the fields of a document as an index gets them."""
    return {name: values_of(value) for name, value in fields.items()}
