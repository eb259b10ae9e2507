"""The tables and statements of the embedded index."""

from __future__ import annotations

APPLICATION_ID = 0x63727769  # "crwi"
DEVELOPMENT_ID = 0x43725749
"""The id in files of development versions, whose version numbers mean other tables."""
VERSION = 1

TOKENIZER = ("unicode61", "remove_diacritics", "2")

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
-- Collections whose document of a URL another one has overwritten, see `overwritten`.
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
SCHEMA = _TABLES + _WORDS + _RANKING

INSERT = """
INSERT INTO documents
    (url, id, host, language, content_type, modified, day, headings, fields, duplicates, pushed_at, owner)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
UPDATE = """
UPDATE documents SET language = ?, content_type = ?, modified = ?, day = ?, headings = ?, fields = ?, duplicates = ?, pushed_at = ?,
    owner = ?
WHERE number = ?"""
DOCUMENTS = """
SELECT d.url, w.title, w.description, d.language, w.text, d.headings, d.content_type, d.modified, d.fields, d.duplicates
FROM documents d CROSS JOIN words w ON w.rowid = d.number"""

COUNT = "SELECT count(*) FROM words w"
RANKED = "SELECT w.rowid, -w.rank FROM words w"
OF_DOCUMENTS = " CROSS JOIN documents d ON d.number = w.rowid"
SHOWN = "SELECT title, headings, url FROM words WHERE rowid = ?"
HIT = """
SELECT d.url, w.title, snippet(words, 4, ?, ?, ' … ', ?), d.language, d.fields, d.duplicates
FROM words w CROSS JOIN documents d ON d.number = w.rowid
WHERE words MATCH ? AND w.rowid = ?"""
