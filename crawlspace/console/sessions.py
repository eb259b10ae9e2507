"""Sessions of browsers, and how often a password or a token may be tried.

A session is a random number in a cookie, and lives in the memory of the console: a restart ends it. Its CSRF token is in every form, and is
compared before anything is changed.
"""

from __future__ import annotations

import hmac
import secrets
import threading
from collections import OrderedDict, deque
from dataclasses import dataclass, field

from crawlspace.clock import Clock
from crawlspace.console.users import User

COOKIE = "crawlspace_console"
LONGEST_S = 12 * 3600
"""A session that has not been used for that long is over."""
OLDEST_S = 7 * 86_400
"""A session is over after that time even if it is used, as by a page that is open and brings itself up to date."""
MOST_SESSIONS = 5_000
"""Sessions of users; and as many of browsers that have not logged in."""
MOST_OF_USER = 500
"""Sessions of one user."""
FREE_ATTEMPTS = 5
"""Failed attempts of one user, or from one address, before the next has to wait."""
LONGEST_WAIT_S = 15 * 60
_FIRST_WAIT_S = 10
FORGOTTEN_S = 4 * LONGEST_WAIT_S
"""Failures are forgotten after so long without another one."""
MOST_FAILURES = 10_000
"""Names and addresses whose failures are remembered."""


@dataclass(slots=True)
class BrowserSession:
    """One browser. `user` is None before it has logged in."""

    id: str
    csrf: str
    used_at: float
    began_at: float
    user: User | None = None
    entry: str = ""
    """What `Users.entry_of` had of the user at the log-in: the session ends when that changes."""
    messages: deque[str] = field(default_factory=lambda: deque(maxlen=10))
    """Sentences for the next page."""


class BrowserSessions:
    """The sessions of a console, the least recently used ones first. Those of users have their own room, which no stranger can fill."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._of_users: OrderedDict[str, BrowserSession] = OrderedDict()
        self._of_strangers: OrderedDict[str, BrowserSession] = OrderedDict()

    def get(self, id: str | None) -> BrowserSession | None:
        """Return a session that is not over."""
        session = None if id is None else self._of_users.get(id) or self._of_strangers.get(id)
        if session is None:
            return None
        now = self._clock.monotonic()
        if now - session.used_at > LONGEST_S or now - session.began_at > OLDEST_S:
            self.end(session)
            return None
        session.used_at = now
        self._like(session.user).move_to_end(session.id)
        return session

    def new(self, user: User | None = None, *, entry: str = "") -> BrowserSession:
        """Return a new session. Where there are too many like it, that which was not used for the longest time ends."""
        now = self._clock.monotonic()
        session = BrowserSession(secrets.token_urlsafe(32), secrets.token_urlsafe(32), now, now, user, entry)
        sessions = self._like(user)
        sessions[session.id] = session
        if len(sessions) > MOST_SESSIONS:
            sessions.popitem(last=False)
        if user is not None:
            own = [one for one in sessions.values() if one.user is not None and one.user.name == user.name]
            if len(own) > MOST_OF_USER:
                del sessions[own[0].id]
        return session

    def end(self, session: BrowserSession) -> None:
        self._like(session.user).pop(session.id, None)

    def _like(self, user: User | None) -> OrderedDict[str, BrowserSession]:
        return self._of_strangers if user is None else self._of_users


def is_token_of(session: BrowserSession, token: str) -> bool:
    return hmac.compare_digest(session.csrf.encode(), token.encode("utf-8", "replace"))


@dataclass(slots=True)
class _Failures:
    number: int = 0
    until: float = 0.0
    last_at: float = 0.0


class Attempts:
    """Limits how often a secret is tried: after a few failures of a name or an address, each has to wait twice as long as the one before.

    An attempt counts as failed from its beginning until it has succeeded, so that attempts at the same time are limited, too.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures: OrderedDict[str, _Failures] = OrderedDict()

    def begin(self, *keys: str) -> float:
        """Begin an attempt, which counts as a failure of each key; return 0, or the seconds until one may begin: then none has begun."""
        with self._lock:
            now = self._clock.monotonic()
            wait_s = max(0.0, *(self._failures[key].until - now for key in keys if key in self._failures), 0.0)
            if not wait_s:
                for key in keys:
                    self._count(key, now)
            return wait_s

    def take_back(self, key: str) -> None:
        """Count an attempt as none, because it has succeeded; the failures before it stay."""
        with self._lock:
            failures = self._failures.get(key)
            if failures is not None:
                failures.number -= 1
                failures.until = 0.0

    def forget(self, key: str) -> None:
        """Forget all failures of a key."""
        with self._lock:
            self._failures.pop(key, None)

    def _count(self, key: str, now: float) -> None:
        failures = self._failures.setdefault(key, _Failures())
        self._failures.move_to_end(key)
        if now - failures.last_at > FORGOTTEN_S:
            failures.number = 0
        failures.number += 1
        failures.last_at = now
        if failures.number >= FREE_ATTEMPTS:
            wait_s = min(_FIRST_WAIT_S * 2.0 ** (failures.number - FREE_ATTEMPTS), LONGEST_WAIT_S)
            failures.until = now + wait_s
        if len(self._failures) > MOST_FAILURES:
            self._failures.popitem(last=False)
