"""Has a drain send all that waits, which a crawl does in steps between its pages."""

from __future__ import annotations

from crawlspace.index.outbox import Drain, Drained


def drain_all(drain: Drain) -> Drained:
    """Send until the outbox is empty or the index is unavailable; `waiting_s` is the time until the next step then."""
    sent = parked = 0
    while True:
        drained = drain.step()
        sent += drained.sent
        parked += drained.parked
        if drained.waiting_s is not None or not (drained.sent or drained.parked):
            return Drained(sent, parked, drained.waiting_s)
