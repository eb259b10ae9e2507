"""Requests of a worker that was cut off or suspended after it had handed them out: they may be sent only while it holds their sites."""

from __future__ import annotations

from typing import Protocol

from twisted.internet.defer import Deferred, fail
from twisted.internet.error import ConnectionLost


class Holder(Protocol):
    """What a worker knows of what it holds: see Supply."""

    @property
    def may_be_dead(self) -> bool: ...
    def has_lost(self, site: str) -> bool: ...


class HeldBack:
    def __init__(self, holder: Holder) -> None:
        self._holder = holder
        self._waiting: list[Deferred[None]] = []

    def wait(self, site: str) -> Deferred[None] | None:
        """What a request that could be sent to the site now has to wait for; None: for nothing.

        It fails where others have the site by now: what comes of the request is passed over then.
        """
        if self._holder.has_lost(site):
            return fail(ConnectionLost("the site is another worker's by now"))
        if not self._holder.may_be_dead:
            return None
        self._waiting.append(Deferred())
        return self._waiting[-1]

    def look(self, *, is_over: bool) -> None:
        """Let those go on whose wait has an end; where the crawl is over, all end, for it waits for them. To be called several times a second."""
        if not self._waiting or (self._holder.may_be_dead and not is_over):
            return
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if is_over:
                one.errback(ConnectionLost("the crawl is over"))
            else:
                one.callback(None)
