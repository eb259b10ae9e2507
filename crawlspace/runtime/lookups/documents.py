"""One document of a collection: from the embedded index, or from the archive where there is none; its content as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager

from crawlspace.admin.url_changes import find_url, read_url
from crawlspace.archive.reader import ArchiveReader
from crawlspace.config.collection import Collection
from crawlspace.config.sites import read_url_folding
from crawlspace.crawl.startup import learned_blocks
from crawlspace.document import Document
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.model import UrlState
from crawlspace.runtime.components.archived_responses import archived_html
from crawlspace.runtime.session.markdown_export import MarkdownOf
from crawlspace.runtime.session.paths import CollectionPaths, archive_reader, refuse_missing_index
from crawlspace.state.store import Store


class DocumentInStore:
    """A document, with the state of its URL where the store has it."""

    def __init__(self, document: Document, store: Store | None, archive: ArchiveReader | None) -> None:
        self.document = document
        self.state: UrlState | None = None if store is None else store.get(document.url)
        self._store = store
        self._archive = archive

    def markdown(self, collection: Callable[[], Collection]) -> str:
        """Return its content as `scrapy export --markdown` does; `collection` is called where it must be made of the archived page."""
        if self.document.markdown:
            return self.document.markdown
        if self._store is None or self._archive is None or self.state is None:
            return self.document.text
        configured = collection()
        fetched = archived_html(self.state, self._archive, configured.content)
        if fetched is None:
            return self.document.text
        learned = learned_blocks(self._store) if configured.content.boilerplate else {}
        return MarkdownOf(configured.content, configured.extraction_rules, learned)(self.document.url, fetched)


@contextmanager
def stored_document(paths: CollectionPaths, *, id: str = "", url: str = "") -> Iterator[DocumentInStore | None]:
    """Find the document with an id, or of a URL, or the one that represents it; None if the collection has none, or its store can't find it by an id.

    Raises UsageError for a malformed URL, StoreError if the index should be here and isn't, and IndexUnavailable.
    """
    wanted = read_url(url) if url else None
    with ExitStack() as stack:
        opened = stack.enter_context(paths.store.reading())
        if opened is None:
            yield None
            return
        archive = stack.enter_context(closing(archive_reader(paths, opened)))
        state = None if wanted is None else find_url(opened.store, wanted, read_url_folding(paths.settings))
        if state is not None and not state.indexed and state.duplicate_of is not None:
            state = opened.store.get_by_id(state.duplicate_of)
        text = "" if wanted is None else wanted.text if state is None else state.url
        document = None
        if paths.sinks.has_embedded:
            refuse_missing_index(paths)
            index = stack.enter_context(closing(EmbeddedIndex(paths.index_file, read_only=True, owner=paths.name)))
            document = index.own_document(id=id, url=text)
        elif state is not None and state.indexed and state.archived is not None:
            document = archive.document(state.archived, state.url)
        yield None if document is None else DocumentInStore(document, opened.store, archive)
