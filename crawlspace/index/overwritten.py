"""Which collections lost a document of a shared index, because another one that had overwritten it has deleted it.

A document belongs to the collection that pushed it last. A collection that pushed it before still counts it as indexed, and it is: the
URL has a document. Only when the owner deletes that document is there none, and then the other collections have to send theirs again.
So a row is kept for each collection whose document another one has overwritten. It ends when that collection pushes the document again
or deletes it, and is marked as lost when the owner deletes the document. All of it happens in the transaction of the orders, so that a
kill, or a batch that is sent twice, changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import apsw


class OverwrittenDocuments:
    """The rows of an index, as the collection `owner` changes and reads them."""

    def __init__(self, db: apsw.Connection, owner: str) -> None:
        self._db = db
        self._owner = owner

    def inserted(self, url: str) -> None:
        """Record that this collection has pushed a document that was not there: no other collection lacks it any more."""
        if self._db.execute("SELECT 1 FROM overwritten WHERE url = ?", (url,)).fetchone() is not None:
            self.deleted_own(url)
            self._db.execute("UPDATE overwritten SET lost = 0 WHERE url = ?", (url,))

    def replaced(self, url: str, owner: str) -> None:
        """Record that this collection has overwritten the document of another owner."""
        self.deleted_own(url)
        self._db.execute("INSERT INTO overwritten VALUES (?, ?, 0)", (url, owner))

    def deleted(self, url: str) -> None:
        """Record that the document is gone: the collections whose document it replaced have lost theirs."""
        self._db.execute("UPDATE overwritten SET lost = 1 WHERE url = ?", (url,))

    def deleted_own(self, url: str) -> None:
        """Record that this collection needs no document of another owner any more: it has its own again, or wants none."""
        self._db.execute("DELETE FROM overwritten WHERE url = ? AND owner = ?", (url, self._owner))

    def lost(self, *, after: str, limit: int) -> list[str]:
        """Return the next URLs whose documents this collection has lost, sorted, after a given one."""
        rows = self._db.execute(
            "SELECT url FROM overwritten WHERE owner = ? AND lost AND url > ? ORDER BY url LIMIT ?", (self._owner, after, limit)
        )
        return [str(url) for (url,) in rows]

    def count_lost(self) -> int:
        """Return how many documents this collection has lost."""
        return int(self._db.execute("SELECT count(*) FROM overwritten WHERE owner = ? AND lost", (self._owner,)).get)

    def count_replaced(self) -> int:
        """Return how many documents this collection has not lost, although they belong to another one now."""
        return int(self._db.execute("SELECT count(*) FROM overwritten WHERE owner = ? AND NOT lost", (self._owner,)).get)

    def is_lost(self, url: str) -> bool:
        """Return whether this collection has lost the document of a URL."""
        row = self._db.execute("SELECT lost FROM overwritten WHERE url = ? AND owner = ?", (url, self._owner)).fetchone()
        return row is not None and bool(row[0])

    def give_up(self, urls: Iterable[str]) -> None:
        """Remove the rows of this collection for URLs of which it wants no document."""
        for url in urls:
            self.deleted_own(url)
