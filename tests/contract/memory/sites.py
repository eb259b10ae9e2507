"""What the memory store keeps beside URLs: of sites, values by name, and the sample of refused links."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain

from crawlspace.decision import Reason
from crawlspace.state.refused_links import HOSTS_OF_REASON, LETTERS, LINKS_OF_HOST, RefusedLink
from crawlspace.state.site_health import NEW_SITE, Health
from crawlspace.state.site_pauses import SitePause
from crawlspace.state.unreachable import UnreachableSite
from crawlspace.state.views import RobotsEntry


class MemorySites:
    """Waits, health, robots.txt and failed runs, by site; values by name."""

    def __init__(self) -> None:
        self._waits: dict[str, tuple[int, int]] = {}
        """Until when each site must wait, and how many seconds that was."""
        self._health: dict[str, Health] = {}
        self._robots: dict[tuple[str, str], RobotsEntry] = {}
        self._unreachable: dict[str, UnreachableSite] = {}
        self._meta: dict[str, str] = {}
        self._pauses: dict[str, SitePause] = {}

    def get_meta(self, name: str) -> str | None:
        return self._meta.get(name)

    def get_metas(self, names: Sequence[str]) -> list[str | None]:
        return [self._meta.get(name) for name in names]

    def set_meta(self, name: str, value: str) -> None:
        self._meta[name] = value

    def replace_meta(self, name: str, before: str | None, after: str) -> bool:
        is_same = self._meta.get(name) == before
        if is_same:
            self._meta[name] = after
        return is_same

    def claim(self, name: str, *, seconds: int) -> bool:
        return True

    def end_claim(self, name: str) -> None: ...

    def wait_site(self, site: str, until: int | None, *, wait_s: int = 0) -> None:
        if until is None:
            self._waits.pop(site, None)
        else:
            self._waits[site] = until, wait_s

    def site_pauses(self) -> dict[str, SitePause]:
        return dict(self._pauses)

    def set_site_pause(self, pattern: str, pause: SitePause | None) -> None:
        if pause is None:
            self._pauses.pop(pattern, None)
        else:
            self._pauses[pattern] = pause

    def is_paused(self, site: str) -> bool:
        return any(re.fullmatch(_expression(pattern), site) for pattern in self._pauses)

    def health(self, site: str) -> Health:
        return self._health.get(site, NEW_SITE)

    def unreachable(self) -> list[UnreachableSite]:
        return [self._unreachable[site] for site in sorted(self._unreachable)]

    def set_unreachable(self, site: str, row: UnreachableSite | None) -> None:
        if row is None:
            self._unreachable.pop(site, None)
        else:
            self._unreachable[site] = row

    def robots(self, site: str, scheme: str) -> RobotsEntry | None:
        return self._robots.get((site, scheme))

    def save_robots(self, entry: RobotsEntry) -> None:
        self._robots[entry.site, entry.scheme] = entry

    def forget_robots(self, *, read_after: int) -> None:
        self._robots = {key: entry for key, entry in self._robots.items() if entry.fetched_at <= read_after}


def _expression(pattern: str) -> str:
    """Return a regular expression for the sites of a pattern."""
    expression = re.escape(pattern).replace(r"\*", ".*")
    return expression if re.search(r":\d+$", pattern) else rf"{expression}:\d+"


_OfHost = dict[str, RefusedLink]
"""Entries by URL, the oldest first."""


class MemoryRefusedLinks:
    """The part of the store that is the sample of refused links."""

    def __init__(self) -> None:
        super().__init__()
        self._sample: defaultdict[Reason, dict[str, _OfHost]] = defaultdict(dict)
        """Hosts in the order in which an entry was added last; one may have no entries any more."""

    def refused_links(
        self, *, reason: Reason | None = None, host: str | None = None, page: int | None = None
    ) -> list[RefusedLink]:
        return [
            link
            for one in sorted(self._sample, key=LETTERS.__getitem__)
            for name, links in sorted(self._sample[one].items())
            for link in links.values()
            if reason in (None, one) and host in (None, name) and page in (None, link.page)
        ]

    def _replace_refused_links(self, by_page: Mapping[int, Sequence[RefusedLink]]) -> None:
        """Drop the entries of pages, add their new ones, and drop what is beyond the bounds."""
        if not by_page:
            return
        for hosts in self._sample.values():
            for host, links in hosts.items():
                hosts[host] = {url: link for url, link in links.items() if link.page not in by_page}
        for link in chain.from_iterable(by_page.values()):
            hosts = self._sample[link.reason]
            links = hosts[link.host] = hosts.pop(link.host, {})
            links.pop(link.url, None)
            links[link.url] = link
        for hosts in self._sample.values():
            for host in list(hosts)[:-HOSTS_OF_REASON]:
                del hosts[host]
            for links in hosts.values():
                for url in list(links)[:-LINKS_OF_HOST]:
                    del links[url]
