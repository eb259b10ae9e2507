"""The stored form of a document on a search server, with a field of its texts for each language, which has the analyser of that language."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from urllib.parse import unquote, urlsplit

from crawlspace.clock import iso
from crawlspace.document import Document, IndexOrder, with_values
from crawlspace.index.orders import reference_fields
from crawlspace.index.search import Filter, day_of
from crawlspace.urls import document_id

OTHER = "other"
"""The field of texts whose language has no field of its own."""
TEXTS = ("title", "headings", "description", "text")
MAX_KEYWORD = 8_000
"""Characters of a value that is not analysed: in Lucene it has up to 32,766 bytes, and a character up to four."""


class Languages:
    """The languages of a collection's documents, by the fields that their texts are in."""

    def __init__(self, written: Iterable[str], *, fields: Collection[str] | None, filters: Sequence[Filter] = ()) -> None:
        """`written` are the languages as in documents, `fields` those that the index has fields for; None: each text has one field."""
        wanted = [one.value.lower() for one in filters if one.field == "language"]
        self.written = [one for one in written if not wanted or any(_is_of(one, language) for language in wanted)]
        self.by_field: dict[str, list[str]] = {}
        if fields is None:
            self.by_field[""] = []
            return
        for one in self.written:
            self.by_field.setdefault(language_field(one, fields), []).append(one)
        self.by_field.setdefault(OTHER, [])

    def outside(self, field: str) -> list[str]:
        """Return the languages whose texts are in another field than this one."""
        return [one for other, written in self.by_field.items() if other != field for one in written]


def language_field(language: str, fields: Collection[str]) -> str:
    """Return the one of an index's fields for texts in a language."""
    code = language.partition("-")[0].lower()
    return code if code in fields else OTHER


def stored_fields(order: IndexOrder, document: Document, *, owner: str, now: float) -> dict[str, object]:
    """Return the stored fields of the document of an order, except for its texts; empty ones are left out."""
    parts = urlsplit(order.url)
    host = parts.hostname or ""
    found: dict[str, object] = {
        "id": document_id(order.url),
        "url": order.url,
        "address": url_words(order.url),
        "scheme": parts.scheme,
        "host": host,
        "folder": f"{host}{parts.path.rpartition('/')[0]}",
        "collection": owner,
        "pushed_at": iso(now),
        "language": document.language,
        "content_type": document.content_type,
        "modified": document.modified if document.modified[10:11] == "T" else day_of(document.modified),
        "duplicates": document.duplicates,
        "fields": {
            name: value[:MAX_KEYWORD] if isinstance(value, str) else [one[:MAX_KEYWORD] for one in value]
            for name, value in with_values(document.fields).items()
        },
        **reference_fields(order),
    }
    return {name: value for name, value in found.items() if value}


def stored_texts(document: Document) -> dict[str, object]:
    """Return the texts of a document by name; empty ones are left out."""
    texts = (document.title, document.headings, document.description, document.text)
    return {name: value for name, value in zip(TEXTS, texts, strict=True) if value}


def url_words(url: str) -> str:
    """Return the text of a URL that is searched for words."""
    parts = urlsplit(url)
    return unquote(f"{parts.netloc} {parts.path} {parts.query}", errors="ignore").strip()


def _is_of(written: str, language: str) -> bool:
    return written.lower() == language or written.lower().startswith(f"{language}-")
