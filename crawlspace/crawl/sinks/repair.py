"""Send documents again that an index lacks, and delete those that it should not have.

Store and index may be of different times, because one was lost, or restored from a backup. The store has the texts of few documents, so
documents that the index may lack are fetched with an unconditional GET, at the usual pace, and sent whether changed or not. The index loses
nothing meanwhile: only documents that certainly don't exist are deleted there, and unknown URLs are fetched to decide. Everything is done in
batches, with the progress stored: after a kill, the next start continues.

Another collection may have deleted documents from a shared index. The index knows which ones a collection has lost
(`index/embedded.py`), and forgets the loss when it has the document, or when the collection wants none. So after a kill at any moment the
next start finds the same documents again, and doesn't change those that already wait for their fetch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from secrets import token_hex

from msgspec import structs

from crawlspace.crawl.depths.end_of_run import mark_unknown_depths
from crawlspace.crawl.engine import Engine
from crawlspace.crawl.outcomes import DAY_S, is_left_to_others
from crawlspace.crawl.timed.steps import Steps
from crawlspace.document import IndexOrder, Op
from crawlspace.errors import IndexUnavailable
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.marks import Agreement, BatchMark, NoteStore, agreement, name_of_mark, note_mark, stored_mark
from crawlspace.model import Candidate, Source, State, UrlState
from crawlspace.state.changes import Change
from crawlspace.state.due_times import at_once
from crawlspace.state.duplicates import stays_in_index
from crawlspace.state.error_policy import DeletionLimit
from crawlspace.state.store import Store
from crawlspace.status import Status
from crawlspace.text import counted
from crawlspace.urls import parse, url_key

logger = logging.getLogger(__name__)

RESENDING = "resending"
"""Meta: the present phase and its progress; empty when store and index agree."""
UNSENT = -1
"""The `fields_mark` of a document that must be sent after the next fetch, changed or not: no document has that hash."""
_URLS, _DOCUMENTS, _EXTRAS, _SENDING = "urls", "documents", "extras", "sending"
_RESTORED = f"{_URLS} {Agreement.RESTORED.name} "
_FAR = 1_000
"""The depth of a URL whose distance from a start URL is not known."""
_NO_DELETION = DeletionLimit(0, 0)
_BATCH = 1_000
_LOST_AT_ONCE = 500


@dataclass(slots=True)
class Resent:
    """Numbers of documents repaired in store and index."""

    why: Agreement
    documents: int = 0
    """Known documents that are fetched and sent again."""
    deleted: int = 0
    """Documents deleted from the index because the store knows that they no longer exist."""
    unknown: int = 0
    """Documents of the index with unknown URLs; these are inserted and fetched."""
    refused: int = 0
    """Documents with unknown URLs that the rules refuse, and that stay because to delete so many needs approval."""

    def sentence(self, *, archived: str = "") -> str:
        """Return a sentence for a user; `archived` is the name of the collection if it has an archive."""
        parts = [
            f"{counted(number, 'document')} {one if number == 1 else several}"
            for number, one, several in (
                (self.documents, "is fetched and sent again", "are fetched and sent again"),
                (self.unknown, "of the index was not known and is fetched", "of the index were not known and are fetched"),
                (
                    self.deleted,
                    "of the index no longer exists and was deleted there",
                    "of the index no longer exist and were deleted there",
                ),
            )
            if number
        ]
        if self.refused:
            parts.append(
                f"{counted(self.refused, 'document')} of the index that the rules refuse stay there, because they are so many"
                " (`scrapy audit --repair` deletes them)"
            )
        way = f"; `scrapy reindex {archived}` sends without fetching what the archive has" if archived and self.documents else ""
        return f"{self.why.value}: {', '.join(parts) or 'no document is affected'}{way}"


class Resending:
    """Compares the index of the collection `owner` with its store, and repairs differences."""

    def __init__(self, store: Store, index: EmbeddedIndex, *, owner: str, now: int) -> None:
        self._store = store
        self._index = index
        self._owner = owner
        self._now = now
        self._resent: Resent | None = None

    def begin(self) -> Resent | None:
        """Make documents due that the index may lack; return the numbers, None if store and index agree.

        Call it before the crawl, and then `finish`.
        """
        kind, why, after = self._noted()
        if kind == _EXTRAS:
            self._delete_extras()
        elif kind == _SENDING and not self.lacks_documents():
            self._store.set_meta(RESENDING, "")
        if kind not in (_URLS, _DOCUMENTS):
            why = self.compared()
            if why is Agreement.SAME:
                return None
            kind, after = _URLS, ""
            self._note(kind, why, after)
        self._resent = Resent(why)
        if kind == _URLS:
            self._resend(self._resent, int(after or 0))
            self._note(_DOCUMENTS, why, "")
        return self._resent

    def finish(self, enter: Callable[[Sequence[str]], Sequence[str]], *, limit: DeletionLimit = _NO_DELETION) -> None:
        """Process the documents of the index. Afterwards store and index agree.

        `enter` inserts unknown URLs, and returns those that the rules refuse: their documents are deleted, up to the limit.
        """
        if self._resent is None:
            return
        most = limit.most(self._index.count(of=self._owner))
        resent, (_, why, after) = self._resent, self._noted()
        while urls := self._index.urls_of(self._owner, after=after, limit=_BATCH):
            unknown, known = [], []
            for url in urls:
                state = self._store.get(url)
                if state is None:
                    unknown.append(url)
                elif not state.indexed:
                    known.append(state)
            if why is Agreement.INDEX_BEHIND:
                gone = [*unknown, *(state.url for state in known if not stays_in_index(state))]
                self._delete(gone)
                resent.deleted += len(gone)
            else:
                refused = enter(unknown)
                gone = list(refused[: max(0, most - resent.deleted)])
                self._delete(gone)
                resent.deleted += len(gone)
                resent.refused += len(refused) - len(gone)
                resent.unknown += len(unknown) - len(refused)
                self._revise([state.id for state in known])
            after = urls[-1]
            self._note(_DOCUMENTS, why, after)
        self._agree()
        self._store.set_meta(RESENDING, _SENDING if why is Agreement.INDEX_BEHIND else _EXTRAS)

    def sent_again(self, *, all_taken: bool) -> None:
        """Note that a person has sent all known documents again: an older index agrees with the store from now on.

        `all_taken`: the index has accepted them all; if it then has as many as the store, none of them is looked up in the store.
        """
        why = self.compared()
        if why is not Agreement.INDEX_BEHIND:
            return
        if all_taken and self._index.count_pushed() == self._store.counts().indexed:
            self._agree()
            self._store.set_meta(RESENDING, _SENDING)
            return
        self._resent = Resent(why)
        self._note(_DOCUMENTS, why, "")
        self.finish(lambda _: ())

    def lacks_documents(self) -> bool:
        """Return whether the index has fewer documents than the store, while they are being sent again."""
        is_resending = bool(self._store.get_meta(RESENDING))
        return is_resending and self._index.count_pushed() < self._store.counts().indexed

    def compared(self) -> Agreement:
        """Return the relation of index and store, by their marks."""
        found = self._index.mark()
        why = agreement(self._store, self._index.name, found, now=self._now)
        if why is Agreement.SAME and found is None:  # neither has a mark: nothing was sent yet
            there = bool(self._index.urls_of(self._owner, after="", limit=1))
            if there and not self._store.scan(0, 1):
                return Agreement.OTHERS
            if not there and self._store.counts().indexed and not self._store.backlog(self._index.name):
                return Agreement.INDEX_BEHIND
        return why

    def _resend(self, resent: Resent, after: int) -> None:
        while page := self._store.scan(after, _BATCH):
            ids = [known.id for known in page if known.indexed and not known.never_due]
            self._revise(ids)
            resent.documents += len(ids)
            after = page[-1].id
            self._note(_URLS, resent.why, str(after))

    def _revise(self, ids: Sequence[int]) -> None:
        if ids:
            self._store.revise(ids, lambda state: unsent(state, now=self._now), now=self._now)

    def _delete_extras(self) -> None:
        """Delete documents that a fetch has shown not to exist; those not fetched yet are checked at a later start."""
        after, waiting = "", False
        while urls := self._index.urls_of(self._owner, after=after, limit=_BATCH):
            states = [state for url in urls if (state := self._store.get(url)) is not None and not state.indexed]
            waiting = waiting or any(stays_in_index(state) and state.status != Status.EXCLUDED_HERE for state in states)
            self._delete([state.url for state in states if not stays_in_index(state)])
            after = urls[-1]
        if not waiting:
            self._store.set_meta(RESENDING, "")

    def _delete(self, urls: Sequence[str]) -> None:
        if urls:
            self._index.send([IndexOrder(0, Op.DELETE, url) for url in urls])

    def _agree(self) -> None:
        """Write the same mark to both; the store's is larger than any that the index has seen."""
        stored, found = stored_mark(self._store, self._index.name), self._index.mark()
        if stored is None and found is not None:
            note_mark(self._store, self._index.name, found)
        elif stored is not None:
            self._index.set_mark(stored)

    def _noted(self) -> tuple[str, Agreement, str]:
        """Return the phase, the reason, and the progress."""
        kind, _, rest = (self._store.get_meta(RESENDING) or "").partition(" ")
        name, _, after = rest.partition(" ")
        return kind, Agreement[name] if name in Agreement.__members__ else Agreement.SAME, after

    def _note(self, kind: str, why: Agreement, after: str) -> None:
        self._store.set_meta(RESENDING, f"{kind} {why.name} {after}")


