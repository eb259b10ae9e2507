"""Sessions of browsers, and how often a password may be tried.

A session is a random number in a cookie, and lives in the memory of the console: a restart ends it. Its CSRF token is in every form, and is
compared before anything is changed.
"""

from __future__ import annotations

import hmac
import secrets
from collections import OrderedDict, deque
from dataclasses import dataclass, field

from crawlspace.clock import Clock
from crawlspace.console.users import User

COOKIE = "crawlspace_console"
LONGEST_S = 12 * 3600
"""A session that has not been used for that long is over."""
MOST_SESSIONS = 5_000
FREE_ATTEMPTS = 5
"""Failed log-ins of one user, or from one address, before the next has to wait."""
LONGEST_WAIT_S = 15 * 60
_FIRST_WAIT_S = 10
MOST_FAILURES = 10_000
"""Names and addresses whose failures are remembered."""


@dataclass(slots=True)
class BrowserSession:
    """One browser. `user` is None before it has logged in."""

    id: str
    csrf: str
    used_at: float
    user: User | None = None
    messages: deque[str] = field(default_factory=lambda: deque(maxlen=10))
    """Sentences for the next page."""


class BrowserSessions:
    """The sessions of a console, the least recently used one first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sessions: OrderedDict[str, BrowserSession] = OrderedDict()

    def get(self, id: str | None) -> BrowserSession | None:
        """Return a session that is not over."""
        session = None if id is None else self._sessions.get(id)
        if session is None:
            return None
        now = self._clock.monotonic()
        if now - session.used_at > LONGEST_S:
            del self._sessions[session.id]
            return None
        session.used_at = now
        self._sessions.move_to_end(session.id)
        return session

    def new(self, user: User | None = None) -> BrowserSession:
        """Return a new session. Where there are too many, that which was not used for the longest time ends."""
        session = BrowserSession(secrets.token_urlsafe(32), secrets.token_urlsafe(32), self._clock.monotonic(), user)
        self._sessions[session.id] = session
        while len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return session

    def end(self, session: BrowserSession) -> None:
        self._sessions.pop(session.id, None)


def is_token_of(session: BrowserSession, token: str) -> bool:
    return hmac.compare_digest(session.csrf.encode(), token.encode())


@dataclass(slots=True)
class _Failures:
    number: int = 0
    until: float = 0.0


class Attempts:
    """Limits how often a password is tried: after a few failures of a name or an address, each has to wait twice as long as the one before."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: OrderedDict[str, _Failures] = OrderedDict()

    def wait_s(self, *keys: str) -> float:
        """Return the seconds until the next attempt; 0: now."""
        now = self._clock.monotonic()
        return max(0.0, *(self._failures[key].until - now for key in keys if key in self._failures), 0.0)

    def failed(self, *keys: str) -> None:
        for key in keys:
            failures = self._failures.setdefault(key, _Failures())
            self._failures.move_to_end(key)
            failures.number += 1
            if failures.number >= FREE_ATTEMPTS:
                wait = min(_FIRST_WAIT_S * 2.0 ** (failures.number - FREE_ATTEMPTS), LONGEST_WAIT_S)
                failures.until = self._clock.monotonic() + wait
        while len(self._failures) > MOST_FAILURES:
            self._failures.popitem(last=False)

    def succeeded(self, *keys: str) -> None:
        for key in keys:
            self._failures.pop(key, None)
