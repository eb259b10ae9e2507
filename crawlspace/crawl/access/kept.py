"""Sessions as they are kept in a store, for the next run and for other workers."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from typing import Protocol

import msgspec

from crawlspace.printable import quoted

logger = logging.getLogger(__name__)

SESSIONS = "sessions"
"""Meta: the sessions by their entries of CRAWLSPACE_SITES."""
MOST_LOGINS, LOGINS_WITHIN_S = 20, 3_600
"""Log-ins of an entry that succeed, within that time. A token that is renewed because its time is over does not count."""
_COST = 1 << 14
"""Of scrypt."""


class KeptCookie(msgspec.Struct, frozen=True, array_like=True):
    """A cookie (RFC 6265, 5.3)."""

    name: str
    value: str | None
    domain: str
    domain_specified: bool
    path: str
    secure: bool
    expires: int | None
    http_only: bool = True
    """No script may see it; so where that is not known."""
    same_site: str = ""
    """As written; empty where that is not known."""


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
    pages: tuple[str, ...] = ()
    """The URLs of pages that were shown with this session, if it is proven, or else with an earlier one of this log-in."""
    recent: tuple[int, ...] = ()
    """When the last log-ins succeeded that count (MOST_LOGINS)."""


def is_readable(content: str, *, has_token: bool) -> bool:
    """Return whether requests can carry what is kept of a session: the token, or the cookies."""
    try:
        if has_token:
            return isinstance(msgspec.json.decode(content, type=dict[str, str]).get("token"), str)
        msgspec.json.decode(content, type=list[KeptCookie])
    except msgspec.MsgspecError:
        return False
    return True


def mark_of(sent: Sequence[str], salt: str) -> str:
    """Return a hash of all that is sent; nobody who can read it can guess a password by it."""
    return hashlib.scrypt(msgspec.json.encode(sent), salt=bytes.fromhex(salt), n=_COST, r=8, p=1, dklen=16).hex()


def kept_sessions(store: SessionMeta) -> dict[str, KeptSession]:
    """Return the sessions by their entries of CRAWLSPACE_SITES. What cannot be read is left out: somebody logs in again."""
    found = {}
    try:
        for pattern, one in msgspec.json.decode(store.get_meta(SESSIONS) or "{}", type=dict[str, msgspec.Raw]).items():
            try:
                found[pattern] = msgspec.json.decode(one, type=KeptSession)
            except (msgspec.MsgspecError, RecursionError):
                logger.warning("%s", unreadable(f"CRAWLSPACE_SITES[{quoted(pattern)}]"))
    except (msgspec.MsgspecError, RecursionError):
        logger.warning("%s", unreadable("CRAWLSPACE_SITES"))
    return found


def unreadable(where: str) -> str:
    """Return the sentence for a session that is kept and cannot be carried; `where` is its entry."""
    return f"the session that is kept for {where} cannot be read, and counts as none: somebody logs in again"


def next_login_at(recent: Sequence[int], *, now: float) -> int | None:
    """Return when the next log-in is allowed, after those that have succeeded at these times; None: at once."""
    counted = within_time(recent, now)
    return None if len(counted) < MOST_LOGINS else counted[-MOST_LOGINS] + LOGINS_WITHIN_S


def within_time(recent: Sequence[int], now: float) -> tuple[int, ...]:
    return tuple(at for at in recent if 0 <= now - at < LOGINS_WITHIN_S)
