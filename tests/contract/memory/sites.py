"""What the memory store keeps beside URLs: of sites, and values by name."""

from __future__ import annotations

from collections.abc import Sequence

from crawlspace.state.site_health import NEW_SITE, Health
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

    def get_meta(self, name: str) -> str | None:
        return self._meta.get(name)

    def get_metas(self, names: Sequence[str]) -> list[str | None]:
        return [self._meta.get(name) for name in names]

    def set_meta(self, name: str, value: str) -> None:
        self._meta[name] = value

    def claim(self, name: str, *, seconds: int) -> bool:
        return True

    def end_claim(self, name: str) -> None: ...

    def wait_site(self, site: str, until: int | None, *, wait_s: int = 0) -> None:
        if until is None:
            self._waits.pop(site, None)
        else:
            self._waits[site] = until, wait_s

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
