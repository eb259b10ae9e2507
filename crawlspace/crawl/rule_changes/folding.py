"""Fold the known URLs after a change of the URL options: of all that are one URL now, that one stays, and takes over from the others.

In batches, a transaction each where the store can, else a few short ones, each of which leaves all in order, so that a start after a kill
folds what is left:

1. Links that lead to a folded URL lead to the other one.
2. The other one is inserted if it is not known, pending, with the depth and the metadata of the folded one, and with its links until it
   has been fetched.
3. The folded URL is forgotten, and its document deleted, if the other one has a document already, or it has none itself. Else its
   document stays in the index, its deletion held (`Held.FOLDED`), until the other one has been fetched, or an equal page at a better
   address has taken its place (`folded_documents.py`).
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from crawlspace.model import OUT_OF_SPACE, Held, NewUrl, State, UrlState
from crawlspace.rules.bulk import BulkDecisions
from crawlspace.state.changes import Effects, Reclassified
from crawlspace.state.depths import ANY_PAGE, DepthMark, UrlDepth
from crawlspace.state.duplicates import rank_of
from crawlspace.state.views import FoldedUrl, KnownUrl
from crawlspace.urls import Url, url_key

_READ_AT_ONCE = 5_000
"""Of one batch: so many are in memory as objects, which is faster, too."""


class UrlDepths(Protocol):
    """Where URLs are found by key."""

    def depths_of(self, keys: Iterable[int]) -> list[UrlDepth]: ...
    def get(self, url: str) -> UrlState | None: ...


class FoldingStore(UrlDepths, Protocol):
    """What known URLs are folded in."""

    changed_at_once: int

    def discover(self, urls: Sequence[NewUrl], *, now: int) -> Effects: ...
    def one_transaction(self) -> AbstractContextManager[None]: ...
    def urls_to_fold(self, ids: Collection[int]) -> list[FoldedUrl]: ...
    def reclassify(self, found: Reclassified, *, now: int) -> Effects: ...
    def fold_links(self, into: Mapping[int, int]) -> None: ...
    def move_links(self, into: Mapping[int, int | None]) -> None: ...
    def set_depth_marks(self, marks: Mapping[int, DepthMark | None]) -> None: ...


class KnownFolds:
    """The known URLs that are folded, and the keys of the URLs that they are folded into."""

    def __init__(self) -> None:
        self.without_document = array("q")
        """Ids of those that have nothing in the index. They go first: else one could be pushed in place of an equal page."""
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
        """How many others there are."""
        return len(set(self.keys.values()))


def fold_known(store: FoldingStore, verdicts: BulkDecisions, folds: KnownFolds, *, now: int) -> Effects:
    """Fold known URLs; return how many documents are pushed and deleted for it."""
    done = Effects()
    if folds:
        store.fold_links(folds.keys)
    for ids in (folds.without_document, folds.with_document):
        for part in _parts(ids, store.changed_at_once):
            effects = _fold(store, verdicts, part, folds.keys, now=now)
            done.pushes += effects.pushes
            done.deletes += effects.deletes
    return done


def folded_into(state: UrlState | FoldedUrl, into: Url, *, key: int) -> NewUrl:
    """Return the URL that a known one is folded into, to be inserted; `key` is its key."""
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


def known_by_url(store: UrlDepths, urls: Collection[NewUrl]) -> dict[str, UrlDepth]:
    """Return what is known of URLs that may be known, by URL."""
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


def _fold(store: FoldingStore, verdicts: BulkDecisions, ids: Sequence[int], keys: Mapping[int, int], *, now: int) -> Effects:
    pending, held, forgotten = array("q"), array("q"), array("q")
    with store.one_transaction():
        for some in _parts(ids, _READ_AT_ONCE):
            states = store.urls_to_fold(some)
            into = {
                state.id: folded_into(state, url, key=keys[state.key])
                for state in states
                if (url := verdicts.folded(state.url, host_as_written=state.host_as_written)) is not None
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
        return store.reclassify(Reclassified(forgotten=forgotten, held_folded=held), now=now)


def _insert(store: FoldingStore, states: Sequence[FoldedUrl], into: Mapping[int, NewUrl], *, now: int) -> dict[int, int | None]:
    """Insert the URLs that others are folded into, with the links of those; return what `_without_document` does."""
    inserted = store.discover(list(into.values()), now=now).ids
    if strays := [state for state in states if state.id in into and _may_lack_a_link(state)]:
        store.set_depth_marks({into[state.id].key: DepthMark(ANY_PAGE) for state in strays})
    without_document = _without_document(store, into, inserted)
    store.move_links(without_document)
    return without_document


def _without_document(store: FoldingStore, into: Mapping[int, NewUrl], inserted: Mapping[str, int]) -> dict[int, int | None]:
    """Return those of the folded URLs of which the other one has no document, each with the id of that one, if that was never fetched.

    Such a one leads to what the folded URL leads to, which leads nowhere any more.
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
    """Return whether no link may lead to a URL: an orphan, one that the rules kept out, or one that was folded before, by a start that was killed."""
    return state.orphaned is not None or state.status in OUT_OF_SPACE or state.held == Held.FOLDED


def _parts(ids: Sequence[int], most: int) -> Iterator[Sequence[int]]:
    return (ids[first : first + most] for first in range(0, len(ids), most))
