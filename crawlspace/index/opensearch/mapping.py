"""What a document is in OpenSearch and Elasticsearch: the mapping of an index, and the source of a document.

Title, headings, description and text are objects with a field for each language (`text.de`), so that each language has its own analyser
and a document is stored once; what has another language, or none, is in `other`. A query asks `text.*`. Fields of the user's own are in
`fields`, one flat object, so that no page can make the mapping grow. A server that has no flat objects (the OSS build of Elasticsearch,
OpenSearch before 2.7) gets a keyword field for each name there, so that the same queries work.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from urllib.parse import unquote, urlsplit

from crawlspace.document import Document, IndexOrder, with_values
from crawlspace.index.json_client import table
from crawlspace.index.orders import PLACE, URL, reference_fields
from crawlspace.index.search import day_of
from crawlspace.index.search_server.documents import OTHER, language_field

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
"""By language, those that both servers have without plugins."""
_TEXTS = ("title", "headings", "description", "text")
_MOST_KEYWORD_BYTES = 8_000
"""A keyword has up to 32,766 bytes in Lucene, and a character up to four."""


MARK: Mapping[str, object] = {
    "properties": {
        "collection": {"type": "keyword"},
        "generation": {"type": "keyword"},
        "batch": {"type": "long"},
        "sequence": {"type": "long"},
    }
}
"""The field of the marker, see `marker.py`."""


def index_body(
    *, flat_type: str, shards: int, replicas: int, without: Collection[str] = (), is_marked: bool = True
) -> dict[str, object]:
    """Return settings and mapping of a new index.

    `flat_type` is what the server calls a flat object, empty where it has none, `without` are analysers it lacks, and `is_marked` says that
    each collection that has sent something there has a marker.
    """
    keyword: dict[str, object] = {"type": "keyword", "ignore_above": _MOST_KEYWORD_BYTES}
    analyzers = {code: name for code, name in ANALYZERS.items() if name not in without} | {OTHER: "standard"}
    by_language = {code: {"type": "text", "analyzer": name} for code, name in analyzers.items()}
    properties: dict[str, object] = {name: {"properties": by_language} for name in _TEXTS}
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
        "author": keyword,
        "published": {"type": "date", "ignore_malformed": True},
        "modified": {"type": "date", "ignore_malformed": True},
        "keywords": keyword,
        "site_name": keyword,
        "image": keyword,
        "type": keyword,
        "duplicates": keyword,
        "fields": {"type": flat_type} if flat_type else {"type": "object", "dynamic": True},
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
        named = {"path_match": "fields.*", "match_mapping_type": "string", "mapping": keyword}
        mappings |= {"dynamic_templates": [{"crawlspace_fields": named}], "date_detection": False}
    if is_marked:
        mappings["_meta"] = {"batch_mark": "of each collection"}
    return {"settings": settings, "mappings": mappings}


def languages_of(mapping: Mapping[str, object]) -> frozenset[str] | None:
    """Return the languages that the texts of an index have fields for, from its mapping; None where they are plain texts."""
    text = table(table(table(mapping.get("mappings")).get("properties")).get("text"))
    return frozenset(table(text["properties"])) if "properties" in text else None


def source_of(
    order: IndexOrder,
    document: Document,
    *,
    id: str,
    owner: str,
    now: float,
    languages: Collection[str] | None,
) -> dict[str, object]:
    """Return what is stored of the document of an order; empty fields are left out. `languages`: see `languages_of`."""
    url = order.url
    code = OTHER if languages is None else language_field(document.language, languages)
    parts = urlsplit(url)
    host = parts.hostname or ""
    texts = zip(_TEXTS, (document.title, document.headings, document.description, document.text), strict=True)
    found: dict[str, object] = {name: value if languages is None else {code: value} for name, value in texts if value}
    found |= {
        "id": id,
        "url": url,
        "address": address_of(url),
        "scheme": parts.scheme,
        "host": host,
        "folder": f"{host}{parts.path.rpartition('/')[0]}",
        "collection": owner,
        "pushed_at": datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    modified = document.modified if document.modified[10:11] == "T" else day_of(document.modified)
    fields = {
        name: value[:_MOST_KEYWORD_BYTES] if isinstance(value, str) else [one[:_MOST_KEYWORD_BYTES] for one in value]
        for name, value in with_values(document.fields).items()
    }
    others = {
        "language": document.language,
        "content_type": document.content_type,
        "modified": modified,
        "duplicates": document.duplicates,
        "fields": fields,
        **reference_fields(order),
    }
    return found | {name: value for name, value in others.items() if value}


def address_of(url: str) -> str:
    """Return what the words of a URL are taken from."""
    parts = urlsplit(url)
    return unquote(f"{parts.netloc} {parts.path} {parts.query}", errors="ignore").strip()
