"""CRAWLSPACE_MAX_URLS_PER_HOST and what is known: which URLs it keeps out, and whether there is room for some of them again.

Only URLs in the crawl space count. What a smaller limit has excluded has the first claim to a place that becomes free: it returns at the next
start, oldest first, and until then no unknown URL takes that place. Links that were refused are found again on their pages, which are asked
for whole once there is room: a 304 would not bring the links.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from crawlspace.clock import Clock
from crawlspace.model import NewUrl, UrlState
from crawlspace.rules.limits import Limits
from crawlspace.state.meta import get_table

KEPT_OUT = "kept_out"
"""Meta: by site how many known URLs only this limit excludes, as far as the last change of the rules has found."""
FULL = "full_hosts"
"""Meta: by host when a link was last refused for this limit."""
_FULL_HOSTS = 10_000
"""So many are noted at most; of others a refused link is found again once its page has changed."""
_SAVED_EVERY_S = 60
_SITES = 10_000
"""So many sites are noted at most; at others a new URL may take the place of an older one."""


class HostCounts(Protocol):
    def get_meta(self, name: str) -> str | None: ...
    def host_count(self, host: str) -> int: ...


class Changeable(Protocol):
    def set_meta(self, name: str, value: str) -> None: ...


class HostStore(HostCounts, Changeable, Protocol): ...


class HostRoom:
    """How many more URLs a host may have, in this run. `adding` counts by host what is on its way to the store."""

    def __init__(self, store: HostStore, clock: Clock, limits_of: Callable[[str, int], Limits]) -> None:
        """`limits_of` gives the limits of a host and port."""
        self._store = store
        self._clock = clock
        self._limits_of = limits_of
        self._kept_out = kept_out(store)
        self._full = {host: at for host, at in (get_table(store, FULL) or {}).items() if isinstance(at, int)}
        self._is_saved, self._saved_at = True, clock.monotonic()
        self._counts: dict[str, int] = {}
        """As they were asked for since the last commit."""
        self.adding: Counter[str] = Counter()

    def most(self, site: str) -> int | None:
        """Return how many URLs the host of a site may have; None without a limit."""
        host, _, port = site.rpartition(":")
        return self._limits_of(host, int(port)).max_urls_per_host

    def taken(self, host: str) -> int:
        """Return how many places of a host are taken, those included that what was kept out has a claim to."""
        return self._store.host_count(host) + self._kept_out[host] + self.adding[host]

    def refused(self, host: str) -> None:
        """Note that an unknown URL was refused for the limit of its host."""
        if host in self._full or len(self._full) < _FULL_HOSTS:
            self._full[host] = int(self._clock.now())
            self._is_saved = False

    def may_bring_links(self, state: UrlState) -> bool:
        """Whether a page may have links that were refused at its last fetch, and for which there is room now."""
        if not self._full:
            return False
        host = state.site.rpartition(":")[0]
        full_at, most = self._full.get(host), self.most(state.site)
        if full_at is None or most is None or state.fetched_at is None or state.fetched_at > full_at + _SAVED_EVERY_S:
            return False
        if host not in self._counts:
            self._counts[host] = self.taken(host)
        return self._counts[host] < most

    def committed(self, on_their_way: Iterable[NewUrl]) -> None:
        """What was on its way has been stored, but for these."""
        self._counts.clear()
        self.adding.clear()
        self.adding.update(one.site.rpartition(":")[0] for one in on_their_way)
        if not self._is_saved and self._clock.monotonic() - self._saved_at >= _SAVED_EVERY_S:
            self.save()

    def save(self) -> None:
        """Have the next run know which hosts were full."""
        if not self._is_saved:
            self._store.set_meta(FULL, json.dumps(self._full))
            self._is_saved, self._saved_at = True, self._clock.monotonic()


def kept_out(store: HostCounts) -> Counter[str]:
    """Return by host how many known URLs are kept out by the limit. Raises StoreDamaged."""
    hosts: Counter[str] = Counter()
    for site, count in (get_table(store, KEPT_OUT) or {}).items():
        if isinstance(count, int):
            hosts[site.rpartition(":")[0]] += count
    return hosts


def has_room(store: HostCounts, limits_of: Callable[[str, int], Limits]) -> bool:
    """Whether a host of which URLs are kept out has fewer than it may have. Raises StoreDamaged."""
    for site in get_table(store, KEPT_OUT) or {}:
        host, _, port = site.rpartition(":")
        most = limits_of(host, int(port)).max_urls_per_host if port.isdigit() else None
        if most is not None and store.host_count(host) < most:
            return True
    return False


def note_kept_out(store: Changeable, by_site: Mapping[str, int]) -> None:
    """Keep the numbers of URLs that only the limit excludes."""
    noted = dict(sorted(by_site.items())[:_SITES])
    store.set_meta(KEPT_OUT, json.dumps(noted) if noted else "")
