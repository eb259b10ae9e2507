"""The tables of a collection's state file.

Thought through for ten million URLs: a pending URL costs its text, about fifty bytes of row, its key in one index and its queue in another.
What only a crawled URL has is in separate tables and partial indexes.
"""

from __future__ import annotations

import re

import apsw

from crawlspace.model import Held, Requester, Source
from crawlspace.state.duplicates import HTTP, NO_PAGE
from crawlspace.state.near_duplicates import MOST_IN_BAND

APPLICATION_ID = 0x63727365
"""In the header of every state file, so that another program's database is not mistaken for one: `crse`."""
DEVELOPMENT_IDS = frozenset({0x63776C73, 0x63727773, 0x63727370, 0x63727363, 0x63727364})
"""The ids in files of development versions, whose version numbers have other tables."""
VERSION = 7
"""Stored as `PRAGMA user_version`. Files of another version are refused, but for those that UPGRADES brings up to date."""

_WAITS_IN = (
    f"CASE requested_by WHEN {int(Requester.PERSON)} THEN {int(Source.USER)} WHEN {int(Requester.SCHEDULE)} THEN {int(Source.INDEX)}"
    f" ELSE CASE WHEN retries > 0 THEN source ELSE {int(Source.REFRESH)} END END"
)
"""Equals `UrlState.queue`; a generated column, so that no statement can forget to update it."""

_DUE_INDEX = """CREATE INDEX url_due ON url (site, waits_in, shift, next_fetch, id)
    WHERE next_fetch IS NOT NULL AND state <> 0 AND lease_until IS NULL;"""

NAMES_A_PAGE = f"canonical <> {NO_PAGE} AND grp IS NOT NULL"
"""The condition of url_canonical: SQLite uses the index only if a statement repeats it."""
_CANONICAL_INDEX = f"CREATE INDEX url_canonical ON url (canonical, grp) WHERE {NAMES_A_PAGE};"
IS_NEAR = "alternate = 1 AND checksum <> grp"
"""Whether a URL is in its group because its text is a near duplicate."""
_OTHER_TEXT_INDEX = "CREATE INDEX url_other_text ON url (checksum) WHERE checksum <> grp;"
"""A statement that is to use it must repeat its condition."""
_NEAR_TABLES = """
-- The signatures of the texts that lead a group which near duplicates may join, and the bands of their simhashes.
CREATE TABLE near_text (id INTEGER PRIMARY KEY, checksum BLOB NOT NULL UNIQUE, signature BLOB NOT NULL) STRICT;
CREATE TABLE near_band (
    band    INTEGER NOT NULL,
    text    INTEGER NOT NULL,
    simhash INTEGER NOT NULL,
    PRIMARY KEY (band, text)
) STRICT, WITHOUT ROWID;
"""
IS_FOLDED = f"held = {int(Held.FOLDED)}"
_FOLDED_INDEX = f"CREATE INDEX url_folded ON url (id) WHERE {IS_FOLDED};"

