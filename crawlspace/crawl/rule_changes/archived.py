"""Work on archived pages after a change, while other pages are fetched: judge links again, move documents of folded URLs.

A start notes which checks admit more (`rediscovery.note_judging`), and a crawl judges the links of the archived pages again, a few at a
step, without fetching the pages. The position is stored after the found URLs, so the next start continues after a kill. A page whose
response is not archived is due at once, as without an archive; for one fetched since the change, the fetch has judged the links.

A start folds URLs and leaves their documents in the index (`folding.py`). A crawl processes these as well: an archived document becomes that
of the URL that its own was folded into, which is still due at once, with an unconditional GET. In that transaction the folded URLs are
forgotten and their documents deleted, so the index follows the options at once, however long fetching takes. Documents that are not
archived, or that the rules of the other URL exclude, wait for the fetch.

Several workers may do both at the same time: each continues from the stored position, and URLs found by two are inserted once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from msgspec import structs

from crawlspace.crawl.engine import Engine
from crawlspace.crawl.rule_changes.rediscovery import JUDGING, Judging, judging, note_judging
from crawlspace.decision import Reason
from crawlspace.document import Document
from crawlspace.model import State, UrlState
from crawlspace.outcome import Outcome
from crawlspace.state.changes import Change
from crawlspace.state.due_times import at_once
from crawlspace.state.inherited_metadata import unpacked
from crawlspace.state.lifecycle import status_of_document
from crawlspace.state.refused_links import packed
from crawlspace.text import counted
from crawlspace.urls import Url

logger = logging.getLogger(__name__)

PAGES_AT_ONCE = 8
"""Pages whose links are judged in one step, some milliseconds each."""
_URLS_AT_ONCE = 200
"""URLs read in one step."""
DOCUMENTS_AT_ONCE = 8
"""Documents read and pushed in one step, about a millisecond each."""
_LONGEST_STEP_S = 0.02
"""A step ends after this time, if documents are large."""


class LinkJudging:
    """Judges the remaining links of one collection. Raises StoreError."""

    def __init__(self, engine: Engine, read: Callable[[UrlState], Outcome | None]) -> None:
        """`read` returns the archived outcome of a page, with its links; None if the archive lacks the page."""
        self._engine = engine
        self._store = engine.store
        self._read = read
        self._judged = 0
        self._found = 0
        self._due = 0
        engine.is_judging = judging(self._store) is not None

    def step(self) -> bool:
        """Judge the links of some pages. Return False when all are judged."""
        left = judging(self._store)
        urls = [] if left is None else self._store.scan(left.after, _URLS_AT_ONCE)
        if left is None or not urls:
            self._end()
            return False
        concerned = [known.id for known in urls if left.concerns(known)]
        ids = concerned[:PAGES_AT_ONCE]
        now = self._engine.now()
        self._judge([state for state in self._store.get_by_ids(ids) if not _is_fetched(state, left, now)], now)
        note_judging(self._store, structs.replace(left, after=ids[-1] if len(concerned) > len(ids) else urls[-1].id))
        return True

    def _judge(self, states: Sequence[UrlState], now: int) -> None:
        passed_on = self._store.link_metadata([state.id for state in states])
        changes = {state.id: (state, self._change(state, now, passed_on.get(state.id))) for state in states}
        written: dict[int, Change] = {}

        def unless_changed(state: UrlState) -> Change | None:
            """Return the change of a URL in its present state; called again if it was changed meanwhile."""
            written.pop(state.id, None)
            seen, change = changes[state.id]
            if state == seen:
                written[state.id] = change
            elif state.lease_until is None and state.state is State.DONE:  # else its next fetch judges them, if any
                written[state.id] = _due_at_once(state, now)
            return written.get(state.id)

        effects = self._store.revise(changes, unless_changed, now=now)
        new = [url for _, change in changes.values() for url in change.discovered]
        self._engine.links_judged(new, effects)
        self._found += effects.discovered
        for change in written.values():
            state = change.state
            if change.links is None and state.next_fetch is not None:
                self._due += 1
                self._engine.due(state)
            else:
                self._judged += 1

    def _change(self, state: UrlState, now: int, passed_on: str | None) -> Change:
        """Return the change of a page whose links are judged.

        `passed_on`: the metadata that its links inherit since its last fetch; metadata added by the new rules follows with the next one.
        """
        outcome = None if state.held is not None else self._read(state)  # the archive has an older response of a held page
        if outcome is None or outcome.links is None:
            return _due_at_once(state, now)
        outcome.link_metadata = tuple(unpacked(passed_on).items())
        new, keys, refused, sample = self._engine.page_urls(state, outcome)
        after = structs.replace(state, refused=packed(refused or {}))
        if refused and Reason.URLS_PER_HOST in refused:
            after.etag = after.last_modified = None  # as after a fetch: so that no 304 hides these links
        return Change(after, links=keys, discovered=new, refused_links=sample if after.refused else ())

    def _end(self) -> None:
        self._store.set_meta(JUDGING, "")
        self._engine.is_judging = False
        if self._judged or self._due:
            logger.info(
                "the links of %s were judged again from the archive, without a request: %s found%s",
                counted(self._judged, "page"),
                counted(self._found, "URL"),
                f"; {counted(self._due, 'page')} not in the archive, or changed meanwhile: to be fetched" if self._due else "",
            )


class DocumentMoving:
    """Moves the documents of one collection that wait for other URLs. Raises StoreError."""

    def __init__(
        self, engine: Engine, read: Callable[[UrlState], Document | None], checksum: Callable[[Document, str], bytes | None]
    ) -> None:
        """`read` returns the archived document of a URL. `checksum` returns that of a document under another URL; None if only a fetch
        can determine it."""
        self._engine = engine
        self._store = engine.store
        self._read = read
        self._checksum = checksum
        self._seen = 0
        self._leased: list[Url] = []
        """URLs that were leased when they were reached: mostly `before_fetch` moves the documents that wait for them."""
        self.moved = 0
        """Number of moved documents."""
        self._logged = 0
        self._folded, self._deliveries, self._clock = engine.folded, engine.deliveries, engine.clock
        self._folded.is_moving, self._folded.moved = bool(self._folded), self.before_fetch
        self._folded.finish = self.finish
        engine.documents_move()

    def step(self) -> bool:
        """Move some documents, unless too many orders wait. Return False when there are no more."""
        folded = self._folded
        if self._deliveries.blocks_crawl:
            return folded.is_moving
        waiting = folded.ahead(self._seen, DOCUMENTS_AT_ONCE) if folded.is_moving else []
        if not waiting:
            folded.is_moving = False
            self.log_moved()
            return False
        began = self._clock.monotonic()
        for into in waiting:
            if into is not None:
                self._move(into)
            self._seen += 1
            if self._clock.monotonic() - began > _LONGEST_STEP_S:
                break
        return True

    def retry(self) -> bool:
        """Retry URLs that were leased when they were reached; return whether some still are."""
        leased, self._leased = self._leased, []
        for into in leased:
            self._move(into)
        self.log_moved()
        return bool(self._leased)

    def finish(self) -> None:
        """Move, at the end of a crawl, documents that wait for leased URLs that are not in flight, as those of failed sites."""
        leased, self._leased = self._leased, []
        for into in leased:
            self._move(into, is_last=True)
        self.log_moved()

    def before_fetch(self, other: UrlState) -> Sequence[Change]:
        """Return the changes that move a document to a leased URL; none if no document waits for it, or it cannot be moved."""
        change, waiting = self._moving_to(other) if _lacks_a_document(other) else (None, ())
        if change is None:
            return ()
        self.moved += 1
        return (change, *(Change(state, forget=True, together_with=other.id) for state in waiting))

    def _move(self, into: Url, *, is_last: bool = False) -> None:
        """Push a document under the URL that it waits for, unless that is leased; with `is_last`, unless it is in flight."""
        other = self._store.get(into.text)
        if other is None or not _lacks_a_document(other):
            return
        if self._engine.is_awaited(other.id) or (other.lease_until is not None and not is_last):
            self._leased.append(into)
            return
        change, waiting = self._moving_to(other)
        if change is not None:
            self._write(other, change, waiting, is_last=is_last)

    def _moving_to(self, other: UrlState) -> tuple[Change | None, Sequence[UrlState]]:
        """Return the change that gives a URL the document of a folded one, and all folded ones that wait for it; None if impossible."""
        waiting = self._folded.of(other)
        if waiting:
            decision = self._engine.recheck(other)
            if decision.admitted and decision.actions.index:
                changes = (self._change(other, state) for state in sorted(waiting, key=_rank))
                return next(filter(None, changes), None), waiting
        return None, waiting

    def _change(self, other: UrlState, state: UrlState) -> Change | None:
        if "#" in state.url and "#" not in other.url:  # a route that is not followed any more: its page has another text
            return None
        document = self._read(state) if state.indexed else None
        checksum = None if document is None else self._checksum(document, other.url)
        if document is None or checksum is None:
            return None
        after = structs.replace(
            other,
            state=State.DONE,
            status=status_of_document(state),
            fetched_at=state.fetched_at,
            next_fetch=at_once(self._now(), state.fetched_at),
            lease_until=None,
            interval_s=state.interval_s,
            retries=0,
            errors=0,
            held=None,
            held_mark=0,
            checksum=checksum,
            simhash=state.simhash if checksum == state.checksum else None,
            fields_mark=state.fields_mark,
            rules=0,
        )
        return Change(after, document=replace(document, url=other.url), archived=state.archived)

    def _write(self, other: UrlState, change: Change, waiting: Iterable[UrlState], *, is_last: bool) -> None:
        ids, now = [state.id for state in waiting], self._now()
        left: set[int] = set()
        is_as_seen = False

        def if_as_seen(state: UrlState) -> Change | None:
            """Return the change of the other URL, which comes first, and those of the folded ones; None if that was changed meanwhile."""
            nonlocal is_as_seen
            if state.id == other.id:
                is_as_seen = state == other
                left.clear()
                left.update(ids if is_as_seen else ())
                return change if is_as_seen else None
            if state.id not in left:
                return None
            left.remove(state.id)
            return Change(state, forget=True)

        effects = self._store.revise([other.id, *ids], if_as_seen, now=now)
        self._engine.documents_moved(effects)
        if is_as_seen:
            self.moved += 1
            if not is_last:  # else the next start fetches it
                self._engine.due(change.state, at=now)

    def _now(self) -> int:
        return self._engine.now()

    def log_moved(self) -> None:
        """Log the number of documents moved since the last call."""
        new, self._logged = self.moved - self._logged, self.moved
        if new:
            logger.info(
                "the URL options have folded known URLs: %s pushed under the new URLs, as archived, until these are fetched",
                counted(new, "document is", "documents are"),
            )


def _due_at_once(state: UrlState, now: int) -> Change:
    return Change(structs.replace(state, rules=0, next_fetch=at_once(now, state.fetched_at)))


def _is_fetched(state: UrlState, left: Judging, now: int) -> bool:
    """Return whether a fetch judges the links of a page: one since the change, one in flight, or a due one with an unconditional GET."""
    is_due = state.rules == 0 and state.next_fetch is not None and state.next_fetch <= now
    return is_due or state.lease_until is not None or (state.fetched_at or 0) > left.since


def _lacks_a_document(other: UrlState) -> bool:
    """Return whether a URL has no document and may get one: no response of its page excludes it."""
    return other.state in (State.PENDING, State.FAILED) and other.checksum is None


def _rank(state: UrlState) -> tuple[int, int]:
    return state.rank, state.id
