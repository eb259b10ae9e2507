"""Which sinks a reindex sends to, and how it sends to one or each of them, unless a crawl does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from crawlspace.admin.delivery import open_sink
from crawlspace.admin.sending import MOST_AT_ONCE, Sending
from crawlspace.clock import SystemClock
from crawlspace.config.sinks import EMBEDDED, SINKS
from crawlspace.errors import IndexUnavailable, UsageError
from crawlspace.index.outbox import Drain
from crawlspace.index.places import place_of
from crawlspace.printable import quoted

if TYPE_CHECKING:
    from crawlspace.index.sink import Sink
    from crawlspace.runtime.command import Place
    from crawlspace.runtime.stores.places import OpenStore


def sinks_of(place: Place, name: str | None) -> tuple[str, ...]:
    """Return the sink of that name, or without one all of the settings. Raises UsageError."""
    if name is not None and name not in place.sinks.names:
        raise UsageError(f"{SINKS} has no sink {quoted(name)}: it has {', '.join(place.sinks.names)}")
    return place.sinks.names if name is None else (name,)


@contextmanager
def opened_sink(name: str, place: Place) -> Iterator[Sink]:
    """Open a sink, which is not connected yet. The file of the embedded index is there. Raises SettingError, StoreError."""
    options = next(one for one in place.sinks.options if one.name == name)
    with closing(open_sink(options, place.sinks, owner=place.name)) as sink:
        yield sink


@contextmanager
def sending_to(name: str, place: Place, opened: OpenStore) -> Iterator[Sending]:
    """Yield what sends a sink what waits for it. Raises as `opened_sink`."""
    with opened_sink(name, place) as sink:
        exclusion = place.sinks.exclusion_of(name)
        drain = Drain(opened.store, sink, SystemClock(), batch=MOST_AT_ONCE, exclusion=exclusion)
        with closing(Sending(drain, partial(opened.alone, name, place_of(sink)))) as sending:
            yield sending


class SendingToEach:
    """Sends several sinks what waits for them, one after the other. A server that does not take it is left out from then on."""

    def __init__(self, sendings: Mapping[str, Sending]) -> None:
        self._sendings = dict(sendings)
        self.unavailable: dict[str, str] = {}
        """By name: why a server has not taken what waits for it."""

    def until(self, most: int) -> None:
        """As that of Sending, for each of them. Raises IndexUnavailable if the embedded index does not take what waits."""
        for name, sending in list(self._sendings.items()):
            try:
                sending.until(most)
                if len(self._sendings) > 1:
                    sending.settle()  # while one sends, another might not
            except IndexUnavailable as error:
                if name == EMBEDDED:
                    raise
                self.unavailable[name] = str(error)
                del self._sendings[name]

    def settle(self) -> None:
        """As that of Sending: where there are several, all are settled at any time."""
        for sending in self._sendings.values():
            sending.settle()
