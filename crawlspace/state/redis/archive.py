"""The archive in Redis: its files, the places of records, and documents that are pushed again; `lua/archive.lua` writes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from crawlspace.model import Document
from crawlspace.state.redis.encoding import number, raw, understood, written
from crawlspace.state.redis.keys import Key
from crawlspace.state.redis.server import RedisServer
from crawlspace.urls import url_key


class RedisArchive(ABC):
    """The part of the store that concerns the archive, and the sinks as a whole."""

    server: RedisServer

    @abstractmethod
    def _command(self, command: str, key: str, *args: Any) -> Any: ...

    @abstractmethod
    def _read(self, operation: str, **args: object) -> Any: ...

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

    def link_metadata(self, ids: Sequence[int]) -> Mapping[int, str]:
        values = self._command("HMGET", Key.LINK_METADATA, *ids) if ids else ()
        with understood("metadata of links"):
            return {id: value.decode() for id, value in zip(ids, values, strict=True) if value is not None}

    def push_again(self, documents: Mapping[int, Document | None], *, sink: str | None = None) -> list[int]:
        given = [(id, _parts(document)) for id, document in documents.items()]
        return sorted(self._write("push_again", documents=given, **({} if sink is None else {"sink": sink})))

    def use_sinks(self, sinks: Sequence[str]) -> None:
        self.server.use_sinks(sinks)

    def ordered(self, sink: str, urls: Sequence[str]) -> dict[str, bool]:
        wanted = list(dict.fromkeys(urls))
        answers = self._read("ordered", sink=sink, urls=wanted)
        return {url: answer == 1 for url, answer in zip(wanted, answers, strict=True) if answer >= 0}

    def in_index(self, urls: Sequence[str]) -> set[str]:
        wanted = _named(urls)
        return {wanted[place - 1][0] for place in self._read("in_index", urls=wanted)}

    def delete_again(self, sink: str, urls: Sequence[str]) -> None:
        self._write("delete_again", sink=sink, urls=_named(urls))

    def withdraw(self, sink: str, *, deletes: bool) -> None:
        self._write("withdraw", sink=sink, deletes=deletes)

    def unpark(self, sink: str) -> int:
        return int(self._write("unpark", sink=sink))


def _named(urls: Sequence[str]) -> list[tuple[str, msgspec.Raw]]:
    """Return URLs with their keys, in their order."""
    return [(url, number(url_key(url))) for url in sorted(set(urls))]


def _parts(document: Document | None) -> list[object] | bool:
    """Return a document, and its text apart; False for none."""
    if document is None:
        return False
    return [raw(written(replace(document, text="", duplicates=[]))), document.text]