SCHEMA = f"""
CREATE TABLE site (
    id         INTEGER PRIMARY KEY,
    site       TEXT NOT NULL UNIQUE,
    host       TEXT NOT NULL,
    urls       INTEGER NOT NULL DEFAULT 0,
    -- until when nothing of it is fetched, and for how many seconds that was when it was written: a clock that was set back makes it no longer
    wait_until INTEGER,
    wait_s     INTEGER NOT NULL DEFAULT 0,
    -- its health, see `site_health.py`
    answers    INTEGER NOT NULL DEFAULT 0,
    recent     INTEGER NOT NULL DEFAULT 1,
    missing    INTEGER NOT NULL DEFAULT 0,
    shown      TEXT NOT NULL DEFAULT '',
    -- of its URLs: bits of their schemes (1 http, 2 https), their number of indexed documents, and the number of those that do not count
    -- towards the limit of their host
    schemes    INTEGER NOT NULL DEFAULT 0,
    documents  INTEGER NOT NULL DEFAULT 0,
    uncounted  INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX site_host ON site (host);

-- Sites without a response in their last runs, see `unreachable.py`.
CREATE TABLE unreachable (
    site       INTEGER PRIMARY KEY,
    status     INTEGER NOT NULL,
    since      INTEGER NOT NULL,
    runs       INTEGER NOT NULL,
    counted_at INTEGER NOT NULL,
    detail     TEXT NOT NULL DEFAULT ''
) STRICT;

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
    -- its rank among equal documents, see `rank_of`
    rank            INTEGER NOT NULL,
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
    held            INTEGER,
    held_mark       INTEGER NOT NULL DEFAULT 0,
    -- the checksum of its group: its own, that of the canonical page of which it is an alternate, or that of which its text is a near duplicate
    grp             BLOB,
    -- 1 for an alternate of a page with the same checksum and for a near duplicate, 2 for an alternate of a page with another
    alternate       INTEGER NOT NULL DEFAULT 0,
    -- 1 when it has no document any more, but the index still has one of it, for another crawler
    left_behind     INTEGER NOT NULL DEFAULT 0,
    -- who requested that it is fetched, see `model.Requester`
    requested_by    INTEGER NOT NULL DEFAULT 0,
    -- metadata that came with a link to it, as a JSON object
    inherited       TEXT,
    -- hash of the fields that rules added to its document, see `crawl/conditional.py`
    fields_mark     INTEGER NOT NULL DEFAULT 0,
    -- how many of its links were refused, by reason, see `refused_links.py`
    refused         TEXT,
    -- the page that gave it its depth, 0: none; and the run since which it is an orphan
    depth_from      INTEGER NOT NULL DEFAULT 0,
    orphaned        INTEGER,
    -- the location of its records in the archive
    archived        INTEGER,
    -- the number of the last order to push its document to all sinks
    ordered         INTEGER NOT NULL DEFAULT 0,
    -- details of an error in addition to its status
    detail          TEXT,
    -- the signature of its text, see `simhash.py`
    simhash         BLOB,
    -- its last fetches, see `fetch_history.py`
    history         BLOB,
    -- the source a known URL waits in when due: its own while it is retried
    waits_in        INTEGER AS ({_WAITS_IN}) VIRTUAL,
    -- its queue while it is pending: in segments of 131,072 ids, in each by site, source and shift
    segment         INTEGER AS (id >> 17) VIRTUAL,
    queue_number    INTEGER AS ((site << 8) + (source << 5) + shift + 16) VIRTUAL
) STRICT;
-- Not unique: two URLs may share a key.
CREATE INDEX url_key ON url (key);
-- By segments, so that URLs discovered together change few pages of the index. The id follows implicitly.
CREATE INDEX url_pending ON url (segment, queue_number) WHERE state = 0 AND lease_until IS NULL;
{_DUE_INDEX}
CREATE INDEX url_leased ON url (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX url_group ON url (grp, alternate, named DESC, rank, id) WHERE grp IS NOT NULL;
{_CANONICAL_INDEX}
{_OTHER_TEXT_INDEX}
-- A held deletion may be that of a document that was left in the index for another collection.
CREATE INDEX url_held ON url (id) WHERE held IS NOT NULL AND (indexed OR left_behind);
{_FOLDED_INDEX}
CREATE INDEX url_left ON url (id) WHERE left_behind;
CREATE INDEX url_orphaned ON url (id) WHERE orphaned IS NOT NULL;

-- The representative of a group where that isn't the URL with the best rank, because that is a page of another host.
CREATE TABLE representative (grp BLOB PRIMARY KEY, id INTEGER NOT NULL) STRICT, WITHOUT ROWID;

{_NEAR_TABLES}
-- URLs whose `next_fetch` is moved ahead, because they are deferred to the next run.
CREATE TABLE deferred (id INTEGER PRIMARY KEY) STRICT;

-- Keys of the URLs a page leads to, eight bytes each, little-endian.
CREATE TABLE links (id INTEGER PRIMARY KEY, targets BLOB NOT NULL) STRICT;

-- The sample of refused links (`refused_links.py`), by the letter of the reason; and the hosts in it, each with the number of the entry that was
-- added last. A host may have no entries any more.
CREATE TABLE refused_link (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    letter TEXT NOT NULL,
    host   TEXT NOT NULL,
    url    TEXT NOT NULL,
    page   INTEGER NOT NULL,
    rule   TEXT
) STRICT;
CREATE INDEX refused_link_host ON refused_link (letter, host);
CREATE INDEX refused_link_page ON refused_link (page);
CREATE TABLE refused_host (letter TEXT, host TEXT, number INTEGER NOT NULL, PRIMARY KEY (letter, host)) STRICT, WITHOUT ROWID;

-- Keys of URLs whose depth may be wrong, each with the page and the depth of `DepthMark`.
CREATE TABLE depth_mark (key INTEGER PRIMARY KEY, mark TEXT NOT NULL) STRICT;

-- Metadata that all links of a page inherit, as a JSON object; only for pages that have any.
CREATE TABLE link_metadata (id INTEGER PRIMARY KEY, fields TEXT NOT NULL) STRICT;
-- For a URL that inherits or has inherited something: the id of its source page, NULL where there is none, and the day and the rules under
-- which the URL was last due for it.
CREATE TABLE inheritance (id INTEGER PRIMARY KEY, page INTEGER, mark INTEGER) STRICT;
CREATE INDEX inheritance_page ON inheritance (page) WHERE page IS NOT NULL;

-- The document of every page that may be pushed again; its text only while needed.
CREATE TABLE document (id INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
CREATE TABLE content (id INTEGER PRIMARY KEY, checksum BLOB NOT NULL UNIQUE, text TEXT NOT NULL) STRICT;

-- op: 0 delete, 1 push, so that the primary key is the order in which orders are sent. `document` is the whole document of a push that
-- waits, where its URL has left the collection and not the index.
CREATE TABLE outbox (
    sink     TEXT NOT NULL,
    parked   INTEGER NOT NULL,
    op       INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    key      INTEGER NOT NULL,
    url      TEXT NOT NULL,
    id       INTEGER NOT NULL,
    reason   TEXT,
    document BLOB,
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
-- The files of the archive; a number is never given to another file.
CREATE TABLE archive_file (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;

CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- Counts updated with every change, so that counting ten million URLs costs nothing: `state N`, `status N`,
-- `refused LETTER`, `with document`, `indexed`, `retrying`, `waiting SINK`, `parked SINK`; and the last `id` and `sequence` given out.
CREATE TABLE tally (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- The crawling process; the lock itself is held by the operating system.
CREATE TABLE crawl (one INTEGER PRIMARY KEY CHECK (one = 1), process INTEGER NOT NULL, since INTEGER NOT NULL) STRICT;
"""

