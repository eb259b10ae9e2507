"""The URLs that were forgotten in this run, because they ended in a permanent error: a link to one does not enter it again in it.

A link that is found in a later run does. Memory is bounded: where very many URLs end, the oldest may be asked for once more.

A run that never ends enters no start URL by itself: one of them that would be forgotten stays known in it, and is due after the shortest
interval, so that its page is found once it is back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from crawlspace.cache import Recent
from crawlspace.crawl.discovery import Discovery
from crawlspace.model import Source, State, UrlState
from crawlspace.state.changes import Change
from crawlspace.state.lifecycle import remembered
from crawlspace.state.recrawl import RecrawlPolicy
from crawlspace.urls import Url

_MOST = 100_000


class EndedUrls:
    """Those of a run of which it is known whether it ends; one that does not ends nothing for good. `starts` are the start URLs."""

    def __init__(self, discovery: Discovery, *, run_ends: bool, starts: Iterable[Url]) -> None:
        self._discovery = discovery
        self._starts = frozenset[str]() if run_ends else frozenset(url.text for url in starts)
        self._keys: Recent[int, int] | None = Recent(_MOST) if run_ends else None

    def follow(self, change: Change, *, policy: RecrawlPolicy, now: int) -> Change:
        """Note a URL that is to be forgotten, or return what becomes of it instead.

        The store may come to know it again, by a link on a page of the same batch, or of another worker.
        """
        if not change.forget:
            return change
        if change.state.url in self._starts:
            return replace(change, state=remembered(change.state, policy=policy, now=now), links=(), forget=False)
        self._discovery.forget(change.state.key)
        if self._keys is not None:
            self._keys.put(change.state.key, 1)
        return change

    def drop(self, state: UrlState, changes: list[Change]) -> bool:
        """Have a URL that was just leased be forgotten once more, where it was entered again by a link; return whether it is."""
        if (
            self._keys is None
            or state.state is not State.PENDING
            or state.source is Source.USER
            or self._keys.get(state.key) is None
        ):
            return False
        changes.append(Change(state, forget=True))
        return True
