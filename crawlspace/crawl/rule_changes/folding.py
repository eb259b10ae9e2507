"""Fold known URLs after a change of the URL options: URLs that are one now are replaced by that one.

In batches, a transaction each where the store supports it, else a few short ones that each leave the store consistent, so that a start after
a kill folds the rest:

1. Links to a folded URL lead to the other one.
2. The other one is inserted if it is not known, pending, with the depth and the metadata of the folded one, and with its links until it
   has been fetched.
3. The folded URL is forgotten, and its document deleted, if the other one has a document already, or it has none itself. Else its
   document stays in the index, its deletion held (`Held.FOLDED`), until the other one has been fetched, or an equal page at a better
   address has replaced it (`FoldedDocuments`).

The documents of folded URLs wait in the index until the URL that each was folded into has been fetched. Each is deleted in the transaction
that records a document of that URL, so the index is never without it. If that URL turns out to have none, the document is deleted as if
its own page had answered so, within the deletion limit, for a redirect once a later run sees it again, unless the index has the document at
its target; else it keeps waiting, and is listed by `scrapy deletions`. If an equal page at a better address replaces it in the index
meanwhile, its URL is forgotten at the next start.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from crawlspace.errors import StoreAway, StoreFull
from crawlspace.model import Held, NewUrl, State, UrlState
from crawlspace.rules.exclusion import KnownUrlDecisions
from crawlspace.rules.url_options import UrlFolding
from crawlspace.state.changes import Change, Effects, Reclassified
from crawlspace.state.depths import ANY_PAGE, DepthMark, UrlDepth
from crawlspace.state.duplicates import rank_of
from crawlspace.state.store import Store
from crawlspace.state.views import FoldedUrl, KnownUrl
from crawlspace.status import OUT_OF_SPACE
from crawlspace.urls import Url, parse, url_key

_READ_AT_ONCE = 5_000
"""URLs of one batch that are in memory as objects, which is also faster."""
_DOCUMENTS_AT_ONCE = 2_000


class KnownFolds:
    """The known URLs that are folded, and the keys of the URLs that they are folded into."""

    def __init__(self) -> None:
        self.without_document = array("q")
        """Ids of those with nothing in the index. They are folded first: else one could be pushed in place of an equal page."""
        self.with_document = array("q")
        self.keys: dict[int, int] = {}
        """From the key of each to that of the other one."""

    def __len__(self) -> int:
        return len(self.without_document) + len(self.with_document)

    def add(self, known: KnownUrl, into: Url) -> None:
        in_index = known.indexed or known.left_to_others
        (self.with_document if in_index else self.without_document).append(known.id)
        self.keys[known.key] = url_key(into.text)

    @property
    def survivors(self) -> int:
        """Number of the other URLs."""
        return len(set(self.keys.values()))


def fold_known(
    store: Store,
    decisions: KnownUrlDecisions,
    folds: KnownFolds,
    *,
    now: int,
    note: Callable[[Reclassified], None] = lambda _: None,
) -> Effects:
    """Fold known URLs; return the numbers of pushed and deleted documents. `note` is called before each change is made."""
    done = Effects()
    if folds:
        store.fold_links(folds.keys)
    for ids in (folds.without_document, folds.with_document):
        for part in _parts(ids, store.changed_at_once):
            effects = _fold(store, decisions, part, folds.keys, now=now, note=note)
            done.pushes += effects.pushes
            done.deletes += effects.deletes
    return done


def folded_into(state: UrlState | FoldedUrl, into: Url, *, key: int) -> NewUrl:
    """Return the URL, with key `key`, that a known one is folded into, to be inserted."""
    return NewUrl(
        key=key,
        url=into.text,
        site=into.site,
        source=state.source,
        shift=state.shift,
        depth=state.depth,
        redirects=state.redirects,
        rank=rank_of(state.redirects, into.text),
        host_as_written=into.host_as_written if into.host_as_written != into.host else None,
        inherited=state.inherited,
        depth_from=state.depth_from,
    )


def known_by_url(store: Store, urls: Collection[NewUrl]) -> dict[str, UrlDepth]:
    """Return the depths of those URLs that are known, by URL."""
    rows = store.depths_of([new.key for new in urls])
    by_key = {one.key: one for one in rows}
    found = {new.url: by_key[new.key] for new in urls if new.key in by_key}
    if len(by_key) < len(rows):  # two URLs may share a key
        by_id = {one.id: one for one in rows}
        shared = {one.key for one in rows if by_key[one.key] is not one}
        for new in (new for new in urls if new.key in shared):
            found.pop(new.url, None)
            if (state := store.get(new.url)) is not None:
                found[new.url] = by_id[state.id]
    return found


class FoldedDocuments:
    """The waiting documents, by the key of the URL that each was folded into. Most collections have none."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._folding: UrlFolding | None = None
        self._keys = array("q")
        self._ids = array("q")
        """In the order of `_keys`."""
        self.is_moving = False
        """Whether archived ones are being pushed under the other URL; set from outside."""
        self.moved: Callable[[UrlState], Sequence[Change]] = lambda _: ()
        """Returns the changes that push one under a URL that is about to be fetched; set from outside."""
        self.finish: Callable[[], None] = lambda: None
        """Pushes the rest, when nothing is fetched any more; set from outside."""

    def read(self, folding: UrlFolding | None, *, now: int) -> tuple[Effects, list[NewUrl]]:
        """Find the waiting documents at a start; return the effects, and URLs that they wait for and that are not known any more.

        Those for which the other URL has a document are deleted: the last run was killed, or could not write them together. So are those that
        another URL represents: nothing of theirs is in the index.
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
                if len(batch) == _DOCUMENTS_AT_ONCE:
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
        """Push a document that waits for a leased URL, which is fetched later; return whether there is one."""
        try:
            moved = self.moved(state) if self else ()
        except (StoreAway, StoreFull):  # it is fetched first
            return False
        changes += moved
        return bool(moved)

    def ahead(self, first: int, most: int) -> list[Url | None]:
        """Return the URLs that the next documents wait for, starting at number `first`; None for one that waits no more."""
        states = (self._store.get_by_id(id) for id in self._ids[first : first + most])
        return [None if state is None else self._into(state) for state in states]

    def _into(self, state: UrlState) -> Url | None:
        """Return the URL that a folded one waits for, if any."""
        if state.held is not Held.FOLDED or self._folding is None:
            return None
        return self._folding.folded(parse(state.url, host_as_written=state.host_as_written, routes=True))

    def _still_waiting(
        self, into: dict[int, NewUrl], idle: Collection[int], effects: Effects, lost: list[NewUrl], *, now: int
    ) -> Iterator[tuple[int, int]]:
        """Yield key and id of those that keep waiting; `idle` are those that wait for nothing."""
        known = {url: one.state for url, one in known_by_url(self._store, into.values()).items()}
        lost += [new for id, new in into.items() if new.url not in known and id not in idle]
        replaced = {id for id, new in into.items() if known.get(new.url) == State.DONE}

        def forget(state: UrlState) -> Change | None:
            """Return the change, unless the URL has changed since it was read: another worker may have recorded pages meanwhile."""
            leaves = state.held is Held.FOLDED and (state.id in replaced or state.duplicate_of is not None)
            return Change(state, forget=True) if leaves else None

        if leaving := sorted(replaced.union(idle)):
            done = self._store.revise(leaving, forget, now=now)
            effects.pushes += done.pushes
            effects.deletes += done.deletes
        # most of the idle ones are not found any more
        yield from ((new.key, id) for id, new in into.items() if id not in replaced)


def _fold(
    store: Store,
    decisions: KnownUrlDecisions,
    ids: Sequence[int],
    keys: Mapping[int, int],
    *,
    now: int,
    note: Callable[[Reclassified], None],
) -> Effects:
    pending, held, forgotten = array("q"), array("q"), array("q")
    with store.one_transaction():
        for some in _parts(ids, _READ_AT_ONCE):
            states = store.urls_to_fold(some)
            into = {
                state.id: folded_into(state, url, key=keys[state.key])
                for state in states
                if (url := decisions.folded(state.url, host_as_written=state.host_as_written)) is not None
            }
            without_document = _insert(store, states, into, now=now)
            for state in states:
                if not state.in_index or state.id not in without_document:
                    if state.id in into:
                        forgotten.append(state.id)
                    continue
                held.append(state.id)
                if state.state == State.PENDING:  # it would be fetched
                    pending.append(state.id)
        if pending:
            store.reclassify(Reclassified(given_up=pending), now=now)
        found = Reclassified(forgotten=forgotten, held_folded=held)
        note(found)
        return store.reclassify(found, now=now)


def _insert(store: Store, states: Sequence[FoldedUrl], into: Mapping[int, NewUrl], *, now: int) -> dict[int, int | None]:
    """Insert the URLs that others are folded into, with the links of those; return the result of `_without_document`."""
    inserted = store.discover(list(into.values()), now=now).ids
    if strays := [state for state in states if state.id in into and _may_lack_a_link(state)]:
        store.set_depth_marks({into[state.id].key: DepthMark(ANY_PAGE) for state in strays})
    without_document = _without_document(store, into, inserted)
    store.move_links(without_document)
    return without_document


def _without_document(store: Store, into: Mapping[int, NewUrl], inserted: Mapping[str, int]) -> dict[int, int | None]:
    """Return the folded URLs whose other URL has no document, each with the id of that one, if it was never fetched.

    That one gets the links of the folded URL.
    """
    known = known_by_url(store, [new for new in into.values() if new.url not in inserted])
    found: dict[int, int | None] = {}
    for id, new in into.items():
        other = inserted.get(new.url)
        if other is not None:
            found[id] = other
        elif (one := known[new.url]).state != State.DONE:
            found[id] = one.id if one.state == State.PENDING else None
    return found


def _may_lack_a_link(state: FoldedUrl) -> bool:
    """Return whether a URL may have no link to it: an orphan, one that the rules excluded, or one folded by a start that was killed."""
    return state.orphaned is not None or state.status in OUT_OF_SPACE or state.held == Held.FOLDED


def _parts(ids: Sequence[int], most: int) -> Iterator[Sequence[int]]:
    return (ids[first : first + most] for first in range(0, len(ids), most))
