"""The index of a simulated crawler, in its file."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from crawlspace.clock import FakeClock
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.model import Document


class IndexFile:
    """The file that all collections of a machine share."""

    name: str
    clock: FakeClock
    _index_file: Path

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
