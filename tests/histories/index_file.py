"""The index of a simulated crawler, in its file, and the search server beside it, if there is one."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from crawlspace.clock import FakeClock
from crawlspace.config.sinks import EMBEDDED
from crawlspace.document import Document
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.sink import Sink
from tests.histories.fate import Fate
from tests.histories.sending import SEARCH, SimulatedSearch


class IndexFile:
    """The file that all collections of a machine share."""

    name: str
    clock: FakeClock
    _index_file: Path
    _contents: dict[tuple[str, bytes], tuple[str, str]]
    _latest: dict[str, tuple[str, str]]
    search: SimulatedSearch | None = None

    @property
    def sinks(self) -> tuple[str, ...]:
        """The names of those that orders are given to."""
        return (EMBEDDED,) if self.search is None or not self.search.is_named else (EMBEDDED, SEARCH)

    def more_sinks(self, fate: Fate) -> list[Sink]:
        """Those beside the index, as a crawl opens them."""
        is_named = self.search is not None and self.search.is_named
        return [self.search.open(may_be_killed=fate.kill_after is not None)] if self.search is not None and is_named else []

    def open_index(self) -> EmbeddedIndex:
        """The index, as a crawl of this collection opens it."""
        return EmbeddedIndex(self._index_file, owner=self.name, clock=self.clock)

    def lose_index(self) -> None:
        """Have no index any more."""
        for path in self._index_file.parent.glob(f"{self._index_file.name}*"):
            path.unlink()

    def documents(self) -> list[Document]:
        """What is in it."""
        with closing(EmbeddedIndex(self._index_file)) as index:
            return [document for url in index.urls() if (document := index.get(url)) is not None]

    def owners(self) -> dict[str, str]:
        """Which collection pushed each document last."""
        with closing(EmbeddedIndex(self._index_file)) as index:
            return {str(url): str(owner) for url, owner in index._db.execute("SELECT url, owner FROM documents")}

    def note_document(self, url: str, document: Document | None, checksum: bytes | None) -> None:
        """Know title and text of a document that was made of a page."""
        if document is not None and checksum is not None:
            self._contents[url, checksum] = self._latest[url] = (document.title, document.text)
