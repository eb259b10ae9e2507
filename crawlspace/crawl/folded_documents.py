"""The documents of folded URLs that wait in the index until the URL that each was folded into has been fetched.

Each leaves in the transaction that records a document of that URL, so the index is never without it. If that URL turns out to have none,
the document is deleted as if its own page had answered so, within the deletion limit; else it waits on, and is listed by
`scrapy deletions`. Where an equal page at a better address takes its place in the index meanwhile, it waits for nothing any more, and
its URL goes at the next start.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Protocol

from crawlspace.crawl.rule_changes.folding import UrlDepths, folded_into, known_by_url
from crawlspace.errors import StoreAway, StoreFull
from crawlspace.model import Held, NewUrl, State, UrlState
from crawlspace.rules.url_options import UrlFolding
from crawlspace.state.changes import Change, Effects
from crawlspace.urls import Url, parse

_BATCH = 2_000


class FoldedStore(UrlDepths, Protocol):
    """Where the documents are found."""

    def get_by_id(self, id: int) -> UrlState | None: ...
    def folded_urls(self) -> Iterator[UrlState]: ...
    def revise(self, ids: Iterable[int], change: Callable[[UrlState], Change | None], *, now: int) -> Effects: ...


class FoldedDocuments:
    """Those that wait, by the key of the URL that each was folded into. Most collections have none."""

    def __init__(self, store: FoldedStore) -> None:
        self._store = store
        self._folding: UrlFolding | None = None
        self._keys = array("q")
        self._ids = array("q")
        """In the order of `_keys`."""
        self.are_moved = False
        """Whether those that the archive has are being pushed under the other URL; set from outside."""
        self.moved: Callable[[UrlState], Sequence[Change]] = lambda _: ()
        """Returns the changes that do so for a URL that is about to be fetched; set from outside."""
        self.finish: Callable[[], None] = lambda: None
        """Does the rest of it, when nothing is fetched any more; set from outside."""

    def read(self, folding: UrlFolding | None, *, now: int) -> tuple[Effects, list[NewUrl]]:
        """Find those that wait, at a start; return what was ordered, and URLs that were folded into and are not known any more.

        Those for which the other URL has a document leave: the last run was killed, or could not write them together. So do those that
        another URL has come to stand for: nothing of theirs is in the index.
        """
        effects, lost = Effects(), list[NewUrl]()
        self._folding = folding
        if folding is None:
            return effects, lost
        found: list[tuple[int, int]] = []
        batch: dict[int, NewUrl] = {}
        idle = set[int]()
        for state in self._store.folded_urls():
            into = self._into(state)
            if into is not None:
                batch[state.id] = folded_into(state, into, key=into.key)
                if state.duplicate_of is not None:
                    idle.add(state.id)
                if len(batch) == _BATCH:
                    found += self._still_waiting(batch, idle, effects, lost, now=now)
                    batch, idle = {}, set()
        found += self._still_waiting(batch, idle, effects, lost, now=now)
        found.sort()
        self._keys.extend(key for key, _ in found)
        self._ids.extend(id for _, id in found)
        return effects, lost

    def __bool__(self) -> bool:
        return bool(self._keys)

    def of(self, url: UrlState) -> list[UrlState]:
        """Return the folded URLs that wait for a URL."""
        at = bisect_left(self._keys, url.key)
        states = []
        while at < len(self._keys) and self._keys[at] == url.key:
            state = self._store.get_by_id(self._ids[at])
            if state is not None and (into := self._into(state)) is not None and into.text == url.url:
                states.append(state)
            at += 1
        return states

    def drop(self, state: UrlState, changes: list[Change]) -> bool:
        """Push what waits for a leased URL under it first, so that it is fetched later; return whether there is something."""
        try:
            moved = self.moved(state) if self else ()
        except (StoreAway, StoreFull):  # it is fetched first
            return False
        changes += moved
        return bool(moved)

    def ahead(self, first: int, most: int) -> list[Url | None]:
        """Return for which URLs some documents wait, beginning with that number; None for one that waits no more, nothing behind the last."""
        states = (self._store.get_by_id(id) for id in self._ids[first : first + most])
        return [None if state is None else self._into(state) for state in states]

    def _into(self, state: UrlState) -> Url | None:
        """Return the URL that one is folded into, if it waits for that."""
        if state.held is not Held.FOLDED or self._folding is None:
            return None
        return self._folding.folded(parse(state.url, host_as_written=state.host_as_written, routes=True))

    def _still_waiting(
        self, into: dict[int, NewUrl], idle: Collection[int], effects: Effects, lost: list[NewUrl], *, now: int
    ) -> Iterator[tuple[int, int]]:
        """Yield key and id of those that wait on; `idle` are those that wait for nothing."""
        known = {url: one.state for url, one in known_by_url(self._store, into.values()).items()}
        lost += [new for id, new in into.items() if new.url not in known and id not in idle]
        replaced = {id for id, new in into.items() if known.get(new.url) == State.DONE}

        def forget(state: UrlState) -> Change | None:
            """Return the change, if nothing has become of it since it was read: another worker may have recorded pages meanwhile."""
            leaves = state.held is Held.FOLDED and (state.id in replaced or state.duplicate_of is not None)
            return Change(state, forget=True) if leaves else None

        if leaving := sorted(replaced.union(idle)):
            done = self._store.revise(leaving, forget, now=now)
            effects.pushes += done.pushes
            effects.deletes += done.deletes
        # of those that are idle most are not found any more
        yield from ((new.key, id) for id, new in into.items() if id not in replaced)
