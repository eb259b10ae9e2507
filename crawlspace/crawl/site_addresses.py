"""Look up the address of a site before its first request: sites at one address may have to share their delay."""

from __future__ import annotations

from collections import deque

from crawlspace.crawl.run import Locate
from crawlspace.frontier.frontier import Frontier
from crawlspace.model import UrlState


class Locating:
    """Looks up a few sites at a time, while other sites are crawled."""

    def __init__(self, frontier: Frontier, locate: Locate, *, most: int) -> None:
        """`most`: maximal look-ups in flight."""
        self._frontier = frontier
        self._locate = locate
        self._most = most
        self._in_flight = 0
        self._line: deque[str] = deque()
        self._starts = False

    def takes(self, state: UrlState) -> bool:
        """Return whether a URL must wait because its site's address is unknown; if so, it has been put back."""
        if self._frontier.is_located(state.site):
            return False
        self._frontier.await_address(state)
        self._line.append(state.site)
        self._start()
        return True

    def _start(self) -> None:
        if self._starts:  # a synchronous answer must not start the next look-up recursively
            return
        self._starts = True
        try:
            while self._line and self._in_flight < self._most:
                self._in_flight += 1
                self._locate(self._line.popleft(), self._located)
        finally:
            self._starts = False

    def _located(self, site: str, address: str | None, *, certain: bool = True) -> None:
        self._in_flight -= 1
        self._frontier.locate(site, address, certain=certain)
        self._start()
