"""The log-ins of a collection's sites: what requests carry, and which log-ins are refused or fail, so that their sites are paused.

A refused log-in is noted in the store, so that no other worker and no later run tries it again: accounts get locked. It may be tried again
when its secrets are others, or when `scrapy login` has seen it work.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from math import inf
from secrets import token_bytes
from typing import Self, TypeVar

import msgspec

from crawlspace.access.sessions import MOST_LOGINS, Sessions, kept_sessions, mark_of, next_login_at
from crawlspace.clock import Clock, local_time
from crawlspace.config.access import CERTIFICATE, SiteAccess
from crawlspace.config.collection import Collection
from crawlspace.config.secrets import Seal
from crawlspace.config.sites import SiteTable
from crawlspace.errors import StoreAway, StoreFull
from crawlspace.frontier.frontier import Frontier
from crawlspace.state.store import MetaStore
from crawlspace.text import printable, quoted
from crawlspace.urls import DEFAULT_PORTS, MalformedUrl, parse

logger = logging.getLogger(__name__)

_Noted = TypeVar("_Noted")

REFUSED = "refused_logins"
"""Meta: the refused log-ins, by their entries of CRAWLSPACE_SITES."""
WAITING = "waiting_logins"
"""Meta: the log-ins that fail for now, by their entries of CRAWLSPACE_SITES."""
WANTED = "wanted_logins"
"""Meta: the sites that ask for a log-in which requests do not carry, with the schemes that they offer."""
_MOST_WANTED = 100
_LONGEST_WAIT_S = 1_800.0
_MOST_FAILURES = 4
"""In a row, which refused nothing, after which a run that ends gives the sites up."""


class RefusedLogin(msgspec.Struct, frozen=True):
    """A log-in that a site has refused."""

    since: int
    """Unix time, in seconds."""
    site: str
    why: str
    salt: str
    mark: str
    """Hash of what is sent: other secrets have another one."""

    def sentence(self, pattern: str) -> str:
        """Return what it means; `pattern` is the entry of CRAWLSPACE_SITES."""
        return (
            f"the log-in of CRAWLSPACE_SITES[{quoted(pattern)}] is refused by {self.site} ({self.why}): nothing is requested from its sites"
            " and their URLs wait, until it is another one or `scrapy login` has seen it work"
        )


class WaitingLogin(msgspec.Struct, frozen=True):
    """A log-in that fails for now, though it was not refused, as where a server does not answer."""

    since: int
    """Unix time, in seconds."""
    why: str

    def sentence(self, pattern: str) -> str:
        """Return what it means; `pattern` is the entry of CRAWLSPACE_SITES."""
        return (
            f"nobody could log in by CRAWLSPACE_SITES[{quoted(pattern)}] ({self.why}): the URLs of its sites wait, and the log-in is tried"
            " again by the next run, or sooner"
        )


def often_sentence(pattern: str, until: float) -> str:
    """Return the sentence for log-ins of an entry of CRAWLSPACE_SITES that have succeeded too often."""
    return (
        f"CRAWLSPACE_SITES[{quoted(pattern)}] has logged in {MOST_LOGINS} times within an hour, because its sessions end so soon: nothing is"
        f" requested from its sites and their URLs wait, until {local_time(until)}; a link that logs out may"
        " be the reason (forbid it), or a session that is good for one address or one request only"
    )


class Logins:
    """Raises StoreError; a store that is unreachable for now is written later."""

    def __init__(
        self,
        sites: SiteTable,
        store: MetaStore,
        clock: Clock,
        seal: Seal | None = None,
        *,
        retry_wait_s: float = 5.0,
        ends: bool = True,
    ) -> None:
        """Raises SettingError for a secret that cannot be read.

        `seal`: for sessions; by default that of a store that is not shared. `retry_wait_s`: before the second attempt of a log-in that
        failed and was not refused; `ends`: whether the run does, so that it gives up after some.
        """
        self.sites = sites
        self._store = store
        self._clock = clock
        self._headers = {access.pattern: access.headers() for access in sites.accesses}
        self._sent = {
            one.access.pattern: [*one.access.sent(), "" if one.tls is None else one.tls.contents()]
            for one in sites.settings
            if one.access is not None
        }
        if seal is not None and any(access.session is not None for access in sites.accesses):
            seal.check()
        self.sessions = Sessions(store, clock, seal or Seal())
        self._waits: dict[str, float] = {}
        """Until when no log-in is tried after one that failed, by entry. Monotonic, in seconds."""
        self._reasons: dict[str, str] = {}
        """Why none is tried, by entry."""
        self._failures: dict[str, int] = {}
        self._wanted: dict[str, list[str]] = {}
        """The sites that have asked for a log-in in this run, with what they offer."""
        self._retry_wait_s = retry_wait_s
        self._ends = ends
        self.failures = 0
        """Log-ins of this process that failed or were refused."""
        self._paused: set[str] = set()
        self._unwritten: dict[str, RefusedLogin] = {}
        """Those that could not be noted yet."""
        self._outdated: set[RefusedLogin] = set()
        """Of other secrets than those that are sent now."""
        self._refused: dict[str, RefusedLogin] = {}
        self._refused = self._read()
        if self._outdated:
            _note(store, REFUSED, self._refused)
        for pattern, one in self._refused.items():
            logger.warning("%s", one.sentence(pattern))

    @classmethod
    def of(cls, collection: Collection, store: MetaStore, clock: Clock) -> Self:
        """Return the log-ins of a collection. Raises SettingError for a secret or a certificate that cannot be read."""
        for settings in collection.sites.settings:
            if settings.tls is not None:
                settings.tls.context()
        wait_s, ends = collection.policy.retry_wait_s, not collection.continuous
        return cls(collection.sites, store, clock, collection.seal, retry_wait_s=wait_s, ends=ends)

    def __bool__(self) -> bool:
        return bool(self._headers)

    @property
    def accesses(self) -> list[SiteAccess]:
        return self.sites.accesses

    def entry(self, pattern: str) -> SiteAccess:
        """Return the log-in and headers of an entry of CRAWLSPACE_SITES."""
        return next(access for access in self.accesses if access.pattern == pattern)

    def places(self, access: SiteAccess) -> Callable[[str, int], bool]:
        """Return a function that returns whether a log-in may lead to a host and port."""
        return places_of(self.sites, access)

    def is_of(self, url: str, access: SiteAccess) -> bool:
        """Return whether a request for a URL carries the log-in or headers of an entry."""
        try:
            parsed = parse(url)
        except MalformedUrl:
            return False
        return self.sites.of(parsed.host, parsed.port).access is access and access.carries(parsed.scheme)

    def access(self, site: str) -> SiteAccess | None:
        host, _, port = site.rpartition(":")
        return self.sites.of(host, int(port)).access

    def headers(self, site: str, *, scheme: str) -> Mapping[str, str]:
        """Return the headers that a request to a site carries."""
        access = self.access(site)
        if access is None or not access.carries(scheme):
            return {}
        return self._headers[access.pattern]

    def logs_in(self, site: str) -> bool:
        """Return whether each request to a site carries a log-in that gives no session, so that 401 refuses it."""
        access = self.access(site)
        return access is not None and bool(access.kind) and access.session is None

    def is_refusal(self, site: str, status: int, body: bytes) -> bool:
        """Return whether an answer refuses the log-in that requests to a site carry; nginx answers 400 to a wrong certificate."""
        if status == HTTPStatus.BAD_REQUEST and b"SSL certificate" in body:
            return self.kind(site) == CERTIFICATE
        return status == HTTPStatus.UNAUTHORIZED and self.logs_in(site)

    def wait_s(self, site: str) -> float:
        """Return for how long nothing is to be requested from a site; infinite: in this run, unless `recheck` returns the site."""
        if self.is_paused(site):
            return inf
        access = self.access(site) if self._waits else None
        return 0.0 if access is None else max(0.0, self._waits.get(access.pattern, 0.0) - self._clock.monotonic())

    def pause(self, site: str, frontier: Frontier) -> bool:
        """Pause a site for as long as `wait_s` returns; return whether that is any time at all."""
        seconds = self.wait_s(site)
        if seconds == inf:
            frontier.give_up(site)
        elif seconds:
            frontier.wait_site(site, seconds)
        return seconds > 0

    def note_logged_out(self, site: str, why: str, frontier: Frontier) -> bool:
        """Note that a page was not shown because the session is missing; return whether its site is paused for that."""
        if self.logs_in(site) and not self.wait_s(site):
            self.note_refused(site, why)
        return self.pause(site, frontier)

    def note_failure(self, site: str, why: str) -> None:
        """Note that a log-in failed and was not refused, as where a server does not answer: it is tried again after a while."""
        access = self.access(site)
        if access is None:
            return
        self.failures += 1
        times = self._failures[access.pattern] = self._failures.get(access.pattern, 0) + 1
        gives_up = self._ends and times >= _MOST_FAILURES
        wait_s = inf if gives_up else min(max(self._retry_wait_s, 0.1) * 2 ** (times - 1), _LONGEST_WAIT_S)
        self._waits[access.pattern] = self._clock.monotonic() + wait_s
        until = "the next run" if gives_up else f"the next attempt in {wait_s:.0f} s"
        self._reasons[access.pattern] = f"nobody can log in by {access.where}, and the URLs of its sites wait for {until}: {why}"
        logger.warning("%s", self._reasons[access.pattern])
        with suppress(StoreAway, StoreFull):
            known = waiting_logins(self._store)
            since = known[access.pattern].since if access.pattern in known else int(self._clock.now())
            _note(self._store, WAITING, {**known, access.pattern: WaitingLogin(since, why)})

    def note_too_many(self, site: str, wait_s: float) -> None:
        """Note that log-ins have succeeded too often: the next one is made after that time."""
        access = self.access(site)
        if access is None or self._waits.get(access.pattern, 0.0) > self._clock.monotonic():
            return
        self._waits[access.pattern] = inf if self._ends else self._clock.monotonic() + wait_s
        self._reasons[access.pattern] = often_sentence(access.pattern, self._clock.now() + wait_s)
        logger.warning("%s", self._reasons[access.pattern])

    def note_wanted(self, site: str, schemes: Sequence[str]) -> None:
        """Note that a site asks for a log-in, and requests carry none."""
        if self._wanted.get(site) == schemes or len(self._wanted) >= _MOST_WANTED or self.kind(site):
            return
        self._wanted[site] = list(schemes)
        with suppress(StoreAway, StoreFull):
            known = {site: offered for site, offered in wanted_logins(self._store).items() if not self.kind(site)}
            _note(self._store, WANTED, {**known, **self._wanted})

    def refusal(self, site: str, url: str, status: int, schemes: Sequence[str]) -> str:
        """Return how a site has refused its log-in, with the schemes that it offers, where they are others."""
        offers_others = schemes and self.kind(site) not in map(str.lower, schemes)
        return f"{url} answers {status}" + (f", and asks for {', '.join(map(printable, schemes))}" if offers_others else "")

    def kind(self, site: str) -> str:
        """Return the kind of a site's log-in; empty without one."""
        access = self.access(site)
        return "" if access is None else access.kind

    def note_success(self, site: str) -> None:
        """Note that a log-in has worked."""
        access = self.access(site)
        if access is not None:
            self._waits.pop(access.pattern, None)
            self._failures.pop(access.pattern, None)
            with suppress(StoreAway, StoreFull):
                forget_waiting(self._store, access.pattern)

    def refused_sites(self, sites: Iterable[str]) -> dict[str, str]:
        """Return those of these sites whose log-in is refused, with the reason."""
        found = {}
        for site in sites:
            if self.is_paused(site) and (access := self.access(site)) is not None:
                one = self._refused[access.pattern]
                found[site] = f"{access.where} was refused by {one.site} ({one.why})"
        return found

    def waiting_sites(self, sites: Iterable[str]) -> dict[str, str]:
        """Return those of these sites whose log-in fails for now, with the reason."""
        waiting = {site: access for site in sites if (access := self.access(site)) is not None and self.wait_s(site) > 0}
        return {site: self._reasons[access.pattern] for site, access in waiting.items() if access.pattern in self._reasons}

    def is_paused(self, site: str) -> bool:
        """Return whether the log-in of a site is refused."""
        access = self.access(site) if self._refused else None
        if access is None or access.pattern not in self._refused:
            return False
        self._paused.add(site)
        return True

    def note_refused(self, site: str, why: str) -> None:
        """Note that a site has refused its log-in."""
        access = self.access(site)
        if access is None:
            return
        self._paused.add(site)
        if access.pattern in self._refused:
            return
        self.failures += 1
        salt = token_bytes(16).hex()
        one = RefusedLogin(int(self._clock.now()), site, why, salt, self._mark(access.pattern, salt))
        self._refused[access.pattern] = one
        self._unwritten[access.pattern] = one
        logger.error("%s", one.sentence(access.pattern))
        with suppress(StoreAway, StoreFull):
            self._write()
            forget_waiting(self._store, access.pattern)

    def is_refused_by_now(self, site: str) -> bool:
        """Return whether the log-in of a site was refused, by this worker or another: to be checked before a log-in."""
        with suppress(StoreAway, StoreFull):
            self._write()
            for pattern, one in self._read().items():
                if pattern not in self._refused:
                    self._refused[pattern] = one
                    logger.warning("%s", one.sentence(pattern))
        return self.is_paused(site)

    def recheck(self) -> set[str]:
        """Read the log-ins that other workers note as refused; return the sites whose log-in `scrapy login` has seen work."""
        if not self._headers:
            return set()
        try:
            self._write()
            self._refused = self._read()
        except (StoreAway, StoreFull):
            return set()
        back = {site for site in self._paused if not self.is_paused(site)}
        self._paused -= back
        return back

    def _write(self) -> None:
        if self._unwritten:
            _note(self._store, REFUSED, {**refused_logins(self._store), **self._unwritten})
            self._unwritten = {}

    def _read(self) -> dict[str, RefusedLogin]:
        """Return the refused log-ins whose secrets are those of now."""
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
        return mark_of(self._sent[pattern], salt)


