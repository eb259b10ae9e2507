"""What the spider yields for each response: one outcome, and the item for the feeds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, KeysView, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote, urlsplit

from itemadapter import ItemAdapter, is_item
from itemadapter.adapter import DataclassAdapter

from crawlspace.config.content import ContentSettings
from crawlspace.content.fingerprint import checksum, checksum_of_bytes, with_parts
from crawlspace.content.language import language_of
from crawlspace.content.page import Page
from crawlspace.content.parts import MAX_PARTS, digest_of, unique_key
from crawlspace.content.text import last_segment
from crawlspace.decision import Reason
from crawlspace.document import OWN_FIELDS, Document, Part, values_of
from crawlspace.index.login_exclusion import is_marked, simhash_behind_login
from crawlspace.index.orders import sent_parts
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.runtime.http.file_body import FileBody
from crawlspace.simhash import signature_of
from crawlspace.status import Status


@dataclass(slots=True)
class Fetched:
    """The one item of a fetch. `item` is passed to the feeds: the document, or the item of a spider's own parsing."""

    outcome: Outcome
    item: Any = None
    page: Page | None = None
    """The content of the response; the document takes from it the fields that the item leaves out."""
    body: bytes | None = None
    """Of the response, as is its type; None where nothing of it was kept."""
    file: FileBody | None = None
    """The body of a file that is on disk."""
    content_type: str = ""
    modified: str = ""
    """By the page's own metadata, else by the Last-Modified header."""
    parts: list[Part] = field(default_factory=list)
    """Those that the spider's `document()` yielded."""


class DocumentAdapter(DataclassAdapter):
    """Lets item pipelines read and set the further fields of a document by name, like those of any item."""

    @classmethod
    def is_item(cls, item: Any) -> bool:
        return isinstance(item, Document)

    @classmethod
    def is_item_class(cls, item_class: type) -> bool:
        return issubclass(item_class, Document)

    def __getitem__(self, field_name: str) -> Any:
        if field_name == "parts":
            return sent_parts(self.item)
        return super().__getitem__(field_name) if field_name in self._fields_dict else values_of(self.item.fields[field_name])

    def __setitem__(self, field_name: str, value: Any) -> None:
        if field_name == "parts":
            self.item.parts = _parts_in(value)
        elif field_name in self._fields_dict:
            super().__setitem__(field_name, value)
        else:
            self.item.fields[field_name] = as_field(value)

    def __iter__(self) -> Iterator[str]:
        return (name for name in super().__iter__() if name not in _OPTIONAL or getattr(self.item, name))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def field_names(self) -> KeysView[str]:
        """Return the names of fields; Markdown and parts are among them only where the document has any."""
        return dict.fromkeys(self).keys()

    def __delitem__(self, field_name: str) -> None:
        if field_name in self._fields_dict:
            super().__delitem__(field_name)
        else:
            del self.item.fields[field_name]


ItemAdapter.ADAPTER_CLASSES = (DocumentAdapter, *ItemAdapter.ADAPTER_CLASSES)


def is_document(item: object) -> bool:
    """Return whether something may become a document: what document() returns, what a spider yields, what a pipeline returns."""
    return isinstance(item, Document) or is_item(item)


def split(given: Any, url: str) -> tuple[Any, list[Part]]:
    """Return the item of a page and its parts, where `document()` yields several: those with a key are parts.

    Without an item of the page itself, that is an empty document, which takes all from the page. What cannot be a document is returned
    itself, for the caller to report.
    """
    if is_document(given) or given is None or isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        return given, []
    own: list[Any] = []
    parts: list[Part] = []
    for one in given:
        part = _part_of(one)
        if part is None:
            own.append(one)
        elif len(parts) < MAX_PARTS:
            parts.append(part)
    if not own:
        return Document(url) if parts else None, parts
    return (own[0] if len(own) == 1 else own), parts


