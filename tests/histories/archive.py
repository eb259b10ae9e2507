"""The archive of a simulated crawler: its crawls write it, it is compacted between them, and the index is rebuilt from it."""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Collection as Container
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from crawlspace.admin.archive import compact, faults
from crawlspace.admin.extraction import DocumentRebuilder, Extraction
from crawlspace.admin.reindex import IndexState, Reindexing
from crawlspace.archive import records
from crawlspace.archive.files import OPEN
from crawlspace.archive.reader import ArchiveReader
from crawlspace.archive.writer import NewDocuments
from crawlspace.clock import FakeClock
from crawlspace.config.collection import Collection
from crawlspace.content.fingerprint import with_parts
from crawlspace.crawl.commits import Archiving
from crawlspace.crawl.engine import Engine
from crawlspace.crawl.outcomes import OutcomePolicy
from crawlspace.crawl.replay import RebuiltDocument, ReplayEngine
from crawlspace.crawl.rule_changes.archived import DocumentMoving
from crawlspace.crawl.startup import build_deletion_limit, use_near_duplicates
from crawlspace.document import Document
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.outbox import Drain
from crawlspace.model import Held, State, UrlState
from crawlspace.outcome import Exchange, OutcomeKind
from crawlspace.runtime.components.archived_responses import response_of
from crawlspace.runtime.components.items import simhash_of
from crawlspace.runtime.components.requests import STATE, LeasedRequest
from crawlspace.state.duplicates import held_checksum
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.store import Store
from tests.contract.memory.store import MemoryStore
from tests.histories.configuration import Configuration
from tests.histories.documents import Indexed, checksum_of
from tests.histories.fate import Countdown
from tests.histories.reading import Reader, body_of, headers_of
from tests.histories.web import Answer, Web

_ROTATED_BYTES = 4_000
"""A file holds some pages."""
_LOCKED = b"bytes "
"""How a file begins that cannot be read: its document is titled by its name."""
_SHELL = b"<script src=/app.js></script>"
"""The script of all pages that are rendered."""


def exchange_of(url: str, answer: Answer, now: float, by_spider: bool) -> Exchange | None:
    """Return what is archived of an answer; None where there was none. Pages with a certain title were rendered."""
    if answer.failure:
        return None
    headers = [(name.encode(), [value.encode()]) for name, value in headers_of(answer).items()]
    body = b"" if answer.status == 304 else (answer.locked or f"{_titled(answer.title)}{answer.text} {answer.links}").encode()
    if by_spider and not answer.locked:
        body = body_of(answer)
    if answer.status == 200 and not answer.locked and zlib.crc32(f"{url} {answer.title}".encode()) % 3 == 0:
        return Exchange(url, "GET", [], answer.status, headers, _SHELL, now, dom=body)
    return Exchange(url, "GET", [], answer.status, headers, body, now)


def _titled(title: str) -> str:
    return f"<title>{title}</title>"


