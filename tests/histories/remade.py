"""Documents that a simulated `reindex --extract` makes anew of archived pages, by the project's own spider."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from crawlspace.archive import records
from crawlspace.archive.reader import ArchiveReader
from crawlspace.crawl.replay import Remade, ReplayEngine
from crawlspace.document import Document
from crawlspace.model import UrlState
from crawlspace.outcome import OutcomeKind
from crawlspace.runtime.components.archived_responses import response_of
from crawlspace.runtime.components.requests import STATE, LeasedRequest
from tests.histories.reading import Reader

Noted = Callable[[str, Document | None, bytes | None], None]
"""Gets the URL of a page and what is made of it: document and checksum."""


@dataclass(frozen=True, slots=True)
class RemadeDocuments:
    """Those of some pages, made when they are asked for."""

    engine: ReplayEngine
    archive: ArchiveReader
    states: Sequence[UrlState]
    noted: Noted

    def is_made(self, *, within_s: float) -> bool:
        return True

    def made(self) -> Mapping[int, Remade]:
        return {state.id: self._of(state) for state in self.states}

    def _of(self, state: UrlState) -> Remade:
        stored = None if state.archived is None else self.archive.page(state.archived, state.url)
        if stored is None:
            return Remade(state.id, is_missing=True)
        request = LeasedRequest(state.url, meta={STATE: state})
        outcome = Reader(self.engine).outcome_of(response_of(stored.response, request))
        remade = Remade.of(outcome, self.engine.canonical_key(state, outcome))
        document = remade.document
        if document is not None and remade.kind is OutcomeKind.DOCUMENT and document != stored.document:
            remade.record = records.metadata(document, url=state.url, of=stored.id, date=stored.response.date)
            remade.response = stored.location
        self.noted(state.url, document, remade.checksum)
        return remade
