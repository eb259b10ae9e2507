"""Judge the links of archived pages again, after a change that loosens a check, without fetching the pages.

A start notes which checks admit more (`rediscovery.note_judging`), and a crawl goes through the pages, a few at a step, while it fetches
others. How far it is stands in the store, written after what was found: so the next start goes on after a kill. A page whose response the
archive does not have is due at once, as without an archive; one that was fetched since then has had its links judged by that.

Several workers may go through the pages at the same time: each goes on from where one of them is, and what two of them find is inserted once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import structs

from crawlspace.crawl.rule_changes.rediscovery import JUDGING, Judging, judging, note_judging
from crawlspace.decision import Reason
from crawlspace.model import Outcome, State, UrlState
from crawlspace.plural import counted
from crawlspace.state.changes import Change, Effects
from crawlspace.state.inherited_metadata import unpacked
from crawlspace.state.once_a_run import at_once
from crawlspace.state.refused_links import packed
from crawlspace.state.views import KnownUrl

if TYPE_CHECKING:
    from crawlspace.crawl.engine import Engine

logger = logging.getLogger(__name__)

PAGES_AT_ONCE = 8
"""Their links are judged between two turns of the crawl, some milliseconds each."""
_URLS_AT_ONCE = 200
"""URLs looked at in one step."""


class JudgedStore(Protocol):
    def scan(self, after: int, limit: int) -> list[KnownUrl]: ...
    def get_by_ids(self, ids: Sequence[int]) -> list[UrlState]: ...
    def link_metadata(self, ids: Sequence[int]) -> Mapping[int, str]: ...
    def revise(self, ids: Iterable[int], change: Callable[[UrlState], Change | None], *, now: int) -> Effects: ...
    def get_meta(self, name: str) -> str | None: ...
    def set_meta(self, name: str, value: str) -> None: ...


class LinkJudging:
    """What is left to be judged of one collection. Raises StoreError."""

    def __init__(self, engine: Engine, read: Callable[[UrlState], Outcome | None]) -> None:
        """`read` returns the outcome that a page had when it was archived, with its links; None where the archive has no such page."""
        self._engine = engine
        self._store: JudgedStore = engine.store
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
        now = int(self._engine.clock.now())
        self._judge([state for state in self._store.get_by_ids(ids) if not _is_fetched(state, left, now)], now)
        note_judging(self._store, structs.replace(left, after=ids[-1] if len(concerned) > len(ids) else urls[-1].id))
        return True

    def _judge(self, states: Sequence[UrlState], now: int) -> None:
        passed_on = self._store.link_metadata([state.id for state in states])
        changes = {state.id: (state, self._change(state, now, passed_on.get(state.id))) for state in states}
        written: dict[int, Change] = {}

        def unless_changed(state: UrlState) -> Change | None:
            """Return the change of a URL as it is now; a store asks again about one that was changed meanwhile."""
            written.pop(state.id, None)
            seen, change = changes[state.id]
            if state == seen:
                written[state.id] = change
            elif state.lease_until is None and state.state is State.DONE:  # else its next fetch judges them, if there is one
                written[state.id] = _due_at_once(state, now)
            return written.get(state.id)

        effects = self._store.revise(changes, unless_changed, now=now)
        new = [url for _, change in changes.values() for url in change.discovered]
        self._engine.admission.room.committed(new)
        self._engine.inserted(new, effects)
        self._found += effects.discovered
        for change in written.values():
            state = change.state
            if change.links is None and state.next_fetch is not None:
                self._due += 1
                self._engine.frontier.due(state.site, state.queue, state.next_fetch, retry=True)
            else:
                self._judged += 1

    def _change(self, state: UrlState, now: int, passed_on: str | None) -> Change:
        """`passed_on`: what its links inherit since its last fetch; what the rules add by now follows with the next one."""
        outcome = None if state.held is not None else self._read(state)  # what is held has an older response at its place
        if outcome is None or outcome.links is None:
            return _due_at_once(state, now)
        outcome.link_metadata = tuple(unpacked(passed_on).items())
        new, keys, refused, sample = self._engine.admission.of_page(state, outcome)
        after = structs.replace(state, refused=packed(refused or {}))
        if refused and Reason.URLS_PER_HOST in refused:
            after.etag = after.last_modified = None  # as when it is fetched: no 304 prevents finding these links again
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


def _due_at_once(state: UrlState, now: int) -> Change:
    return Change(structs.replace(state, rules=0, next_fetch=at_once(now, state.fetched_at)))


def _is_fetched(state: UrlState, left: Judging, now: int) -> bool:
    """Whether the links of a page are judged by a fetch: one since the change, one that is being made, or one with an unconditional GET that is due."""
    is_due = state.rules == 0 and state.next_fetch is not None and state.next_fetch <= now
    return is_due or state.lease_until is not None or (state.fetched_at or 0) > left.since
