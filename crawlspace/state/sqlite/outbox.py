"""The outbox in SQLite: index orders that no sink has acknowledged yet, and the texts they need."""

# Statements are put together of constants only, and values are always bound.
# ruff: noqa: S608
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import apsw

from crawlspace.document import Document, IndexOrder, Op
from crawlspace.state.duplicates import NOTED, Settlement
from crawlspace.state.order_times import ORDER_TIMES, given_by, noted
from crawlspace.state.sqlite.rows import pack_kept, pack_whole, unpack_document, unpack_whole
from crawlspace.state.sqlite.transaction import Tally, integers, take_numbers
from crawlspace.urls import url_key

Outgoing = tuple[Settlement, Mapping[int, tuple[int, str]]]
"""Orders to be given, and key and URL of ids, at least of those that are no longer stored."""

_OPS = (Op.DELETE, Op.PUSH)
_DELETE, _PUSH = 0, 1
_KEPT_AT_ONCE = 500
"""Maximal documents with their texts in memory at once, for any number of deleted URLs."""

_DOCUMENT = (
    "outbox.document, document.body, content.text, url.id, url.grp, EXISTS (SELECT 1 FROM url AS other INDEXED BY url_group"
    " WHERE other.grp = url.grp AND other.alternate < 2 AND other.id <> url.id)"
)
"""The columns of `_document`, after the URL."""
_DOCUMENT_TABLES = "LEFT JOIN document ON document.id = url.id LEFT JOIN content ON content.checksum = url.checksum"


def give(
    db: apsw.Connection,
    settlement: Settlement,
    *,
    sinks: Sequence[str],
    names: Mapping[int, tuple[int, str]],
    tally: Tally,
    now: int,
    to_all: bool = True,
) -> None:
    """Put orders into the outbox of each sink; they replace older ones of the same URLs.

    `names` has key and URL of ids, at least of those that are no longer stored; `to_all` means that `sinks` are all of them.
    """
    orders = [(_DELETE, id) for id in settlement.delete] + [(_PUSH, id) for id in settlement.push]
    if not orders:
        return
    named = {**_names(db, [id for _, id in orders if id not in names]), **names}
    _withdraw(db, {named[id] for _, id in orders}, sinks, tally)
    first = _take_numbers(db, len(orders), now)
    db.executemany(
        "INSERT INTO outbox (sink, parked, op, sequence, key, url, id) VALUES (?, 0, ?, ?, ?, ?, ?)",
        [(sink, op, sequence, *named[id], id) for sequence, (op, id) in enumerate(orders, first) for sink in sinks],
    )
    if to_all:
        pushed = enumerate(settlement.push, first + len(settlement.delete))
        db.executemany("UPDATE url SET ordered = ? WHERE id = ?", pushed)
    for sink in sinks:
        tally[f"waiting {sink}"] += len(orders)
    if not sinks:
        drop_texts(db, settlement.push)


def next_orders(db: apsw.Connection, sink: str, limit: int, most_bytes: int) -> list[IndexOrder]:
    """Return the next orders for a sink, up to a number and a size of texts: deletions first."""
    rows = db.execute(
        "SELECT outbox.op, outbox.sequence, CASE WHEN url.checksum IS NOT NULL THEN url.archived END,"
        f" outbox.url, {_DOCUMENT} FROM outbox LEFT JOIN url ON url.id = outbox.id AND outbox.op = 1"
        f" {_DOCUMENT_TABLES} WHERE outbox.sink = ? AND outbox.parked = 0 ORDER BY outbox.op, outbox.sequence LIMIT ?",
        (sink, limit),
    )
    orders: list[IndexOrder] = []
    for op, sequence, archived, url, whole, body, text, *parts in rows:
        document = _document(db, url, whole, body, text, *parts) if op == _PUSH else None
        orders.append(IndexOrder(sequence, _OPS[op], url, document, archived=archived))
        most_bytes -= 0 if document is None else len(whole or text)
        if most_bytes <= 0:
            break
    return orders


def keep(db: apsw.Connection, ids: Sequence[int]) -> None:
    """Store the present documents with the waiting pushes of these URLs, so that later changes don't affect them."""
    for first in range(0, len(ids), _KEPT_AT_ONCE):
        _keep(db, ids[first : first + _KEPT_AT_ONCE])


def acknowledge(db: apsw.Connection, tally: Tally, sink: str, orders: Sequence[IndexOrder]) -> None:
    """Remove orders that a sink has made durable."""
    sent: list[int] = []
    for op, code in ((Op.DELETE, _DELETE), (Op.PUSH, _PUSH)):
        sequences = [order.sequence for order in orders if order.op is op]
        if sequences:
            for id, parked in db.execute(
                "DELETE FROM outbox WHERE sink = ? AND parked IN (0, 1) AND op = ? AND sequence IN (SELECT value FROM carray(?))"
                " RETURNING id, parked",
                (sink, code, integers(sequences)),
            ):
                tally[counter_of(sink, parked=bool(parked))] -= 1
                sent.append(id)
    drop_texts(db, sent)


