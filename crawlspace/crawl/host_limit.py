"""CRAWLSPACE_MAX_URLS_PER_HOST and the known URLs: which of them it excludes, and whether there is room for some again.

URLs in the crawl space count, unless they are missing (404, 410): see UNCOUNTED. URLs excluded by a smaller limit have priority
for places that become free: they return at the next start, oldest first, and until then unknown URLs don't get these places.
Refused links are found again on their pages, which are stored without validators: a 304 would not bring the links.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from crawlspace.model import NewUrl
from crawlspace.rules.limits import Limits
from crawlspace.state.metadata import get_table

KEPT_OUT = "kept_out"
"""Meta: by site, the known URLs excluded by this limit only, and the documents held for it, at the last rule change."""
_SITES = 10_000
"""Maximal sites recorded; at others a new URL may take the place of an older one."""


class HostCounts(Protocol):
    def get_meta(self, name: str) -> str | None: ...
    def host_count(self, host: str) -> int: ...


class MetaWriter(Protocol):
    def set_meta(self, name: str, value: str) -> None: ...


class HostRoom:
    """The number of URLs that hosts may still have in this run."""

    def __init__(self, store: HostCounts, limits_of: Callable[[str, int], Limits], *, run_ends: bool) -> None:
        """`limits_of` returns the limits of a host and port. In a continuous run no URL waits for the next start."""
        self._store = store
        self._limits_of = limits_of
        self._kept_out = kept_out(store) if run_ends else Counter[str]()
        self._adding: dict[str, str] = {}
        """Unknown URLs being inserted, with their hosts."""
        self._numbers: Counter[str] = Counter()
        """Number of these by host."""

    def most(self, site: str) -> int | None:
        """Return the limit of URLs for the host of a site; None without a limit."""
        host, _, port = site.rpartition(":")
        return self._limits_of(host, int(port)).max_urls_per_host

    def taken(self, host: str) -> int:
        """Return the number of places taken at a host, those reserved for excluded URLs included."""
        return self._store.host_count(host) + self._kept_out[host] + self._numbers[host]

    def is_coming(self, url: NewUrl) -> bool:
        """Return whether a URL is counted as being inserted."""
        return url.url in self._adding

    def coming(self, urls: Iterable[NewUrl]) -> None:
        """Count unknown URLs as being inserted."""
        for one in urls:
            host = self._adding[one.url] = one.site.rpartition(":")[0]
            self._numbers[host] += 1

    def committed(self, on_their_way: Iterable[NewUrl]) -> None:
        """Clear the counts after a commit, except for these URLs."""
        if self._adding:
            self._adding = {one.url: self._adding[one.url] for one in on_their_way if one.url in self._adding}
            self._numbers = Counter(self._adding.values())


def kept_out(store: HostCounts) -> Counter[str]:
    """Return by host the number of known URLs excluded by the limit. Raises StoreDamaged."""
    hosts: Counter[str] = Counter()
    for site, (count, _) in _noted(store).items():
        hosts[site.rpartition(":")[0]] += count
    return hosts


class LimitsOfHosts(Protocol):
    hosts_are_limited: bool

    def limits_of(self, host: str, port: int) -> Limits: ...


def has_room(store: HostCounts, limits: LimitsOfHosts) -> bool:
    """Return whether a host with excluded or held URLs is below its limit; True if that was never recorded."""
    if not limits.hosts_are_limited:
        return False
    if not store.get_meta(KEPT_OUT):
        return True
    for site, (_, held) in _noted(store).items():
        host, _, port = site.rpartition(":")
        most = limits.limits_of(host, int(port)).max_urls_per_host if port.isdigit() else None
        if most is not None and store.host_count(host) - held < most:
            return True
    return False


def note_kept_out(store: MetaWriter, beyond: Mapping[bool, Counter[str]], *, hold: bool) -> None:
    """Store by site the numbers of URLs excluded by the limit only. `beyond`: by having a document; `hold`: hold those."""
    held = beyond[True] if hold else Counter[str]()
    excluded = beyond[False] if hold else beyond[True] + beyond[False]
    sites = sorted(excluded.keys() | held.keys())[:_SITES]
    store.set_meta(KEPT_OUT, json.dumps({site: [excluded[site], held[site]] for site in sites}))


def _noted(store: HostCounts) -> dict[str, tuple[int, int]]:
    table = get_table(store, KEPT_OUT) or {}
    return {site: (int(pair[0]), int(pair[1])) for site, pair in table.items() if isinstance(pair, list) and len(pair) == 2}
