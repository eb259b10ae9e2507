"""Findings that an administrator should see besides the numbers: bounded lists kept in the store, so that `scrapy status` shows them.

They change nothing in the crawl. Where several workers share it, each adds its findings.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from crawlspace.clock import Clock
from crawlspace.crawl.traps import Trap, TrapWatch
from crawlspace.decision import Reason
from crawlspace.errors import StoreAway, StoreFull
from crawlspace.model import Held, State, UrlState
from crawlspace.outcome import Outcome
from crawlspace.rules.url_options import UrlFolding
from crawlspace.state.store import MetaStore, Store
from crawlspace.status import OUT_OF_SPACE, Status
from crawlspace.text import printable
from crawlspace.urls import MalformedUrl, is_route, join, parse

logger = logging.getLogger(__name__)

V = TypeVar("V")


FINDINGS = "findings"
"""The name of the value in the store."""
KEEP_EVERY_S = 60.0
MOST_EXAMPLES = 10
"""Sites with an example, for each status: an administrator looks at a few, and `scrapy urls` lists all."""
MOST_TRAPS = 20
MOST_SITES = 100
"""Sites with routes behind #."""
MOST_ROUTES = 1_000
LOGGED = frozenset({Status.READ_ERROR, Status.TLS_FAILED, Status.CUT_SHORT})
"""Errors logged with their detail, once for each site. Others are logged when their site is given up."""


class HashRoutes(msgspec.Struct, frozen=True):
    """Links of a site to itself whose part behind # is an address of its own to a program in the page: `#/about`, `#!about`."""

    count: int
    """Different ones that are not followed, MOST_ROUTES at most; 0 where all are followed."""
    example: str

    def as_json(self) -> dict[str, object]:
        return {"count": self.count, "example": printable(self.example)}


class Findings(msgspec.Struct, omit_defaults=True):
    """Findings as they are stored."""

    errors: dict[int, dict[str, str]] = msgspec.field(default_factory=dict)
    """By status: the URL of one error with a detail, by site, the newest last."""
    traps: dict[str, Trap] = msgspec.field(default_factory=dict)
    """By pattern, the newest last."""
    routes: dict[str, HashRoutes] = msgspec.field(default_factory=dict)
    """By site, the newest last."""


@dataclass(frozen=True, slots=True)
class ErrorExample:
    """An example of the errors with a status."""

    status: int
    site: str
    url: str
    detail: str

    @property
    def sentence(self) -> str:
        return f"{printable(self.url)}: {self.detail}"

    def as_json(self) -> dict[str, object]:
        return {"status": self.status, "url": printable(self.url), "detail": self.detail}