def park(db: apsw.Connection, tally: Tally, sink: str, order: IndexOrder, reason: str) -> None:
    db.execute(
        "UPDATE outbox SET parked = 1, reason = ? WHERE sink = ? AND parked = 0 AND op = ? AND sequence = ?",
        (reason, sink, _PUSH if order.op is Op.PUSH else _DELETE, order.sequence),
    )
    if db.changes():
        tally[counter_of(sink, parked=False)] -= 1
        tally[counter_of(sink, parked=True)] += 1


def unpark(db: apsw.Connection, tally: Tally, sink: str) -> int:
    db.execute("UPDATE outbox SET parked = 0, reason = NULL WHERE sink = ? AND parked = 1", (sink,))
    number = db.changes()
    tally[counter_of(sink, parked=True)] -= number
    tally[counter_of(sink, parked=False)] += number
    return number


def parked(db: apsw.Connection, sink: str) -> list[tuple[Op, str, str]]:
    rows = db.execute("SELECT op, url, reason FROM outbox WHERE sink = ? AND parked = 1 ORDER BY sequence", (sink,))
    return [(_OPS[op], url, reason) for op, url, reason in rows]


def drop_texts(db: apsw.Connection, ids: Sequence[int]) -> None:
    """Remove unneeded texts, so that the disk doesn't hold every page twice.

    These are texts without a waiting order whose page is the only one with its checksum and no alternate: a page that joins it later brings
    the text along. A near duplicate would not.
    """
    if ids:
        db.execute(
            "DELETE FROM content WHERE checksum IN ("
            " SELECT url.checksum FROM carray(?) AS sent CROSS JOIN url ON url.id = sent.value"
            " WHERE url.checksum IS NOT NULL AND url.canonical IS NULL AND url.simhash IS NULL"
            " AND NOT EXISTS (SELECT 1 FROM outbox WHERE outbox.key = url.key AND outbox.url = url.url)"
            " AND NOT EXISTS (SELECT 1 FROM url AS other INDEXED BY url_group"
            "  WHERE other.grp = url.grp AND other.alternate < 2 AND other.id <> url.id)"
            " AND NOT EXISTS (SELECT 1 FROM url AS other INDEXED BY url_other_text"
            "  WHERE other.checksum = url.checksum AND other.checksum <> other.grp))",
            (integers(ids),),
        )


def ordered(db: apsw.Connection, sink: str, urls: Sequence[str]) -> dict[str, bool]:
    wanted = set(urls)
    rows = db.execute(
        "SELECT outbox.url, parked FROM carray(?) AS wanted CROSS JOIN outbox INDEXED BY outbox_key ON outbox.key = wanted.value"
        " WHERE sink = ?",
        (integers({url_key(url) for url in wanted}), sink),
    )
    return {url: bool(parked) for url, parked in rows if url in wanted}


def stored(db: apsw.Connection, urls: Sequence[str]) -> dict[tuple[int, str], tuple[int, int]]:
    """Return the stored ones of the URLs, by key and URL: their ids, and whether their documents are in the index or left there."""
    wanted = set(urls)
    rows = db.execute(
        "SELECT id, key, url, indexed OR left_behind FROM carray(?) AS wanted CROSS JOIN url INDEXED BY url_key"
        " ON url.key = wanted.value",
        (integers({url_key(url) for url in wanted}),),
    )
    return {(key, url): (id, in_index) for id, key, url, in_index in rows if url in wanted}


def delete_again(db: apsw.Connection, tally: Tally, sink: str, urls: Sequence[str], *, now: int) -> None:
    """Order deletions from a sink, except for documents that are in the index."""
    known = stored(db, urls)
    names = {(url_key(url), url) for url in urls}
    unwanted = sorted((name for name in names if not known.get(name, (0, 0))[1]), key=lambda name: name[1])
    if unwanted:
        _withdraw(db, set(unwanted), (sink,), tally)
        first = _take_numbers(db, len(unwanted), now)
        db.executemany(
            "INSERT INTO outbox (sink, parked, op, sequence, key, url, id) VALUES (?, 0, ?, ?, ?, ?, ?)",
            [(sink, _DELETE, number, *name, known.get(name, (0, 0))[0]) for number, name in enumerate(unwanted, first)],
        )
        tally[f"waiting {sink}"] += len(unwanted)


def push_again(
    db: apsw.Connection, documents: Mapping[int, Document | None], *, sinks: Sequence[str], to_all: bool, tally: Tally, now: int
) -> list[int]:
    """Order pushes of documents; return the ids of those whose document is not stored."""
    rows = db.execute(
        "SELECT url.id, url.key, url.url, url.grp, document.id IS NOT NULL AND content.id IS NOT NULL FROM carray(?) AS wanted"
        " CROSS JOIN url ON url.id = wanted.value LEFT JOIN document ON document.id = url.id"
        " LEFT JOIN content ON content.checksum = url.checksum WHERE url.indexed",
        (integers(documents),),
    )
    able: list[int] = []
    unable: list[int] = []
    brought = []
    for id, key, url, group, is_stored in list(rows):
        given = documents[id]
        (able if is_stored or given is not None else unable).append(id)
        if given is not None:
            brought.append((pack_whole(replace(given, duplicates=duplicates_of(db, id, group))), key, url))
    give(db, Settlement(sorted(able), []), sinks=sinks, names={}, tally=tally, now=now, to_all=to_all)
    db.executemany(
        "UPDATE outbox INDEXED BY outbox_key SET document = ? WHERE key = ? AND url = ? AND op = 1 AND parked = 0 AND sink = ?",
        [(*one, sink) for one in brought for sink in sinks],
    )
    return sorted(unable)