def enter_unknown(engine: Engine, urls: Sequence[str]) -> list[str]:
    """Insert the URLs of documents that the store does not know. Return those that the rules refuse, unless another collection may have them."""
    deepest = engine.space.limits.max_link_depth
    depth = _FAR if deepest is None else deepest  # until a link to it is found
    refused = engine.admit(Candidate(url, Source.INDEX_FOLLOW, depth=depth) for url in urls)
    mark_unknown_depths(engine.store, map(url_key, urls))
    space, of_all = engine.space, engine.global_space
    return [one.url for one in refused if not is_left_to_others(one.decision, parse(one.url), space=space, global_space=of_all)]


def notes_of_restored(sink: str) -> dict[str, str]:
    """Return the metadata by which a store that was restored from a backup and its index are brought in line at the next start.

    Whatever the index is of, or whether it is lost: all documents are fetched and sent, and those that the store does not know are looked up.
    """
    return {RESENDING: _RESTORED, name_of_mark(sink): BatchMark(token_hex(8), 0).written()}


def is_restored(store: NoteStore) -> bool:
    """Return whether a store was restored, and not crawled since."""
    return store.get_meta(RESENDING) == _RESTORED


def note_restored_documents_sent(store: NoteStore, *, to_new_index: bool) -> None:
    """Note that the known documents of a restored store were sent. If the index is not new, the next start looks up its other documents."""
    if is_restored(store):
        store.set_meta(RESENDING, _SENDING if to_new_index else f"{_DOCUMENTS} {Agreement.RESTORED.name} ")