UPGRADES = {
    1: f"""
DROP INDEX url_due;
ALTER TABLE url DROP COLUMN waits_in;
ALTER TABLE url ADD COLUMN waits_in INTEGER AS ({_WAITS_IN.replace("requested_by", "asked")}) VIRTUAL;
{_DUE_INDEX}
""",
    2: f"""
DROP INDEX url_canonical;
{_CANONICAL_INDEX}
{_FOLDED_INDEX}
""",
    3: f"""
ALTER TABLE site ADD COLUMN shown TEXT NOT NULL DEFAULT '';
ALTER TABLE url ADD COLUMN detail TEXT;
ALTER TABLE unreachable ADD COLUMN detail TEXT NOT NULL DEFAULT '';
UPDATE url SET rank = min(rank, {HTTP - 1}) + {HTTP} WHERE url LIKE 'http:%' AND rank < {HTTP};
INSERT OR IGNORE INTO incumbent SELECT grp, id FROM url WHERE indexed AND grp IS NOT NULL AND url LIKE 'http:%' AND id <> (
    SELECT best.id FROM url AS best INDEXED BY url_group WHERE best.grp = url.grp
    ORDER BY best.aside, best.named DESC, best.rank, best.id LIMIT 1);
""",  # noqa: S608 - constants only
    4: """
ALTER TABLE url RENAME COLUMN aside TO alternate;
ALTER TABLE url RENAME COLUMN asked TO requested_by;
ALTER TABLE url RENAME COLUMN place TO queue_number;
ALTER TABLE incumbent RENAME TO representative;
ALTER TABLE set_aside RENAME TO deferred;
DROP INDEX url_aside;
CREATE INDEX url_alternate ON url (checksum) WHERE alternate = 2;
""",
    5: f"""
ALTER TABLE url ADD COLUMN simhash BLOB;
DROP INDEX url_alternate;
{_OTHER_TEXT_INDEX}
CREATE TABLE near_text (checksum BLOB PRIMARY KEY, signature BLOB NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE near_band (band INTEGER PRIMARY KEY) STRICT;
""",
    6: f"""
DROP TABLE near_band;
ALTER TABLE near_text RENAME TO near_text_of_6;
{_NEAR_TABLES}
INSERT INTO near_text (checksum, signature) SELECT checksum, signature FROM near_text_of_6;
INSERT INTO near_band SELECT band, id, simhash FROM (
    SELECT band, id, simhash, row_number() OVER (PARTITION BY band ORDER BY id) AS place FROM (
        SELECT near_band(signature, number.column1) AS band, id, near_simhash(signature) AS simhash
        FROM near_text, (VALUES (0), (1), (2)) AS number
    )
) WHERE place <= {MOST_IN_BAND} ORDER BY 1, 2;
DROP TABLE near_text_of_6;
ALTER TABLE url ADD COLUMN history BLOB;
""",  # noqa: S608 - constants only
}
"""By version, the statements that make a file one of the next version. Readers may read an old one: in version 1 no schedule requested
anything. Files of version 6 look up signatures by other bands; the functions are in `file.py`."""
ADDED_COLUMNS = {4: ("site.shown", "url.detail", "unreachable.detail"), 6: ("url.simhash",), 7: ("url.history",)}
"""By version, the columns that files of earlier versions don't have: readers get NULL, see `readable`."""
RENAMED = {5: {"alternate": "aside", "requested_by": "asked", "queue_number": "place", "representative": "incumbent"}}
"""By version, columns and tables with their names in files of earlier versions."""


def readable(statement: str, db: apsw.Connection) -> str:
    """Return a statement that can be run on a file of an earlier version that was opened only to be read; missing columns are NULL."""
    if db.readonly("main"):
        version = int(db.pragma("user_version"))
        for column in (name for added, names in ADDED_COLUMNS.items() if version < added for name in names):
            statement = statement.replace(column, "NULL")
        for new, old in (pair for renamed, names in RENAMED.items() if version < renamed for pair in names.items()):
            statement = re.sub(rf"\b{new}\b", old, statement)
    return statement
