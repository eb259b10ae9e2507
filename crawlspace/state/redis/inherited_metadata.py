"""Inherited metadata in Redis, see `state.inherited_metadata`.

`record` adds the pages of its batch to the list `to_inherit`, in its own transaction. The changes of other URLs are decided here,
afterwards, and written by one function, which writes nothing if another worker was faster or a URL has changed meanwhile: then it is
decided again. After a kill in between, the next `record` or `begin_run` of any worker processes the entry.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from crawlspace.model import UrlState
from crawlspace.state.changes import Change, Effects
from crawlspace.state.inherited_metadata import (
    InheritingUrl,
    MetadataChanges,
    RecordedPage,
    StoredDocument,
    dropped,
    metadata_changes,
    recorded_pages,
)
from crawlspace.state.redis.encoding import bytes_of, decode_all, decode_state, number, raw, understood, written
from crawlspace.state.redis.keys import Key, Prefix
from crawlspace.state.redis.server import RedisServer

_AT_ONCE = 1_000


class _Entry(msgspec.Struct, array_like=True):
    now: int
    pages: list[msgspec.Raw]


_read_entry = msgspec.msgpack.Decoder(_Entry).decode
_read_page = msgspec.msgpack.Decoder(RecordedPage).decode
_read_fields = msgspec.msgpack.Decoder(dict[str, str]).decode


def encode_pages(changes: Sequence[Change]) -> dict[str, object]:
    """Return the arguments of `record` for inherited metadata; `any_metadata`: whether these pages have or had some."""
    pages = recorded_pages(changes, {change.state.id: change.state.key for change in changes})
    any_metadata = any(page.fetched_with or (page.change and page.change.link_metadata) for page in pages)
    for page in pages:
        if page.change is not None and page.change.links:
            page.change = page.change._replace(links=list(page.change.links))  # it may be an array
    return {"pages": [(page.id, raw(written(page))) for page in pages], "any_metadata": any_metadata}


class RedisInheritance:
    def __init__(self, server: RedisServer) -> None:
        self._server = server
        self._rows: dict[int, bytes] = {}
        """The records on which the current decision is based."""

    def settle(self, effects: Effects) -> None:
        """Decide and write the changes that follow from all entries of the list."""
        while (entry := self._server.command("LINDEX", Key.TO_INHERIT, 0)) is not None:
            with understood("pages whose metadata is inherited"):
                found = _read_entry(entry)
                pages = [_read_page(bytes_of(page) or b"") for page in found.pages]
            changes = metadata_changes(pages, self, now=found.now)
            if self._write(changes, entry):
                changes.add_to(effects)

    def drop(self) -> None:
        cursor = None
        while cursor != "0":
            next_, ids = self._server.call("some_inheriting", cursor=cursor or "0", limit=_AT_ONCE)
            while not self._write(self._dropped(ids)):
                pass
            cursor = next_.decode()

    # StoredMetadata
    def link_metadata(self, pages: Collection[int]) -> Mapping[int, str]:
        with understood("metadata of links"):
            return {id: value.decode() for id, value in self._values(Key.LINK_METADATA, pages).items()}

    def links(self, pages: Collection[int]) -> Mapping[int, Sequence[int]]:
        with understood("links"):
            return {id: memoryview(keys).cast("q").tolist() for id, keys in self._values(Key.LINKS, pages).items()}

    def inherited(self, ids: Collection[int]) -> Mapping[int, str | None]:
        return {state.id: state.inherited for state in self._states(ids)}

    def with_source(self, pages: Collection[int]) -> Iterator[InheritingUrl]:
        for page in pages:
            with understood("URLs that inherit metadata"):
                ids = sorted(map(int, self._server.command("SMEMBERS", f"{Prefix.INHERITING}{page}")))
            yield from (InheritingUrl(state.id, state.key, state.inherited, page) for state in self._states(ids))

    def without_source(self, keys: Collection[int]) -> Iterator[InheritingUrl]:
        wanted = list(keys)
        for first in range(0, len(wanted), _AT_ONCE):
            reply = self._server.call("without_source", keys=[number(key) for key in wanted[first : first + _AT_ONCE]])
            for state in map(decode_state, decode_all(reply)):
                yield InheritingUrl(state.id, state.key, state.inherited, None)

    def documents(self, ids: Collection[int]) -> Iterator[StoredDocument]:
        states = list(self._states(ids))
        fields, marks = self._values(Key.FIELDS, ids), self._values(Key.MARK, ids)
        for state in states:
            with understood("when a URL was due for its metadata"):
                mark = int(marks[state.id]) if state.id in marks else None
            yield StoredDocument(state, _fields_of(fields.get(state.id)), mark)

    def _dropped(self, ids: Collection[int]) -> MetadataChanges:
        with understood("the source pages of URLs"):
            source_pages = {id: int(page) for id, page in self._values(Key.BY, ids).items()}
        urls = [InheritingUrl(one.id, one.key, one.inherited, source_pages.get(one.id)) for one in self._states(ids)]
        statuses = {page.id: page.status for page in self._states(set(source_pages.values()))}
        return dropped(urls, statuses, self)

    def _states(self, ids: Collection[int]) -> Iterator[UrlState]:
        wanted = list(ids)
        for first in range(0, len(wanted), _AT_ONCE):
            for reply in decode_all(self._server.call("get_ids", ids=wanted[first : first + _AT_ONCE])):
                self._rows[reply.id] = bytes_of(reply.row) or b""
                yield decode_state(reply)

    def _values(self, key: str, ids: Collection[int]) -> dict[int, bytes]:
        found = self._server.command("HMGET", key, *ids) if ids else []
        return {id: value for id, value in zip(ids, found, strict=True) if value is not None}

    def _write(self, changes: MetadataChanges, entry: bytes | None = None) -> bool:
        """Write changes, and remove the entry that they follow from; return False if nothing was written."""
        done = self._server.write(
            "write_inherited",
            entry=None if entry is None else raw(entry),
            link_metadata=list(changes.link_metadata.items()),
            urls=[(url.id, was.source_page, url.inherited, url.source_page) for was, url in changes.inherited.values()],
            due=[(one.state.id, raw(self._rows[one.state.id]), one.at, _text(one.mark)) for one in changes.due],
        )
        self._rows.clear()
        return done == 1


def _fields_of(packed: bytes | None) -> Mapping[str, str]:
    """Return the fields of a document; none where they are damaged."""
    try:
        return {} if packed is None else _read_fields(packed)
    except (msgspec.MsgspecError, RecursionError):
        return {}


def _text(mark: int | None) -> str | None:
    return None if mark is None else str(mark)
