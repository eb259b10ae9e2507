"""Decide which pages are rendered in a browser, learn from the results, and count the costs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Self

import msgspec

from crawlspace.clock import Clock
from crawlspace.config.collection import Collection
from crawlspace.config.sites import SiteTable, mode_of
from crawlspace.decision import Actions, Render
from crawlspace.errors import StoreAway, StoreFull
from crawlspace.rules.space import CrawlSpace
from crawlspace.state.render_learning import MAX_GROUPS, RenderDecision, Rendered, RenderGroup, group_of
from crawlspace.state.store import MetaStore
from crawlspace.urls import Url, parse

RENDERING = "rendering"
"""Meta: what was learned, requests of pages that were refused, and the costs of rendering."""
KEEP_EVERY_S = 300.0
"""Interval between writes of unimportant changes, such as counts."""
MOST_HOSTS = 20
"""Hosts that pages of a site must not load from, each kept with a reason."""
MOST_SITES = 100
"""Sites with such hosts."""
_MAX_LEARNING = 10_000
_LONGEST_HOST = 253
_LONGEST_REASON = 200


class RenderCounts(msgspec.Struct):
    """Costs of rendering."""

    pages: int = 0
    """Rendered pages, including samples."""
    checks: int = 0
    """Of these, samples of pages that apparently need no browser."""
    failed: int = 0
    """Pages that could not be rendered, not counted above."""
    gained: int = 0
    """Of the rendered ones, those that gained notably more words or links."""
    requests: int = 0
    """Requests of the browser, besides the pages themselves."""
    seconds: float = 0.0

    def add(self, other: RenderCounts) -> None:
        self.pages += other.pages
        self.checks += other.checks
        self.failed += other.failed
        self.gained += other.gained
        self.requests += other.requests
        self.seconds += other.seconds


class LearnedRendering(msgspec.Struct):
    """Stored state, the least recently used first."""

    groups: dict[str, RenderGroup] = msgspec.field(default_factory=dict)
    refused: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)
    """By site of the page: reasons by host."""
    counts: RenderCounts = msgspec.field(default_factory=RenderCounts)
    """Of all runs."""

    @property
    def needing(self) -> int:
        """The number of groups whose pages need a browser."""
        return sum(group.needs_browser for group in self.groups.values())

    def take(self, other: LearnedRendering) -> None:
        """Merge the state of another process: where both know a group, the one learned from more pages."""
        for name, group in other.groups.items():
            if name not in self.groups or group.rendered > self.groups[name].rendered:
                self.groups[name] = group
        for site, hosts in other.refused.items():
            self.refused.setdefault(site, hosts)
        self.shorten()

    def shorten(self) -> None:
        """Drop the least recently used entries beyond the limits."""
        for name in list(self.groups)[: max(0, len(self.groups) - MAX_GROUPS)]:
            del self.groups[name]
        for site in list(self.refused)[: max(0, len(self.refused) - MOST_SITES)]:
            del self.refused[site]


class Rendering:
    """Decides which pages are rendered, and learns from the results. Raises StoreError at the start only."""

    def __init__(self, space: CrawlSpace, sites: SiteTable, store: MetaStore, *, clock: Clock) -> None:
        self._space = space
        self._sites = sites
        self._store = store
        self._clock = clock
        self._learned = learned_rendering(store)
        self._learned.counts = RenderCounts()  # since the last write
        self.counts = RenderCounts()
        """Of this run."""
        self._learning: dict[str, tuple[str, bool, bool]] = {}
        """By URL, of pages being rendered to learn from: group, whether it looks like a shell, whether it is a sample."""
        self._is_due = False
        """Whether something was learned that must be stored soon for other runs and workers."""
        self._has_changed = False
        self._kept_at = clock.monotonic()

    @classmethod
    def of(cls, collection: Collection, space: CrawlSpace, store: MetaStore, *, clock: Clock) -> Self | None:
        """Return the Rendering of a collection; None if it renders nothing."""
        return cls(space, collection.sites, store, clock=clock) if collection.renders else None

    def mode(self, url: str) -> Render:
        """Return whether a page is rendered: by rules.xml, else by the settings of its site, else by those of the collection.

        A route behind # always is: without a browser it would equal its page.
        """
        parsed = parse(url, routes=True)
        return Render.ALWAYS if parsed.fragment else mode_of(parsed, self._actions(parsed), self._sites)

    def decide(self, url: str, *, needs_browser: bool) -> RenderDecision:
        """Return whether a page that was fetched is rendered; `needs_browser`: it looks like a script shell.

        Each YES and CHECK is followed by `rendered` or `failed`.
        """
        mode = self.mode(url)
        if mode is not Render.AUTO:
            return RenderDecision.YES if mode is Render.ALWAYS else RenderDecision.NO
        name = group_of(parse(url))
        group = self._learned.groups.pop(name, None) or RenderGroup()
        self._learned.groups[name] = group
        self._learned.shorten()
        decide = group.decide(is_shell=needs_browser)
        self._has_changed = True
        if decide is not RenderDecision.NO:
            self._learning[url] = name, needs_browser, decide is RenderDecision.CHECK
            if len(self._learning) > _MAX_LEARNING:  # of pages that were abandoned
                del self._learning[next(iter(self._learning))]
        return decide

    def is_conditional(self, url: str) -> bool:
        """Return whether unchanged HTML means an unchanged page: not where scripts load its content."""
        mode = self.mode(url)
        if mode is not Render.AUTO:
            return mode is Render.NEVER
        group = self._learned.groups.get(group_of(parse(url)))
        return group is None or not group.needs_browser

    def rendered(self, url: str, what: Rendered) -> None:
        """Learn from the result of a rendered page."""
        group, is_shell, is_check = self._learning.pop(url, ("", False, False))
        for counts in (self.counts, self._learned.counts):
            counts.pages += 1
            counts.checks += is_check
            counts.gained += what.gains
            counts.requests += what.requests
            counts.seconds += what.seconds
        self._has_changed = True
        if group in self._learned.groups and self._learned.groups[group].learn(is_shell=is_shell, gains=what.gains):
            self._is_due = True
        if what.refused:
            self._note_refused(parse(url).site, what.refused)

    def failed(self, url: str, why: str) -> None:
        """Note that a page could not be rendered. Nothing is learned from that."""
        self._learning.pop(url, None)
        for counts in (self.counts, self._learned.counts):
            counts.failed += 1
        self._has_changed = True

    def skipped(self, url: str) -> None:
        """Note that a page was not rendered after all: it leads elsewhere, or got no slot. Nothing is learned or counted."""
        self._learning.pop(url, None)

    def keep(self, *, is_last: bool = False) -> None:
        """Store what was learned, if it changes decisions or the last write was a while ago; always at the end."""
        now = self._clock.monotonic()
        if not (self._is_due or (self._has_changed and (is_last or now - self._kept_at >= KEEP_EVERY_S))):
            return
        self._kept_at = now
        with suppress(StoreAway, StoreFull):  # retried later; a loss costs some pages to learn it again
            stored = learned_rendering(self._store)
            self._learned.take(stored)
            self._store.set_meta(RENDERING, self._written(stored.counts))
            self._learned.counts = RenderCounts()
            self._is_due = self._has_changed = False

    def _written(self, counts: RenderCounts) -> str:
        counts.add(self._learned.counts)
        whole = LearnedRendering(self._learned.groups, self._learned.refused, counts)
        return msgspec.json.encode(whole).decode()

    def _note_refused(self, site: str, refused: Mapping[str, str]) -> None:
        hosts = self._learned.refused.pop(site, {})
        self._learned.refused[site] = hosts
        for named, why in refused.items():
            host = named[:_LONGEST_HOST]
            if host not in hosts:
                if len(hosts) >= MOST_HOSTS:
                    continue
                self._is_due = True
            hosts[host] = why[:_LONGEST_REASON]
        self._learned.shorten()

    def _actions(self, url: Url) -> Actions | None:
        return self._space.actions.evaluate(url) if self._space.actions is not None else None


def learned_rendering(store: MetaStore) -> LearnedRendering:
    """Return what was learned in earlier runs; nothing where that cannot be read."""
    try:
        return msgspec.json.decode(store.get_meta(RENDERING) or "{}", type=LearnedRendering)
    except (msgspec.MsgspecError, RecursionError):
        return LearnedRendering()
