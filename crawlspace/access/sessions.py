"""The sessions of log-ins: which one requests carry, and how a page that looks logged out is interpreted.

Whether the session has ended or the page is not for this user is found out by one request to a page that was shown with a session before, and
that is not shown without one (`pages_to_check`). If that page is shown, the session is alive, and the answer is about its own page alone. If
not, somebody logs in, and the page is requested again. Where there is no page to find out by, one log-in is tried for the page; log-ins that
did not help are followed by a time without any, and pages that look logged out meanwhile are requested later.

Sessions are kept in the store, for the next run and for other workers.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from secrets import token_bytes

import msgspec

from crawlspace.cache import Recent
from crawlspace.clock import Clock
from crawlspace.config.access import SiteAccess
from crawlspace.config.secrets import Seal
from crawlspace.errors import SettingError, StoreAway, StoreFull
from crawlspace.state.store import MetaStore
from crawlspace.text import quoted

logger = logging.getLogger(__name__)

SESSIONS = "sessions"
"""Meta: the sessions by their entries of CRAWLSPACE_SITES."""
MOST_LOGINS, LOGINS_WITHIN_S = 20, 3_600
"""Log-ins of an entry that succeed, within that time. A token that is renewed because its time is over does not count."""
SCRYPT_COST = 1 << 14
MOST_TRIES = 4
"""Log-ins for one page, until it is requested later."""
_MOST_PAGES = 3
"""Pages of an entry by which its session is checked."""
_MOST_PUBLIC = 100
_MOST_OUT = 5
"""Pages that look logged out in a row, with two sessions, after which the log-in counts as refused though pages were shown before."""
_REMEMBERED = 10_000
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 30.0, 1_800.0
LONGEST_LOGIN_S = 240
_LONGEST_CLAIM_S = LONGEST_LOGIN_S + 60
"""After that others log in, where a process has ended while it did."""
_EARLY, _EARLY_S = 0.1, 60.0
"""A session is renewed so long before its end: that part of its time, and so many seconds at most."""
_LEAST_S = 5
"""A session is carried that long, even if it ends before: else one that lasts no second would be renewed without end."""


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
    """Times of the last successful log-ins that count (MOST_LOGINS)."""


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
    """Return a hash of all that is sent, which does not help to guess a password."""
    return hashlib.scrypt(msgspec.json.encode(sent), salt=bytes.fromhex(salt), n=SCRYPT_COST, r=8, p=1, dklen=16).hex()


def kept_sessions(store: MetaStore) -> dict[str, KeptSession]:
    """Return the sessions by their entries of CRAWLSPACE_SITES. Unreadable ones are left out, which causes a new log-in."""
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


@dataclass(frozen=True, slots=True)
class Carried:
    """The session that requests of an entry carry."""

    number: int
    content: str = field(repr=False)
    renewed_from: float | None = None
    """Time from which it is old enough for the next log-in."""


class NextStep(Enum):
    """The reaction to a page that looks logged out."""

    AGAIN = "again"
    """It is to be requested once more, with the session that there is then."""
    OWN = "own"
    """The page is not for this user, in any session."""
    LATER = "later"
    """Undecided: it is checked later, without a log-in now."""
    REFUSED = "refused"
    """No log-in gives a session."""


@dataclass(frozen=True, slots=True)
class CheckPage:
    """A page by which a session is checked."""

    url: str
    is_private: bool = False
    """Whether the page is known to require a log-in."""
    session: int = 0
    """The number of the last session with which it was shown; 0: of none that is known."""
    is_named: bool = False
    """Whether the settings name it for that."""


@dataclass(slots=True)
class _EntryState:
    """The session of an entry, as far as this process knows it."""

    carried: Carried | None = None
    unproven: int = 0
    is_lost: bool = False
    has_shown: bool = False
    """Whether a page was shown with this session."""
    has_ever_shown: bool = False
    """The same of any session of the entry."""
    useless_logins: int = 0
    """Log-ins in a row that did not help the page for which they were made."""
    pause_until: float = float("-inf")
    tries: Recent[int | str, int] = field(default_factory=lambda: Recent(_REMEMBERED))
    pages: dict[str, CheckPage] = field(default_factory=dict)
    public: Recent[str, str] = field(default_factory=lambda: Recent(_MOST_PUBLIC))
    """URLs of pages that are shown to everybody, so that no session is checked by them."""
    out: set[int | str] = field(default_factory=set)
    """Pages that have looked logged out since one was shown last, _MOST_OUT at most."""
    recent: tuple[int, ...] = ()
    """Times of the last successful log-ins that count, those of this process at least."""


class Sessions:
    """Times are Unix times in seconds."""

    def __init__(self, store: MetaStore, clock: Clock, seal: Seal) -> None:
        self._store = store
        self._clock = clock
        self._seal = seal
        self._entries: dict[str, _EntryState] = {}

    def current(self, access: SiteAccess) -> Carried | None:
        """Return the session that requests carry; None where a log-in is needed first."""
        entry = self._entry(access)
        carried = entry.carried
        if carried is None or entry.is_lost:
            return None
        is_old = carried.renewed_from is not None and self._clock.now() >= carried.renewed_from
        return None if is_old else carried

    def reload(self, access: SiteAccess) -> bool:
        """Read a session that another process has got meanwhile; return whether there is one."""
        entry = self._entry(access)
        kept = self._kept().get(access.pattern)
        if kept is None or (entry.carried is not None and kept.number <= entry.carried.number):
            return False
        return self._take(entry, kept, access)

    def claim(self, access: SiteAccess) -> bool:
        """Return whether this process is to log in; another one may be doing that. If it is, `release` must follow."""
        try:
            return self._store.claim(f"login {access.pattern}", seconds=_LONGEST_CLAIM_S)
        except (StoreAway, StoreFull):
            return True

    def release(self, access: SiteAccess) -> None:
        """End the claim of this process to log in."""
        with suppress(StoreAway, StoreFull):
            self._store.end_claim(f"login {access.pattern}")

    def add(self, access: SiteAccess, content: str, *, lasts_s: float | None = None, landed: str = "") -> Carried:
        """Keep the session that a log-in has given; `landed` is the page that was shown after it, if any."""
        entry, kept, now = self._entry(access), self._kept(), int(self._clock.now())
        last = kept.get(access.pattern)
        number = max(0 if entry.carried is None else entry.carried.number, 0 if last is None else last.number) + 1
        expires = None if lasts_s is None else now + int(lasts_s)
        entry.unproven += 1
        is_renewal = entry.carried is not None and not entry.is_lost  # it has expired, and no page has shown it to be ended
        entry.recent = (*self._recent(entry, last), *(() if is_renewal else (now,)))[-MOST_LOGINS:]
        salt = token_bytes(16).hex()
        closed, mark = self._seal.closed(content), mark_of(access.sent(), salt)
        one = KeptSession(number, now, closed, expires, entry.unproven, salt, mark, _known_pages(entry), entry.recent)
        kept[access.pattern] = one
        carried = self._carry(entry, one, content)
        if landed and landed not in entry.pages:
            self._add(entry, CheckPage(landed, session=number))
        self._keep(kept)
        return carried

    def next_login_in(self, access: SiteAccess) -> float:
        """Return in how many seconds the next log-in is allowed, after so many that have succeeded."""
        now = self._clock.now()
        at = next_login_at(self._recent(self._entry(access), self._kept().get(access.pattern)), now=now)
        return 0.0 if at is None else at - now

    def update(self, access: SiteAccess, content: str) -> None:
        """Keep what a site has changed in a session, as by a new cookie."""
        entry, kept = self._entry(access), self._kept()
        last = kept.get(access.pattern)
        if entry.carried is None or last is None or last.number != entry.carried.number:
            return
        is_same = entry.carried.content == content and last.unproven == entry.unproven
        pages = last.pages if is_same and not set(last.pages) - set(entry.pages) else _known_pages(entry)
        if is_same and pages == last.pages:
            return
        entry.carried = Carried(last.number, content, entry.carried.renewed_from)
        closed = self._seal.closed(content)
        kept[access.pattern] = msgspec.structs.replace(last, content=closed, unproven=entry.unproven, pages=pages)
        self._keep(kept)

    def is_shown(self, access: SiteAccess, number: int) -> bool:
        """Return whether this process was shown a page with that session."""
        entry = self._entry(access)
        return entry.carried is not None and entry.carried.number == number and entry.has_shown

    def is_current(self, access: SiteAccess, number: int) -> bool:
        """Return whether requests carry that session, or would if none had been sent since."""
        entry = self._entry(access)
        return not entry.is_lost and (entry.carried is None or entry.carried.number == number)

    def has_tried(self, access: SiteAccess, page: int | str) -> bool:
        """Return whether there was a log-in for that page, which has not helped yet."""
        return bool(self._entry(access).tries.get(page))

    def note_shown(self, access: SiteAccess, page: int | str, number: int, *, url: str = "") -> None:
        """Note that a page was shown to a request with that session; `url`: its own, where it can be requested again."""
        entry = self._entry(access)
        if entry.carried is None or entry.carried.number != number:
            return
        entry.has_shown = entry.has_ever_shown = True
        entry.out.clear()
        if url and ((known := entry.pages.get(url)) is None or known.session != number):
            self._add(entry, CheckPage(url, known is not None and known.is_private, number))
        if entry.unproven:
            entry.unproven = 0
            self.update(access, entry.carried.content)
        if entry.tries.get(page) is not None:
            entry.tries.drop(page)
            entry.useless_logins, entry.pause_until = 0, float("-inf")

    def pages_to_check(self, access: SiteAccess) -> list[CheckPage]:
        """Return pages by which the session may be checked, the best first."""
        check = None if access.session is None else access.session.check
        best = sorted(self._entry(access).pages.values(), key=_worth, reverse=True)
        return [*([] if check is None else [CheckPage(check, is_private=True, is_named=True)]), *best]

    def is_public(self, access: SiteAccess, url: str) -> bool:
        """Return whether a page is known to be shown to everybody."""
        return self._entry(access).public.get(url) is not None

    def note_page(self, access: SiteAccess, url: str, *, is_private: bool) -> None:
        """Note whether a page is for those alone who are logged in."""
        entry = self._entry(access)
        known = entry.pages.pop(url, None)
        if is_private:
            self._add(entry, CheckPage(url, is_private=True, session=0 if known is None else known.session))
        else:
            entry.public.put(url, url)

    def drop_page(self, access: SiteAccess, url: str) -> None:
        """Check no session by a page any more."""
        self._entry(access).pages.pop(url, None)

    def note_logged_out(self, access: SiteAccess, page: int | str) -> None:
        """Note that a page looks logged out, with a session that may be alive."""
        out = self._entry(access).out
        if len(out) < _MOST_OUT:
            out.add(page)

    def next_step(self, access: SiteAccess, page: int | str, number: int, *, is_alive: bool | None) -> NextStep:
        """Return the reaction to a page that looks logged out for a request with that session.

        `is_alive`: whether the session is, as another page shows it; None: not known.
        """
        if not self.is_current(access, number):
            return NextStep.AGAIN  # another page has shown it before
        entry = self._entry(access)
        if is_alive:
            entry.tries.drop(page)
            return NextStep.OWN
        self.note_logged_out(access, page)
        tries = entry.tries.get(page) or 0
        is_unsure = is_alive is None and entry.has_ever_shown and len(entry.out) < _MOST_OUT
        if entry.unproven >= 2:
            return NextStep.LATER if is_unsure else NextStep.REFUSED
        if tries >= (1 if is_unsure else MOST_TRIES):
            entry.tries.drop(page)
            entry.useless_logins += 1
            pause_s = min(_FIRST_PAUSE_S * 2 ** (entry.useless_logins - 1), _LONGEST_PAUSE_S)
            entry.pause_until = self._clock.monotonic() + pause_s
            return NextStep.LATER
        if is_unsure and self._clock.monotonic() < entry.pause_until:
            return NextStep.LATER
        entry.tries.put(page, tries + 1)
        entry.is_lost = True
        return NextStep.AGAIN

    def _add(self, entry: _EntryState, page: CheckPage) -> None:
        """Keep a page to check by, in place of one that was shown with the oldest session."""
        if entry.public.get(page.url) is not None:
            return
        if page.url not in entry.pages and len(entry.pages) >= _MOST_PAGES:
            oldest = min(entry.pages.values(), key=lambda one: one.session)
            if oldest.session >= page.session:
                return
            del entry.pages[oldest.url]
        entry.pages[page.url] = page

    def _recent(self, entry: _EntryState, last: KeptSession | None) -> tuple[int, ...]:
        """Return when the last log-ins succeeded that count, in this process or another one."""
        known = entry.recent, () if last is None else last.recent
        return max((within_time(times, self._clock.now()) for times in known), key=len)

    def _entry(self, access: SiteAccess) -> _EntryState:
        entry = self._entries.get(access.pattern)
        if entry is None:
            entry = self._entries[access.pattern] = _EntryState()
            if (kept := self._kept().get(access.pattern)) is not None:
                self._take(entry, kept, access)
                entry.unproven = 0  # what an earlier run has tried is no attempt of this one
        return entry

    def _take(self, entry: _EntryState, kept: KeptSession, access: SiteAccess) -> bool:
        try:
            if kept.mark != mark_of(access.sent(), kept.salt):
                return False
            content = self._seal.opened(kept.content)
        except SettingError:  # a secret that cannot be read any more: the next log-in reports it
            return False
        is_proven = kept.unproven == 0
        for url in kept.pages:
            if url not in entry.pages:
                self._add(entry, CheckPage(url, session=kept.number if is_proven else 0))
        entry.has_ever_shown = entry.has_ever_shown or is_proven or bool(kept.pages)
        if content is None:
            return False
        if not is_readable(content, has_token=access.session is not None and access.session.has_token):
            logger.warning("%s", unreadable(access.where))
            return False
        self._carry(entry, kept, content)
        entry.unproven = kept.unproven
        return True

    def _carry(self, entry: _EntryState, kept: KeptSession, content: str) -> Carried:
        renewed_from = None
        if kept.expires is not None:
            early_s = min(_EARLY_S, (kept.expires - kept.since) * _EARLY)
            renewed_from = max(kept.expires - early_s, kept.since + _LEAST_S)
        carried = entry.carried = Carried(kept.number, content, renewed_from)
        entry.is_lost = entry.has_shown = False
        return carried

    def _kept(self) -> dict[str, KeptSession]:
        try:
            return kept_sessions(self._store)
        except StoreAway:
            return {}

    def _keep(self, kept: dict[str, KeptSession]) -> None:
        with suppress(StoreAway, StoreFull):  # this process has it; others log in for themselves
            self._store.set_meta(SESSIONS, msgspec.json.encode(kept).decode())


def _worth(page: CheckPage) -> tuple[bool, int]:
    return page.is_private, page.session


def _known_pages(entry: _EntryState) -> tuple[str, ...]:
    """Return the URLs of the pages by which the next run may check, the best first."""
    return tuple(page.url for page in sorted(entry.pages.values(), key=_worth, reverse=True) if page.session)