class RunFindings:
    """The findings of this run. Those of earlier runs stay in the store, as far as there is room."""

    def __init__(self, store: MetaStore, clock: Clock, *, folding: UrlFolding | None = None) -> None:
        """`folding` decides which routes behind # are followed; None: none is."""
        self._store = store
        self._clock = clock
        self._parse = parse if folding is None else folding.parse
        self.found = Findings()
        self._details: dict[tuple[int, str], str] = {}
        """By status and site, of the errors in `found`."""
        self._traps = TrapWatch()
        self._routes: dict[str, set[str]] = {}
        self._has_changed = False
        self._kept_at = clock.monotonic()

    def document(self, state: UrlState, outcome: Outcome) -> None:
        """Note traps and links to routes behind #."""
        links = outcome.links
        if links and (("#/" in (joined := "\n".join(links))) or "#!" in joined):
            self._note_routes(state, links, outcome.base or state.url)
        if state.state is not State.PENDING or Reason.NEEDS_BROWSER in outcome.left_out or "#" in state.url:
            return  # no rule could stop a trap of routes behind #, because the decision of their page applies to them
        trap = self._traps.page(state, outcome)
        if trap is not None:
            self.found.traps[trap.pattern] = trap
            while len(self.found.traps) > MOST_TRAPS:
                del self.found.traps[next(iter(self.found.traps))]
            self._has_changed = True
            logger.warning("%s", trap.sentence)

    def error(self, state: UrlState, outcome: Outcome) -> None:
        """Note an error that has a detail; log it, if it is the first of its kind at its site."""
        status = int(outcome.status)
        sites = self.found.errors.setdefault(status, {})
        before = sites.pop(state.site, None)
        if before is None and len(sites) >= MOST_EXAMPLES:
            oldest = next(iter(sites))
            del sites[oldest], self._details[status, oldest]
        sites[state.site], self._details[status, state.site] = state.url, outcome.detail
        self._has_changed = True
        if before is None and status in LOGGED:
            logger.warning("%s: %s (%d)", printable(state.url), outcome.detail, status)

    def _note_routes(self, state: UrlState, links: Sequence[str], base: str) -> None:
        routes = self._routes.get(state.site)
        if routes is None:
            if len(self._routes) >= MOST_SITES:
                return
            routes = self._routes[state.site] = set()
        for href in links:
            if len(routes) < MOST_ROUTES and is_route(href):
                try:
                    url = join(base, href)
                    target = self._parse(url)
                except MalformedUrl:
                    continue
                if target.site != state.site or url in routes:
                    continue
                if not target.fragment:
                    routes.add(url)
                elif state.site in self.found.routes:
                    continue
                self.found.routes[state.site] = HashRoutes(len(routes), url)
                self._has_changed = True

    def error_examples(self) -> Iterator[ErrorExample]:
        """Yield the examples of this run, the newest of each status first."""
        for status, sites in sorted(self.found.errors.items()):
            for site, url in reversed(sites.items()):
                yield ErrorExample(status, site, url, self._details[status, site])

    def keep(self, *, is_last: bool = False) -> None:
        """Store new findings from time to time, and always at the end."""
        now = self._clock.monotonic()
        if not self._has_changed or not (is_last or now - self._kept_at >= KEEP_EVERY_S):
            return
        self._kept_at = now
        with suppress(StoreAway, StoreFull):  # tried again later; nothing depends on it
            merged = merge(kept_findings(self._store), self.found)
            self._store.set_meta(FINDINGS, msgspec.json.encode(merged).decode())
            self._has_changed = False


def kept_findings(store: MetaStore) -> Findings:
    """Return the findings so far; none where they cannot be read."""
    try:
        return msgspec.json.decode(store.get_meta(FINDINGS) or "{}", type=Findings)
    except msgspec.MsgspecError:
        return Findings()


def kept_routes(store: MetaStore) -> dict[str, HashRoutes]:
    """Return the routes behind # that are not followed, by site."""
    return {site: one for site, one in kept_findings(store).routes.items() if one.count}


def kept_error_examples(store: Store) -> list[ErrorExample]:
    """Return the examples that still apply: the last fetch of each such URL ended in that error."""
    found = []
    for status, sites in sorted(kept_findings(store).errors.items()):
        for site, url in reversed(sites.items()):
            state = store.get(url)
            if state is not None and state.status == status and state.detail:
                found.append(ErrorExample(status, site, state.url, state.detail))
    return found


def kept_traps(store: Store) -> list[Trap]:
    """Return the traps that still apply, newest first: their example is known, and the rules don't exclude it."""
    found = []
    for trap in reversed(kept_findings(store).traps.values()):
        state = store.get(trap.example)
        if state is not None and state.status not in OUT_OF_SPACE and state.held is not Held.FOLDED:
            found.append(trap)
    return found


def merge(older: Findings, newer: Findings) -> Findings:
    """Return both together, within the limits; the newer ones have precedence."""
    errors = {
        status: _newest(older.errors.get(status, {}), newer.errors.get(status, {}), MOST_EXAMPLES)
        for status in older.errors.keys() | newer.errors.keys()
    }
    routes = {site: _more_routes(older.routes.get(site), newer.routes.get(site)) for site in [*older.routes, *newer.routes]}
    traps = _newest(older.traps, newer.traps, MOST_TRAPS)
    return Findings(errors, traps, dict(list(routes.items())[-MOST_SITES:]))


def _more_routes(older: HashRoutes | None, newer: HashRoutes | None) -> HashRoutes:
    """Return the one with more routes; the newer one if by that all are followed."""
    if newer is None or (older is not None and older.count > newer.count > 0):
        assert older is not None
        return older
    return newer


def _newest(older: Mapping[str, V], newer: Mapping[str, V], most: int) -> dict[str, V]:
    together = {**{key: value for key, value in older.items() if key not in newer}, **newer}
    return dict(list(together.items())[-most:])
