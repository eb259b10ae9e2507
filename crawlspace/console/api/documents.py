"""Searches and documents in the JSON interface."""

from __future__ import annotations

from hashlib import sha256

import msgspec

from crawlspace.clock import iso
from crawlspace.console.api import answers as to
from crawlspace.console.api import parameters as of
from crawlspace.console.api.answers import answered
from crawlspace.console.api.operations import MarkdownText
from crawlspace.console.routes import Asked, NoSuchThing
from crawlspace.document import Part, with_values
from crawlspace.index.orders import part_id, part_url
from crawlspace.index.search import read_facets, read_filter
from crawlspace.runtime.lookups.documents import DocumentInStore, stored_document
from crawlspace.runtime.session.markdown_export import markdown_file
from crawlspace.runtime.session.searching import as_json, search
from crawlspace.text import quoted
from crawlspace.urls import document_id


def search_documents(asked: Asked, query: of.SearchQueryParameters) -> to.HitsAnswer:
    """Search in the index of a collection."""
    filters, facets = [read_filter(written) for written in query.filter], read_facets(query.facet)
    result = search(
        asked.console.paths(asked.name),
        query.q,
        sink=query.sink or None,
        limit=query.limit,
        offset=query.offset,
        filters=filters,
        facets=facets,
        only_own=True,
    ).result
    found = as_json(result)
    hits = [{"id": document_id(hit.url), **row} for hit, row in zip(result.hits, _rows(found["hits"]), strict=True)]
    return answered({**found, "hits": hits}, to.HitsAnswer)


def _rows(value: object) -> list[dict[str, object]]:
    return msgspec.convert(value, list[dict[str, object]])


def document(asked: Asked, query: of.DocumentQuery) -> to.DocumentAnswer | MarkdownText:
    """Return the document with an id."""
    return _document(asked, query, id=asked.match["id"].lower())


def document_of_url(asked: Asked, query: of.DocumentByUrlQuery) -> to.DocumentAnswer | MarkdownText:
    """Return the document of a URL."""
    return _document(asked, query, url=query.url)


def _document(asked: Asked, query: of.DocumentQuery, *, id: str = "", url: str = "") -> to.DocumentAnswer | MarkdownText:
    paths = asked.console.paths(asked.name)
    with stored_document(paths, id=id, url=url) as found:
        if found is None:
            by_url = "" if paths.sinks.has_embedded or url else "; without an embedded index it is found by its URL alone"
            raise NoSuchThing(f"{paths.name} has no document {quoted(id or url)} in the index{by_url}")
        if query.format != "markdown":
            return _as_json(found)
        body = markdown_file(found.document, found.markdown(lambda: asked.console.collection(paths)))
        return MarkdownText(body, sha256(body).hexdigest())


def _as_json(found: DocumentInStore) -> to.DocumentAnswer:
    one = found.document
    fetched_at = None if found.state is None else found.state.fetched_at
    return to.DocumentAnswer(
        document_id(one.url),
        one.url,
        one.title,
        one.description,
        one.language,
        one.content_type,
        one.modified,
        None if fetched_at is None else iso(fetched_at),
        one.headings,
        one.text,
        with_values(one.fields),
        one.duplicates,
        [_part(one.url, part) for part in one.parts],
    )


def _part(url: str, part: Part) -> to.PartRow:
    return to.PartRow(
        part_id(url, part.key),
        part.key,
        part_url(url, part.anchor),
        part.title,
        part.headings,
        part.text,
        with_values(part.fields),
    )
