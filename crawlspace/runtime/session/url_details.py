"""What is known about a URL: its explanation, its document, its stored page, and the form in which each sink gets the document."""

from __future__ import annotations

import json
from collections.abc import Collection as AnyOf
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace

from crawlspace.admin.explain import Explanation, Question, explain
from crawlspace.archive.reader import StoredResponse
from crawlspace.clock import Clock
from crawlspace.config.collection import Collection
from crawlspace.config.sinks import SQLITE, SinkOptions, SinkSettings
from crawlspace.crawl.startup import build_space
from crawlspace.document import Document, IndexOrder, Op, essence
from crawlspace.errors import CrawlspaceError
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.orders import written_document
from crawlspace.index.sink import index_place
from crawlspace.model import UrlState
from crawlspace.rules.space import CrawlSpace
from crawlspace.runtime.session.paths import CollectionPaths, OpenStore, archive_reader, lost_documents
from crawlspace.status import Status


def explain_urls(
    questions: Iterable[Question],
    paths: CollectionPaths,
    collection: Collection,
    *,
    opened: OpenStore | None,
    clock: Clock,
    space: CrawlSpace | None = None,
) -> Iterator[Explanation]:
    """Yield the explanation of each URL, by the rules on disk. `opened` is None for a collection that was never crawled, and `space` is
    that of the collection where the caller has made it.

    Raises UsageError for an invalid address or page, and StoreError.
    """
    space = space or build_space(collection)
    for question in questions:
        answer = explain(question, collection, space=space, store=None if opened is None else opened.store, clock=clock)
        yield answer if opened is None else _with_index(answer, paths, opened)


def _with_index(answer: Explanation, paths: CollectionPaths, opened: OpenStore) -> Explanation:
    """Return an explanation with what the index has of the URL."""
    if answer.known is None or not answer.known.state.indexed:
        return answer
    state = answer.known.state
    with lost_documents(paths, opened) as lost:
        text_status = lost.text_status(state.url) if state.status == Status.UNREADABLE_FILE else ""
        return replace(answer, known=replace(answer.known, lost=lost.is_lost(state.url), text_status=text_status))


def stored_response(paths: CollectionPaths, opened: OpenStore, state: UrlState) -> StoredResponse | None:
    """Return the response of a URL from the archive on this machine."""
    if state.archived is None:
        return None
    with closing(archive_reader(paths, opened)) as archive:
        return archive.response(state.archived, state.url)


def document_of(paths: CollectionPaths, opened: OpenStore, state: UrlState) -> Document | None:
    """Return the document of a URL from the archive on this machine, or else from the embedded index."""
    if state.checksum is None:
        return None
    document = None
    if state.archived is not None:
        with closing(archive_reader(paths, opened)) as archive:
            document = archive.document(state.archived, state.url)
    in_index = _in_embedded_index(paths, opened, state.url)
    if document is None or in_index is None:
        return document or in_index
    return replace(document, duplicates=in_index.duplicates)


def _in_embedded_index(paths: CollectionPaths, opened: OpenStore, url: str) -> Document | None:
    if not paths.index_file.exists() or opened.index_place() not in ("", index_place(paths.index_file)):
        return None
    try:
        with closing(EmbeddedIndex(paths.index_file, read_only=True, owner=paths.name)) as index:
            return index.get(url)
    except CrawlspaceError:
        return None  # `status` reports it


# --- sinks ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SentDocument:
    """A document as a sink gets it, as JSON; None: it gets none, because its page is behind a log-in."""

    sink: str
    type: str
    text: str | None


def sent_documents(document: Document, sinks: SinkSettings, *, owner: str, now: float, most: int) -> Iterator[SentDocument]:
    """Yield the form in which each sink gets a document; texts are cut to `most` characters. No server is contacted: for a search server it is
    the form for an index with the fields of ours."""
    order = IndexOrder(0, Op.PUSH, document.url, document)
    for options in sinks.options:
        exclusion = sinks.exclusion_of(options.name)
        sent = order if exclusion is None else exclusion.of(order)
        text = None
        if sent.document is not None:
            form = _form(sent, sent.document, options, owner=owner, now=now)
            text = json.dumps(_cut(form, most), ensure_ascii=False, indent=2)
        yield SentDocument(options.name, options.type, text)


def _form(order: IndexOrder, document: Document, options: SinkOptions, *, owner: str, now: float) -> object:
    from crawlspace.index.opensearch.mapping import ANALYZERS, source_of  # noqa: PLC0415 - with the client half a second
    from crawlspace.index.solr.documents import pushed  # noqa: PLC0415

    languages: AnyOf[str] = ANALYZERS.keys()
    match options.type:
        case "opensearch" | "elasticsearch":
            return source_of(order, document, owner=owner, now=now, languages=languages)
        case "solr":
            return pushed(order, document, owner=owner, now=now, languages=languages)
        case _ if options.type == SQLITE:
            return written_document(document)
        case _:
            return {"op": order.op.value, "url": order.url, "collection": owner, "document": written_document(document)}


def _cut(value: object, most: int) -> object:
    match value:
        case str():
            return value if len(value) <= most else f"{value[:most]}… ({len(value):,} characters)"
        case dict():
            return {name: _cut(one, most) for name, one in value.items()}
        case list() | tuple():
            return [_cut(one, most) for one in value]
        case _:
            return value


# --- stored page ---------------------------------------------------------------------------------------------------


def type_of(response: StoredResponse) -> str:
    """Return the type that the server has declared for a response; `text/html` for one that was rendered."""
    if response.dom is not None:
        return "text/html"
    declared = next((value for name, value in response.headers if name.lower() == "content-type"), "")
    return essence(declared)
