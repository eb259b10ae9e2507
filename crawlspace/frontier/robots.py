"""What a site's robots.txt says, as last read (RFC 9309): kept in the store, parsed once, asked for again after its time to live."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from protego import Protego

from crawlspace.clock import Clock
from crawlspace.state.store import RobotsEntry

MAX_SIZE = 500 * 1024
"""Bytes of a robots.txt that are read; RFC 9309 asks for at least 500 KiB."""
MAX_REDIRECTS = 5
MOMENT_S = 5.0
_KEPT = 2000


class RobotsStore(Protocol):
    def robots(self, site: str, scheme: str) -> RobotsEntry | None: ...
    def save_robots(self, entry: RobotsEntry) -> None: ...


class Answer(Enum):
    ALLOWED = auto()
    FORBIDDEN = auto()
    UNKNOWN = auto()
    """robots.txt must be read first."""


@dataclass(slots=True)
class _Parsed:
    rules: Protego | None
    """None: no limits."""
    expires_at: float


class Robots:
    """Answers whether a URL may be fetched, for one user agent."""

    def __init__(self, store: RobotsStore, *, clock: Clock, user_agent: str, ttl_s: float) -> None:
        self._store = store
        self._clock = clock
        self._user_agent = user_agent
        self._ttl_s = ttl_s
        self._parsed: OrderedDict[tuple[str, str], _Parsed] = OrderedDict()

    def ask(self, url: str, *, site: str) -> Answer:
        """Whether the URL of that site may be fetched, as far as its robots.txt is known and fresh."""
        scheme = url.split(":", 1)[0]
        parsed = self._parsed.get((site, scheme)) or self._load(site, scheme)
        if parsed is None or parsed.expires_at <= self._clock.now():
            return Answer.UNKNOWN
        if parsed.rules is None or parsed.rules.can_fetch(url, self._user_agent):
            return Answer.ALLOWED
        return Answer.FORBIDDEN

    def save(self, site: str, scheme: str, *, status: int, body: str) -> bool:
        """Keep what was read. Returns False when the site must wait: a server error, or no answer (status 741)."""
        if not (200 <= status < 300 or 400 <= status < 500) or status == 429:
            return False
        entry = RobotsEntry(site, scheme, status, body[:MAX_SIZE] if status < 300 else "", round(self._clock.now()))
        self._store.save_robots(entry)
        self._keep(entry)
        return True

    def pass_over(self, site: str, scheme: str) -> None:
        """There is no host to ask. Not kept: after a moment it is asked again."""
        self._parsed[site, scheme] = _Parsed(None, self._clock.now() + MOMENT_S)

    def _load(self, site: str, scheme: str) -> _Parsed | None:
        entry = self._store.robots(site, scheme)
        return self._keep(entry) if entry is not None else None

    def _keep(self, entry: RobotsEntry) -> _Parsed:
        rules = Protego.parse(entry.body) if entry.body.strip() else None
        ahead = entry.fetched_at > self._clock.now() + MOMENT_S  # the clock has been set back since: it is read again
        parsed = _Parsed(rules, 0.0 if ahead else entry.fetched_at + self._ttl_s)
        self._parsed[entry.site, entry.scheme] = parsed
        while len(self._parsed) > _KEPT:
            self._parsed.popitem(last=False)
        return parsed
