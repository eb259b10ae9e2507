"""The number of sites crawled at the same time; other sites wait for a place."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from math import inf

from crawlspace.frontier.site_queue import SiteQueue


class SiteLimit:
    """A site keeps its place until it has nothing more to request, or may not be requested for long."""

    def __init__(self, most: int | None) -> None:
        """`most` sites at the same time; None: no limit."""
        self._left = inf if most is None else most
        self._outside: deque[SiteQueue] = deque()

    def take(self, site_queue: SiteQueue) -> bool:
        """Return whether the site has a place now; if not, it waits for one."""
        if not site_queue.placed and self._left > 0:
            self._left -= 1
            site_queue.placed = True
        elif not (site_queue.placed or site_queue.outside):
            site_queue.outside = True
            self._outside.append(site_queue)
        return site_queue.placed

    def leave(self, site_queue: SiteQueue) -> Iterator[SiteQueue]:
        """Free a site's place; yield those that may take one now, as long as one is free."""
        if not site_queue.placed:
            return
        site_queue.placed = False
        self._left += 1
        while self._left > 0 and self._outside:
            following = self._outside.popleft()
            following.outside = False
            if following.works:
                yield following
