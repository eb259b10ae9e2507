"""Link depths in memory: those that go down, those that may be wrong, and the links that they depend on."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from msgspec import structs

from crawlspace.model import Held, UrlState
from crawlspace.state.changes import Effects
from crawlspace.state.depths import (
    ANY_PAGE,
    LOWERED,
    DepthMark,
    NewDepth,
    PageLinks,
    UrlDepth,
    is_deeper,
    leads_on,
    least_reach,
    merged,
    reach_of,
)
from crawlspace.state.link_keys import moved_links

_Before = dict[int, tuple[UrlState, frozenset[int]]]
"""URLs before a change, and their links, by id."""


class MemoryDepths:
    """The part of the store that concerns link depths. All URLs are its own."""

    set_meta: Callable[[str, str], None]

    def __init__(self) -> None:
        super().__init__()
        self._urls: dict[int, UrlState] = {}
        self._keys: defaultdict[int, set[int]] = defaultdict(set)
        self._links: dict[int, tuple[int, ...]] = {}
        self._depth_marks: dict[int, DepthMark] = {}

    def _with_key(self, key: int) -> list[UrlState]:
        return self._stored(self._keys.get(key, ()))

    def _stored(self, ids: Iterable[int]) -> list[UrlState]:
        return [self._urls[id] for id in ids if id in self._urls]

    def depth_marks(self) -> dict[int, DepthMark]:
        return dict(self._depth_marks)

    def set_depth_marks(self, marks: Mapping[int, DepthMark | None]) -> None:
        for key, mark in marks.items():
            if mark is None:
                self._depth_marks.pop(key, None)
            else:
                self._depth_marks[key] = mark

    def depths_of(self, keys: Iterable[int]) -> list[UrlDepth]:
        return [_depth(self._urls[id]) for key in set(keys) for id in sorted(self._keys.get(key, ()))]

    def scan_depths(self, after: int, limit: int) -> list[UrlDepth]:
        return [_depth(self._urls[id]) for id in sorted(self._urls) if id > after][:limit]

    def orphans(self) -> list[UrlDepth]:
        return [_depth(row) for _, row in sorted(self._urls.items()) if row.orphaned is not None]

    def links_of(self, ids: Collection[int]) -> dict[int, array[int]]:
        return {id: array("q", self._links[id]) for id in ids if self._links.get(id)}

    def scan_links(self, after: int, limit: int) -> list[PageLinks]:
        found = [
            PageLinks(id, least_reach(row.depth, row.state, has_document=row.checksum is not None), array("q", self._links[id]))
            for id, row in sorted(self._urls.items())
            if id > after and self._links.get(id) and leads_on(row.state, row.status)
        ]
        return found[:limit]

    def links_to(self, keys: Collection[int]) -> Iterator[PageLinks]:
        return (page for page in self.scan_links(0, len(self._urls)) if not set(keys).isdisjoint(page.targets))

    def set_depths(self, new: Sequence[NewDepth]) -> list[int]:
        left = []
        for one in new:
            row = self._urls.get(one.id)
            if row is not None and row.lease_until is None and row.depth == one.depth_before:
                row.depth, row.depth_from, row.orphaned = one.depth, one.depth_from, one.orphaned
            else:
                left.append(one.id)
        return left

    def relink(self, links: Mapping[int, Sequence[int]]) -> None:
        for id, keys in links.items():
            if keys:
                self._links[id] = tuple(keys)
            else:
                self._links.pop(id, None)

    def one_transaction(self) -> AbstractContextManager[None]:
        return nullcontext()

    def move_links(self, into: Mapping[int, int | None]) -> None:
        self.relink(moved_links(self._links, into))

    def fold_links(self, into: Mapping[int, int]) -> None:
        for id, keys in self._links.items():
            self._links[id] = tuple(dict.fromkeys(into.get(key, key) for key in keys))

    def _carry(self, nearer: dict[int, int], effects: Effects) -> None:
        """Lower the depth of what URLs with a lower depth link to, until nothing changes; report what was crawled already.

        Mark what is not stored.
        """
        queue, carried, done = set(nearer), set[int](), set[int]()
        while queue:
            least = min(self._urls[id].depth for id in queue)
            some = [id for id in queue if self._urls[id].depth == least]
            queue.difference_update(some)
            done.update(some)
            for row in map(self._urls.__getitem__, some):
                if not leads_on(row.state, row.status):
                    continue
                depth = reach_of(row.depth, row.state)
                for key in self._links.get(row.id, ()):
                    if not self._keys.get(key):
                        self._depth_marks[key] = merged(self._depth_marks.get(key), DepthMark(ANY_PAGE, depth))
                for id in (id for key in self._links.get(row.id, ()) for id in self._keys.get(key, ())):
                    target = self._urls[id]
                    if depth < target.depth:
                        nearer.setdefault(id, target.depth)
                        target.depth, target.depth_from = depth, row.id
                        carried.add(id)
                        queue.add(id)
                    elif depth == target.depth and id in carried - done:
                        target.depth_from = min(target.depth_from, row.id)
        for id, depth in sorted(nearer.items()):
            if self._urls[id].state and self._urls[id].depth < depth:
                effects.lowered.append((id, depth, self._urls[id].depth))
        if effects.lowered:
            self.set_meta(LOWERED, "1")

    def _before_links_are_lost(self, ids: Iterable[int]) -> _Before:
        rows = [self._urls[id] for id in ids if id in self._urls]
        return {row.id: (structs.replace(row), self._counting_links(row)) for row in rows}

    def _mark_depths(self, before: _Before) -> None:
        """Mark what URLs that have changed gave a depth and do not lead to any more, and those that were forgotten."""
        for id, (old, links) in sorted(before.items()):
            row = self._urls.get(id)
            if row is None:
                self._depth_marks[old.key] = merged(self._depth_marks.get(old.key), DepthMark(ANY_PAGE, old.depth))
            leads = row is not None and not is_deeper(old.state, row.state, had_document=old.checksum is not None)
            kept = self._counting_links(row) if row is not None and leads else frozenset()
            for lost in links - kept:
                if any(self._urls[other].depth_from == id for other in self._keys.get(lost, ())):
                    self._depth_marks[lost] = merged(self._depth_marks.get(lost), DepthMark(id))

    def _counting_links(self, row: UrlState) -> frozenset[int]:
        return frozenset(self._links.get(row.id, ()) if leads_on(row.state, row.status) else ())


def _depth(row: UrlState) -> UrlDepth:
    return UrlDepth(
        row.id,
        row.key,
        int(row.state),
        row.status,
        row.depth,
        row.depth_from,
        row.orphaned,
        row.checksum is not None,
        row.held is Held.FOLDED,
    )
