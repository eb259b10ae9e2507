"""Encode values for the functions in `lua/`, and decode their replies: MessagePack, which contains nothing executable.

A record is an array, its first element the version of its format. 64-bit numbers are sent as 8 bytes,
least significant first, because a number in Lua has 53 bits. Bytes are sent as MessagePack strings, because the server's library has no
other type; they arrive unchanged in any encoding (`raw` and `bytes_of`).
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from operator import itemgetter
from typing import Any, Literal

import msgspec
from msgspec.structs import astuple

from crawlspace.document import KEPT_FIELDS, Document, packed_text, unpack_text
from crawlspace.errors import StoreDamaged
from crawlspace.model import Held, NewUrl, Requester, Source, State, UrlState
from crawlspace.state.changes import NOWHERE, Change, Effects
from crawlspace.state.duplicates import leaves_group, stays_in_index, with_scheme
from crawlspace.state.fields import FIELDS, MERGED, WRITTEN
from crawlspace.state.inherited_metadata import compared_fields
from crawlspace.state.refused_links import LETTERS
from crawlspace.state.views import KnownUrl

logger = logging.getLogger(__name__)

FORMAT = 2
"""The first element of each record, and the value of the key `format`: a store of another format is refused."""
PART = 65_536
"""Ids whose records are in one hash."""
NOTHING = msgspec.Raw(b"\xc0")
_REQUESTERS = tuple(Requester)


class Row(msgspec.Struct, array_like=True, gc=False):
    """A record as it is stored; the functions get the positions of its elements from here (`library.py`). New ones come last."""

    version: int
    url: str
    key: msgspec.Raw
    site: int
    state: State
    status: int | None
    source: Source
    shift: int
    depth: int
    redirects: int
    rank: int
    discovered_at: int
    depth_from: int = 0
    host_as_written: str | None = None
    next_fetch: int | None = None
    retries: int = 0
    lease_until: int | None = None
    fetched_at: int | None = None
    interval_s: int | None = None
    errors: int = 0
    rules: int = 0
    archived: int | None = None
    ordered: int = 0
    checksum: msgspec.Raw = NOTHING
    canonical: msgspec.Raw = NOTHING
    refused: str | None = None
    orphaned: int | None = None
    etag: str | None = None
    last_modified: str | None = None
    held: Held | None = None
    held_mark: int = 0
    requested_by: bool | int | None = False
    """False for NOBODY, because 0 is true in Lua, or None; else as in UrlState."""
    fields_mark: msgspec.Raw = NOTHING
    detail: str | None = None
    simhash: msgspec.Raw = NOTHING
    history: msgspec.Raw = NOTHING


_read_row = msgspec.msgpack.Decoder(Row).decode
_read_document = msgspec.msgpack.Decoder(Document).decode
_write = msgspec.msgpack.Encoder().encode
written = _write


def raw(value: bytes) -> msgspec.Raw:
    """Return bytes as MessagePack, as a string."""
    size = len(value)
    if size < 32:
        return msgspec.Raw(bytes((0xA0 | size,)) + value)
    return msgspec.Raw(b"\xdb" + size.to_bytes(4, "big") + value)


def bytes_of(value: msgspec.Raw) -> bytes | None:
    """Return the bytes of a string in MessagePack, or None for its null."""
    if value is NOTHING:
        return None
    found = bytes(value)
    kind = found[0]
    if 0xA0 <= kind < 0xC0:
        return found[1:]
    return None if kind == 0xC0 else found[_HEADS.get(kind, 1) :]


_HEADS = {0xD9: 2, 0xDA: 3, 0xDB: 5}
"""Length of the header of a string, by its first byte, if longer than one byte."""


_key_of = struct.Struct("<xq").unpack  # of the key in a record, a string of 8 bytes after a header of one


def key_bytes(value: int) -> bytes:
    return value.to_bytes(8, "little", signed=True)


def number(value: int) -> msgspec.Raw:
    """Return a 64-bit number in the form of the functions."""
    return raw(key_bytes(value))


def number_of(value: msgspec.Raw) -> int | None:
    found = bytes_of(value)
    return None if found is None else int.from_bytes(found, "little", signed=True)


class UrlReply(msgspec.Struct, array_like=True):
    """The reply of a function for a URL, its record in one piece; `representative` is that of its group (0: none), `inherited` False for none."""

    id: int
    row: msgspec.Raw
    site: str
    representative: int
    inherited: str | Literal[False]


_decode_all = msgspec.msgpack.Decoder(list[UrlReply]).decode


def decode_all(reply: bytes) -> list[UrlReply]:
    """Decode the reply of a function for several URLs. Raises StoreDamaged."""
    try:
        return _decode_all(reply)
    except UNREADABLE as error:
        raise damaged(f"its URLs: {error}") from error


def states_of(reply: bytes) -> list[UrlState]:
    """Raises StoreDamaged, as `knowns_of` and `document_of`."""
    return list(map(decode_state, decode_all(reply)))


class Batch(msgspec.Struct, array_like=True):
    """URLs that have just been leased: `rows` is an array of records, in the order of `ids`, which are separated by commas.

    The others are ids, each followed by the representative of its group, or by its inherited metadata.
    """

    ids: str
    rows: msgspec.Raw
    representatives: list[str]
    inherited: list[str]


_read_batch = msgspec.msgpack.Decoder(Batch).decode
_read_rows = msgspec.msgpack.Decoder(list[Row]).decode


def ids_of(reply: str) -> list[int]:
    return list(map(int, reply.split(","))) if reply else []


def batch_of(reply: bytes) -> Batch:
    """Raises StoreDamaged."""
    with understood("its leased URLs"):
        return _read_batch(reply)


def leased(batch: Batch, site: str, until: int) -> list[UrlState] | None:
    """Return leased URLs, with their lease, which their records lack; None if a record is damaged, so that none can be decoded."""
    representatives = dict(zip(map(int, batch.representatives[::2]), map(int, batch.representatives[1::2]), strict=True))
    inherited = dict(zip(map(int, batch.inherited[::2]), batch.inherited[1::2], strict=True))
    try:
        rows = _read_rows(bytes_of(batch.rows) or b"")
        return [
            _state_of(id, row, site, representatives.get(id, 0), inherited.get(id), until)
            for id, row in zip(ids_of(batch.ids), rows, strict=True)
        ]
    except UNREADABLE:
        return None


def leased_one_by_one(reply: bytes, until: int) -> list[UrlState]:
    """Return URLs that are leased, without those whose records are damaged."""
    states = []
    for one in decode_all(reply):
        with suppress(StoreDamaged):
            states.append(decode_state(one, until))
    return states


def decode_state(reply: UrlReply, lease_until: int | None = None) -> UrlState:
    """Raises StoreDamaged."""
    try:
        return _state_of(reply.id, _row_of(reply), reply.site, reply.representative, reply.inherited or None, lease_until)
    except UNREADABLE as error:
        raise damaged(f"URL {reply.id}: {error}") from error


def _row_of(reply: UrlReply) -> Row:
    return _read_row(bytes_of(reply.row) or b"")


_NOT_IN_ROW = ("id", "site", "inherited", "indexed", "duplicate_of")
"""The fields of a reply that are not in the record of the URL."""
_POSITIONS = {name: position for position, name in enumerate((*Row.__struct_fields__, *_NOT_IN_ROW))}
_in_order = itemgetter(*(_POSITIONS[name] for name in FIELDS))
_URL, _KEY, _RANK, _LEASE_UNTIL, _CHECKSUM, _CANONICAL, _REQUESTED_BY, _FIELDS_MARK, _ARCHIVED, _SIMHASH, _HISTORY, _INHERITED = (
    map(
        _POSITIONS.__getitem__,
        (
            "url",
            "key",
            "rank",
            "lease_until",
            "checksum",
            "canonical",
            "requested_by",
            "fields_mark",
            "archived",
            "simhash",
            "history",
            "inherited",
        ),
    )
)


def _state_of(id: int, row: Row, site: str, representative: int, inherited: str | None, leased_until: int | None) -> UrlState:
    """`representative` is that of its group, 0: none. By position and not by name, which takes half as long."""
    values: list[Any] = [
        *astuple(row),
        id,
        site,
        inherited,
        representative == id,
        representative if representative not in (0, id) else None,
    ]
    url, checksum, canonical, fields_mark = values[_URL], values[_CHECKSUM], values[_CANONICAL], values[_FIELDS_MARK]
    if not url.startswith(("http://", "https://")) or url.find("/", 8) < 0:
        raise ValueError(f"{url[:80]!r} is no URL")
    if inherited is not None and not _is_table(inherited):
        logger.warning("the inherited fields of %s are damaged: its document is without them", url)
        values[_INHERITED] = None
    values[_KEY] = _key_of(values[_KEY])[0]
    values[_RANK] = with_scheme(values[_RANK], url)
    if leased_until:
        values[_LEASE_UNTIL] = leased_until
    values[_CHECKSUM] = None if checksum is NOTHING else bytes_of(checksum)
    values[_CANONICAL] = None if canonical is NOTHING else number_of(canonical)
    values[_SIMHASH] = None if values[_SIMHASH] is NOTHING else bytes_of(values[_SIMHASH])
    values[_HISTORY] = None if values[_HISTORY] is NOTHING else bytes_of(values[_HISTORY])
    values[_REQUESTED_BY] = _REQUESTERS[values[_REQUESTED_BY] or 0]
    values[_FIELDS_MARK] = 0 if fields_mark is NOTHING else number_of(fields_mark) or 0
    return UrlState(*_in_order(values))


def _is_table(text: str) -> bool:
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except (msgspec.MsgspecError, RecursionError):
        return False


def knowns_of(reply: bytes) -> list[KnownUrl]:
    return list(map(_known_of, decode_all(reply)))


def _known_of(reply: UrlReply) -> KnownUrl:
    try:
        row = _row_of(reply)
    except UNREADABLE as error:
        raise damaged(f"URL {reply.id}: {error}") from error
    return KnownUrl(
        reply.id, _key_of(row.key)[0], row.url, reply.site, row.state, row.status, row.depth, row.host_as_written,
        has_document=row.checksum != NOTHING,
        indexed=reply.representative == reply.id,
        held=row.held,
        never_due=row.state != State.PENDING and row.next_fetch is None,
        source=row.source, shift=row.shift, refused=row.refused, archived=row.archived, ordered=row.ordered,
    )  # fmt: skip


def new_urls(urls: Iterable[NewUrl]) -> list[tuple[object, ...]]:
    """Return new URLs in the form of the Lua function `discover`."""
    return [
        (
            number(new.key),
            new.url,
            new.site,
            int(new.source),
            new.shift,
            new.depth,
            new.redirects,
            new.rank,
            new.host_as_written,
            new.inherited,
            new.depth_from,
        )
        for new in urls
    ]


def change_of(change: Change) -> dict[str, object]:
    """Return a change in the form of `lua/record.lua`; empty values are left out."""
    state, document = change.state, change.document
    encoded: dict[str, object] = {"id": state.id, "state": _fields_of(state, change.archived)}
    if change.forget:
        encoded["forget"] = True
    if change.together_with is not None:
        encoded["together_with"] = change.together_with
    if change.keep_in_index:
        encoded["keep"] = True
    if state.held is not None and leaves_group(state):
        encoded["leaves_group"] = True
    if stays_in_index(state):
        encoded["stays"] = True
    if change.drops_refused_links:
        encoded["drops"] = True
    if document is not None:
        encoded["document"] = raw(kept_document(document))
        encoded["text"] = packed_text(document)
        fields = compared_fields(document.fields, state.inherited)
        encoded["fields"] = raw(_write(fields) if fields else b"")
    if change.links is not None:
        encoded["links"] = raw(b"".join(map(key_bytes, change.links)))
    if change.discovered:
        encoded["discovered"] = new_urls(change.discovered)
    if change.refused_links:
        encoded["refused"] = [(LETTERS[link.reason], link.host, link.url, link.rule) for link in change.refused_links]
    return encoded


def kept_document(document: Document) -> bytes:
    """Return what is stored of a document with its URL."""
    return written({"url": ""} | {name: value for name in KEPT_FIELDS if (value := getattr(document, name))})


def document_of(reply: Sequence[bytes]) -> Document | None:
    """Return the document to push for a URL: from its URL, its document without text, the text, and the URLs of its duplicates."""
    if not reply:
        return None
    with understood("a document"):
        url, kept_document, text, *duplicates = reply
        document = _read_document(kept_document)
        document.url = url.decode()
        unpack_text(document, text.decode())
        document.duplicates = [other.decode() for other in duplicates]
        return document


_SENT = {*WRITTEN, *MERGED}
_as_row = itemgetter(*(FIELDS.index(name) if name in _SENT else len(FIELDS) for name in Row.__struct_fields__))


def _fields_of(state: UrlState, archived: int | None) -> list[object]:
    """Return the new record, with None for fields that a change does not write."""
    row = list(_as_row((*astuple(state), None)))
    row[0] = FORMAT
    row[_ARCHIVED] = False if archived == NOWHERE else archived
    row[_CHECKSUM] = None if state.checksum is None else raw(state.checksum)
    row[_CANONICAL] = None if state.canonical is None else number(state.canonical)
    row[_SIMHASH] = None if state.simhash is None else raw(state.simhash)
    row[_HISTORY] = None if state.history is None else raw(state.history)
    row[_REQUESTED_BY] = int(state.requested_by) or False
    row[_FIELDS_MARK] = number(state.fields_mark) if state.fields_mark else None
    return row


def effects_of(reply: Sequence[Any]) -> Effects:
    discovered, pending, lowered, pushes, deletes, displaced, _ = reply
    return Effects(
        discovered=discovered,
        pending_sites={site_text(site): count for site, count in zip(pending[::2], pending[1::2], strict=True)},
        lowered=[tuple(one) for one in lowered],
        pushes=pushes,
        deletes=deletes,
        displaced=displaced,
    )


def site_text(name: bytes) -> str:
    """Return the name of a site, `host:port`. Raises StoreDamaged."""
    with understood("the name of a site"):
        site = name.decode()
        host, _, port = site.rpartition(":")
        if not (host and port.isdigit()):
            raise ValueError(repr(site[:80]))
        return site


def damaged(what: str) -> StoreDamaged:
    """Return the error for a value that no version of crawlspace has written."""
    return StoreDamaged(
        f"what Redis keeps of this collection is damaged ({what}): put a copy of its data back, or delete its keys, move the index away too"
        " and crawl again"
    )


@contextmanager
def understood(what: str) -> Iterator[None]:
    """Raise StoreDamaged for a value that cannot be decoded."""
    try:
        yield
    except UNREADABLE as error:
        raise damaged(f"{what}: {error}") from error


UNREADABLE = (msgspec.MsgspecError, ValueError, TypeError, LookupError, struct.error, RecursionError)
"""The errors of decoding a foreign value."""