def _parts_in(value: Any) -> list[Part]:
    """Return the parts among some values; those without a key are left out."""
    return [part for one in (value if isinstance(value, (list, tuple)) else [value]) if (part := _part_of(one)) is not None]


def _part_of(item: Any) -> Part | None:
    """Return an item as a part; None where it has no field `key`. What sinks compute of a part is computed again.

    In place of an empty key, a part has its anchor, or a digest of its text.
    """
    if not is_item(item) or isinstance(item, Document) or "key" not in ItemAdapter(item):
        return None
    values = {str(name): value for name, value in ItemAdapter(item).items() if value is not None}
    key = _joined(values.pop("key", "")).strip()
    title, text, anchor, url = (_joined(values.pop(name, "")) for name in ("title", "text", "anchor", "url"))
    for name in _COMPUTED:
        values.pop(name, None)
    own = values.pop("fields", None)
    if isinstance(own, dict):
        values |= own
    headings = values.pop("headings", None) or ([title] if title else [])
    headings = [headings] if isinstance(headings, str) else [str(one) for one in headings]
    anchor = anchor or unquote(urlsplit(url).fragment)
    fields = {name: as_field(value) for name, value in values.items()}
    return Part(key or anchor or digest_of(text), title, headings, text, anchor, fields)


def keep_out(fetched: Fetched) -> Fetched:
    """Exclude the document of a page, for robots directives or because it has no item; its links are followed."""
    outcome = fetched.outcome
    outcome.reason = Reason.NO_ITEM if outcome.index else Reason.NOINDEX
    outcome.kind, outcome.status = OutcomeKind.EXCLUDED, int(Status.NOINDEX)
    outcome.index, outcome.added = False, {}
    fetched.item = None
    return fetched


def dropped(outcome: Outcome, *, why: str) -> Outcome:
    """Return the outcome of a page whose document an item pipeline dropped: its links count, and its indexed document is deleted."""
    return replace(
        outcome,
        kind=OutcomeKind.EXCLUDED,
        status=int(HTTPStatus.OK),
        reason=Reason.DROPPED,
        detail=why,
        index=False,
        document=None,
        checksum=None,
        added={},
        etag=None,  # a 304 would keep the page out although the pipeline may let it pass by then
        last_modified=None,
    )


def unexpected(id: int, url: str, *, why: str, sent_ago_s: float = 0.0, code_failed: bool = True) -> Outcome:
    """Return the outcome of an unexpected error (699), as a rule a fault in the code of the project or of crawlspace."""
    return Outcome(
        id,
        url,
        OutcomeKind.FAILED,
        Status.UNEXPECTED,
        host_failure=True,
        code_failed=code_failed,
        detail=why,
        sent_ago_s=sent_ago_s,
    )


def failed(outcome: Outcome, *, why: str, code_failed: bool = True) -> Outcome:
    """Return the outcome of an unexpected error (699) in place of another one of the page."""
    lost = unexpected(outcome.id, outcome.url, why=why, sent_ago_s=outcome.sent_ago_s, code_failed=code_failed)
    lost.took_s, lost.body_bytes = outcome.took_s, outcome.body_bytes
    return lost


_OPTIONAL = frozenset({"markdown", "parts"})
_COMPUTED = ("id", "position", "digest")
_OWN_TEXTS = ("title", "description", "language", "text", "content_type", "modified")
_OF_THE_PAGE = ("title", "description", "language", "text")


def document_of(fetched: Fetched) -> Document:
    """Return the item of a fetch, of any type, as a document.

    Fields of a document's names are its own, all others become its `fields`: text as it is, anything else as JSON. What is missing or
    empty of the document's own is taken from the page.
    """
    item, page = fetched.item, fetched.page
    document = item if isinstance(item, Document) else _from_fields(item, fetched.outcome.url)
    if page is not None:
        for name in _OF_THE_PAGE:
            if not getattr(document, name):
                setattr(document, name, getattr(page, name))
        document.headings = document.headings or list(page.headings)
        if page.fields:
            document.fields = {**page.fields, **document.fields}
        if document.text == page.text:  # not where the item has a text of its own
            document.markdown = document.markdown or page.markdown
            document.parts = document.parts or fetched.parts or list(page.parts)
    document.parts = document.parts or fetched.parts
    document.content_type = document.content_type or fetched.content_type
    document.modified = document.modified or fetched.modified
    _storable(document)
    document.language = document.language or language_of(document.text)
    return document


