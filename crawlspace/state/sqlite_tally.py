"""Numbers that are kept along with the rows, in the same transaction, because counting ten million rows takes seconds."""

from __future__ import annotations

from collections import Counter

import apsw

Tally = Counter[str]
"""What a transaction adds to each number, by name; negative where it takes away."""


def add(db: apsw.Connection, tally: Tally) -> None:
    db.executemany(
        "INSERT INTO tally VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
        [(name, by) for name, by in tally.items() if by],
    )


def take(db: apsw.Connection, name: str, count: int) -> int:
    """Give out `count` numbers that were never given out before; return the first."""
    add(db, Tally({name: count}))
    return read(db, name) - count + 1


def read(db: apsw.Connection, name: str) -> int:
    row = db.execute("SELECT value FROM tally WHERE name = ?", (name,)).fetchone()
    return int(row[0]) if row else 0


def read_all(db: apsw.Connection) -> dict[str, int]:
    return dict(db.execute("SELECT name, value FROM tally WHERE value <> 0"))
