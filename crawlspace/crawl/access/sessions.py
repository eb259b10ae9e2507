"""The sessions of log-ins: which one requests carry, and what it means when a page looks as if nobody were logged in.

A page that looks so is requested again with a new session. If it still does, either that session has ended as well, or the page is not for
this user. It is the page where others were shown with the same session meanwhile, and where it has been tried several times. Log-ins that did
not help are followed by a time without any, so that pages of that kind cost few of them; what looks logged out meanwhile waits.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from secrets import token_bytes
from typing import Protocol

import msgspec

from crawlspace.cache import Recent
from crawlspace.clock import Clock
from crawlspace.config.session_seal import Seal
from crawlspace.config.site_access import SiteAccess
from crawlspace.errors import SettingError, StoreAway, StoreFull

logger = logging.getLogger(__name__)

SESSIONS = "sessions"
"""Meta: the sessions by their entries of CRAWLSPACE_SITES."""
MOST_TRIES = 4
"""Of a page, each with another session."""
_REMEMBERED = 10_000
_COST = 1 << 14
"""Of scrypt."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 30.0, 1_800.0
LONGEST_LOGIN_S = 240
_LONGEST_CLAIM_S = LONGEST_LOGIN_S + 60
"""Others log in after that, where a process has ended while it did."""
_EARLY, _EARLY_S = 0.1, 60.0
"""A session is renewed so long before its end: that part of its time, and so many seconds at most."""
_LEAST_S = 5
"""A session is carried that long, even if it ends before: else one that lasts no second would be renewed without end."""


class SessionMeta(Protocol):
    def get_meta(self, name: str) -> str | None: ...
    def set_meta(self, name: str, value: str) -> None: ...
    def claim(self, name: str, *, seconds: int) -> bool: ...
    def end_claim(self, name: str) -> None: ...


class KeptSession(msgspec.Struct, frozen=True):
    """A session in the store."""

    number: int
    """Counts the log-ins of an entry."""
    since: int
    """Unix time, in seconds."""
    content: str
    """The cookies or the token, as the seal makes it."""
    expires: int | None = None
    unproven: int = 1
    """Log-ins in a row of which no page was shown, this one included."""
    salt: str = ""
    mark: str = ""
    """Of the log-in that has given it, as a hash: the session of another user is not carried."""


@dataclass(frozen=True, slots=True)
class Carried:
    """The session that requests of an entry carry."""

    number: int
    content: str = field(repr=False)
    renewed_from: float | None = None
    """When it is old enough for the next log-in."""


class LookedOut(Enum):
    """What follows when a page looks as if nobody were logged in."""

    AGAIN = "again"
    """It is to be requested once more, with the session that there is then."""
    OWN = "own"
    """It is not for this user, whatever the session."""
    LATER = "later"
    """Whether it is, is to be seen later; nobody logs in for it now."""
    REFUSED = "refused"
    """No log-in gives a session."""


@dataclass(slots=True)
class _LoginSeen:
    """What this process knows of the session of an entry."""

    carried: Carried | None = None
    unproven: int = 0
    is_lost: bool = False
    shown_at: float = float("-inf")
    """When the last request was sent that was shown a page with this session. Monotonic, in seconds."""
    in_vain: int = 0
    """Log-ins in a row that did not help the page for which they were made."""
    pause_until: float = float("-inf")
    tries: Recent[int | str, int] = field(default_factory=lambda: Recent(_REMEMBERED))


