"""The tables of a collection's state file, as ordered migrations.

Each migration runs in one transaction with its version; a file never stands between two. Thought through for ten
million URLs: a pending URL costs its text, about fifty bytes of row, its key in one index and its place in another.
What only a crawled URL has stands in tables and partial indexes of its own.
"""

from __future__ import annotations

APPLICATION_ID = 0x63776C73
"""Stands in the header of every state file, so that another program's database is not mistaken for one: `cwls`."""

FIRST = """
CREATE TABLE site (
    id         INTEGER PRIMARY KEY,
    site       TEXT NOT NULL UNIQUE,
    host       TEXT NOT NULL,
    urls       INTEGER NOT NULL DEFAULT 0,
    wait_until INTEGER
) STRICT;
CREATE INDEX site_host ON site (host);

-- Ids are given out by the `id` tally and never twice: they leave the store in leases, and outlive the row.
CREATE TABLE url (
    id              INTEGER PRIMARY KEY,
    key             INTEGER NOT NULL,
    url             TEXT NOT NULL,
    site            INTEGER NOT NULL,
    state           INTEGER NOT NULL DEFAULT 0,
    status          INTEGER,
    source          INTEGER NOT NULL,
    shift           INTEGER NOT NULL,
    depth           INTEGER NOT NULL,
    redirects       INTEGER NOT NULL,
    path_length     INTEGER NOT NULL,
    host_as_written TEXT,
    discovered_at   INTEGER NOT NULL,
    fetched_at      INTEGER,
    next_fetch      INTEGER,
    interval_s      INTEGER,
    retries         INTEGER NOT NULL DEFAULT 0,
    errors          INTEGER NOT NULL DEFAULT 0,
    lease_until     INTEGER,
    etag            TEXT,
    last_modified   TEXT,
    rules           INTEGER NOT NULL DEFAULT 0,
    checksum        BLOB,
    canonical       INTEGER,
    indexed         INTEGER NOT NULL DEFAULT 0,
    -- 1 when a page of its group names it as canonical
    named           INTEGER NOT NULL DEFAULT 0,
    -- the source a known URL waits in once it is due: its own while it is retried, else refresh
    due_source      INTEGER AS (CASE WHEN retries > 0 THEN source ELSE 5 END) VIRTUAL
) STRICT;
-- Not unique: two URLs may share a key.
CREATE INDEX url_key ON url (key);
CREATE INDEX url_pending ON url (site, source, shift, id) WHERE state = 0 AND lease_until IS NULL;
CREATE INDEX url_due ON url (site, due_source, next_fetch, id)
    WHERE next_fetch IS NOT NULL AND state <> 0 AND lease_until IS NULL;
CREATE INDEX url_leased ON url (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX url_group ON url (checksum, named DESC, redirects, path_length, id) WHERE checksum IS NOT NULL;
CREATE INDEX url_canonical ON url (checksum, canonical) WHERE checksum IS NOT NULL AND canonical IS NOT NULL;

-- Keys of the URLs a page leads to, eight bytes each, little-endian.
CREATE TABLE links (id INTEGER PRIMARY KEY, targets BLOB NOT NULL) STRICT;

-- What a page says of itself, kept for every page that may be pushed again; its text only while it may be needed.
CREATE TABLE document (id INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
CREATE TABLE content (id INTEGER PRIMARY KEY, checksum BLOB NOT NULL UNIQUE, text TEXT NOT NULL) STRICT;

-- op: 0 delete, 1 push, so that the primary key is the order in which orders are sent.
CREATE TABLE outbox (
    sink     TEXT NOT NULL,
    parked   INTEGER NOT NULL,
    op       INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    key      INTEGER NOT NULL,
    url      TEXT NOT NULL,
    id       INTEGER NOT NULL,
    reason   TEXT,
    PRIMARY KEY (sink, parked, op, sequence)
) STRICT, WITHOUT ROWID;
CREATE INDEX outbox_key ON outbox (key);

CREATE TABLE robots (
    site       TEXT NOT NULL,
    scheme     TEXT NOT NULL,
    status     INTEGER NOT NULL,
    body       TEXT NOT NULL,
    fetched_at INTEGER NOT NULL,
    PRIMARY KEY (site, scheme)
) STRICT;
CREATE TABLE refusal (reason TEXT PRIMARY KEY, times INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- Numbers kept along with every change, so that counting ten million URLs costs nothing: `state N`, `status N`,
-- `indexed`, `retrying`, `waiting SINK`, `parked SINK`; and the last `id` and `sequence` given out.
CREATE TABLE tally (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- Who crawls; the lock itself is held by the operating system.
CREATE TABLE crawl (one INTEGER PRIMARY KEY CHECK (one = 1), process INTEGER NOT NULL, since INTEGER NOT NULL) STRICT;
"""