def checksum_of(document: Document, fetched: Fetched, *, with_title: bool, cut_off: int) -> bytes:
    """Return the checksum that equal documents share: of the text, or of the bytes of the response where there is no text, and of parts.

    Parts don't count where only the beginning of the text does.
    """
    found = _checksum_of(document, fetched, with_title=with_title, cut_off=cut_off)
    return found if cut_off else with_parts(found, document.parts)


def simhash_of(document: Document, content: ContentSettings) -> bytes | None:
    """Return the signature of the text that the checksum of a document is made of; None if it has no near duplicates."""
    if not content.near_duplicates:
        return None
    text = document.text
    if document.parts and not content.checksum_cut_off:
        text = " ".join((text, *(f"{part.title} {part.text}" for part in document.parts)))
    title = document.title if content.checksum_title and document.title != last_segment(document.url) else None
    signature = signature_of(text, title=title, cut_off=content.checksum_cut_off)
    return simhash_behind_login(signature) if is_marked(document) else signature


def _checksum_of(document: Document, fetched: Fetched, *, with_title: bool, cut_off: int) -> bytes:
    if not document.text.strip():
        if fetched.file is not None:
            return fetched.file.checksum
        return checksum_of_bytes(document.url.encode("utf-8", "replace") if fetched.body is None else fetched.body)
    of_the_page = fetched.page is not None and document.text is fetched.page.text and document.title is fetched.page.title
    return checksum(document.text, title=document.title if with_title else None, cut_off=cut_off, collapsed=of_the_page)


def _from_fields(item: Any, url: str) -> Document:
    document = Document(url)
    for name, value in ItemAdapter(item).items():
        if value is None or name == "url":
            continue
        if name == "parts" and (parts := _parts_in(value)):
            document.parts = parts
        elif name == "headings":
            document.headings = [value] if isinstance(value, str) else [str(heading) for heading in value]
        elif name in OWN_FIELDS and name not in ("duplicates", "parts"):
            setattr(document, name, _joined(value))
        else:
            document.fields[str(name)] = as_field(value)
    return document


def as_field(value: Any) -> str:
    """Return a value as a further field of a document has it: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=_plain)


def _joined(value: Any) -> str:
    """A list of texts, as selectors give it, is one text."""
    return " ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _plain(value: Any) -> Any:
    """Return a value that JSON has no form for: an item within an item, or anything else as text."""
    return ItemAdapter(value).asdict() if is_item(value) else str(value)


def _storable(document: Document) -> None:
    """Replace what no store and no index can hold: fields that are not text, and halves of surrogate pairs."""
    for name in _OWN_TEXTS:
        value = getattr(document, name)
        if not isinstance(value, str) or not value.isascii():
            setattr(document, name, _text(value))
    if document.headings:
        document.headings = [_text(heading) for heading in document.headings]
    if document.fields:
        document.fields = _storable_fields(document.fields)
    document.markdown = _text(document.markdown)
    document.parts = _parts_in(document.parts)[:MAX_PARTS] if document.parts else []
    keys = dict[str, int]()
    for part in document.parts:
        part.key = unique_key(_text(part.key), keys)
        part.title, part.text, part.anchor = _text(part.title), _text(part.text), _text(part.anchor)
        part.headings, part.fields = list(map(_text, part.headings)), _storable_fields(part.fields)


def _storable_fields(fields: Mapping[str, object]) -> dict[str, str]:
    return {_text(name): _text(value) for name, value in fields.items()}


def _text(value: Any) -> str:
    text = str(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
