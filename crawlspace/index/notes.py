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


# --- standstill ----------------------------------------------------------------------------------------------------


class Standstill(msgspec.Struct, frozen=True):
    """A sink takes nothing."""

    since: int
    """Unix time, in seconds."""
    why: str
    """What it said the last time."""


class NoteStore(Protocol):
    def get_meta(self, name: str) -> str | None: ...
    def set_meta(self, name: str, value: str) -> None: ...


class StandstillNote:
    """The note of one sink, written only where it changes. Raises StoreError."""

    def __init__(self, store: NoteStore, sink: str) -> None:
        self._store = store
        self._name = standstill_meta(sink)
        self._noted: Standstill | None = None
        self._is_known = False

    def forget(self) -> None:
        """Read it again before the next change: another process may write it."""
        self._is_known = False

    def note(self, why: str, *, now: int) -> None:
        """Note why the sink has taken nothing just now; empty: it has taken something."""
        if not self._is_known:
            self._noted, self._is_known = noted_standstill(self._store.get_meta(self._name)), True
        since = now if self._noted is None else self._noted.since
        new = Standstill(since, why) if why else None
        if new != self._noted:
            self._store.set_meta(self._name, "" if new is None else msgspec.json.encode(new).decode())
            self._noted = new


def noted_standstill(written: str | None) -> Standstill | None:
    """Return what was noted last; None where the sink has taken what it was sent."""
    try:
        return msgspec.json.decode(written, type=Standstill) if written else None
    except (msgspec.MsgspecError, RecursionError):
        return None  # it is noted anew when the sink is sent something


def standstill_meta(sink: str) -> str:
    """Return the name under which the store keeps it."""
    return f"standstill:{sink}"
