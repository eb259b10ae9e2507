"""The sample of refused links in SQLite."""

# Statements are put together of constants only, and values are always bound.
# ruff: noqa: S608
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import apsw

from crawlspace.decision import Reason
from crawlspace.state.refused_links import HOSTS_OF_REASON, LETTERS, LINKS_OF_HOST, RefusedLink, reason_of
from crawlspace.state.sqlite.rows import integers


def select(
    db: apsw.Connection, *, reason: Reason | None = None, host: str | None = None, page: int | None = None
) -> list[RefusedLink]:
    wanted = {"letter": None if reason is None else LETTERS.get(reason, ""), "host": host, "page": page}
    chosen = {column: value for column, value in wanted.items() if value is not None}
    where = f" WHERE {' AND '.join(f'{column} = ?' for column in chosen)}" if chosen else ""
    rows = db.execute(
        f"SELECT letter, host, url, page, rule FROM refused_link{where} ORDER BY letter, host, number", tuple(chosen.values())
    )
    return [RefusedLink(reason_of(letter), *link) for letter, *link in rows]


def replace(db: apsw.Connection, by_page: Mapping[int, Sequence[RefusedLink]]) -> None:
    """Drop the entries of pages, add their new ones, and drop what is beyond the bounds."""
    db.execute("DELETE FROM refused_link WHERE page IN (SELECT value FROM carray(?))", (integers(by_page),))
    add(db, chain.from_iterable(by_page.values()))


def add(db: apsw.Connection, links: Iterable[RefusedLink]) -> None:
    """Add entries, and drop what is beyond the bounds."""
    changed: dict[str, set[str]] = {}
    for link in links:
        letter = LETTERS[link.reason]
        changed.setdefault(letter, set()).add(link.host)
        db.execute("DELETE FROM refused_link WHERE letter = ? AND host = ? AND url = ?", (letter, link.host, link.url))
        db.execute(
            "INSERT INTO refused_link (letter, host, url, page, rule) VALUES (?, ?, ?, ?, ?)",
            (letter, link.host, link.url, link.page, link.rule),
        )
        db.execute("INSERT OR REPLACE INTO refused_host VALUES (?, ?, ?)", (letter, link.host, db.last_insert_rowid()))
    for letter, hosts in changed.items():
        db.executemany(
            "DELETE FROM refused_link WHERE number IN (SELECT number FROM refused_link WHERE letter = ? AND host = ?"
            f" ORDER BY number DESC LIMIT -1 OFFSET {LINKS_OF_HOST})",
            [(letter, host) for host in hosts],
        )
        oldest = [
            (letter, host)
            for (host,) in db.execute(
                f"SELECT host FROM refused_host WHERE letter = ? ORDER BY number DESC LIMIT -1 OFFSET {HOSTS_OF_REASON}",
                (letter,),
            )
        ]
        for table in ("refused_link", "refused_host") if oldest else ():
            db.executemany(f"DELETE FROM {table} WHERE letter = ? AND host = ?", oldest)
