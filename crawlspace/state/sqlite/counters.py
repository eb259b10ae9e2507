"""Numbers that are kept along with the rows, in the same transaction, because counting ten million rows takes seconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import apsw

from crawlspace.state.refused_links import by_letter


class Tally(Counter[str]):
    """What a transaction adds to each number, by name; negative where it takes away."""

    def __init__(self, *counts: Mapping[str, int], **named: int) -> None:
        super().__init__(*counts, **named)
        self.documents: Counter[int] = Counter()
        """What it adds to the documents in the index, by id of their site."""
        self.uncounted: Counter[int] = Counter()
        """What it adds to the URLs that do not count towards the limit of their host (UNCOUNTED), by id of their site."""

    def count_refused(self, text: str | None, sign: int) -> None:
        """Count the refused links of a page, or take them out."""
        for letter, number in by_letter(text):
            self[f"refused {letter}"] += sign * number


def add(db: apsw.Connection, tally: Tally) -> None:
    db.executemany(
        "INSERT INTO tally VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
        [(name, by) for name, by in tally.items() if by],
    )
    changed = [(tally.documents[site], tally.uncounted[site], site) for site in tally.documents.keys() | tally.uncounted.keys()]
    db.executemany("UPDATE site SET documents = documents + ?, uncounted = uncounted + ? WHERE id = ?", changed)


def take(db: apsw.Connection, name: str, count: int) -> int:
    """Return the first of `count` numbers that were never returned before."""
    add(db, Tally({name: count}))
    return read(db, name) - count + 1


def read(db: apsw.Connection, name: str) -> int:
    row = db.execute("SELECT value FROM tally WHERE name = ?", (name,)).fetchone()
    return int(row[0]) if row else 0


def read_all(db: apsw.Connection) -> dict[str, int]:
    return dict(db.execute("SELECT name, value FROM tally WHERE value <> 0"))
