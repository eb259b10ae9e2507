"""Documents of folded addresses that a simulated crawl moves, as its archive has them."""

from __future__ import annotations

import random

from crawlspace.crawl.engine import Engine
from crawlspace.crawl.rule_changes.archived import DocumentMoving
from crawlspace.document import Document
from crawlspace.model import UrlState
from tests.histories.archive import SimulatedArchive
from tests.histories.files import checksum_of

Content = tuple[str, str]
"""Title and text."""


class MovedDocuments:
    """Those of one crawl."""

    def __init__(
        self,
        engine: Engine,
        archive: SimulatedArchive | None,
        contents: dict[tuple[str, bytes], Content],
        latest: dict[str, Content],
    ) -> None:
        """`contents` and `latest` get what is moved."""
        self._engine = engine
        self._reader = None if archive is None else archive.reader(engine.store)
        self._contents = contents
        self._latest = latest
        self._moving = None if archive is None else DocumentMoving(engine, self._read, self._checksum)

    def end(self) -> int:
        """Do what a crawl does at its end; return how many were moved."""
        if self._moving is None:
            return 0
        self._moving.finish()
        return self._moving.moved

    def go_on(self, chance: random.Random) -> bool:
        """Move some now and then; return whether that was done."""
        return self._engine.folded.is_moving and chance.random() < 0.3 and self.finish()

    def finish(self) -> bool:
        """Move some; return whether there were more."""
        if self._moving is None or not self._engine.folded.is_moving:
            return False
        return self._moving.step()

    def _read(self, state: UrlState) -> Document | None:
        return None if state.archived is None or self._reader is None else self._reader.document(state.archived, state.url)

    def _checksum(self, document: Document, url: str) -> bytes | None:
        if not document.text.strip():
            return None
        content = self._engine.collection.content
        with_title, cut_off = content.checksum_title, content.checksum_cut_off
        made = checksum_of(document.title, document.text, with_title=with_title, cut_off=cut_off)
        self._contents[url, made] = self._latest[url] = document.title, document.text
        return made
