"""Send orders again that a sink has refused: after changes of its mapping or limits it may accept them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from crawlspace.admin.delivery import CRAWL_SENDS
from crawlspace.errors import IndexUnavailable
from crawlspace.state.store import OrderStore
from crawlspace.text import counted


@dataclass(frozen=True, slots=True)
class SentAgain:
    """The result of sending parked orders again."""

    sink: str
    number: int
    refused: int
    """Orders that it refused again."""
    waiting: int
    """All orders that wait for the sink now."""
    unavailable: str
    """Why the sink has not accepted all waiting orders; empty if it has, or a crawl sends."""

    @property
    def is_done(self) -> bool:
        """Return whether nothing is left for a person to look at."""
        return not self.refused and not self.unavailable

    def sentence(self, collection: str) -> str:
        """Return a sentence for a user."""
        sentence = f"{self.sink}: {counted(self.number, 'order', 'orders')} sent again"
        if not self.waiting:
            sentence += f", {self.number - self.refused:,} taken, {self.refused:,} refused"
        if self.refused:
            sentence += f" (`scrapy sinks {collection} --parked {self.sink}` shows why)"
        if self.unavailable:
            return f"{sentence}; {counted(self.waiting, 'order waits', 'orders wait')}: {self.unavailable}"
        return f"{sentence}; {CRAWL_SENDS}" if self.waiting else sentence


def send_again(store: OrderStore, sink: str, send: Callable[[], None]) -> SentAgain:
    """Unpark the orders of a sink, and send them.

    `send` sends the waiting orders, unless a crawl does. It raises IndexUnavailable.
    """
    before = {(op, url) for op, url, _ in store.parked(sink)}
    number = store.unpark(sink)
    unavailable = ""
    try:
        send()
    except IndexUnavailable as error:
        unavailable = str(error)
    again = {(op, url) for op, url, _ in store.parked(sink)}
    return SentAgain(sink, number, len(before & again), store.backlog(sink), unavailable)
