"""Whose a document is, where the index itself cannot say.

Up to version 2 of the index a document could be nobody's: it was pushed before owners were noted, so anybody could delete it, also what
another collection had. Now the collections that share the index are asked, once, who has it. One that several have is deleted by none
of them: whoever gives it up leaves it in doubt, and at the next start of any of them it goes if nobody has it any more. Nobody is
asked right then, because one collection knows nothing of the others while it is crawled.

What was pushed since belongs to the collection that pushed it last. A document of several stays one, whoever pushes it, because those
who find their page unchanged never push it again.
"""

# Statements are put together of constants only, and values are always bound.
# ruff: noqa: S608
from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from pathlib import Path

import apsw

from crawlspace.errors import StoreVersionError

NOBODY = ""
"""Whoever asks may delete it."""
SEVERAL = ".several"
IN_DOUBT = ".in doubt"
"""No collection has a name like these two."""

Has = Callable[[Collection[str]], Collection[str]]
"""Which of some URLs a collection has in the index."""

INDEX_OF_DOUBT = f"CREATE INDEX in_doubt ON documents (number) WHERE owner = '{IN_DOUBT}'"

NOTED_SINCE, SETTLED_SINCE = 2, 3
"""Versions of the index: owners are noted, and they have been settled."""

_BATCH = 1_000
_OF = {NOBODY: f"documents WHERE owner = '{NOBODY}'", IN_DOUBT: f"documents INDEXED BY in_doubt WHERE owner = '{IN_DOUBT}'"}
"""Written out, because an index of some documents is not used for an owner that is bound."""


class OwnersUnknown(StoreVersionError):
    """The index is to be settled before anything is written to it."""


def after_delete(owner: str, by: str) -> str | None:
    """Return whose a document is that a collection wants deleted; None if it is to go."""
    if owner in (NOBODY, by):
        return None
    return IN_DOUBT if owner == SEVERAL else owner


def after_push(owner: str, by: str) -> str:
    return SEVERAL if owner in (SEVERAL, IN_DOUBT) else by


def number_of(db: apsw.Connection, owner: str) -> int:
    """How many documents are NOBODY's or IN_DOUBT. Takes long for NOBODY's."""
    return _integer(db.execute(f"SELECT count(*) FROM {_OF[owner]}").get)


def unsettled(path: Path) -> int:
    """How many documents of an index the collections that share it are to be asked for. Touches nothing.

    What is wrong with the file is no matter here: opening it tells.
    """
    if not path.exists():
        return 0
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as db:
            version = db.pragma("user_version")
            if version >= NOTED_SINCE:
                return number_of(db, NOBODY if version < SETTLED_SINCE else IN_DOUBT)
            return _integer(db.execute("SELECT count(*) FROM documents").get)
    except apsw.Error:
        return 0


def settle(db: apsw.Connection, owner: str, holders: Mapping[str, Has]) -> None:
    """Find out whose the documents are that are NOBODY's or IN_DOUBT; inside an open transaction, so that nobody can push meanwhile.

    `holders` are all collections that share the index, by name. What was in doubt and nobody has is deleted.
    """
    last = 0
    while rows := db.execute(
        f"SELECT number, url FROM {_OF[owner]} AND number > ? ORDER BY number LIMIT ?", (last, _BATCH)
    ).fetchall():
        last = _integer(rows[-1][0])
        urls = [str(url) for _, url in rows]
        found: dict[str, str] = {}
        for name, has in holders.items():
            for url in has(urls):
                found[url] = SEVERAL if url in found else name
        db.executemany(
            "UPDATE documents SET owner = ? WHERE number = ?", [(found[str(url)], number) for number, url in rows if url in found]
        )
        if owner == IN_DOUBT:
            gone = [(number,) for number, url in rows if url not in found]
            db.executemany("DELETE FROM words WHERE rowid = ?", gone)
            db.executemany("DELETE FROM documents WHERE number = ?", gone)


def _integer(value: object) -> int:
    assert isinstance(value, int)
    return value
