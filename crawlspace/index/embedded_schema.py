"""The tables and statements of the embedded index, and the conversion of a file of an earlier version."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager

import apsw

from crawlspace.index.ideographs import joined, separated
from crawlspace.text import counted

logger = logging.getLogger(__name__)

APPLICATION_ID = 0x63727769  # "crwi"
DEVELOPMENT_ID = 0x43725749
"""The id in files of development versions, whose version numbers stand for other tables."""
VERSION = 3
WITHOUT_PARTS = 2
"""The version without the table `more`."""
NOT_FOLDED = 1
"""The version before, whose words are not folded, and in which Thai, Lao, Khmer and Myanmar texts are stored as they are written."""

TOKENIZER = ("unicode61", "remove_diacritics", "2")

_MORE = """
-- Markdown and parts of the documents that have any, as `document.packed_text` returns them.
CREATE TABLE more (number INTEGER PRIMARY KEY, packed TEXT NOT NULL);
"""
_TABLES = """
CREATE TABLE documents (
    number INTEGER PRIMARY KEY,
    url TEXT NOT NULL UNIQUE,
    id TEXT NOT NULL,
    language TEXT NOT NULL,
    content_type TEXT NOT NULL,
    modified TEXT NOT NULL,
    day TEXT NOT NULL, -- of `modified`, as 2026-01-31; empty: unknown
    host TEXT NOT NULL, -- with a port that the URL has
    headings TEXT NOT NULL,
    fields TEXT NOT NULL,
    duplicates TEXT NOT NULL,
    pushed_at INTEGER NOT NULL,
    owner TEXT NOT NULL
);
CREATE INDEX by_language ON documents (language);
-- The last batch of each collection, see `marks`.
CREATE TABLE mark (owner TEXT PRIMARY KEY, mark TEXT NOT NULL) WITHOUT ROWID;
-- Collections whose document of a URL another one has overwritten, see `embedded`.
CREATE TABLE overwritten (
    url TEXT NOT NULL, owner TEXT NOT NULL, lost INTEGER NOT NULL, PRIMARY KEY (url, owner)
) WITHOUT ROWID;
CREATE INDEX lost ON overwritten (owner, url) WHERE lost;
"""
_WORDS = f"""
-- Text as `ideographs.separated` returns it; the URL without scheme and percent-encoding.
CREATE VIRTUAL TABLE words USING fts5 (title, headings, url, description, text, tokenize = "{" ".join(TOKENIZER)}");
CREATE VIRTUAL TABLE vocabulary USING fts5vocab (words, row);
"""
_RANKING = """
INSERT INTO words (words, rank) VALUES ('rank', 'bm25(10.0, 5.0, 3.0, 3.0, 1.0)'), ('automerge', 8), ('hashsize', 8000000);
"""
SCHEMA = _TABLES + _MORE + _WORDS + _RANKING

BY_ID = "CREATE INDEX IF NOT EXISTS by_id ON documents (id)"
"""Files of earlier versions get it when they are opened to be written; without it a document is found by its id in one pass."""

INSERT = """
INSERT INTO documents
    (url, id, host, language, content_type, modified, day, headings, fields, duplicates, pushed_at, owner)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
UPDATE = """
UPDATE documents SET language = ?, content_type = ?, modified = ?, day = ?, headings = ?, fields = ?, duplicates = ?, pushed_at = ?,
    owner = ?
WHERE number = ?"""
DOCUMENTS = """
SELECT d.url, w.title, w.description, d.language, w.text, d.headings, d.content_type, d.modified, d.fields, d.duplicates,
    ifnull((SELECT packed FROM more WHERE more.number = d.number), '')
FROM documents d CROSS JOIN words w ON w.rowid = d.number"""
PACKED = "SELECT packed FROM more WHERE number = ?"

COUNT_LOST = "SELECT count(*) FROM overwritten WHERE owner = ? AND lost"
COUNT_REPLACED = "SELECT count(*) FROM overwritten WHERE owner = ? AND NOT lost"

_STORED_WORDS = "SELECT rowid, title, headings, url, description, text FROM words WHERE rowid > ? ORDER BY rowid LIMIT 500"
_UPDATE_WORDS = "UPDATE words SET title = ?, headings = ?, url = ?, description = ?, text = ? WHERE rowid = ?"

COUNT = "SELECT count(*) FROM words w"
RANKED = "SELECT w.rowid, -w.rank FROM words w"
OF_DOCUMENTS = " CROSS JOIN documents d ON d.number = w.rowid"
SHOWN = "SELECT title, headings, url FROM words WHERE rowid = ?"
TEXT = "SELECT text FROM words WHERE rowid = ?"
HIT = """
SELECT d.url, w.title, snippet(words, 4, ?, ?, ' … ', ?), d.language, d.fields, d.duplicates
FROM words w CROSS JOIN documents d ON d.number = w.rowid
WHERE words MATCH ? AND w.rowid = ?"""


def add_more(db: apsw.Connection, transaction: Callable[[], AbstractContextManager[None]]) -> None:
    """Make the table that a file of an earlier version lacks; one whose words must be rewritten keeps its version."""
    with transaction():
        version = db.execute("PRAGMA user_version").get
        if version in (NOT_FOLDED, WITHOUT_PARTS) and not has_more(db):  # another process may have been first
            db.execute(_MORE)
        if version == WITHOUT_PARTS:
            db.execute(f"PRAGMA user_version = {VERSION}")


def has_more(db: apsw.Connection) -> bool:
    """Return whether an index has the table `more`; one of an earlier version lacks it."""
    return db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'more'").fetchone() is not None


def rewrite_words(db: apsw.Connection, transaction: Callable[[], AbstractContextManager[None]]) -> None:
    """Store the words of all documents as this version does. After a kill the next call starts again, and changes what is left."""
    after: int | None = 0
    changed = 0
    while after is not None:
        with transaction():
            rows = [tuple(map(str, row)) for row in db.execute(_STORED_WORDS, (after,))]
            for number, *stored in rows:
                texts = [separated(joined(text)) for text in stored]
                if texts != stored:
                    db.execute(_UPDATE_WORDS, (*texts, int(number)))
                    changed += 1
            after = int(rows[-1][0]) if rows else None
            if after is None:
                db.execute(f"PRAGMA user_version = {VERSION}")
    logger.info("The index %s is up to date: the words of %s were rewritten", db.filename, counted(changed, "document"))
