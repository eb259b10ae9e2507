"""Documents in OpenSearch and Elasticsearch: the mapping of an index, and the stored form of a document.

Title, headings, description and text are objects with a field for each language (`text.de`), so that each language has its own analyser
and a document is stored once; texts in another language, or none, are in `other`. Fields of the user's own are in `fields`, one flat object,
so that no page can make the mapping grow. On a server without flat objects (the OSS build of Elasticsearch, OpenSearch before 2.7) each of
them is a keyword field, so that the same queries work.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from crawlspace.document import Document, IndexOrder
from crawlspace.index.json_client import table
from crawlspace.index.orders import PLACE, URL, SentPart, sent_parts
from crawlspace.index.search_server.documents import MAX_KEYWORD, OTHER, TEXTS, language_field, stored_fields, stored_texts

ANALYZERS: Mapping[str, str] = {
    "ar": "arabic",
    "bg": "bulgarian",
    "ca": "catalan",
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "eu": "basque",
    "fa": "persian",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "gl": "galician",
    "hi": "hindi",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "ja": "cjk",
    "ko": "cjk",
    "lt": "lithuanian",
    "lv": "latvian",
    "nl": "dutch",
    "no": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sv": "swedish",
    "th": "thai",
    "tr": "turkish",
    "zh": "cjk",
}
"""Analysers by language: those that both servers have without plugins."""

COLUMNS = ("author", "published", "keywords", "site_name", "image", "type")
"""Standard fields of pages, which have a field of their own in an index: a search can count and sort by them."""

MARKDOWN, PARTS = "markdown", "parts"
"""Fields with the content of a page as Markdown, and its parts as nested objects, which the server replaces and deletes with their page."""

_TEXTS_OF_PARTS = ("title", "headings", "text")

MARK: Mapping[str, object] = {
    "properties": {
        "collection": {"type": "keyword"},
        "generation": {"type": "keyword"},
        "batch": {"type": "long"},
        "sequence": {"type": "long"},
    }
}
"""The mapping of the field of markers."""


def index_body(
    *, flat_type: str, shards: int, replicas: int, without: Collection[str] = (), is_marked: bool = True
) -> dict[str, object]:
    """Return settings and mapping of a new index.

    `flat_type` is the server's type of a flat object, empty if it has none; `without` are analysers it lacks; `is_marked`: each collection
    with documents in the index has a marker.
    """
    keyword: dict[str, object] = {"type": "keyword", "ignore_above": MAX_KEYWORD}
    analyzers = {code: name for code, name in ANALYZERS.items() if name not in without} | {OTHER: "standard"}
    by_language = {code: {"type": "text", "analyzer": name} for code, name in analyzers.items()}
    fields = {"type": flat_type} if flat_type else {"type": "object", "dynamic": True}
    properties: dict[str, object] = {name: {"properties": by_language} for name in TEXTS}
    properties |= {
        "id": keyword,
        "key": keyword,
        "url": keyword,
        "address": {"type": "text", "analyzer": "crawlspace_address"},
        "scheme": keyword,
        "host": keyword,
        "folder": {"type": "text", "analyzer": "crawlspace_folder", "search_analyzer": "keyword"},
        "collection": keyword,
        "language": keyword,
        "content_type": keyword,
        "modified": {"type": "date", "ignore_malformed": True},
        **dict.fromkeys(COLUMNS, keyword),
        "published": {"type": "date", "ignore_malformed": True},
        "duplicates": keyword,
        "fields": fields,
        MARKDOWN: {"type": "keyword", "index": False, "doc_values": False},
        PARTS: {
            "type": "nested",
            "properties": {
                **dict.fromkeys(("id", "key", "url", "digest"), keyword),
                "position": {"type": "integer"},
                **{name: {"properties": by_language} for name in _TEXTS_OF_PARTS},
                "fields": fields,
            },
        },
        "pushed_at": {"type": "date"},
        PLACE: keyword,
        URL: keyword,
        "batch_mark": MARK,
    }
    analysis = {
        "tokenizer": {"crawlspace_folders": {"type": "path_hierarchy", "delimiter": "/"}},
        "analyzer": {
            "crawlspace_folder": {"type": "custom", "tokenizer": "crawlspace_folders"},
            "crawlspace_address": {"type": "custom", "tokenizer": "letter", "filter": ["lowercase"]},
        },
    }
    settings = {"number_of_shards": shards, "number_of_replicas": replicas, "analysis": analysis}
    mappings: dict[str, object] = {"dynamic": "strict", "properties": properties}
    if not flat_type:
        named = {"match_mapping_type": "string", "mapping": keyword}
        paths = {"crawlspace_fields": "fields.*", "crawlspace_part_fields": f"{PARTS}.fields.*"}
        mappings |= {
            "dynamic_templates": [{name: {"path_match": path, **named}} for name, path in paths.items()],
            "date_detection": False,
        }
    if is_marked:
        mappings["_meta"] = {"batch_mark": "of each collection"}
    return {"settings": settings, "mappings": mappings}


def languages_of(mapping: Mapping[str, object]) -> frozenset[str] | None:
    """Return the languages for which an index has fields, from its mapping; None if a text has one field."""
    text = table(table(table(mapping.get("mappings")).get("properties")).get("text"))
    return frozenset(table(text["properties"])) if "properties" in text else None


def columns_of(mapping: Mapping[str, object]) -> frozenset[str]:
    """Return the standard fields for which an index has a field, and whether it has Markdown and parts, from its mapping.

    That of a template of the user's own may lack some, and so may that of an earlier version.
    """
    return frozenset(table(table(mapping.get("mappings")).get("properties")).keys() & {*COLUMNS, MARKDOWN, PARTS})


def source_of(
    order: IndexOrder,
    document: Document,
    *,
    owner: str,
    now: float,
    languages: Collection[str] | None,
    columns: Collection[str] = (*COLUMNS, MARKDOWN, PARTS),
) -> dict[str, object]:
    """Return the stored form of the document of an order; empty fields are left out. `languages`, `columns`: see the functions above."""
    code = None if languages is None else language_field(document.language, languages)
    texts = _of_language(stored_texts(document), code)
    if document.markdown and MARKDOWN in columns:
        texts[MARKDOWN] = document.markdown
    if document.parts and PARTS in columns:
        texts[PARTS] = [_stored_part(part, code) for part in sent_parts(document)]
    stored = stored_fields(order, document, owner=owner, now=now)
    own = dict(table(stored.pop("fields", None)))
    stored |= {name: own.pop(name) for name in COLUMNS if name in own and name in columns}
    return stored | texts | ({"fields": own} if own else {})


def _stored_part(part: SentPart, language: str | None) -> dict[str, object]:
    """Return the stored form of a part; empty fields are left out."""
    found: dict[str, object] = {name: value for name, value in part.items() if value or name == "position"}
    return found | _of_language({name: found[name] for name in _TEXTS_OF_PARTS if name in found}, language)


def _of_language(texts: Mapping[str, object], language: str | None) -> dict[str, object]:
    """Return texts as an index has them that has a field for each language; as they are, if it has one for all."""
    return dict(texts) if language is None else {name: {language: text} for name, text in texts.items()}
