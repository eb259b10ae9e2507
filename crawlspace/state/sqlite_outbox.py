"""The outbox in SQLite: index orders that no sink has acknowledged yet, and the texts they need."""

# Statements are put together of constants only, and values are always bound.
# ruff: noqa: S608
from __future__ import annotations

from collections.abc import Mapping, Sequence

import apsw

from crawlspace.model import Document, IndexOrder, Op
from crawlspace.state.groups import NOTED, Settlement
from crawlspace.state.sqlite_rows import integers, unpack_document
from crawlspace.state.sqlite_tally import Tally, take

_OPS = (Op.DELETE, Op.PUSH)
_DELETE, _PUSH = 0, 1


def give(
    db: apsw.Connection, settlement: Settlement, *, sinks: Sequence[str], names: Mapping[int, tuple[int, str]], tally: Tally
) -> None:
    """Put orders into the outbox of each sink, in the place of older ones of the same URLs.

    `names` has key and URL of ids, at least of those that are no longer stored.
    """
    orders = [(_DELETE, id) for id in settlement.delete] + [(_PUSH, id) for id in settlement.push]
    if not orders:
        return
    named = {**_names(db, [id for _, id in orders if id not in names]), **names}
    _withdraw(db, {named[id] for _, id in orders}, tally)
    first = take(db, "sequence", len(orders))
    db.executemany(
        "INSERT INTO outbox (sink, parked, op, sequence, key, url, id) VALUES (?, 0, ?, ?, ?, ?, ?)",
        [(sink, op, sequence, *named[id], id) for sequence, (op, id) in enumerate(orders, first) for sink in sinks],
    )
    for sink in sinks:
        tally[f"waiting {sink}"] += len(orders)
    if not sinks:
        drop_texts(db, settlement.push)


def next_orders(db: apsw.Connection, sink: str, limit: int) -> list[IndexOrder]:
    rows = db.execute(
        "SELECT outbox.op, outbox.sequence, outbox.url, outbox.id, document.body, content.text, url.checksum FROM outbox"
        " LEFT JOIN url ON url.id = outbox.id AND outbox.op = 1"
        " LEFT JOIN document ON document.id = url.id"
        " LEFT JOIN content ON content.checksum = url.checksum"
        " WHERE outbox.sink = ? AND outbox.parked = 0 ORDER BY outbox.op, outbox.sequence LIMIT ?",
        (sink, limit),
    )
    orders = []
    for op, sequence, url, id, body, text, checksum in rows:
        document: Document | None = None
        if op == _PUSH:
            document = unpack_document(body, url=url, text=text or "", duplicates=_duplicates(db, id, checksum))
        orders.append(IndexOrder(sequence, _OPS[op], url, document))
    return orders


def acknowledge(db: apsw.Connection, sink: str, orders: Sequence[IndexOrder], tally: Tally) -> None:
    pushed = []
    for order in orders:
        for op, id, parked in db.execute(
            "DELETE FROM outbox WHERE sink = ? AND parked IN (0, 1) AND op = ? AND sequence = ? RETURNING op, id, parked",
            (sink, _PUSH if order.op is Op.PUSH else _DELETE, order.sequence),
        ):
            tally[_number(sink, parked)] -= 1
            if op == _PUSH:
                pushed.append(id)
    drop_texts(db, pushed)


def park(db: apsw.Connection, sink: str, order: IndexOrder, reason: str, tally: Tally) -> None:
    db.execute(
        "UPDATE outbox SET parked = 1, reason = ? WHERE sink = ? AND parked = 0 AND op = ? AND sequence = ?",
        (reason, sink, _PUSH if order.op is Op.PUSH else _DELETE, order.sequence),
    )
    if db.changes():
        tally[_number(sink, 0)] -= 1
        tally[_number(sink, 1)] += 1


def parked_orders(db: apsw.Connection, sink: str) -> list[tuple[Op, str, str]]:
    rows = db.execute("SELECT op, url, reason FROM outbox WHERE sink = ? AND parked = 1 ORDER BY sequence", (sink,))
    return [(_OPS[op], url, reason) for op, url, reason in rows]


def drop_texts(db: apsw.Connection, ids: Sequence[int]) -> None:
    """Let go of texts that nothing needs: no order waits for them, and no other URL may be pushed with them.

    What joins the group of a lone URL later brings the text along; so the disk doesn't hold every page twice.
    """
    if ids:
        db.execute(
            "DELETE FROM content WHERE checksum IN ("
            " SELECT url.checksum FROM carray(?) AS sent CROSS JOIN url ON url.id = sent.value"
            " WHERE url.checksum IS NOT NULL"
            " AND NOT EXISTS (SELECT 1 FROM outbox WHERE outbox.key = url.key AND outbox.url = url.url)"
            " AND NOT EXISTS (SELECT 1 FROM url AS other INDEXED BY url_group"
            "  WHERE other.checksum = url.checksum AND other.id <> url.id))",
            (integers(ids),),
        )


def _names(db: apsw.Connection, ids: Sequence[int]) -> dict[int, tuple[int, str]]:
    if not ids:
        return {}
    rows = db.execute("SELECT id, key, url FROM url WHERE id IN (SELECT value FROM carray(?))", (integers(ids),))
    return {id: (key, url) for id, key, url in rows}


def _withdraw(db: apsw.Connection, names: set[tuple[int, str]], tally: Tally) -> None:
    older = db.execute(
        "SELECT sink, parked, op, sequence, outbox.key, url FROM carray(?) AS wanted CROSS JOIN outbox INDEXED BY outbox_key"
        " ON outbox.key = wanted.value",
        (integers({key for key, _ in names}),),
    )
    places = [row[:4] for row in older if row[4:] in names]
    db.executemany("DELETE FROM outbox WHERE sink = ? AND parked = ? AND op = ? AND sequence = ?", places)
    for sink, parked, _, _ in places:
        tally[_number(sink, parked)] -= 1


def _duplicates(db: apsw.Connection, id: int, checksum: bytes) -> list[str]:
    rows = db.execute(
        "SELECT url FROM url INDEXED BY url_group WHERE checksum = ? AND id <> ?"
        f" ORDER BY named DESC, redirects, path_length, id LIMIT {NOTED}",
        (checksum, id),
    )
    return [url for (url,) in rows]


def _number(sink: str, parked: int) -> str:
    return f"parked {sink}" if parked else f"waiting {sink}"
