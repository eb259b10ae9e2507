"""Brings the store and the embedded index of a collection in line with its settings and with each other, as a crawl begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from crawlspace.clock import SystemClock
from crawlspace.crawl.depths.end_of_run import mark_unknown_depths
from crawlspace.crawl.sinks.repair import Resending, Resent
from crawlspace.crawl.startup import Startup, open_engine
from crawlspace.model import Candidate, Source
from crawlspace.runtime.stores.crawl_store import sends_from_here
from crawlspace.runtime.stores.sinks import note_new_sinks
from crawlspace.urls import url_key

if TYPE_CHECKING:
    from crawlspace.config.collection import Collection
    from crawlspace.crawl.commits import Archiving
    from crawlspace.crawl.rule_changes.rediscovery import SpiderCode
    from crawlspace.index.embedded import EmbeddedIndex
    from crawlspace.index.sink import Sink
    from crawlspace.runtime.stores.crawl_store import CrawlStore

_FAR = 1_000
"""The depth of a URL whose distance from a start URL is not known."""


def start(
    collection: Collection,
    opened: CrawlStore,
    index: EmbeddedIndex | None,
    sinks: Sequence[Sink],
    archiving: Archiving | None,
    *,
    spider: SpiderCode,
) -> tuple[Startup, Resent | None]:
    """Apply the rules to the store, repair the index where it does not match the store, and open the engine."""
    clock, store = SystemClock(), opened.store
    note_new_sinks(store, collection.sinks)
    resending = None if index is None else Resending(store, index, owner=collection.name, now=int(clock.now()))
    resent = resending.begin() if resending is not None and sends_from_here(collection, opened) else None
    view = None if opened.joined is None else opened.joined.shared.view
    startup = open_engine(collection, store=store, sinks=sinks, clock=clock, worker=view, archiving=archiving, spider=spider)
    limit = startup.engine.space.limits.max_link_depth
    depth = _FAR if limit is None else limit  # until a link to it is found

    def enter(urls: Sequence[str]) -> None:
        startup.engine.admit(Candidate(url, Source.INDEX_FOLLOW, depth=depth) for url in urls)
        mark_unknown_depths(store, map(url_key, urls))

    if resending is not None:
        resending.finish(enter)
    return startup, resent
