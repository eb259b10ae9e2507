"""What the store notes of a sink, so that reports show it without a request to the server: the server, and since when and why the sink accepts nothing."""

from __future__ import annotations

import logging
from typing import Protocol, TypeVar, runtime_checkable

import msgspec

from crawlspace.index.marks import NoteStore
from crawlspace.index.sink import Sink

logger = logging.getLogger(__name__)


class Server(msgspec.Struct, frozen=True):
    """The server of a sink."""

    product: str
    """Name and version."""
    warning: str = ""
    """A sentence, if this version was never tried."""


class Standstill(msgspec.Struct, frozen=True):
    """A sink accepts nothing."""

    since: int
    """Unix time, in seconds."""
    why: str
    """The last reason."""


Note = TypeVar("Note", Server, Standstill)


@runtime_checkable
class ServerSink(Protocol):
    """A sink that knows its server."""

    @property
    def server(self) -> Server | None:
        """The server that has answered; None before it has."""


def note_server(store: NoteStore, sink: Sink) -> None:
    """Note the server of a sink; log a warning about a new one that was never tried."""
    found = sink.server if isinstance(sink, ServerSink) else None
    if found is None or found == noted_server(store.get_meta(server_meta(sink.name))):
        return
    store.set_meta(server_meta(sink.name), msgspec.json.encode(found).decode())
    if found.warning:
        logger.warning("the sink %s: %s", sink.name, found.warning)


class StandstillNote:
    """The note of a sink that accepts nothing, written only if it changes. Raises StoreError."""

    def __init__(self, store: NoteStore, sink: str) -> None:
        self._store = store
        self._name = standstill_meta(sink)
        self._noted: Standstill | None = None
        self._is_known = False

    def forget(self) -> None:
        """Read the note again before the next change, because another process may write it."""
        self._is_known = False

    def note(self, why: str, *, now: int) -> None:
        """Note why the sink has accepted nothing just now; empty: it has accepted something."""
        if not self._is_known:
            self._noted, self._is_known = noted_standstill(self._store.get_meta(self._name)), True
        since = now if self._noted is None else self._noted.since
        new = Standstill(since, why) if why else None
        if new != self._noted:
            self._store.set_meta(self._name, "" if new is None else msgspec.json.encode(new).decode())
            self._noted = new


def noted_server(written: str | None) -> Server | None:
    """Return the noted server; None if there is none."""
    return _read(written, Server)


def noted_standstill(written: str | None) -> Standstill | None:
    """Return the noted standstill; None if the sink accepts orders."""
    return _read(written, Standstill)


def server_meta(sink: str) -> str:
    """Return the name of the note in the store."""
    return f"server:{sink}"


def standstill_meta(sink: str) -> str:
    """Return the name of the note in the store."""
    return f"standstill:{sink}"


def _read(written: str | None, kind: type[Note]) -> Note | None:
    try:
        return msgspec.json.decode(written, type=kind) if written else None
    except (msgspec.MsgspecError, RecursionError):
        return None  # it is noted again with the next batch
