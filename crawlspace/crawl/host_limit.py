"""CRAWLSPACE_MAX_URLS_PER_HOST and what is known: which URLs it keeps out, and whether there is room for some of them again.

What counts is what is in the crawl space and is not missing (404, 410): see UNCOUNTED. What a smaller limit has excluded has the first claim
to a place that becomes free: it returns at the next start, oldest first, and until then no unknown URL takes that place. Links that were
refused are found again on their pages, which are kept without validators: a 304 would not bring the links.
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
"""Meta: by site how many known URLs only this limit excludes, and how many documents are held for it, as the last change of the rules found."""
_SITES = 10_000
"""So many sites are noted at most; at others a new URL may take the place of an older one."""


class HostCounts(Protocol):
    def get_meta(self, name: str) -> str | None: ...
    def host_count(self, host: str) -> int: ...


class Changeable(Protocol):
    def set_meta(self, name: str, value: str) -> None: ...


class HostRoom:
    """How many more URLs hosts may have, in this run."""

    def __init__(self, store: HostCounts, limits_of: Callable[[str, int], Limits], *, run_ends: bool) -> None:
        """`limits_of` gives the limits of a host and port. In a run that does not end nothing waits for the next start."""
        self._store = store
        self._limits_of = limits_of
        self._kept_out = kept_out(store) if run_ends else Counter[str]()
        self._adding: dict[str, str] = {}
        """Unknown URLs that are on their way to the store, and their hosts."""
        self._numbers: Counter[str] = Counter()
        """How many those are, by host."""

    def most(self, site: str) -> int | None:
        """Return how many URLs the host of a site may have; None without a limit."""
        host, _, port = site.rpartition(":")
        return self._limits_of(host, int(port)).max_urls_per_host

    def taken(self, host: str) -> int:
        """Return how many places of a host are taken, those included that what was kept out has a claim to."""
        return self._store.host_count(host) + self._kept_out[host] + self._numbers[host]

    def is_coming(self, url: NewUrl) -> bool:
        """Whether a URL is counted as one that is on its way."""
        return url.url in self._adding

    def coming(self, urls: Iterable[NewUrl]) -> None:
        """Count unknown URLs that are on their way to the store."""
        for one in urls:
            host = self._adding[one.url] = one.site.rpartition(":")[0]
            self._numbers[host] += 1

    def committed(self, on_their_way: Iterable[NewUrl]) -> None:
        """What was on its way has been stored, but for these."""
        if self._adding:
            self._adding = {one.url: self._adding[one.url] for one in on_their_way if one.url in self._adding}
            self._numbers = Counter(self._adding.values())


def kept_out(store: HostCounts) -> Counter[str]:
    """Return by host how many known URLs are kept out by the limit. Raises StoreDamaged."""
    hosts: Counter[str] = Counter()
    for site, (count, _) in _noted(store).items():
        hosts[site.rpartition(":")[0]] += count
    return hosts


class LimitsOfHosts(Protocol):
    hosts_are_limited: bool

    def limits_of(self, host: str, port: int) -> Limits: ...


def has_room(store: HostCounts, limits: LimitsOfHosts) -> bool:
    """Whether a host of which URLs are kept out, or held, has fewer than it may have; True where that was never looked at."""
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


def note_kept_out(store: Changeable, beyond: Mapping[bool, Counter[str]], *, hold: bool) -> None:
    """Keep by site the numbers of URLs that only the limit excludes. `beyond`: with and without a document; `hold`: those with one are held."""
    held = beyond[True] if hold else Counter[str]()
    excluded = beyond[False] if hold else beyond[True] + beyond[False]
    sites = sorted(excluded.keys() | held.keys())[:_SITES]
    store.set_meta(KEPT_OUT, json.dumps({site: [excluded[site], held[site]] for site in sites}))


def _noted(store: HostCounts) -> dict[str, tuple[int, int]]:
    table = get_table(store, KEPT_OUT) or {}
    return {site: (int(pair[0]), int(pair[1])) for site, pair in table.items() if isinstance(pair, list) and len(pair) == 2}
