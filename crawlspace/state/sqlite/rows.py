"""URLs and documents as rows of the SQLite store: how they are packed, unpacked, read, and counted."""

# Statements are put together of constants only, and values are always bound.
# ruff: noqa: S608
from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import starmap

import apsw
import msgspec

from crawlspace.document import KEPT_FIELDS, Document, packed_text, unpack_text
from crawlspace.model import Held, Requester, Source, State, UrlState
from crawlspace.state.fields import FIELDS
from crawlspace.state.link_keys import unpack_keys
from crawlspace.state.refused_links import by_reason
from crawlspace.state.sqlite.near_duplicates import is_near_duplicate
from crawlspace.state.sqlite.schema import IS_FOLDED, readable
from crawlspace.state.sqlite.transaction import integers, read_counts
from crawlspace.state.views import Counts, FoldedUrl, KnownUrl

_STATES = tuple(State)
SOURCES = tuple(Source)
_HELD = (None, *Held)
_REQUESTERS = tuple(Requester)

DEFERRED = 1 << 40
"""Added to `next_fetch` of a URL deferred to the next run; subtracted when it is read."""

_EXPRESSIONS = {
    "site": "site.site",
    "next_fetch": f"url.next_fetch & {DEFERRED - 1}",
    "duplicate_of": """CASE WHEN url.grp IS NOT NULL AND NOT url.indexed THEN ifnull(
        (SELECT representative.id FROM representative WHERE representative.grp = url.grp),
        (SELECT best.id FROM url AS best INDEXED BY url_group WHERE best.grp = url.grp
         ORDER BY best.alternate, best.named DESC, best.rank, best.id LIMIT 1)
    ) END""",
    "has_document": "url.checksum IS NOT NULL",
    "never_due": "url.state <> 0 AND url.next_fetch IS NULL",
    "left_to_others": "url.left_behind",
    "in_index": "url.indexed OR url.left_behind",
}
"""Of fields that are no columns; the representative of a group is looked up, so that a new one costs no update of all members."""


def columns_of(names: Iterable[str]) -> str:
    """Return what is selected to read fields of URLs, from the tables `url` and `site`."""
    return ", ".join(_EXPRESSIONS.get(name, f"url.{name}") for name in names)


URL_COLUMNS = columns_of(FIELDS)

PAGE = 1_000
_LIGHT = (
    f"SELECT {columns_of(KnownUrl._fields)} FROM url NOT INDEXED CROSS JOIN site ON site.id = url.site"
    " WHERE url.id > ? ORDER BY url.id LIMIT ?"
)
_TO_FOLD = f"SELECT {columns_of(FoldedUrl.__struct_fields__)} FROM carray(?) AS wanted CROSS JOIN url ON url.id = wanted.value"


def url_states(rows: apsw.Cursor) -> list[UrlState]:
    """Return the URL states of rows of URL_COLUMNS."""
    states = []
    for row in rows:
        state = UrlState(*row)
        state.state = _STATES[state.state]
        state.source = SOURCES[state.source]
        state.indexed = bool(state.indexed)
        state.held = _HELD[state.held or 0]
        state.requested_by = _REQUESTERS[state.requested_by]
        states.append(state)
    return states


"""The fields stored as the document of a page; others come from other tables. New fields come last in Document."""


def pack_whole(document: Document) -> bytes:
    """Return a document without its URL, packed."""
    return pack_kept(pack_document(document), packed_text(document), document.duplicates)


def pack_kept(body: bytes, text: str, duplicates: list[str]) -> bytes:
    """Return the same for a stored document: its packed fields, its text, and the URLs noted on it."""
    return msgspec.msgpack.encode([body, text, duplicates])


def unpack_whole(packed: bytes, *, url: str) -> Document:
    body, text, duplicates = msgspec.msgpack.decode(packed)
    return unpack_document(body, url=url, text=text, duplicates=duplicates)


def pack_document(document: Document) -> bytes:
    """Return the stored fields of a document without its text, as a MessagePack array."""
    return msgspec.msgpack.encode([getattr(document, name) for name in KEPT_FIELDS])


def fields_of(body: bytes | None) -> dict[str, str]:
    """Return the fields of a stored document; none without a document."""
    return {} if body is None else dict(msgspec.msgpack.decode(body)[KEPT_FIELDS.index("fields")])


def unpack_document(body: bytes, *, url: str, text: str, duplicates: list[str]) -> Document:
    document = Document(url, duplicates=duplicates)
    unpack_text(document, text)
    for name, value in zip(KEPT_FIELDS, msgspec.msgpack.decode(body), strict=False):
        setattr(document, name, value)
    return document


def one(db: apsw.Connection, condition: str, *values: int | str) -> UrlState | None:
    statement = f"SELECT {URL_COLUMNS} FROM url CROSS JOIN site ON site.id = url.site WHERE {condition}"
    found = url_states(db.execute(readable(statement, db), values))
    return found[0] if found else None


def by_ids(db: apsw.Connection, ids: Collection[int]) -> list[UrlState]:
    statement = (
        f"SELECT {URL_COLUMNS} FROM carray(?) AS wanted CROSS JOIN url ON url.id = wanted.value"
        " CROSS JOIN site ON site.id = url.site"
    )
    return url_states(db.execute(readable(statement, db), (integers(ids),)))