class SimulatedArchive:
    """The archive of a collection."""

    def __init__(self, folder: Path, name: str, clock: FakeClock, chance: random.Random) -> None:
        self._folder = folder
        self._name = name
        self._clock = clock
        self._chance = chance
        self.most_bytes: int | None = None
        """Above it the oldest pages are dropped, and their documents stay."""
        self._archiving: Archiving | None = None

    def open(self, store: SqliteStore | RedisStore | MemoryStore) -> Archiving:
        """As a crawl begins."""
        assert not isinstance(store, MemoryStore)
        self._archiving = Archiving(self._folder, store, collection=self._name, clock=self._clock, rotated_bytes=_ROTATED_BYTES)
        return self._archiving

    def end(self, *, killed: bool) -> None:
        """End a crawl. A kill leaves what waits unwritten, and perhaps an incomplete record."""
        archiving, self._archiving = self._archiving, None
        if archiving is None:
            return
        if killed:
            archiving._writer._waiting.clear()
        archiving.close()
        path = max(self._folder.glob("*.warc.gz"), default=None, key=lambda path: path.name)
        if killed and path is not None and self._chance.random() < 0.5:
            with path.open("ab") as file:
                file.write(gzip.compress(b"WARC/1.1\r\nWARC-Type: response\r\n")[: self._chance.randint(0, 30)])
            path.rename(path.with_name(path.name + OPEN))

    def compact(self, store: SqliteStore | RedisStore, countdown: Countdown) -> None:
        compact(
            store,
            self._folder,
            collection=self._name,
            clock=self._clock,
            max_bytes=self.most_bytes,
            progress=lambda _: countdown.tick(),
        )

    def reindex(self, store: SqliteStore | RedisStore, index: EmbeddedIndex, countdown: Countdown) -> None:
        """Send all documents again; an earlier call that was killed is continued."""
        with closing(self.reader(store)) as reader:
            self._reindexing(store, reader, index, countdown).run()

    def extract(
        self,
        store: SqliteStore | RedisStore,
        index: EmbeddedIndex,
        countdown: Countdown,
        *,
        collection: Collection,
        noted: Noted,
        edition: int,
    ) -> None:
        """Extract all documents again and send them, as `reindex --extract`. `noted` gets what is extracted of a URL."""
        use_near_duplicates(store, collection)
        with closing(self.reader(store)) as reader:
            with closing(NewDocuments(self._folder, store, reader, collection=self._name, clock=self._clock)) as kept_in:
                limit = build_deletion_limit(collection)
                engine = ReplayEngine(collection)
                making = DocumentRebuilder(
                    begin=lambda states: ExtractedAgain(engine, reader, states, noted, edition),
                    hash=f"{collection.content} {edition}",
                    kept_in=kept_in,
                    outcomes=OutcomePolicy(store, read_health=store.health, clock=self._clock, deletion_limit=limit),
                    policy=collection.policy,
                    report=lambda *_: None,
                )
                like = self._reindexing(store, reader, index, countdown)
                Extraction(store, reader, like.index, like.now, deliver=like.deliver, progress=like.progress, making=making).run()

    def lacks_a_page(self, store: SqliteStore | RedisStore, states: Iterable[UrlState]) -> bool:
        """Whether it does not have the response of each of these URLs."""
        with closing(self.reader(store)) as reader:
            return any(one.archived is None or reader.response(one.archived, one.url) is None for one in states)

    def shows_old_directives(self, store: SqliteStore | RedisStore, states: Iterable[UrlState], web: Web) -> bool:
        """Whether a response has directives that its page has lost since, because only a 304 came since then.

        A 304 may leave headers out (RFC 9110, 15.4.5), so that one without them does not show that they are gone.
        """
        with closing(self.reader(store)) as reader:
            for state in states:
                page = web.page(state.url)
                response = None if state.archived is None else reader.response(state.archived, state.url)
                if page is None or response is None or page.header_noindex:
                    continue
                if any(name.lower() == "x-robots-tag" for name, _ in response.headers):
                    return True
        return False

    def _reindexing(
        self, store: SqliteStore | RedisStore, reader: ArchiveReader, index: EmbeddedIndex, countdown: Countdown
    ) -> Reindexing:
        drain = Drain(store, index, self._clock)

        def deliver(most: int) -> None:
            while drain.backlog() > most:
                countdown.tick()
                drain.step()

        mark = index.mark()
        return Reindexing(
            store,
            reader,
            IndexState(0 if mark is None else mark.batch, index.count(of=self._name)),
            int(self._clock.now()),
            deliver=deliver,
            progress=lambda *_: countdown.tick(),
        )

    def differences(
        self,
        store: SqliteStore | RedisStore,
        states: Mapping[str, UrlState],
        index: Mapping[str, Indexed],
        configuration: Configuration,
        *,
        own: Container[str],
    ) -> Iterator[str]:
        """Yield the documents of the index that the archive has otherwise, and damaged files, after a crawl that finished."""
        with closing(self.reader(store)) as reader:
            yield from (f"ARCHIVE {fault}" for fault in faults(store, reader, self._folder, progress=lambda _: None))
            for url, state in states.items():
                if not state.indexed or url not in index or url not in own:
                    continue
                if is_to_be_archived(state):
                    continue
                document = None if state.archived is None else reader.document(state.archived, url)
                if document is None:
                    yield f"ARCHIVE {url}: it is in the index, and its document is not in the archive (place {state.archived})"
                    continue
                there, key = index[url], configuration.content_key
                has_other_title = state.held is None and document.title != there.title
                if has_other_title or key(document.title, document.text) != key(there.title, there.text):
                    yield f"ARCHIVE {url}: {document.title!r}, in the index {there.title!r}"
                response = reader.response(state.archived or 0, url)
                shown = b"" if response is None else response.body if response.dom is None else response.dom
                if response is not None and not shown.startswith(_LOCKED) and _titled(document.title).encode() not in shown:
                    yield f"ARCHIVE {url}: {document.title!r} was not made of the archived page: {shown!r}"

    def reader(self, store: Store) -> ArchiveReader:
        return ArchiveReader(self._folder, store.archive_files(), look_up=store.archive_files)


