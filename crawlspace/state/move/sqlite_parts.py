"""Writes the records of a move into the tables of a state file, inside an open transaction.

Groups are written as the source has them; only who is named as canonical is found anew, among the URLs that are there by then.
"""

# Statements are put together of constants only, and values are always bound.
# ruff: noqa: S608
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple

import apsw

from crawlspace.model import UNCOUNTED, Op
from crawlspace.state.move.records import NOT_MOVED, OrderRecord, RestRecord, SiteRecord, UrlRecord
from crawlspace.state.sqlite.counters import Tally
from crawlspace.state.sqlite.discovery import SiteIds
from crawlspace.state.sqlite.rows import pack_document, pack_whole
from crawlspace.state.sqlite.sites import scheme_bit, set_unreachable
from crawlspace.urls import url_key

_URL = (
    "INSERT INTO url (id, key, url, site, state, status, source, shift, depth, redirects, path_length, host_as_written, discovered_at,"
    " fetched_at, next_fetch, interval_s, retries, errors, etag, last_modified, rules, checksum, canonical, indexed, held, held_mark,"
    f" asked, inherited, fields_mark, grp, aside, left_behind) VALUES ({', '.join('?' * 32)})"
)
_NAMED_BY_THEM = (
    "UPDATE url SET named = 1 WHERE id IN (SELECT page.id FROM url AS naming CROSS JOIN url AS page INDEXED BY url_key"
    " ON page.key = naming.canonical WHERE naming.id BETWEEN ? AND ? AND naming.canonical IS NOT NULL AND naming.grp IS NOT NULL"
    " AND page.grp = naming.grp)"
)
_NAMED_AMONG_THEM = (
    "UPDATE url SET named = 1 WHERE id BETWEEN ? AND ? AND grp IS NOT NULL AND EXISTS (SELECT 1 FROM url AS naming"
    " INDEXED BY url_canonical WHERE naming.canonical = url.key AND naming.grp = url.grp AND naming.canonical IS NOT NULL"
    " AND naming.grp IS NOT NULL)"
)


def write_sites(db: apsw.Connection, records: Sequence[SiteRecord], sites: SiteIds) -> None:
    for one in records:
        if one.wait_until is not None:
            wait = one.wait_until, one.wait_s, sites.find_or_add(db, one.site)
            db.execute("UPDATE site SET wait_until = ?, wait_s = ? WHERE id = ?", wait)
        if one.health is not None:
            how = (*astuple(one.health), sites.find_or_add(db, one.site))
            db.execute("UPDATE site SET answers = ?, recent = ?, missing = ? WHERE id = ?", how)
        if one.unreachable is not None:
            set_unreachable(db, sites.find_or_add(db, one.site), one.unreachable)
    db.executemany(
        "INSERT INTO robots VALUES (?, ?, ?, ?, ?)",
        [
            (entry.site, entry.scheme, entry.status, entry.body, entry.fetched_at)
            for one in records
            for entry in one.robots
        ],
    )  # fmt: skip


def write_urls(db: apsw.Connection, records: Sequence[UrlRecord], sites: SiteIds, tally: Tally) -> None:
    if not records:
        return
    by_site = Counter(sites.find_or_add(db, one.state.site) for one in records)
    db.executemany("UPDATE site SET urls = urls + ? WHERE id = ?", [(count, site) for site, count in by_site.items()])
    schemes = {(sites.find_or_add(db, one.state.site), scheme_bit(one.state.url)) for one in records}
    db.executemany("UPDATE site SET schemes = schemes | ? WHERE id = ?", [(bit, site) for site, bit in schemes])
    db.executemany(_URL, [_row(one, sites.find_or_add(db, one.state.site)) for one in records])
    ids = records[0].state.id, records[-1].state.id
    db.execute(_NAMED_BY_THEM, ids)
    db.execute(_NAMED_AMONG_THEM, ids)
    db.executemany(
        "INSERT INTO incumbent VALUES (?, ?)",
        [(one.state.checksum, one.state.id) for one in records if one.incumbent],
    )
    db.executemany("INSERT INTO links VALUES (?, ?)", [(one.state.id, one.links) for one in records if one.links])
    db.executemany(
        "INSERT INTO document VALUES (?, ?)",
        [(one.state.id, pack_document(one.document)) for one in records if one.document is not None],
    )
    db.executemany(
        "INSERT INTO content (checksum, text) VALUES (?, ?) ON CONFLICT (checksum) DO NOTHING",
        [(one.state.checksum, one.text) for one in records if one.text is not None],
    )
    db.executemany(
        "INSERT INTO link_metadata VALUES (?, ?)",
        [(one.state.id, one.link_metadata) for one in records if one.link_metadata is not None],
    )
    db.executemany(
        "INSERT INTO inheritance VALUES (?, ?, ?)",
        [
            (one.state.id, one.inherited_from, one.inherited_mark)
            for one in records
            if (one.state.inherited, one.inherited_from, one.inherited_mark) != (None, None, None)
        ],
    )
    for one in records:
        tally[f"state {int(one.state.state)}"] += 1
        if one.state.status is not None:
            tally[f"status {int(one.state.status)}"] += 1
        tally["retrying"] += one.state.retries > 0
        tally["indexed"] += one.state.indexed
        site = sites.find_or_add(db, one.state.site)
        tally.documents[site] += one.state.indexed
        tally.uncounted[site] += one.state.status in UNCOUNTED


def write_orders(db: apsw.Connection, records: Sequence[OrderRecord], tally: Tally) -> None:
    for one in records:
        parked = int(one.reason is not None)
        known = db.execute("SELECT key FROM url WHERE id = ? AND url = ?", (one.id, one.url)).get
        db.execute(
            "INSERT INTO outbox (sink, parked, op, sequence, key, url, id, reason, document) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                one.sink,
                parked,
                int(one.op is Op.PUSH),
                one.number,
                url_key(one.url) if known is None else known,
                one.url,
                one.id,
                one.reason,
                None if one.document is None else pack_whole(one.document),
            ),
        )
        tally[f"{'parked' if parked else 'waiting'} {one.sink}"] += 1


def write_rest(db: apsw.Connection, rest: RestRecord) -> None:
    db.executemany("INSERT OR REPLACE INTO tally VALUES (?, ?)", [("id", rest.last_id), ("sequence", rest.last_order)])
    db.executemany("INSERT OR REPLACE INTO refusal VALUES (?, ?)", list(rest.refusals.items()))
    names = ", ".join("?" * len(NOT_MOVED))
    db.execute(f"DELETE FROM meta WHERE name NOT IN ({names})", tuple(NOT_MOVED))  # what a new file has by itself
    db.executemany("INSERT INTO meta VALUES (?, ?)", list(rest.meta.items()))


def _row(record: UrlRecord, site: int) -> tuple[bytes | float | str | None, ...]:
    state, aside = record.state, record.aside_in
    return (
        state.id,
        state.key,
        state.url,
        site,
        state.state,
        state.status,
        state.source,
        state.shift,
        state.depth,
        state.redirects,
        state.path_length,
        state.host_as_written,
        state.discovered_at,
        state.fetched_at,
        state.next_fetch,
        state.interval_s,
        state.retries,
        state.errors,
        state.etag,
        state.last_modified,
        state.rules,
        state.checksum,
        state.canonical,
        state.indexed,
        state.held,
        state.held_mark,
        state.asked,
        state.inherited,
        state.fields_mark,
        aside or state.checksum,
        0 if aside is None else 1 if aside == state.checksum else 2,
        record.left,
    )
