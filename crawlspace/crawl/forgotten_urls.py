"""The URLs forgotten in this run after a permanent error: links to them don't insert them again in the same run.

A later run inserts them. Memory is bounded: with very many such URLs, the oldest may be fetched once more.

A continuous run inserts no start URLs again: a start URL that would be forgotten stays known there, and is due after the shortest
interval, so that its page is found when it is back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from crawlspace.cache import Recent
from crawlspace.crawl.discovery import CandidateChecker
from crawlspace.model import Source, State, UrlState
from crawlspace.state.changes import Change
from crawlspace.state.lifecycle import remembered
from crawlspace.state.recrawl import RecrawlPolicy
from crawlspace.urls import Url

_MOST = 100_000


class EndedUrls:
    """The forgotten URLs of one run; without `run_ends`, the run is continuous and forgets none. `starts` are the start URLs."""

    def __init__(self, discovery: CandidateChecker, *, run_ends: bool, starts: Iterable[Url]) -> None:
        self._discovery = discovery
        self._starts = frozenset[str]() if run_ends else frozenset(url.text for url in starts)
        self._keys: Recent[int, int] | None = Recent(_MOST) if run_ends else None

    def follow(self, change: Change, *, policy: RecrawlPolicy, now: int) -> Change:
        """Record a URL that is to be forgotten, and return the change to make.

        The store may insert it again, by a link on a page of the same batch, or of another worker.
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
        """Forget a leased URL again if a link has inserted it; return whether it was."""
        if (
            self._keys is None
            or state.state is not State.PENDING
            or state.source is Source.USER
            or self._keys.get(state.key) is None
        ):
            return False
        changes.append(Change(state, forget=True))
        return True
