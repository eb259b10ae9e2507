"""Which server a sink has found, noted in the store, so that a report shows it without asking the server."""

from __future__ import annotations

import logging
from typing import Protocol, runtime_checkable

import msgspec

from crawlspace.index.sink import Sink

logger = logging.getLogger(__name__)


class Server(msgspec.Struct, frozen=True):
    """What answers for a sink."""

    product: str
    """Name and version, as it tells them."""
    warning: str = ""
    """A sentence, where that version was never tried."""


@runtime_checkable
class ServerSink(Protocol):
    """A sink that knows what its server is."""

    @property
    def server(self) -> Server | None:
        """The server that has answered; None before it has."""


class ServerStore(Protocol):
    """Keeps it by name."""

    def get_meta(self, name: str) -> str | None: ...
    def set_meta(self, name: str, value: str) -> None: ...


def note_server(store: ServerStore, sink: Sink) -> None:
    """Note the server of a sink; one that is another than before, and was never tried, is logged."""
    found = sink.server if isinstance(sink, ServerSink) else None
    if found is None or found == noted_server(store.get_meta(server_meta(sink.name))):
        return
    store.set_meta(server_meta(sink.name), msgspec.json.encode(found).decode())
    if found.warning:
        logger.warning("the sink %s: %s", sink.name, found.warning)


def noted_server(written: str | None) -> Server | None:
    """Return the server that was noted last; None where there is none."""
    try:
        return msgspec.json.decode(written, type=Server) if written else None
    except (msgspec.MsgspecError, RecursionError):
        return None  # it is noted anew when the sink is sent something


def server_meta(sink: str) -> str:
    """Return the name under which the store keeps it."""
    return f"server:{sink}"