SECOND = """
ALTER TABLE url ADD COLUMN held INTEGER;
ALTER TABLE url ADD COLUMN held_mark INTEGER NOT NULL DEFAULT 0;
-- The checksum that its group goes by: its own, or that of the canonical page for which it stands aside.
ALTER TABLE url ADD COLUMN grp BLOB;
-- 1 when it stands aside for a page with the same checksum, 2 for one with another
ALTER TABLE url ADD COLUMN aside INTEGER NOT NULL DEFAULT 0;
-- 1 when it has no document any more and the index still has one of it, for another crawler
ALTER TABLE url ADD COLUMN left_behind INTEGER NOT NULL DEFAULT 0;

-- Who names a canonical page may stand aside and come back, for which its text must be kept; it was not. So it counts as
-- changed at its next fetch, and brings it along. Without a text a page is alone in its group: no other one misses it there.
UPDATE url SET checksum = randomblob(16), rules = 0 WHERE checksum IS NOT NULL AND canonical IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM content WHERE content.checksum = url.checksum);
UPDATE url SET grp = checksum WHERE checksum IS NOT NULL;

DROP INDEX url_group;
DROP INDEX url_canonical;
CREATE INDEX url_group ON url (grp, aside, named DESC, redirects, path_length, id) WHERE grp IS NOT NULL;
CREATE INDEX url_canonical ON url (canonical, grp) WHERE canonical IS NOT NULL AND grp IS NOT NULL;
CREATE INDEX url_aside ON url (checksum) WHERE aside = 2;
CREATE INDEX url_held ON url (indexed, id) WHERE held IS NOT NULL;

-- How it has answered, see `site_health.py`.
ALTER TABLE site ADD COLUMN answers INTEGER NOT NULL DEFAULT 0;
ALTER TABLE site ADD COLUMN recent INTEGER NOT NULL DEFAULT 1;

-- The whole document of a push that waits, where its URL has left the collection and not the index.
ALTER TABLE outbox ADD COLUMN document BLOB;
"""

THIRD = """
-- 1 while a person asks for it, so that it waits in source user
ALTER TABLE url ADD COLUMN asked INTEGER NOT NULL DEFAULT 0;
-- Fields for its document that came with a link to it, as a JSON object.
ALTER TABLE url ADD COLUMN inherited TEXT;
-- Over the fields that rules added to its document
ALTER TABLE url ADD COLUMN fields_mark INTEGER NOT NULL DEFAULT 0;

DROP INDEX url_due;
ALTER TABLE url DROP COLUMN due_source;
-- the source a known URL waits in once it is due
ALTER TABLE url ADD COLUMN waits_in INTEGER AS (CASE WHEN asked THEN 0 WHEN retries > 0 THEN source ELSE 5 END) VIRTUAL;
CREATE INDEX url_due ON url (site, waits_in, shift, next_fetch, id)
    WHERE next_fetch IS NOT NULL AND state <> 0 AND lease_until IS NULL;
CREATE INDEX url_inherited ON url (id) WHERE inherited IS NOT NULL;
"""

