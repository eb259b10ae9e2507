"""Keep link depths consistent with the stored links: those that may be wrong are computed again, in one pass over all links.

A URL keeps the page that gave it its depth. When that page loses the link or is deleted, the store marks the URL (`state/depths.py`). It and
all URLs whose depth came through it get the smallest depth that any page gives them; those that cannot be reached from a start URL are
orphaned. Memory grows with the number of these URLs, not with that of all; a collection in which none is marked costs nothing.

After a kill, the next settlement repeats it: the marks are removed last, and URLs that depend on others are written before them.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from msgspec import structs

from crawlspace.crawl.admission import CandidateChecker
from crawlspace.model import Held, NewUrl, State, UrlState
from crawlspace.rules.limits import Limits
from crawlspace.state.changes import Change, Effects
from crawlspace.state.depths import ANY_PAGE, UNANSWERED, DepthMark, NewDepth, UrlDepth, least_reach, merged, reach_of
from crawlspace.state.due_times import at_once
from crawlspace.state.error_policy import DeletionLimit
from crawlspace.state.lifecycle import pending_again
from crawlspace.state.metadata import get_integer
from crawlspace.state.site_pauses import pause_of
from crawlspace.state.store import MetaStore, Store
from crawlspace.status import OUT_OF_SPACE

RUN = "run"
"""Meta: the number of the last completed run."""
ANY_GIVER = "depths_any"
"""Meta: 1 if the rules have changed: so many pages may have left the crawl space, or come back, that the URLs they link to were not marked."""
DEEPER = "depths_beyond_limit"
"""Meta: 1 if URLs are deeper than DEPTH_LIMIT since their depths were computed again, so that the next start excludes them."""
BATCH = 5_000
"""URLs or pages read or written at once."""
_FAR = 1 << 30
HELD_AS_ORPHAN = 1
"""`held_mark` with `Held.MANY`: the deletion is held as that of an orphan, and released when the URL is linked again."""
ORPHANS_AT_ONCE = 500
"""URLs changed in one transaction."""


@dataclass(slots=True)
class FoundDepths:
    """The result for the depths that may be wrong, by the stored links."""

    changes: list[NewDepth] = field(default_factory=list)
    """In the order in which they must be written. None makes a depth smaller."""
    lowered: list[tuple[int, int, int]] = field(default_factory=list)
    """(id, depth, page) of URLs with a smaller depth than stored, to be lowered afterwards with the URLs they lead to."""
    lowered_outside: list[tuple[int, int, int]] = field(default_factory=list)
    """The same of URLs outside the crawl space, through a former orphan: the link depth limit may admit them now."""
    marks: dict[int, DepthMark] = field(default_factory=dict)
    """Processed marks."""
    outside: list[int] = field(default_factory=list)
    """Keys of URLs outside the crawl space whose depth came from one that has another now: they are settled once readmitted."""
    nearer: list[int] = field(default_factory=list)
    """Keys of URLs with a smaller depth through a former orphan, or an unanswered page; among `lowered`."""
    unknown: dict[int, DepthMark] = field(default_factory=dict)
    """Marks of URLs that an unanswered page links to, and that are not stored: they may be found again by a page that is farther."""
    linked_again: list[int] = field(default_factory=list)
    """Ids of orphans that are linked again."""
    checked: int = 0
    """URLs whose depth was computed again."""
    orphaned: int = 0
    """Those of them that are orphans."""

    def depth_of(self) -> dict[int, int]:
        """Return the depths that differ from the stored ones, by id."""
        found = {new.id: new.depth for new in self.changes if new.depth != new.depth_before}
        return found | {id: depth for id, depth, _ in (*self.lowered, *self.lowered_outside)}

    def deepest(self) -> int:
        """Return the largest new depth; 0 without any."""
        return max((new.depth for new in self.changes if new.depth > new.depth_before), default=0)


def last_run(store: MetaStore) -> int:
    """Return the number of the last completed run; 0 before the first."""
    return get_integer(store, RUN) or 0


def find(store: Store, *, starts: Collection[int], run: int, uncertain: Collection[int] = ()) -> FoundDepths:
    """Return the changes at the end of run number `run`; `starts` are the keys of the start URLs. Reads only.

    `uncertain`: keys whose depths are computed again beside those that are marked.
    """
    found = FoundDepths()
    marks = store.depth_marks() | {key: DepthMark(ANY_PAGE) for key in uncertain}
    roots, missing = _roots(store, marks, found)
    without_giver, unanswered = _changed_by_rules(store) if store.get_meta(ANY_GIVER) else ([], [])
    roots = [one for one in (*roots, *without_giver) if one.status not in OUT_OF_SPACE]
    if not roots and not unanswered:
        return found
    marked = _Marked(roots)
    outside = _add_dependent(store, marked)
    seen = _apply_links(store, marked, missing)
    found.marks |= {key: mark for key, mark in marks.items() if key in missing and key not in seen}
    _spread(store, marked, starts)
    _lower_links_of_those_back(store, marked, unanswered, found)
    found.checked = len(marked.urls)
    for index in range(len(marked.urls) - 1, -1, -1):  # dependent URLs first
        one, depth, page = marked.urls[index], marked.depth[index], marked.page[index]
        if depth == _FAR:
            found.orphaned += 1
            new = NewDepth(one.id, one.depth, one.depth, 0, run if one.orphaned is None else one.orphaned)
        else:
            new = NewDepth(one.id, one.depth, max(depth, one.depth), page, None)
            if depth < one.depth:
                found.lowered.append((one.id, depth, page))
            if one.orphaned is not None:
                found.linked_again.append(one.id)
        if (one.depth, one.depth_from, one.orphaned) != new[2:]:
            found.changes.append(new)
            found.outside += outside.get(one.id, ())
    return found


def write(store: Store, found: FoundDepths, *, now: int) -> Effects:
    """Write a settlement; return the effects of smaller depths."""
    if found.outside or found.nearer:
        store.set_depth_marks(dict.fromkeys((*found.outside, *found.nearer), DepthMark(ANY_PAGE)))
    release_linked(store, found.linked_again, now=now)  # first: after a kill they are still orphans and found again
    effects = Effects(lowered=lower(store, found.lowered_outside, now=now))  # for the same reason
    left = list[int]()
    for first in range(0, len(found.changes), BATCH):
        left += store.set_depths(found.changes[first : first + BATCH])
    changing = {state.key for id in left if (state := store.get_by_id(id)) is not None}
    if changing:  # by a worker: the next settlement computes their depths
        store.set_depth_marks(dict.fromkeys(changing, DepthMark(ANY_PAGE)))
    effects.lowered += lower(store, found.lowered, now=now)
    marks_now = store.depth_marks() if found.marks or found.unknown else {}  # another worker may have written some meanwhile
    if found.unknown:
        store.set_depth_marks({key: merged(marks_now.get(key), mark) for key, mark in found.unknown.items()})
    if found.marks:
        done: dict[int, DepthMark | None] = {
            key: None for key, mark in found.marks.items() if marks_now.get(key) == mark and key not in changing
        }
        store.set_depth_marks(done)
    if store.get_meta(ANY_GIVER):
        store.set_meta(ANY_GIVER, "")
    return effects


class _Marked:
    """The URLs whose depths are computed again; `depth` and `page` are the best so far, by index."""

    def __init__(self, roots: Iterable[UrlDepth]) -> None:
        self.urls: list[UrlDepth] = []
        self.ids: set[int] = set()
        self.indexes: dict[int, list[int]] = {}
        """By key: two URLs may share one."""
        self.depth = array("q")
        self.page = array("q")
        self.add(roots)

    def add(self, urls: Iterable[UrlDepth]) -> None:
        for one in urls:
            if one.id not in self.ids:
                self.ids.add(one.id)
                self.indexes.setdefault(one.key, []).append(len(self.urls))
                self.urls.append(one)
                self.depth.append(_FAR)
                self.page.append(0)

    def apply(self, key: int, depth: int, page: int, *, but: Collection[int] = ()) -> Iterator[int]:
        """Apply a depth that a page gives; yield the indexes for which it is the best so far. Of equal depths the page found first counts."""
        for index in self.indexes.get(key, ()):
            if index not in but and (depth, page) < (self.depth[index], self.page[index]):
                self.depth[index], self.page[index] = depth, page
                yield index


def fetch_again(
    lowered: Iterable[tuple[int, int, int]],
    store: Store,
    *,
    discovery: CandidateChecker,
    limits: Limits,
    now: int,
    linked: bool = False,
) -> tuple[list[Change], Effects]:
    """Record and return the changes for URLs with a smaller depth, given as (id, old depth, new depth), and the effects.

    A page at the maximal depth is fetched again for its links, which were too deep before. A page that was too deep is crawled.
    `linked`: all of them can be reached from a start URL, so that none is an orphan any more.
    """
    deepest = limits.max_link_depth
    changes: list[Change] = []
    if deepest is None:
        return changes, Effects()
    for id, before, _ in lowered:
        state = store.get_by_id(id)
        if state is None or before < deepest or state.lease_until is not None or state.held is Held.FOLDED:
            continue
        if state.status in OUT_OF_SPACE:
            if before > deepest and discovery.recheck(state).admitted:
                changes.append(Change(pending_again(state)))
        elif state.held is Held.RULES:  # in any state: it is never due while it is held
            if discovery.recheck(state).admitted:
                due = at_once(now, state.fetched_at)
                changes.append(Change(structs.replace(state, next_fetch=due, rules=0, held=None, held_mark=0)))
        elif state.state in (State.DONE, State.EXCLUDED):
            changes.append(Change(structs.replace(state, next_fetch=at_once(now, state.fetched_at), rules=0)))
    if linked:
        for change in changes:
            change.state.orphaned = None
    if not changes:
        return changes, Effects()
    by_id = {change.state.id: change for change in changes}
    return changes, store.revise(by_id, lambda state: by_id[state.id], now=now)


@dataclass(slots=True)
class DeletedOrphans:
    """Numbers of deleted documents, held deletions, and forgotten URLs."""

    deletes: int = 0
    held: int = 0
    forgotten: int = 0
    pushes: int = 0


def delete_orphans(
    store: Store, *, after: int, run: int, deletion_limit: DeletionLimit, deleted: int, now: int
) -> DeletedOrphans:
    """Forget the URLs that have been orphans for `after` runs, with their documents; if these are too many, hold all the deletions.

    `run` is the number of the run that ends, `deleted` how many documents it has deleted before. URLs that are held, or outside the crawl
    space, or of a site that a person has paused, don't change.
    """
    pauses = store.site_pauses()
    found = DeletedOrphans()
    due = [one.id for one in store.orphans() if one.orphaned is not None and run - one.orphaned + 1 >= after]
    states = [state for id in due if (state := store.get_by_id(id)) is not None and _may_be_deleted(state)]
    states = [state for state in states if pause_of(pauses, state.site) is None]
    indexed = sum(state.indexed for state in states)
    too_many = not deletion_limit.allows(indexed + deleted, indexed=store.counts().indexed + deleted)

    def change(state: UrlState) -> Change | None:
        if not _may_be_deleted(state):
            return None
        if too_many and state.indexed:
            found.held += 1
            return Change(structs.replace(state, held=Held.MANY, held_mark=HELD_AS_ORPHAN), keep_in_index=True)
        found.forgotten += 1
        return Change(state, forget=True)

    for first in range(0, len(states), ORPHANS_AT_ONCE):
        effects = store.revise([state.id for state in states[first : first + ORPHANS_AT_ONCE]], change, now=now)
        found.deletes += effects.deletes
        found.pushes += effects.pushes
    return found


def release_linked(store: Store, ids: Sequence[int], *, now: int) -> None:
    """Release the held deletions of orphans that are linked again. Those held for another reason stay held."""

    def change(state: UrlState) -> Change | None:
        if state.held is not Held.MANY or state.held_mark != HELD_AS_ORPHAN or state.lease_until is not None:
            return None
        return Change(structs.replace(state, held=None, held_mark=0), keep_in_index=True)

    if ids and next(store.urls(reason=Held.MANY), None) is not None:
        for first in range(0, len(ids), ORPHANS_AT_ONCE):
            store.revise(ids[first : first + ORPHANS_AT_ONCE], change, now=now)


def lower(store: Store, urls: Sequence[tuple[int, int, int]], *, now: int) -> list[tuple[int, int, int]]:
    """Lower URLs, given as (id, depth, page that gives it), and those they lead to; return (id, depth before, depth) of the crawled ones.

    `LOWERED` is stored with it, so that the next check of all known URLs finds what is not too far any more.
    """
    lowered: list[tuple[int, int, int]] = []
    for first in range(0, len(urls), BATCH):
        part = urls[first : first + BATCH]
        nearer = [_found_again(state, depth, page) for id, depth, page in part if (state := store.get_by_id(id)) is not None]
        lowered += store.discover(nearer, now=now).lowered
    return lowered


def _roots(store: Store, marks: dict[int, DepthMark], found: FoundDepths) -> tuple[list[UrlDepth], set[int]]:
    """Return the URLs whose own depth may be wrong, and the keys of marks without a URL; obsolete marks are added to `found.marks`."""
    roots = store.orphans()
    missing = set(marks)
    keys = sorted(marks)
    for first in range(0, len(keys), BATCH):
        for one in store.depths_of(keys[first : first + BATCH]):
            missing.discard(one.key)
            if one.status in OUT_OF_SPACE:  # it is settled once readmitted
                found.marks.pop(one.key, None)
                continue
            if marks[one.key].concerns(one.depth, one.depth_from):
                roots.append(one)
            found.marks[one.key] = marks[one.key]
    return roots, missing


def _changed_by_rules(store: Store) -> tuple[list[UrlDepth], list[UrlDepth]]:
    """Return the URLs whose depth came from a page that is gone, or whose links don't count; and the unanswered pages with links.

    Their links may have come to count again, and nothing has found these since.
    """
    leading: set[int] = set()
    unanswered: list[UrlDepth] = []
    for some in _all_depths(store):
        leading.update(one.id for one in some if one.leads_on)
        waiting = {one.id: one for one in some if one.state in UNANSWERED and one.orphaned is None and one.leads_on}
        unanswered += [waiting[id] for id in store.links_of(waiting)]
    without_giver = [one for some in _all_depths(store) for one in some if one.depth_from and one.depth_from not in leading]
    return without_giver, unanswered


def _all_depths(store: Store) -> Iterator[list[UrlDepth]]:
    last = 0
    while some := store.scan_depths(last, BATCH):
        yield some
        last = some[-1].id


def _add_dependent(store: Store, marked: _Marked) -> dict[int, list[int]]:
    """Add all URLs whose depth came through a marked one; return the keys of those outside the crawl space, by the id of that one."""
    checked, outside = 0, dict[int, list[int]]()
    while checked < len(marked.urls):
        some = {one.id for one in marked.urls[checked : checked + BATCH]}
        checked += len(some)
        keys = set[int]().union(*store.links_of(some).values())
        for one in store.depths_of(keys):
            if one.depth_from in some and one.status in OUT_OF_SPACE:
                outside.setdefault(one.depth_from, []).append(one.key)
            elif one.depth_from in some:
                marked.add([one])
    return outside


def _apply_links(store: Store, marked: _Marked, missing: set[int]) -> set[int]:
    """Apply the depths that all other pages give the marked URLs; return the missing keys that a page links to."""
    wanted = marked.indexes.keys() | missing
    seen: set[int] = set()
    last = 0
    while pages := store.scan_links(last, BATCH):
        for page in pages:
            hits = wanted.intersection(page.targets)
            if hits:
                seen |= hits & missing
                if page.id not in marked.ids:
                    for key in hits:
                        for _ in marked.apply(key, page.reach, page.id):
                            pass
        last = pages[-1].id
    return seen


def _spread(store: Store, marked: _Marked, starts: Collection[int]) -> None:
    """Apply the depths that marked URLs give each other, smallest first."""
    for index, one in enumerate(marked.urls):
        if one.key in starts:
            marked.depth[index], marked.page[index] = 0, 0
    heap: list[tuple[int, int]] = []
    for index, depth in enumerate(marked.depth):
        if depth != _FAR:
            heap.append((depth, index))
    heap.sort()
    done: set[int] = set()
    while heap:
        batch = _nearest(heap, marked, done)
        links = store.links_of([marked.urls[index].id for index in batch if marked.urls[index].leads_on])
        for index in batch:
            one = marked.urls[index]
            reach = least_reach(marked.depth[index], one.state, has_document=one.has_document)
            for key in links.get(one.id, ()):
                for other in marked.apply(
                    key, reach, one.id, but=done
                ):  # a redirect gives none to the URL that gave it its depth
                    heappush(heap, (reach, other))


def _lower_links_of_those_back(store: Store, marked: _Marked, unanswered: Sequence[UrlDepth], found: FoundDepths) -> None:
    """Lower URLs with a smaller depth through former orphans and unanswered pages, whose links did not count."""
    waiting = {one.id for one in unanswered}
    back = [
        (one, depth)
        for one, depth in zip(marked.urls, marked.depth, strict=True)
        if depth != _FAR and one.leads_on and (one.orphaned is not None or one.id in waiting)
    ]
    back += [(one, one.depth) for one in unanswered if one.id not in marked.ids]
    for first in range(0, len(back), BATCH):
        some = back[first : first + BATCH]
        links = store.links_of([one.id for one, _ in some])
        best: dict[int, tuple[int, int]] = {}
        for one, depth in some:
            if one.id in waiting:  # it may have been a redirect, and is taken for a page, as where its links were found
                reach = reach_of(depth, one.state)
            else:
                reach = least_reach(depth, one.state, has_document=one.has_document)
            offered = reach, one.id
            for key in links.get(one.id, ()):
                best[key] = min(best.get(key, offered), offered)
        unknown = set(best)
        for one in store.depths_of(best):
            unknown.discard(one.key)
            if one.id in marked.ids or best[one.key][0] >= one.depth:
                continue
            if one.status in OUT_OF_SPACE:
                found.lowered_outside.append((one.id, *best[one.key]))
            else:
                found.lowered.append((one.id, *best[one.key]))
                found.nearer.append(one.key)
                found.marks[one.key] = DepthMark(ANY_PAGE)
        for key in unknown:
            found.unknown[key] = merged(found.unknown.get(key), DepthMark(ANY_PAGE, best[key][0]))


def _nearest(heap: list[tuple[int, int]], marked: _Marked, done: set[int]) -> list[int]:
    """Pop the URLs with the smallest depth from the heap, at most a batch."""
    batch: list[int] = []
    depth = heap[0][0]
    while heap and heap[0][0] == depth and len(batch) < BATCH:
        _, index = heappop(heap)
        if marked.depth[index] == depth and index not in done:
            done.add(index)
            batch.append(index)
    return batch


def _found_again(state: UrlState, depth: int, page: int) -> NewUrl:
    return NewUrl(
        key=state.key,
        url=state.url,
        site=state.site,
        source=state.source,
        shift=state.shift,
        depth=depth,
        redirects=state.redirects,
        rank=state.rank,
        host_as_written=state.host_as_written,
        depth_from=page,
    )


def _may_be_deleted(state: UrlState) -> bool:
    return state.orphaned is not None and state.held is None and state.lease_until is None and state.status not in OUT_OF_SPACE
