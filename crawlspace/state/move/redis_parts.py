"""How the records of a move travel between Python and a Redis server: those of URLs for `lua/move.lua`, plain commands for the rest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

import msgspec

from crawlspace.model import Document, Op, UrlState
from crawlspace.state.move.records import OrderRecord, RestRecord, SiteRecord, UrlRecord, bare
from crawlspace.state.redis.encoding import FORMAT, NOTHING, Row, Told, bytes_of, decode_state, document_of, number, raw, written
from crawlspace.state.redis.sites import encode_unreachable

KINDS = ("delete", "push", "parked")
"""The lists of a sink's orders."""
_MOST_VALUES = 1_000
"""In one command."""


class _Whole(msgspec.Struct, array_like=True):
    """All that is kept of a URL, as `lua/move.lua` tells it; false where there is nothing."""

    id: int
    row: msgspec.Raw
    site: msgspec.Raw
    winner: int
    inherited: msgspec.Raw
    links: msgspec.Raw
    document: msgspec.Raw
    link_metadata: msgspec.Raw
    by: msgspec.Raw
    mark: msgspec.Raw
    aside: msgspec.Raw
    left: bool
    text: msgspec.Raw
    incumbent: bool


_read_wholes = msgspec.msgpack.Decoder(list[_Whole]).decode
_read_parts = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode
_FALSE = msgspec.Raw(b"\xc2")


def url_records(packed: bytes) -> Iterator[UrlRecord]:
    """Yield URLs as the script has told them. Raises ValueError, and what msgspec raises, for what is not ours."""
    for one in _read_wholes(packed):
        state = decode_state(Told(one.id, one.row, _text(one.site) or "", one.winner, _text(one.inherited) or False))
        state.lease_until = None
        document, by, mark = _optional(one.document), _optional(one.by), _optional(one.mark)
        told = None if document is None else document_of([b"", document, b""])
        links = _optional(one.links) or b""
        if len(links) % 8:
            raise ValueError(f"the links of URL {one.id} are cut off")
        yield UrlRecord(
            state,
            links=links,
            document=None if told is None else bare(told),
            text=_text(one.text),
            aside_in=_optional(one.aside),
            incumbent=one.incumbent,
            left=one.left,
            link_metadata=_text(one.link_metadata),
            inherited_from=None if by is None else int(by),
            inherited_mark=None if mark is None else int(mark),
        )


def kept_document(packed: bytes) -> Document | None:
    """Return the document that is kept with an order, without its URL."""
    document = document_of([bytes_of(part) or b"" for part in _read_parts(packed)])
    return None if document is None else replace(document, url="")


class Commands:
    """The commands that write the records of a part, but for what the script does with the URLs themselves."""

    def __init__(self) -> None:
        self._hashes: defaultdict[str, list[object]] = defaultdict(list)
        self._sets: defaultdict[str, list[object]] = defaultdict(list)
        self._lists: defaultdict[str, list[object]] = defaultdict(list)
        self._indexed = 0

    def add_site(self, one: SiteRecord) -> None:
        if one.health is not None:
            self._hashes["health"] += (one.site, one.health.as_text())
        if one.unreachable is not None:
            self._hashes["unreachable"] += (one.site, encode_unreachable(one.unreachable))
        for entry in one.robots:
            told = written((entry.status, entry.body, entry.fetched_at))
            self._hashes["robots"] += (f"{entry.scheme} {entry.site}", raw(told))

    def add_url(self, one: UrlRecord) -> None:
        state = one.state
        id = str(state.id)
        fields = one.document.fields if one.document is not None else {}
        for key, value in (
            ("links", raw(one.links) if one.links else None),
            ("document", None if one.document is None else _packed(one.document)),
            ("fields", raw(written(fields)) if fields else None),
            ("inherited", state.inherited),
            ("link_metadata", one.link_metadata),
            ("by", None if one.inherited_from is None else str(one.inherited_from)),
            ("mark", None if one.inherited_mark is None else str(one.inherited_mark)),
        ):
            if value is not None:
                self._hashes[key] += (id, value)
        if one.text is not None and state.checksum is not None:
            self._hashes["text"] += (raw(state.checksum), one.text)
        if one.inherited_from is not None:
            self._sets[f"to:{one.inherited_from}"].append(id)
        if one.incumbent and state.checksum is not None:  # it does not stand aside
            self._hashes["incumbent"] += (raw(state.checksum), id)
        if one.left:
            self._sets["left"].append(id)
        self._indexed += state.indexed
        self._hashes["n"] = ["urls", id]

    def add_order(self, one: OrderRecord) -> None:
        place, at = f"out:{one.sink}", str(one.number)
        self._hashes[f"{place}:url"] += (one.url, at)
        self._hashes[f"{place}:order"] += (at, f"{0 if one.op is Op.PUSH else 1}:{one.id}:{one.url}")
        self._lists[f"{place}:{KINDS[one.kind]}"] += (at, at)
        if one.document is not None:
            self._hashes[f"{place}:kept"] += (at, _kept(one.url, one.document))
        if one.reason is not None:
            self._hashes[f"{place}:reason"] += (at, one.reason)

    def add_rest(self, one: RestRecord) -> None:
        self._hashes["n"] += ("urls", str(one.last_id), "orders", str(one.last_order))
        for reason, times in one.refusals.items():
            self._hashes["refusal"] += (reason, str(times))
        for name, value in one.meta.items():
            self._hashes["meta"] += (name, value)

    def all(self) -> Iterator[list[object]]:
        if self._indexed:
            yield ["HINCRBY", "n", "indexed", str(self._indexed)]
        for command, of_command in (("HSET", self._hashes), ("ZADD", self._lists), ("SADD", self._sets)):
            for key, values in of_command.items():
                for first in range(0, len(values), _MOST_VALUES):
                    yield [command, key, *values[first : first + _MOST_VALUES]]


def row_of(state: UrlState) -> Row:
    """Return a record as `lua/records.lua` has it; its site has no number yet."""
    return Row(
        version=FORMAT,
        url=state.url,
        key=number(state.key),
        site=0,
        state=state.state,
        status=state.status,
        source=state.source,
        shift=state.shift,
        depth=state.depth,
        redirects=state.redirects,
        path_length=state.path_length,
        discovered_at=state.discovered_at,
        host_as_written=state.host_as_written,
        next_fetch=state.next_fetch,
        retries=state.retries,
        fetched_at=state.fetched_at,
        interval_s=state.interval_s,
        errors=state.errors,
        rules=state.rules,
        checksum=NOTHING if state.checksum is None else raw(state.checksum),
        canonical=NOTHING if state.canonical is None else number(state.canonical),
        etag=state.etag,
        last_modified=state.last_modified,
        held=state.held,
        held_mark=state.held_mark,
        asked=state.asked,
        fields_mark=number(state.fields_mark) if state.fields_mark else NOTHING,
    )


def _packed(document: Document) -> msgspec.Raw:
    return raw(written(bare(document)))


def _kept(url: str, document: Document) -> msgspec.Raw:
    """Return a document as it is kept with an order."""
    return raw(written([url, _packed(document), document.text, *document.duplicates]))


def _optional(told: msgspec.Raw) -> bytes | None:
    return None if told == _FALSE else bytes_of(told)


def _text(told: msgspec.Raw) -> str | None:
    found = _optional(told)
    return None if found is None else found.decode()
