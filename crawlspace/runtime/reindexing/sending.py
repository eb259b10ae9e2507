"""Which sinks a reindex sends to, and how it sends to one of them, unless a crawl does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from crawlspace.admin.delivery import open_sink
from crawlspace.admin.sending import MOST_AT_ONCE, Sending
from crawlspace.clock import SystemClock
from crawlspace.config.sinks import SINKS
from crawlspace.errors import UsageError
from crawlspace.index.outbox import Drain
from crawlspace.index.places import place_of
from crawlspace.printable import quoted

if TYPE_CHECKING:
    from crawlspace.runtime.command import Place
    from crawlspace.runtime.stores.places import OpenStore


def sinks_of(place: Place, name: str | None) -> tuple[str, ...]:
    """Return the sink of that name, or without one all of the settings. Raises UsageError."""
    if name is not None and name not in place.sinks.names:
        raise UsageError(f"{SINKS} has no sink {quoted(name)}: it has {', '.join(place.sinks.names)}")
    return place.sinks.names if name is None else (name,)


@contextmanager
def sending_to(name: str, place: Place, opened: OpenStore) -> Iterator[Sending]:
    """Yield what sends a sink what waits for it. The file of the embedded index is there. Raises SettingError, StoreError."""
    options = next(one for one in place.sinks.options if one.name == name)
    with closing(open_sink(options, place.sinks, owner=place.name)) as sink:
        drain = Drain(opened.store, sink, SystemClock(), batch=MOST_AT_ONCE)
        with closing(Sending(drain, partial(opened.alone, name, place_of(sink)))) as sending:
            yield sending