def pages(
    *, state: State | None, leased: bool, status: int | None, host: str | None, held: bool, reason: Held | None
) -> Callable[[apsw.Connection, int], list[UrlState]]:
    """Return a function that reads the next of the selected URLs after an id."""
    wanted = {"url.state": state, "url.status": status, "site.host": host, "url.held": reason}
    chosen = {column: value for column, value in wanted.items() if value is not None}
    held = held or reason is not None
    index = "INDEXED BY url_leased" if leased else "INDEXED BY url_held" if held else "NOT INDEXED"
    statement = (
        f"SELECT {URL_COLUMNS} FROM url {index} CROSS JOIN site ON site.id = url.site WHERE url.id > ?"
        + "".join(f" AND {column} = ?" for column in chosen)
        + (" AND url.lease_until IS NOT NULL" if leased else "")
        + (" AND url.held IS NOT NULL AND (url.indexed OR url.left_behind)" if held else "")
        + f" ORDER BY url.id LIMIT {PAGE}"
    )
    return lambda db, after: url_states(db.execute(readable(statement, db), (after, *chosen.values())))


def held_numbers(db: apsw.Connection) -> dict[tuple[Held, str], int]:
    statement = (
        "SELECT number.held, site.site, number.urls FROM (SELECT url.held, url.site, count(*) AS urls FROM url INDEXED BY url_held"
        " WHERE url.held IS NOT NULL AND (url.indexed OR url.left_behind) GROUP BY url.held, url.site) AS number"
        " CROSS JOIN site ON site.id = number.site"
    )
    return {(Held(reason), site): number for reason, site, number in db.execute(readable(statement, db))}


def folded_urls(db: apsw.Connection, after: int) -> list[UrlState]:
    """Read the next URLs that are held for Held.FOLDED, from a file of the present version."""
    return url_states(
        db.execute(
            f"SELECT {URL_COLUMNS} FROM url INDEXED BY url_folded CROSS JOIN site ON site.id = url.site"
            f" WHERE {IS_FOLDED} AND url.id > ? ORDER BY url.id LIMIT {PAGE}",
            (after,),
        )
    )


def scan(db: apsw.Connection, after: int, limit: int) -> list[KnownUrl]:
    return list(map(KnownUrl._make, db.execute(_LIGHT, (after, limit))))


def urls_to_fold(db: apsw.Connection, ids: Collection[int]) -> list[FoldedUrl]:
    found = list(starmap(FoldedUrl, db.execute(_TO_FOLD, (integers(ids),))))
    for one in found:
        one.source = SOURCES[one.source]
    return found


def counts(db: apsw.Connection) -> Counts:
    """Return the counts of URLs and orders."""
    numbers = read_counts(db)
    leased = dict(
        db.execute("SELECT state, count(*) FROM url INDEXED BY url_leased WHERE lease_until IS NOT NULL GROUP BY state")
    )
    by_state = {state.label: numbers.get(f"state {int(state)}", 0) - leased.get(state, 0) for state in State}
    by_state["leased"] = sum(leased.values())
    return Counts(
        by_state={label: count for label, count in by_state.items() if count},
        by_status={int(name[7:]): count for name, count in numbers.items() if name.startswith("status ")},
        indexed=numbers.get("indexed", 0),
        outbox=sum(count for name, count in numbers.items() if name.startswith("waiting ")),
        parked=sum(count for name, count in numbers.items() if name.startswith("parked ")),
        hosts=db.execute("SELECT count(DISTINCT host) FROM site WHERE urls > 0").get,
        retrying=numbers.get("retrying", 0),
        refused=by_reason((name[8:], count) for name, count in numbers.items() if name.startswith("refused ")),
        left_to_others=db.execute("SELECT count(*) FROM url INDEXED BY url_left WHERE left_behind").get,
        duplicates=numbers.get("with document", 0) - numbers.get("indexed", 0),
        orphaned=db.execute("SELECT count(*) FROM url INDEXED BY url_orphaned WHERE orphaned IS NOT NULL").get,
    )


def left_to_others(db: apsw.Connection, ids: Collection[int]) -> set[int]:
    rows = db.execute("SELECT id FROM url WHERE left_behind AND id IN (SELECT value FROM carray(?))", (integers(ids),))
    return {id for (id,) in rows}


def is_duplicate(db: apsw.Connection, id: int, *, checksum: bytes, canonical: int | None, simhash: bytes | None = None) -> bool:
    found = db.execute(
        "SELECT EXISTS (SELECT 1 FROM url INDEXED BY url_group WHERE grp = ? AND alternate < 2 AND id <> ?)"
        " OR EXISTS (SELECT 1 FROM url INDEXED BY url_key WHERE key = ? AND checksum IS NOT NULL AND canonical IS NULL)",
        (checksum, id, canonical),
    )
    return bool(found.get) or (simhash is not None and is_near_duplicate(db, id, checksum, simhash))


def lost_links(db: apsw.Connection, ids: Collection[int]) -> set[int]:
    """Return the ids of pages that link to URLs that are not known."""
    pages = [
        (id, unpack_keys(targets))
        for id, targets in db.execute("SELECT id, targets FROM links WHERE id IN (SELECT value FROM carray(?))", (integers(ids),))
    ]
    keys = sorted(set().union(*(targets for _, targets in pages)))  # in the order of the index
    lost = {
        key
        for (key,) in db.execute(
            "SELECT value FROM carray(?) WHERE value NOT IN (SELECT key FROM url INDEXED BY url_key)",
            (integers(keys),),
        )
    }
    return {id for id, targets in pages if not lost.isdisjoint(targets)} if lost else set()