class Sessions:
    """Times are Unix times in seconds, but for `sent`, which is on the monotonic clock."""

    def __init__(self, store: SessionMeta, clock: Clock, seal: Seal) -> None:
        self._store = store
        self._clock = clock
        self._seal = seal
        self._entries: dict[str, _LoginSeen] = {}

    def current(self, access: SiteAccess) -> Carried | None:
        """Return the session to be carried; None where somebody has to log in first."""
        entry = self._entry(access)
        carried = entry.carried
        if carried is None or entry.is_lost:
            return None
        is_old = carried.renewed_from is not None and self._clock.now() >= carried.renewed_from
        return None if is_old else carried

    def reload(self, access: SiteAccess) -> bool:
        """Take a session that another process has got meanwhile; return whether there is one."""
        entry = self._entry(access)
        kept = self._kept().get(access.pattern)
        if kept is None or (entry.carried is not None and kept.number <= entry.carried.number):
            return False
        return self._take(entry, kept, access)

    def begin(self, access: SiteAccess) -> bool:
        """Return whether this process is to log in; another one may be doing that. If it is, `end` must follow."""
        try:
            return self._store.claim(f"login {access.pattern}", seconds=_LONGEST_CLAIM_S)
        except (StoreAway, StoreFull):
            return True

    def end(self, access: SiteAccess) -> None:
        """This process does not log in any more."""
        with suppress(StoreAway, StoreFull):
            self._store.end_claim(f"login {access.pattern}")

    def took(self, access: SiteAccess, content: str, *, lasts_s: float | None = None) -> Carried:
        """Keep the session that a log-in has given."""
        entry, kept, now = self._entry(access), self._kept(), int(self._clock.now())
        last = kept.get(access.pattern)
        number = max(0 if entry.carried is None else entry.carried.number, 0 if last is None else last.number) + 1
        expires = None if lasts_s is None else now + int(lasts_s)
        entry.unproven += 1
        salt = token_bytes(16).hex()
        closed, mark = self._seal.closed(content), mark_of(access.sent(), salt)
        one = kept[access.pattern] = KeptSession(number, now, closed, expires, entry.unproven, salt, mark)
        carried = self._carry(entry, one, content)
        self._keep(kept)
        return carried

    def changed(self, access: SiteAccess, content: str) -> None:
        """Keep what a site has changed in a session, as by a new cookie."""
        entry, kept = self._entry(access), self._kept()
        last = kept.get(access.pattern)
        if (
            entry.carried is not None
            and entry.carried.content == content
            and last is not None
            and last.unproven == entry.unproven
        ):
            return
        if entry.carried is None or last is None or last.number != entry.carried.number:
            return
        entry.carried = Carried(last.number, content, entry.carried.renewed_from)
        kept[access.pattern] = msgspec.structs.replace(last, content=self._seal.closed(content), unproven=entry.unproven)
        self._keep(kept)

    def is_shown(self, access: SiteAccess, number: int) -> bool:
        """Return whether this process was shown a page with that session."""
        entry = self._entry(access)
        return entry.carried is not None and entry.carried.number == number and entry.shown_at > float("-inf")

    def has_tried(self, access: SiteAccess, page: int | str) -> bool:
        """Return whether somebody has logged in for that page, which was of no use yet."""
        return bool(self._entry(access).tries.get(page))

    def shown(self, access: SiteAccess, page: int | str, number: int, *, sent: float) -> None:
        """A page was shown to a request with that session."""
        entry = self._entry(access)
        if entry.carried is None or entry.carried.number != number:
            return
        entry.shown_at = max(entry.shown_at, sent)
        if entry.unproven:
            entry.unproven = 0
            self.changed(access, entry.carried.content)
        if entry.tries.get(page) is not None:
            entry.tries.drop(page)
            entry.in_vain, entry.pause_until = 0, float("-inf")

    def looked_out(self, access: SiteAccess, page: int | str, number: int, *, sent: float) -> LookedOut:
        """Return what follows for a page that looks as if a request with that session were not logged in."""
        entry = self._entry(access)
        if entry.carried is not None and (entry.carried.number != number or entry.is_lost):
            return LookedOut.AGAIN  # another page has shown it before
        tries = entry.tries.get(page) or 0
        is_alive = entry.shown_at > sent
        if tries >= MOST_TRIES or (tries >= 2 and is_alive):
            entry.tries.drop(page)
            entry.in_vain += 1
            pause_s = min(_FIRST_PAUSE_S * 2 ** (entry.in_vain - 1), _LONGEST_PAUSE_S)
            entry.pause_until = self._clock.monotonic() + pause_s
            return LookedOut.OWN
        if self._clock.monotonic() < entry.pause_until:
            return LookedOut.LATER
        if entry.unproven >= 2:
            return LookedOut.REFUSED
        entry.tries.put(page, tries + 1)
        entry.is_lost = True
        return LookedOut.AGAIN

    def _entry(self, access: SiteAccess) -> _LoginSeen:
        entry = self._entries.get(access.pattern)
        if entry is None:
            entry = self._entries[access.pattern] = _LoginSeen()
            if (kept := self._kept().get(access.pattern)) is not None:
                self._take(entry, kept, access)
                entry.unproven = 0  # what an earlier run has tried is no attempt of this one
        return entry

    def _take(self, entry: _LoginSeen, kept: KeptSession, access: SiteAccess) -> bool:
        try:
            content = self._seal.opened(kept.content)
            if content is None or kept.mark != mark_of(access.sent(), kept.salt):
                return False
        except SettingError:  # a secret that cannot be read any more: whoever logs in gets to know
            return False
        self._carry(entry, kept, content)
        entry.unproven = kept.unproven
        return True

    def _carry(self, entry: _LoginSeen, kept: KeptSession, content: str) -> Carried:
        renewed_from = None
        if kept.expires is not None:
            early_s = min(_EARLY_S, (kept.expires - kept.since) * _EARLY)
            renewed_from = max(kept.expires - early_s, kept.since + _LEAST_S)
        carried = entry.carried = Carried(kept.number, content, renewed_from)
        entry.is_lost, entry.shown_at = False, float("-inf")
        return carried

    def _kept(self) -> dict[str, KeptSession]:
        try:
            return kept_sessions(self._store)
        except StoreAway:
            return {}

    def _keep(self, kept: dict[str, KeptSession]) -> None:
        with suppress(StoreAway, StoreFull):  # this process has it; others log in for themselves
            self._store.set_meta(SESSIONS, msgspec.json.encode(kept).decode())


def mark_of(sent: Sequence[str], salt: str) -> str:
    """Return a hash of all that is sent; nobody who can read it can guess a password by it."""
    return hashlib.scrypt(msgspec.json.encode(sent), salt=bytes.fromhex(salt), n=_COST, r=8, p=1, dklen=16).hex()


def kept_sessions(store: SessionMeta) -> dict[str, KeptSession]:
    """Return the sessions by their entries of CRAWLSPACE_SITES."""
    try:
        return msgspec.json.decode(store.get_meta(SESSIONS) or "{}", type=dict[str, KeptSession])
    except (msgspec.MsgspecError, RecursionError):
        return {}