def refused_logins(store: MetaStore) -> dict[str, RefusedLogin]:
    """Return the refused log-ins by their entries of CRAWLSPACE_SITES."""
    return _noted(store, REFUSED, RefusedLogin)


def waiting_logins(store: MetaStore) -> dict[str, WaitingLogin]:
    """Return the log-ins that fail for now, by their entries of CRAWLSPACE_SITES."""
    return _noted(store, WAITING, WaitingLogin)


def wanted_logins(store: MetaStore) -> dict[str, list[str]]:
    """Return the sites that ask for a log-in which requests do not carry, with the schemes they offer."""
    return _noted(store, WANTED, list[str])


def why_urls_wait(store: MetaStore, pattern: str, *, now: float) -> str:
    """Return why the URLs of an entry of CRAWLSPACE_SITES wait for its log-in; empty where they do not, by the store."""
    if (refused := refused_logins(store).get(pattern)) is not None:
        return refused.sentence(pattern)
    session = kept_sessions(store).get(pattern)
    if session is not None and (at := next_login_at(session.recent, now=now)) is not None:
        return often_sentence(pattern, at)
    waiting = waiting_logins(store).get(pattern)
    return "" if waiting is None else waiting.sentence(pattern)


def forget_waiting(store: MetaStore, pattern: str) -> None:
    """Note that a log-in works."""
    waiting = waiting_logins(store)
    if waiting.pop(pattern, None) is not None:
        _note(store, WAITING, waiting)


