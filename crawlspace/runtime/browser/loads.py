"""What one page loads: which of it is under way, what was refused, and what failed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from time import monotonic

MOST_REQUESTS = 500
"""Requests of one page; further ones are refused."""
MOST_REFUSED = 20
"""Hosts that are named."""
QUIET_S = 0.4
"""Nothing is under way for so long: the network is idle. The page has to rest for a tenth of a second more before it is read."""


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
    is_over: bool = False
    has_cookies: bool = False
    """The browser may have cookies to be sent along."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def begin(self) -> bool:
        """The page asks for something; return whether it may go on asking."""
        self.asked += 1
        self.under_way += 1
        self._changed.set()
        return self.asked <= MOST_REQUESTS

    def end(self) -> None:
        """What it asked for is there, or never comes."""
        self.under_way -= 1
        self._changed.set()

    def refuse(self, host: str, why: str) -> None:
        if host in self.refused or len(self.refused) < MOST_REFUSED:
            self.refused[host] = why

    def fail(self, why: str) -> None:
        self.failed = self.failed or why

    async def idle(self) -> None:
        """Wait until nothing has been under way for a moment."""
        while True:
            self._changed.clear()
            try:
                async with asyncio.timeout(None if self.under_way else QUIET_S):
                    await self._changed.wait()
            except TimeoutError:
                return
