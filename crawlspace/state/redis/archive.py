"""The archive in Redis: its files, the places of records, and documents that are pushed again; `lua/archive.lua` writes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from crawlspace.model import Document
from crawlspace.state.redis.encoding import raw, understood, written
from crawlspace.state.redis.keys import Key
from crawlspace.state.redis.scripts import Scripts


class RedisArchive(ABC):
    """The part of the store that concerns the archive, and the sinks as a whole."""

    scripts: Scripts

    @abstractmethod
    def _command(self, command: str, key: str, *args: Any) -> Any: ...

    @abstractmethod
    def _write(self, operation: str, **args: object) -> Any: ...

    def archive_files(self) -> dict[int, str]:
        names = self._command("HGETALL", Key.ARCHIVE_FILE)
        with understood("the files of the archive"):
            return {int(number): name.decode() for number, name in names.items()}

    def add_archive_file(self, name: str) -> int:
        return int(self._write("add_archive_file", name=name))

    def move_archived(self, moves: Sequence[tuple[int, int, int | None]]) -> None:
        self._write("move_archived", moves=[(id, was, is_now or False) for id, was, is_now in moves])

    def push_again(self, documents: Mapping[int, Document | None], *, sink: str | None = None) -> list[int]:
        given = [(id, _parts(document)) for id, document in documents.items()]
        return sorted(self._write("push_again", documents=given, **({} if sink is None else {"sink": sink})))

    def use_sinks(self, sinks: Sequence[str]) -> None:
        self.scripts.use_sinks(sinks)

    def withdraw(self, sink: str, *, deletes: bool) -> None:
        self._write("withdraw", sink=sink, deletes=deletes)

    def unpark(self, sink: str) -> int:
        return int(self._write("unpark", sink=sink))


def _parts(document: Document | None) -> list[object] | bool:
    """Return a document, and its text apart; False for none."""
    if document is None:
        return False
    return [raw(written(replace(document, text="", duplicates=[]))), document.text]
