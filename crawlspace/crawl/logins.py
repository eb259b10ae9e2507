"""The log-ins of a collection's sites: which have been refused, so that nothing more is asked of these sites until that can have changed.

A refused log-in is noted in the store, so that no other worker and no later run tries it again: accounts get locked. It may be tried again
when its secrets are others, or when `scrapy login` has seen it work.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from contextlib import suppress
from secrets import token_bytes
from typing import Protocol

import msgspec

from crawlspace.clock import Clock
from crawlspace.config.site_access import SiteAccess
from crawlspace.config.sites import SiteTable
from crawlspace.errors import StoreAway
from crawlspace.printable import quoted

logger = logging.getLogger(__name__)

REFUSED = "refused_logins"
"""Meta: the refused log-ins, by their entries of CRAWLSPACE_SITES."""
_COST = 1 << 14
"""Of scrypt, so that nobody who can read the store can guess a password by its mark."""


class RefusedLogin(msgspec.Struct, frozen=True):
    """A log-in that a site has refused."""

    since: int
    """Unix time, in seconds."""
    site: str
    why: str
    salt: str
    mark: str
    """What is sent, as a hash: other secrets have another one."""

    def sentence(self, pattern: str) -> str:
        """Return what it means; `pattern` is the entry of CRAWLSPACE_SITES."""
        return (
            f"the log-in of CRAWLSPACE_SITES[{quoted(pattern)}] is refused by {self.site} ({self.why}): nothing is asked of its sites and"
            " their URLs wait, until it is another one or `scrapy login` has seen it work"
        )


class LoginMeta(Protocol):
    def get_meta(self, name: str) -> str | None: ...
    def set_meta(self, name: str, value: str) -> None: ...


class Logins:
    """What requests to sites carry, and the sites that are not to be asked. Raises StoreError, but waits for a server that is away."""

    def __init__(self, sites: SiteTable, store: LoginMeta, clock: Clock) -> None:
        """Raises SettingError for a secret that cannot be read."""
        self._sites = sites
        self._store = store
        self._clock = clock
        self._headers = {access.pattern: access.headers() for access in sites.accesses}
        self._paused: set[str] = set()
        self._unwritten: dict[str, RefusedLogin] = {}
        """Those that could not be noted yet."""
        self._outdated: set[RefusedLogin] = set()
        """Of other secrets than those that are sent now."""
        self._refused: dict[str, RefusedLogin] = {}
        self._refused = self._read()
        if self._outdated:
            note_refused(store, self._refused)
        for pattern, one in self._refused.items():
            logger.warning("%s", one.sentence(pattern))

    def __bool__(self) -> bool:
        return bool(self._headers)

    def access(self, site: str) -> SiteAccess | None:
        host, _, port = site.rpartition(":")
        return self._sites.of(host, int(port)).access

    def headers(self, site: str, *, scheme: str) -> Mapping[str, str]:
        """Return what a request to a site carries."""
        access = self.access(site)
        if access is None or (scheme != "https" and not access.allow_plain_http):
            return {}
        return self._headers[access.pattern]

    def logs_in(self, site: str) -> bool:
        """Whether a site has a log-in."""
        access = self.access(site)
        return access is not None and bool(access.kind)

    def is_paused(self, site: str) -> bool:
        """Return whether nothing is to be asked of a site."""
        access = self.access(site) if self._refused else None
        if access is None or access.pattern not in self._refused:
            return False
        self._paused.add(site)
        return True

    def refused(self, site: str, why: str) -> None:
        """Note that a site has refused its log-in."""
        access = self.access(site)
        if access is None:
            return
        self._paused.add(site)
        if access.pattern in self._refused:
            return
        salt = token_bytes(16).hex()
        one = RefusedLogin(int(self._clock.now()), site, why, salt, self._mark(access.pattern, salt))
        self._refused[access.pattern] = one
        self._unwritten[access.pattern] = one
        logger.error("%s", one.sentence(access.pattern))
        with suppress(StoreAway):
            self._write()

    def look(self) -> set[str]:
        """Learn of log-ins that were refused elsewhere; return sites that may be asked again, because `scrapy login` has seen theirs work."""
        if not self._headers:
            return set()
        try:
            self._write()
            self._refused = self._read()
        except StoreAway:
            return set()
        back = {site for site in self._paused if not self.is_paused(site)}
        self._paused -= back
        return back

    def _write(self) -> None:
        if self._unwritten:
            note_refused(self._store, {**refused_logins(self._store), **self._unwritten})
            self._unwritten = {}

    def _read(self) -> dict[str, RefusedLogin]:
        """Return the refused log-ins that are as those that are sent now."""
        found = {}
        for pattern, one in refused_logins(self._store).items():
            if self._refused.get(pattern) == one:
                found[pattern] = one
            elif one not in self._outdated:
                if pattern in self._headers and one.mark == self._mark(pattern, one.salt):
                    found[pattern] = one
                else:
                    self._outdated.add(one)
        return found

    def _mark(self, pattern: str, salt: str) -> str:
        sent = msgspec.json.encode(sorted(self._headers[pattern].items()))
        return hashlib.scrypt(sent, salt=bytes.fromhex(salt), n=_COST, r=8, p=1, dklen=16).hex()


def refused_logins(store: LoginMeta) -> dict[str, RefusedLogin]:
    """Return the refused log-ins by their entries of CRAWLSPACE_SITES."""
    try:
        return msgspec.json.decode(store.get_meta(REFUSED) or "{}", type=dict[str, RefusedLogin])
    except msgspec.MsgspecError:
        return {}  # they are noted anew when they are refused


def note_refused(store: LoginMeta, refused: Mapping[str, RefusedLogin]) -> None:
    """Have these be the refused log-ins."""
    store.set_meta(REFUSED, msgspec.json.encode(refused).decode() if refused else "")


def forget_refused(store: LoginMeta, pattern: str) -> bool:
    """Have a log-in be tried again; return whether it was refused before."""
    refused = refused_logins(store)
    if refused.pop(pattern, None) is None:
        return False
    note_refused(store, refused)
    return True
