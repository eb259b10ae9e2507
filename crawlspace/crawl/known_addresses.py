"""The addresses that hosts had when they were looked up last, so that a start can apply address rules without the network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from crawlspace.cache import Recent
from crawlspace.rules.address import is_address

NAME = "addresses:"
"""What the names of the entries begin with; the host follows."""
MOST_ADDRESSES = 64
"""Of one host."""
_DIGITS = 12
"""Of a time."""
_MOST_HOSTS = 10_000
"""That wait to be kept, and that are known to be."""


class Entries(Protocol):
    """What a store has for it: entries by name, each written by itself."""

    def get_meta(self, name: str) -> str | None: ...
    def get_metas(self, names: Sequence[str]) -> list[str | None]: ...
    def set_meta(self, name: str, value: str) -> None: ...


class LookedUp(NamedTuple):
    """What a look-up has found; `at` in seconds since 1970."""

    addresses: tuple[str, ...]
    at: int


def last_look_up(store: Entries, host: str) -> LookedUp | None:
    """Return the addresses of a host, as it stands in URLs in normal form, as they are kept; None where none are."""
    return _look_up_in(store.get_meta(NAME + host))


def _look_up_in(written: str | None) -> LookedUp | None:
    at, *addresses = written.split() if written else ("",)
    if not (addresses and at.isascii() and at.isdigit() and len(at) <= _DIGITS and all(map(is_address, addresses))):
        return None  # damaged, which must exclude nothing
    return LookedUp(tuple(addresses), int(at))


class LookUps:
    """Those of a crawl that are not kept yet."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[str, ...]] = {}
        self._kept: Recent[str, int] = Recent(_MOST_HOSTS)
        """For each host, a number for the addresses that are kept already."""

    def note(self, host: str, addresses: Sequence[str]) -> None:
        """Take the answer of a look-up; one that was taken already costs nothing."""
        found = tuple(addresses[:MOST_ADDRESSES])
        if found and self._kept.get(host) != hash(found) and (len(self._waiting) < _MOST_HOSTS or host in self._waiting):
            self._waiting[host] = found

    def keep(self, store: Entries, *, now: int, most: int = 100) -> None:
        """Write up to `most` of them. Raises what the store raises; nothing is lost then."""
        for host in list(self._waiting)[:most]:
            found = self._waiting[host]
            store.set_meta(NAME + host, " ".join((str(now), *found)))
            del self._waiting[host]
            self._kept.put(host, hash(found))


class KnownAddresses:
    """The addresses that a store keeps of a host; none where they are not known."""

    def __init__(self, store: Entries) -> None:
        self._store = store
        self._read: Mapping[str, Sequence[str]] = {}

    def read(self, hosts: Iterable[str]) -> None:
        """Read those of all hosts that are asked about next, at once."""
        names = [host for host in hosts if not is_address(host)]
        entries = map(_look_up_in, self._store.get_metas([NAME + host for host in names]))
        self._read = {host: entry.addresses if entry else () for host, entry in zip(names, entries, strict=True)}

    def __call__(self, host: str) -> Sequence[str]:
        if host in self._read:
            return self._read[host]
        found = last_look_up(self._store, host)
        return found.addresses if found is not None else ()
