"""Since when, and why, a sink takes nothing, noted in the store for the reports."""

from __future__ import annotations

from typing import Protocol

import msgspec


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
