"""The end of a run: settle link depths, and delete orphans if CRAWLSPACE_ORPHANS demands it."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from crawlspace.clock import Clock
from crawlspace.config.collection import Collection as CrawledCollection
from crawlspace.crawl.depths.settlement import DEEPER, RUN, FoundDepths, delete_orphans, find, last_run, lower, write
from crawlspace.crawl.engine import Engine
from crawlspace.state.depths import ANY_PAGE, LOWERED, DepthMark
from crawlspace.state.error_policy import DeletionLimit
from crawlspace.state.metadata import get_integers
from crawlspace.state.store import Store
from crawlspace.text import counted

logger = logging.getLogger(__name__)

STARTS = "start_keys"
"""Meta: the keys of the start URLs at the last start, separated by spaces."""


def end_run(engine: Engine) -> None:
    """Settle the link depths, and delete orphans, once nothing is left to do in a run. Raises StoreError."""
    store, collection = engine.store, engine.collection
    now, run = engine.now(), last_run(store) + 1
    found = find(store, starts=start_keys(collection), run=run)
    effects = write(store, found, now=now)
    _note_limit(store, collection, found)
    if found.changes or found.lowered:
        logger.info(
            "%s: the link depth of %s was computed again%s",
            collection.name,
            counted(found.checked, "URL"),
            f"; no way leads from a start URL to {found.orphaned:,} of them" if found.orphaned else "",
        )
    store.set_meta(RUN, str(run))
    # A URL readmitted to the crawl space by that was not settled, and may be marked as an orphan.
    engine.fetch_again(effects, linked=True)
    if engine.is_alone and store.get_meta(LOWERED):  # else another worker may have ended earlier
        store.set_meta(LOWERED, "")
    if collection.orphans_after is not None:
        deleted = delete_orphans(
            store,
            after=collection.orphans_after,
            run=run,
            deletion_limit=DeletionLimit(collection.max_deletions_percent, collection.max_deletions),
            deleted=engine.deleted_by_all,
            now=now,
        )
        if deleted.forgotten or deleted.held:
            logger.info(
                "%s: %s to which no way has led for %s: %s, %s held",
                collection.name,
                f"{deleted.forgotten + deleted.held:,} orphaned URLs",
                counted(collection.orphans_after, "run"),
                counted(deleted.deletes, "document deleted", "documents deleted"),
                f"{deleted.held:,}",
            )
        engine.orphans_deleted(pushes=deleted.pushes, deletes=deleted.deletes)
    engine.forget_known()  # a continuing crawl may find URLs again, or at a smaller depth


def begin_run(store: Store, collection: CrawledCollection, clock: Clock, *, rules_changed: bool) -> None:
    """Settle the link depths that a stopped run has left, before changed rules are applied to them; mark removed start URLs.

    Known URLs that have become start URLs are lowered first, with what they lead to: else the limit would exclude, and delete, what is only
    too far from the removed ones.
    """
    now_keys = start_keys(collection)
    before = get_integers(store, STARTS)
    removed = before - now_keys
    if before:
        lower(store, [(one.id, 0, 0) for one in store.depths_of(now_keys - before) if one.depth], now=int(clock.now()))
    if removed:
        store.set_depth_marks({key: DepthMark(ANY_PAGE) for key in removed})
    if before != now_keys:
        store.set_meta(STARTS, " ".join(map(str, sorted(now_keys))))
    if rules_changed:
        found = find(store, starts=now_keys, run=last_run(store) + 1)
        write(store, found, now=int(clock.now()))
        _note_limit(store, collection, found)


def pending_depths(store: Store, collection: CrawledCollection) -> dict[int, int]:
    """Return the depths by id that `begin_run` would write, for `plan`.

    Pages whose depth came through neither a removed nor a new start URL keep theirs, so that a new one may bring them nearer than is said.
    """
    now_keys = start_keys(collection)
    before = get_integers(store, STARTS)
    changed = now_keys ^ before if before else set()
    return find(store, starts=now_keys, run=last_run(store) + 1, uncertain=changed).depth_of()


def mark_unknown_depths(store: Store, keys: Iterable[int]) -> None:
    """Mark URLs that were inserted at an unknown depth, so that it is computed at the end of the run."""
    store.set_depth_marks({key: DepthMark(ANY_PAGE) for key in keys})


def start_keys(collection: CrawledCollection) -> set[int]:
    return {start.url.key for start in collection.start_urls}


def _note_limit(store: Store, collection: CrawledCollection, found: FoundDepths) -> None:
    limit = collection.limits.max_link_depth
    if limit is not None and found.deepest() > limit:
        store.set_meta(DEEPER, "1")