FOURTH = """
-- What a page link_metadata to all URLs it leads to, as a JSON object; only for pages that hand anything.
CREATE TABLE link_metadata (id INTEGER PRIMARY KEY, fields TEXT NOT NULL) STRICT;
-- For a URL to which something is or was inherited: the id of the page whose word `inherited` is, NULL where nobody knows or nobody link_metadata
-- anything, and the day and the rules under which the URL was last due for it.
CREATE TABLE inheritance (id INTEGER PRIMARY KEY, page INTEGER, mark INTEGER) STRICT;
CREATE INDEX inheritance_page ON inheritance (page) WHERE page IS NOT NULL;

-- Who has inherited what is there is not known: each page is asked for whole once, and then says so.
INSERT INTO inheritance (id) SELECT id FROM url INDEXED BY url_inherited WHERE inherited IS NOT NULL;
INSERT INTO meta SELECT 'rules_generation', '2' WHERE EXISTS (SELECT 1 FROM inheritance)
    ON CONFLICT (name) DO UPDATE SET value = CAST(value AS INTEGER) + 1;
DROP INDEX url_inherited;
"""

FIFTH = """
-- What is pending in segments of 131,072 ids, each of them by site, source and shift: what is discovered at once then changes few pages
-- of the index. The id follows by itself.
DROP INDEX url_pending;
ALTER TABLE url ADD COLUMN segment INTEGER AS (id >> 17) VIRTUAL;
ALTER TABLE url ADD COLUMN place INTEGER AS ((site << 8) + (source << 5) + shift + 16) VIRTUAL;
CREATE INDEX url_pending ON url (segment, place) WHERE state = 0 AND lease_until IS NULL;
"""

SIXTH = """
-- Of the URLs of a site: bits of their schemes (1 http, 2 https), how many documents of theirs are in the index, and how many do not
-- count towards the limit of their host.
ALTER TABLE site ADD COLUMN schemes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE site ADD COLUMN documents INTEGER NOT NULL DEFAULT 0;
ALTER TABLE site ADD COLUMN uncounted INTEGER NOT NULL DEFAULT 0;
-- For how many seconds it was to be left alone when `wait_until` was written: a clock that was set back makes it no longer.
ALTER TABLE site ADD COLUMN wait_s INTEGER NOT NULL DEFAULT 0;
UPDATE site SET schemes = found.schemes, documents = found.documents, uncounted = found.uncounted FROM (
    SELECT site, max(url GLOB 'http:*') + 2 * max(url GLOB 'https:*') AS schemes, sum(indexed) AS documents,
        sum(ifnull(status IN (760, 761, 404, 410), 0)) AS uncounted
    FROM url GROUP BY site
) AS found WHERE found.site = site.id;

-- Of the fetches of `recent`, those that were answered with 404 or 410.
ALTER TABLE site ADD COLUMN missing INTEGER NOT NULL DEFAULT 0;

-- Sites that gave no answer in their last runs, see `unreachable.py`.
CREATE TABLE unreachable (
    site       INTEGER PRIMARY KEY,
    status     INTEGER NOT NULL,
    since      INTEGER NOT NULL,
    runs       INTEGER NOT NULL,
    counted_at INTEGER NOT NULL
) STRICT;

-- Which URL stands for a group where that isn't the one with the best rank, because that is a page of another host.
CREATE TABLE incumbent (grp BLOB PRIMARY KEY, id INTEGER NOT NULL) STRICT, WITHOUT ROWID;
-- What is held for the rules is in no group from now on: the next start judges all URLs anew and sees to it.
UPDATE meta SET value = '' WHERE name = 'rules_hash' AND EXISTS (SELECT 1 FROM url INDEXED BY url_held WHERE held = 3);

-- URLs whose `next_fetch` is moved ahead, because they are for the next run.
CREATE TABLE set_aside (id INTEGER PRIMARY KEY) STRICT;

-- A held deletion may be that of a document that was left in the index for another collection.
DROP INDEX url_held;
CREATE INDEX url_held ON url (id) WHERE held IS NOT NULL AND (indexed OR left_behind);
CREATE INDEX url_left ON url (id) WHERE left_behind;
"""

MIGRATIONS: tuple[str, ...] = (FIRST, SECOND, THIRD, FOURTH, FIFTH, SIXTH)
"""The n-th one (counted from 1) leads to `PRAGMA user_version` n."""