# --- documents extracted again -------------------------------------------------------------------------------------


Noted = Callable[[str, Document | None, bytes | None], None]
"""Gets the URL of a page and what is made of it: document and checksum."""


@dataclass(frozen=True, slots=True)
class ExtractedAgain:
    """Documents extracted again of some archived pages, by the project's own spider, when they are requested."""

    engine: ReplayEngine
    archive: ArchiveReader
    states: Sequence[UrlState]
    noted: Noted
    edition: int

    def is_complete(self, *, within_s: float) -> bool:
        return True

    def made(self) -> Mapping[int, RebuiltDocument]:
        return {state.id: self._of(state) for state in self.states}

    def _of(self, state: UrlState) -> RebuiltDocument:
        stored = None if state.archived is None else self.archive.page(state.archived, state.url)
        if stored is None:
            return RebuiltDocument(state.id, is_missing=True)
        request = LeasedRequest(state.url, meta={STATE: state})
        outcome = Reader(self.engine, edition=self.edition).outcome_of(response_of(stored.response, request))
        if outcome.document is not None:
            outcome.simhash = simhash_of(outcome.document, self.engine.collection.content)
        rebuilt = RebuiltDocument.of(outcome, self.engine.canonical_key(state, outcome))
        document = rebuilt.document
        if document is not None and rebuilt.kind is OutcomeKind.DOCUMENT and document != stored.document:
            rebuilt.record = records.metadata(document, url=state.url, of=stored.id, date=stored.response.date)
            rebuilt.response = stored.location
        self.noted(state.url, document, rebuilt.checksum)
        return rebuilt


# --- moved ---------------------------------------------------------------------------------------------------------


Content = tuple[str, str]
"""Title and text."""


class MovedDocuments:
    """Documents that one crawl moves to the addresses that theirs are folded into."""

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
        """Finish at the end of a crawl; return how many documents were moved."""
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
        made = made if cut_off else with_parts(made, document.parts)
        self._contents[url, made] = self._latest[url] = document.title, document.text
        return made


def is_to_be_archived(state: UrlState) -> bool:
    """Return whether a 304 had directives that the archived response may lack: that is not used, and the next request is unconditional.

    If robots.txt forbids that request, or it shows no document, a document whose deletion is held for approval stays without a record.
    """
    return state.archived is None and (state.rules == 0 or is_shown_no_more(state))


def is_shown_no_more(state: UrlState) -> bool:
    """Return whether a deletion is held of a document that its page has not shown any more, though nothing failed."""
    if state.held is not Held.MANY:
        return False
    return state.state in (State.EXCLUDED, State.REDIRECTED) or state.checksum == held_checksum(state.id)  # it may fail since
