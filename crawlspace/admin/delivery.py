"""Send waiting orders to the sinks of a collection, for commands: unless a crawl does."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from functools import partial

from crawlspace.clock import Clock
from crawlspace.config.sinks import EMBEDDED, SinkOptions, SinkSettings, made
from crawlspace.crawl.sinks.deliveries import references_of
from crawlspace.errors import StoreLocked
from crawlspace.index.outbox import Drain, OrderSource
from crawlspace.index.sink import Sink, place_of
from crawlspace.state.store import Store
from crawlspace.text import counted

CRAWL_UPDATES_INDEX = "the running crawl updates the index"
CRAWL_SENDS = "the running crawl sends the waiting orders"
SendLock = Callable[[], AbstractContextManager[Callable[[], object]]]
"""Opens a context in which no other process sends to a sink, or raises StoreLocked; the function it yields renews the lock."""
SinkSendLock = Callable[[str, str], AbstractContextManager[Callable[[], object]]]
"""As `SendLock`, for a sink and its location."""


class SentElsewhere(StoreLocked):
    """A sink gets its orders from another or an unknown machine; the message, after the sink's name, names it."""


def deliver(store: Store, sinks: SinkSettings, *, owner: str, clock: Clock, alone: SinkSendLock) -> str:
    """Send waiting orders to each sink, unless a crawl does; return a message, empty if nothing waits.

    Two senders at once could change the order.
    """
    said: list[str] = []
    for one in sinks.options:
        waiting = store.backlog(one.name)
        if not waiting:
            continue
        if one.name == EMBEDDED and not sinks.index_file.exists():
            said.append(f"{_orders(waiting)} for the index, which is not there: {sinks.index_file}")
            continue
        with closing(open_sink(one, sinks, owner=owner)) as sink:
            references, exclusion = references_of(store, one.name, sinks.references), sinks.exclusion_of(one.name)
            drain = Drain(store, sink, clock, references=references, exclusion=exclusion)
            said.append(_send(store, sink, drain, waiting, partial(alone, sink.name, place_of(sink))))
    return "; ".join(dict.fromkeys(said))


def open_sink(options: SinkOptions, sinks: SinkSettings, *, owner: str) -> Sink:
    """Return a sink, which is not connected yet. Raises SettingError, StoreError."""
    if options.name != EMBEDDED:
        return made(options)
    from crawlspace.index.embedded import EmbeddedIndex  # noqa: PLC0415 - only for what sends

    return EmbeddedIndex(sinks.index_file, owner=owner)


def _send(store: OrderSource, sink: Sink, drain: Drain, waiting: int, alone: SendLock) -> str:
    name = "the index" if sink.name == EMBEDDED else f"the sink {sink.name}"
    try:
        with alone() as go_on:
            while (step := drain.step()).waiting_s is None and (step.sent or step.parked):
                go_on()
    except SentElsewhere as error:
        return f"{_orders(waiting)} for {name}{error}"
    except StoreLocked:
        return CRAWL_UPDATES_INDEX
    left = store.backlog(sink.name)
    why = f": {drain.why_unavailable}" if drain.why_unavailable else ""
    return f"{_orders(left)} for {name} until the next crawl{why}" if left else f"{name} is up to date"


def _orders(number: int) -> str:
    return counted(number, "order waits", "orders wait")
