"""The addresses of hosts: looked up before the first request to a site, and stored for the address rules of the next start.

Sites at one address may have to share their delay, so a site waits until its address is known. With the stored addresses, a start applies
address rules without network requests.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from crawlspace.cache import Recent
from crawlspace.frontier.frontier import Frontier
from crawlspace.model import UrlState
from crawlspace.rules.address import is_address
from crawlspace.state.store import MetaStore

ADDRESSES = "addresses:"
"""Prefix of the names of the entries; the host follows."""
MOST_ADDRESSES = 64
"""Maximal addresses of one host."""
_DIGITS = 12
"""Maximal digits of a time."""
_MOST_HOSTS = 10_000
"""Maximal hosts with look-ups to be stored, and maximal size of the cache of stored ones."""


class Located(Protocol):
    def __call__(self, site: str, address: str | None, *, certain: bool = True) -> None: ...


Locate = Callable[[str, Located], None]
"""Looks up the address of a site (`host:port`), and calls back with both; None if it has none, or the look-up failed."""


class Locating:
    """Looks up a few sites at a time, while other sites are crawled."""

    def __init__(self, frontier: Frontier, locate: Locate, *, most: int) -> None:
        """`most`: maximal look-ups in flight."""
        self._frontier = frontier
        self._locate = locate
        self._most = most
        self._in_flight = 0
        self._queue: deque[str] = deque()
        self._starts = False

    def defers(self, state: UrlState) -> bool:
        """Return whether a URL must wait because its site's address is unknown; if so, it is returned to the frontier."""
        if self._frontier.is_located(state.site):
            return False
        self._frontier.await_address(state)
        self._queue.append(state.site)
        self._start()
        return True

    def _start(self) -> None:
        if self._starts:  # a synchronous answer must not start the next look-up recursively
            return
        self._starts = True
        try:
            while self._queue and self._in_flight < self._most:
                self._in_flight += 1
                self._locate(self._queue.popleft(), self._located)
        finally:
            self._starts = False

    def _located(self, site: str, address: str | None, *, certain: bool = True) -> None:
        self._in_flight -= 1
        self._frontier.locate(site, address, certain=certain)
        self._start()


class LookedUp(NamedTuple):
    """The result of a look-up; `at` in seconds since 1970."""

    addresses: tuple[str, ...]
    at: int


def last_look_up(store: MetaStore, host: str) -> LookedUp | None:
    """Return the stored addresses of a host (as in URLs in normal form); None if there are none."""
    return _look_up_in(store.get_meta(ADDRESSES + host))


class LookUps:
    """The look-ups of a crawl that are not stored yet."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[str, ...]] = {}
        self._kept: Recent[str, int] = Recent(_MOST_HOSTS)
        """By host, a hash of the addresses that are stored already."""

    def note(self, host: str, addresses: Sequence[str]) -> None:
        """Add the result of a look-up; repeated ones are ignored."""
        found = tuple(addresses[:MOST_ADDRESSES])
        if found and self._kept.get(host) != hash(found) and (len(self._waiting) < _MOST_HOSTS or host in self._waiting):
            self._waiting[host] = found

    def keep(self, store: MetaStore, *, now: int, most: int = 100) -> None:
        """Store up to `most` look-ups. Raises the store's errors; nothing is lost then."""
        for host in list(self._waiting)[:most]:
            found = self._waiting[host]
            store.set_meta(ADDRESSES + host, " ".join((str(now), *found)))
            del self._waiting[host]
            self._kept.put(host, hash(found))


class KnownAddresses:
    """The stored addresses of hosts; empty if unknown."""

    def __init__(self, store: MetaStore) -> None:
        self._store = store
        self._read: Mapping[str, Sequence[str]] = {}

    def read(self, hosts: Iterable[str]) -> None:
        """Read the addresses of the hosts needed next in one batch."""
        names = [host for host in hosts if not is_address(host)]
        entries = map(_look_up_in, self._store.get_metas([ADDRESSES + host for host in names]))
        self._read = {host: entry.addresses if entry else () for host, entry in zip(names, entries, strict=True)}

    def __call__(self, host: str) -> Sequence[str]:
        if host in self._read:
            return self._read[host]
        found = last_look_up(self._store, host)
        return found.addresses if found is not None else ()


def _look_up_in(written: str | None) -> LookedUp | None:
    at, *addresses = written.split() if written else ("",)
    if not (addresses and at.isascii() and at.isdigit() and len(at) <= _DIGITS and all(map(is_address, addresses))):
        return None  # damaged: must not exclude anything
    return LookedUp(tuple(addresses), int(at))