def forget_refused(store: MetaStore, pattern: str) -> bool:
    """Have a log-in be tried again; return whether it was refused before."""
    refused = refused_logins(store)
    if refused.pop(pattern, None) is None:
        return False
    _note(store, REFUSED, refused)
    return True


def _noted(store: MetaStore, name: str, kind: type[_Noted]) -> dict[str, _Noted]:
    try:
        return msgspec.json.decode(store.get_meta(name) or "{}", type=dict[str, kind])  # type: ignore[valid-type]
    except (msgspec.MsgspecError, RecursionError):
        return {}  # it is noted again


def _note(store: MetaStore, name: str, noted: Mapping[str, object]) -> None:
    store.set_meta(name, msgspec.json.encode(noted).decode() if noted else "")


def places_of(sites: SiteTable, access: SiteAccess) -> Callable[[str, int], bool]:
    """Return a function that returns whether a log-in may lead to a host and port.

    It may to those of the entry, of the address of the log-in, and of its `hosts`. An entry with a port is for that port alone. The address of a log-in may go over from http to https, each at its own port.
    """
    login = access.session
    named = frozenset() if login is None else login.hosts
    own: set[tuple[str, int]] = set()
    if login is not None and login.url is not None:
        usual = set(DEFAULT_PORTS.values())
        own = {(login.url.host, port) for port in (usual if login.url.port in usual else {login.url.port})}

    def allows(host: str, port: int) -> bool:
        host = host.lower()
        is_named = host in named or f"{host}:{port}" in named or (host, port) in own
        return is_named or sites.of(host, port).access is access

    return allows


def entry_hosts_of(sites: SiteTable, access: SiteAccess) -> Callable[[str], bool]:
    """Return a function that returns whether an entry of CRAWLSPACE_SITES is for a host."""
    port = access.pattern.rpartition(":")[2]
    ports = (443, 80, *([int(port)] if port.isdigit() else []))
    return lambda host: any(sites.of(host, port).access is access for port in ports)