def withdraw(db: apsw.Connection, tally: Tally, sink: str, *, deletes: bool) -> None:
    rows = db.execute("DELETE FROM outbox WHERE sink = ? AND (op = 1 OR ?) RETURNING id, parked, op", (sink, deletes))
    removed = list(rows)
    for _, parked, _ in removed:
        tally[counter_of(sink, parked=bool(parked))] -= 1
    drop_texts(db, [id for id, _, op in removed if op == _PUSH])


def _keep(db: apsw.Connection, ids: Sequence[int]) -> None:
    rows = db.execute(
        f"SELECT outbox.sink, outbox.parked, outbox.sequence, {_DOCUMENT} FROM carray(?) AS leaving"
        " CROSS JOIN url ON url.id = leaving.value"
        " CROSS JOIN outbox INDEXED BY outbox_key ON outbox.key = url.key AND outbox.url = url.url AND outbox.op = 1"
        f" {_DOCUMENT_TABLES} WHERE document.id IS NOT NULL AND outbox.document IS NULL",
        (integers(ids),),
    )
    db.executemany(
        f"UPDATE outbox SET document = ? WHERE sink = ? AND parked = ? AND op = {_PUSH} AND sequence = ?",
        [
            (pack_kept(body, text, duplicates_of(db, id, group) if shared else []), sink, parked, sequence)
            for sink, parked, sequence, _, body, text, id, group, shared in list(rows)
        ],
    )


def _names(db: apsw.Connection, ids: Sequence[int]) -> dict[int, tuple[int, str]]:
    if not ids:
        return {}
    rows = db.execute("SELECT id, key, url FROM url WHERE id IN (SELECT value FROM carray(?))", (integers(ids),))
    return {id: (key, url) for id, key, url in rows}


def _withdraw(db: apsw.Connection, names: set[tuple[int, str]], sinks: Sequence[str], tally: Tally) -> None:
    older = db.execute(
        "SELECT sink, parked, op, sequence, outbox.key, url FROM carray(?) AS wanted CROSS JOIN outbox INDEXED BY outbox_key"
        " ON outbox.key = wanted.value",
        (integers({key for key, _ in names}),),
    )
    replaced = [row[:4] for row in older if row[4:] in names and row[0] in sinks]
    db.executemany("DELETE FROM outbox WHERE sink = ? AND parked = ? AND op = ? AND sequence = ?", replaced)
    for sink, parked, _, _ in replaced:
        tally[counter_of(sink, parked=bool(parked))] -= 1


def _document(
    db: apsw.Connection, url: str, whole: bytes | None, body: bytes, text: str, id: int, group: bytes, shared: int
) -> Document:
    if whole is not None:
        return unpack_whole(whole, url=url)
    return unpack_document(body, url=url, text=text, duplicates=duplicates_of(db, id, group) if shared else [])


def duplicates_of(db: apsw.Connection, id: int, group: bytes) -> list[str]:
    """Return the URLs noted on the document of a URL, which represents a group."""
    rows = db.execute(
        "SELECT url FROM url INDEXED BY url_group WHERE grp = ? AND alternate < 2 AND id <> ?"
        f" ORDER BY alternate, named DESC, rank, id LIMIT {NOTED}",
        (group, id),
    )
    return [url for (url,) in rows]


def waiting_since(db: apsw.Connection, sink: str) -> int | None:
    """Return a time by which the oldest order that waits for a sink was given."""
    statement = "SELECT min(sequence) FROM outbox WHERE sink = ? AND parked = 0 AND op = ?"
    numbers = [number for op in (_DELETE, _PUSH) for (number,) in db.execute(statement, (sink, op)) if number is not None]
    return given_by(_order_times(db), min(numbers)) if numbers else None


def _take_numbers(db: apsw.Connection, count: int, now: int) -> int:
    """Return the first of so many numbers for new orders."""
    first = take_numbers(db, "sequence", count)
    if (notes := noted(_order_times(db), first, now)) is not None:
        db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (ORDER_TIMES, notes))
    return first


def _order_times(db: apsw.Connection) -> str | None:
    row = db.execute("SELECT value FROM meta WHERE name = ?", (ORDER_TIMES,)).fetchone()
    return None if row is None else str(row[0])


def counter_of(sink: str, *, parked: bool) -> str:
    """Return the name of the number of orders that wait for a sink, or are parked."""
    return f"parked {sink}" if parked else f"waiting {sink}"