def unsent(state: UrlState, *, now: int) -> Change | None:
    """Return the change by which a document is sent after its next fetch, due at `now`; None outside the crawl space."""
    if state.state is not State.PENDING and state.next_fetch is None:
        return None
    due = None if state.state is State.PENDING else min(state.next_fetch or now, now)
    return Change(structs.replace(state, rules=0, next_fetch=due, fields_mark=UNSENT))


class LostDocuments:
    """Makes lost documents due: at a start, and once a day in a continuous crawl. Raises StoreError."""

    def __init__(self, engine: Engine, index: EmbeddedIndex) -> None:
        self._engine = engine
        self._store = engine.store
        self._index = index
        self._clock = engine.clock
        self._steps: Steps[int] = Steps(self._clock)
        self._checked_at = self._clock.monotonic()

    def start(self) -> None:
        """Make all of them due."""
        self._report(sum(self._all()))

    def resume(self) -> None:
        """Make some of them due, if a day has passed since the last time or some remain."""
        now = self._clock.monotonic()
        if not self._steps.has_remaining and now - self._checked_at >= DAY_S:
            self._checked_at = now
            self._steps.begin(self._all())
        self._report(self._steps.next() or 0)

    def _all(self) -> Iterator[int]:
        """Make them due in batches; yield the size of each."""
        after = ""
        with suppress(IndexUnavailable):  # the index still has them next time
            while urls := self._index.lost(after=after, limit=_LOST_AT_ONCE):
                yield self._fetch(urls)
                after = urls[-1]

    def _fetch(self, urls: Sequence[str]) -> int:
        now = int(self._clock.now())
        states = {url: self._store.get(url) for url in urls}
        due: dict[int, UrlState] = {}

        def change(state: UrlState) -> Change | None:
            """Return the change of a URL as it is now; a store asks again about one that was changed meanwhile."""
            due.pop(state.id, None)
            # One that is being fetched is found again at the next start.
            if not state.indexed or state.lease_until is not None or state.fields_mark == UNSENT:
                return None
            made = unsent(state, now=at_once(now, state.fetched_at))
            if made is not None:
                due[state.id] = made.state
            return made

        self._store.revise([state.id for state in states.values() if state is not None], change, now=now)
        for state in due.values():
            self._engine.due(state)
        self._index.give_up_lost([url for url, state in states.items() if state is None or not state.indexed])
        return len(due)

    def _report(self, number: int) -> None:
        if number:
            logger.warning(
                "%s: %s deleted from the shared index by another collection that had pushed the same URL; fetched and sent again",
                self._engine.collection.name,
                counted(number, "document was", "documents were"),
            )
