"""Finds out, before a site is asked for the first time, at which address it is: sites at one address may have to share their delay."""

from __future__ import annotations

from collections import deque

from crawlspace.crawl.run import Locate
from crawlspace.frontier.frontier import Frontier
from crawlspace.model import UrlState


class Locating:
    """Looks up a few sites at a time; each of the others goes on meanwhile."""

    def __init__(self, frontier: Frontier, locate: Locate, *, most: int) -> None:
        """`most` look-ups are under way at a time."""
        self._frontier = frontier
        self._locate = locate
        self._most = most
        self._in_flight = 0
        self._line: deque[str] = deque()
        self._starts = False

    def takes(self, state: UrlState) -> bool:
        """Whether a URL just handed out must wait because its site has not been located; then it has been put back."""
        if self._frontier.is_located(state.site):
            return False
        self._frontier.await_address(state)
        self._line.append(state.site)
        self._start()
        return True

    def _start(self) -> None:
        if self._starts:  # an answer that comes at once must not start the next look-up inside of its own
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
