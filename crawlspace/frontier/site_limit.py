"""How many sites are crawled at a time; the others wait for a place."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from math import inf

from crawlspace.frontier.site_queue import SiteQueue


class SiteLimit:
    """A site keeps its place until it has nothing more to ask for, or may not be asked for long."""

    def __init__(self, most: int | None) -> None:
        """`most` sites at a time; None: all."""
        self._left = inf if most is None else most
        self._outside: deque[SiteQueue] = deque()

    def take(self, turns: SiteQueue) -> bool:
        """Whether the site has a place now; if not, it waits for one."""
        if not turns.placed and self._left > 0:
            self._left -= 1
            turns.placed = True
        elif not (turns.placed or turns.outside):
            turns.outside = True
            self._outside.append(turns)
        return turns.placed

    def leave(self, turns: SiteQueue) -> Iterator[SiteQueue]:
        """Give up a site's place; yield those that may take one now, as long as there is one."""
        if not turns.placed:
            return
        turns.placed = False
        self._left += 1
        while self._left > 0 and self._outside:
            following = self._outside.popleft()
            following.outside = False
            if following.works:
                yield following
