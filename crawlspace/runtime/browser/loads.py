"""What one page loads: which of it is under way, what was refused, and what failed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from time import monotonic

MOST_REQUESTS = 500
"""Requests of one page; it is ended where it asks for more."""
MOST_REFUSED = 20
"""Hosts that are named."""
QUIET_S, LONG_QUIET_S = 0.4, 3.0
"""Nothing is under way for so long: the network is idle. The page has to rest for a tenth of a second more before it is read.

It is the longer time while the browser has begun something that has not come to the proxy: it may be about to, or never come.
"""


@dataclass(eq=False)
class Loads:
    """Of one page while it is rendered."""

    began: float = field(default_factory=monotonic)
    """On the monotonic clock, in seconds."""
    requests: int = 0
    """Sent to servers: what was loaded for another page before is not among them."""
    asked: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    """Hosts, with why they may not be requested."""
    failed: str = ""
    """The first script or data that could not be loaded because of its server, and why."""
    under_way: int = 0
    """Requests that are being answered."""
    seen: int = 0
    """Requests that the browser has begun, those that it answers from its own cache too."""
    unfinished: int = 0
    """Of these, those that have not ended."""
    is_over: bool = False
    too_many: asyncio.Event = field(default_factory=asyncio.Event)
    """The page has asked for more than it may."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def begin(self) -> bool:
        """The page asks for something; return whether it may go on asking."""
        self.asked += 1
        self.under_way += 1
        self._changed.set()
        if self.asked > MOST_REQUESTS:
            self.too_many.set()
        return self.asked <= MOST_REQUESTS

    def browser_begins(self) -> None:
        """The browser begins a request, which may come here, or not."""
        self.seen += 1
        self.unfinished += 1
        self._changed.set()
        if self.seen > 2 * MOST_REQUESTS:
            self.too_many.set()

    def browser_ends(self) -> None:
        """A request of the browser has ended."""
        self.unfinished -= 1
        self._changed.set()

    def touch(self) -> None:
        """The page connects to something."""
        self._changed.set()

    def end(self) -> None:
        """What it asked for is there, or never comes."""
        self.under_way -= 1
        self._changed.set()

    def refuse(self, host: str, why: str) -> None:
        if host in self.refused or len(self.refused) < MOST_REFUSED:
            self.refused[host] = why

    def fail(self, why: str) -> None:
        self.failed = self.failed or why

    def finish(self) -> None:
        """Nothing is answered any more."""
        self.is_over = True
        self._changed.set()

    async def idle(self) -> None:
        """Wait until nothing has been under way for a moment, or all is over."""
        while not self.is_over:
            self._changed.clear()
            try:
                async with asyncio.timeout(None if self.under_way else LONG_QUIET_S if self.unfinished > 0 else QUIET_S):
                    await self._changed.wait()
            except TimeoutError:
                return
