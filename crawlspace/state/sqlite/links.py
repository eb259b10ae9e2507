"""Links in SQLite: discovered URLs, the links of pages, link depths, and the sample of refused links.

A discovered URL that is known may get a lower depth, and so may its links. A depth that may have become higher is only marked (see
`state.depths`).
"""

# Statements are put together of constants only, and values are always bound.
# ruff: noqa: S608
from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import NamedTuple

import apsw
from msgspec import structs

from crawlspace.decision import Reason
from crawlspace.model import Held, NewUrl, State
from crawlspace.state.changes import Effects
from crawlspace.state.depths import (
    ANY_PAGE,
    LEADING,
    LOWERED,
    DepthMark,
    NewDepth,
    PageLinks,
    UrlDepth,
    is_deeper,
    leads_on,
    merged,
)
from crawlspace.state.link_keys import moved_links, pack_keys, unpack_keys
from crawlspace.state.refused_links import HOSTS_OF_REASON, LETTERS, LINKS_OF_HOST, RefusedLink, reason_of
from crawlspace.state.sqlite.inherited_metadata import pass_to_all
from crawlspace.state.sqlite.sites import SCHEME_BITS
from crawlspace.state.sqlite.transaction import ChangedUrl, SiteIds, Transaction, add_counts, integers, take_numbers
from crawlspace.status import LINKS_ONLY

_INSERTED_AT_ONCE = 100
"""Rows in one statement: a fifth less time than one by one, and a longer statement would not stay prepared."""
_ROW = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT = (
    "INSERT INTO url (id, key, url, site, source, shift, depth, redirects, rank, host_as_written, discovered_at, depth_from)"
    f" VALUES {_ROW}"
)
_INSERT_MANY = _INSERT + f", {_ROW}" * (_INSERTED_AT_ONCE - 1)

_DEPTH = (
    f"SELECT url.id, url.key, state, status, depth, depth_from, orphaned, checksum IS NOT NULL, held IS {int(Held.FOLDED)} FROM"
)
_MAY_REDIRECT = (
    f"(state = {int(State.REDIRECTED)} OR (state IN ({int(State.FAILED)}, {int(State.PENDING)}) AND checksum IS NULL))"
)
_LEADS_ON = (
    f"(state IN ({', '.join(str(int(state)) for state in sorted(LEADING))})"
    f" OR (state = {int(State.EXCLUDED)} AND status IN ({', '.join(map(str, sorted(LINKS_ONLY)))})))"
)

_PAGE_LINKS = f"SELECT url.id, depth + NOT {_MAY_REDIRECT}, targets FROM links CROSS JOIN url ON url.id = links.id"
_PAGES, _PAGES_FOLDED = 10_000, 20_000
"""Pages read at once."""


def discover(db: apsw.Connection, urls: Sequence[NewUrl], *, sites: SiteIds, now: int) -> Effects:
    """Insert unknown URLs and lower the depth of known ones, inside an open transaction."""
    transaction = Transaction(db, sites, now)
    discovery = Discovery(transaction)
    discovery.discover(urls)
    discovery.carry()
    pass_to_all(db, urls)
    add_counts(db, transaction.tally)
    return transaction.effects


@dataclass(slots=True)
class _Known:
    id: int
    depth: int
    state: int
    source: int
    shift: int
    depth_from: int = 0
    changed: bool = False


class Discovery:
    """The discoveries of one transaction. `nearer` holds ids whose depth went down, with the depth they had."""

    def __init__(self, transaction: Transaction) -> None:
        self.nearer: dict[int, int] = {}
        self._db = transaction.db
        self._sites = transaction.sites
        self._now = transaction.now
        self._tally = transaction.tally
        self._effects = transaction.effects

    def discover(self, urls: Sequence[NewUrl]) -> None:
        """Store new URLs; lower the depth and source of known ones, with the shift of that source."""
        if not urls:
            return
        known = self._known(urls)
        fresh: dict[str, NewUrl] = {}
        for new in urls:
            row = known.get(new.url)
            if row is not None:
                self._find_again(row, new)
            elif (twin := fresh.setdefault(new.url, new)) is not new:
                nearer, first = new if new.depth < twin.depth else twin, new if new.source < twin.source else twin
                fresh[new.url] = structs.replace(
                    twin, source=first.source, shift=first.shift, depth=nearer.depth, depth_from=nearer.depth_from
                )
        self._db.executemany(
            "UPDATE url SET depth = ?, source = ?, shift = ?, depth_from = ? WHERE id = ?",
            [(row.depth, row.source, row.shift, row.depth_from, row.id) for row in known.values() if row.changed],
        )
        if fresh:
            self._insert(fresh)

    def carry(self) -> None:
        """Lower the depth of links of URLs with a lower depth, lowest first, until nothing changes; report the crawled ones.

        A URL keeps its giver once it has been processed: two redirects that lead to each other would else give each other their depth.
        Links that are not stored are marked: such a URL may be found again by a page that is farther.
        """
        if not self.nearer:
            return
        states: dict[int, int] = {}
        depths: dict[int, int] = {}
        leading: set[int] = set()
        for id, depth, state, status in self._db.execute(
            "SELECT id, depth, state, status FROM url WHERE id IN (SELECT value FROM carray(?))", (integers(self.nearer),)
        ):
            depths[id], states[id] = depth, state
            if leads_on(state, status):
                leading.add(id)
        waiting: defaultdict[int, set[int]] = defaultdict(set)
        for id, depth in depths.items():
            waiting[depth].add(id)
        lowered: dict[int, int] = {}
        unknown: dict[int, int] = {}
        done: set[int] = set()
        while waiting:
            depth = min(waiting)
            some = {id for id in waiting.pop(depth) if depths[id] == depth}
            done.update(some)
            for id in some & leading:
                reach = depth if states[id] == State.REDIRECTED else depth + 1
                for key, target, stored, state, status in self._farther(id, reach):
                    if target is None:
                        unknown[key] = min(unknown.get(key, reach), reach)
                    elif reach < depths.setdefault(target, stored):
                        self.nearer.setdefault(target, stored)
                        depths[target], states[target] = reach, state
                        if leads_on(state, status):
                            leading.add(target)
                        lowered[target] = id
                        waiting[reach].add(target)
                    elif reach == depths[target] and target in lowered and target not in done:
                        lowered[target] = min(lowered[target], id)
        self._db.executemany(
            "UPDATE url SET depth = ?, depth_from = ? WHERE id = ?", [(depths[id], page, id) for id, page in lowered.items()]
        )
        _merge_marks(self._db, {key: DepthMark(ANY_PAGE, reach) for key, reach in unknown.items()})
        self._effects.lowered = [
            (id, self.nearer[id], depths[id])
            for id in sorted(self.nearer)
            if states[id] != State.PENDING and depths[id] < self.nearer[id]
        ]
        if self._effects.lowered:
            self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, '1')", (LOWERED,))

    def _known(self, urls: Sequence[NewUrl]) -> dict[str, _Known]:
        rows = self._db.execute(
            "SELECT url.url, url.id, depth, state, source, shift, depth_from FROM carray(?) AS wanted CROSS JOIN url INDEXED BY url_key"
            " ON url.key = wanted.value",
            (integers(sorted(new.key for new in urls)),),
        )
        known = {}
        for text, *values in rows:
            known[text] = _Known(*values)
        return known

    def _find_again(self, row: _Known, new: NewUrl) -> None:
        if row.state == State.PENDING and new.source < row.source:
            row.source, row.shift = new.source, new.shift
            row.changed = True
            self._effects.pending_sites.setdefault(new.site, 0)
        if new.depth < row.depth:
            self.nearer.setdefault(row.id, row.depth)
            row.depth, row.depth_from = new.depth, new.depth_from
            row.changed = True

    def _insert(self, fresh: Mapping[str, NewUrl]) -> None:
        first = take_numbers(self._db, "id", len(fresh))
        self._effects.ids = dict(zip(fresh, count(first), strict=False))
        by_site = Counter([new.site for new in fresh.values()])
        over_https = Counter([new.site for new in fresh.values() if new.url.startswith("https:")])
        schemes = {
            site: (SCHEME_BITS["https"] if over_https[site] else 0) | (SCHEME_BITS["http"] if over_https[site] < number else 0)
            for site, number in by_site.items()
        }
        site_ids = {site: self._sites.find_or_add(self._db, site) for site in by_site}
        rows = [
            (
                id,
                new.key,
                new.url,
                site_ids[new.site],
                new.source,
                new.shift,
                new.depth,
                new.redirects,
                new.rank,
                new.host_as_written,
                self._now,
                new.depth_from,
            )
            for id, new in enumerate(fresh.values(), first)
        ]
        at_once = len(rows) - len(rows) % _INSERTED_AT_ONCE
        for start in range(0, at_once, _INSERTED_AT_ONCE):
            self._db.execute(_INSERT_MANY, tuple(chain.from_iterable(rows[start : start + _INSERTED_AT_ONCE])))
        self._db.executemany(_INSERT, rows[at_once:])
        self._db.executemany(
            "UPDATE site SET urls = urls + ?, schemes = schemes | ? WHERE id = ?",
            [(number, schemes[site], site_ids[site]) for site, number in by_site.items()],
        )
        self._tally["state 0"] += len(fresh)
        self._effects.discovered += len(fresh)
        pending = self._effects.pending_sites
        for site, number in by_site.items():
            pending[site] = pending.get(site, 0) + number

    def _farther(self, id: int, reach: int) -> list[tuple[int, int | None, int, int, int | None]]:
        """Return key, id, depth, state and status of the URLs that a URL links to and whose depth is larger than `reach`.

        The id is None, and the rest meaningless, where the URL is not stored.
        """
        row = self._db.execute("SELECT targets FROM links WHERE id = ?", (id,)).fetchone()
        if row is None:
            return []
        return list(
            self._db.execute(
                "SELECT wanted.value, url.id, depth, state, status FROM carray(?) AS wanted LEFT JOIN url INDEXED BY url_key"
                " ON url.key = wanted.value WHERE url.id IS NULL OR depth > ?",
                (integers(unpack_keys(row[0])), reach),
            )
        )


class UrlBefore(NamedTuple):
    """A URL before a batch of changes."""

    key: int
    depth: int
    links: frozenset[int]
    """Links that count."""


def urls_before(db: apsw.Connection, rows: Collection[ChangedUrl]) -> dict[int, UrlBefore]:
    """Return URLs that will be changed, in their present state."""
    leading = [row.id for row in rows if leads_on(row.old_state, row.old_status)]
    links = links_of(db, leading)
    return {row.id: UrlBefore(row.key, row.depth, frozenset(links.get(row.id, ()))) for row in rows}


def mark_depths(
    db: apsw.Connection, were: Mapping[int, UrlBefore], rows: Mapping[int, ChangedUrl], links: Mapping[int, Sequence[int]]
) -> None:
    """Mark URLs that got their depth from changed URLs which do not link to them any more, and forgotten ones; `links` are new."""
    for id, was in sorted(were.items()):
        row = rows[id]
        if row.forgotten:
            _merge_marks(db, {was.key: DepthMark(ANY_PAGE, was.depth)})
        if not was.links or (row.last is None and not row.forgotten):
            continue
        last = None if row.forgotten else row.last
        leads = (
            last is not None
            and leads_on(last.state, last.status)
            and not is_deeper(row.old_state, last.state, had_document=row.old_checksum is not None)
        )
        lost = was.links.difference(links.get(id, was.links) if leads else ())
        if lost:
            given = db.execute(
                "SELECT DISTINCT url.key FROM carray(?) AS wanted CROSS JOIN url INDEXED BY url_key ON url.key = wanted.value"
                " WHERE depth_from = ?",
                (integers(lost), id),
            )
            _merge_marks(db, {key: DepthMark(id) for (key,) in given})


def depth_marks(db: apsw.Connection, keys: Iterable[int] | None = None) -> dict[int, DepthMark]:
    """Return the marks of these keys, or all."""
    if keys is None:
        rows = db.execute("SELECT key, mark FROM depth_mark")
    else:
        rows = db.execute("SELECT key, mark FROM depth_mark WHERE key IN (SELECT value FROM carray(?))", (integers(keys),))
    return {key: DepthMark(*map(int, text.split())) for key, text in rows}


def set_depth_marks(db: apsw.Connection, marks: Mapping[int, DepthMark | None]) -> None:
    for key, mark in marks.items():
        if mark is None:
            db.execute("DELETE FROM depth_mark WHERE key = ?", (key,))
        else:
            _write_mark(db, key, mark)


def depths_of(db: apsw.Connection, keys: Iterable[int]) -> list[UrlDepth]:
    statement = f"{_DEPTH} carray(?) AS wanted CROSS JOIN url INDEXED BY url_key ON url.key = wanted.value"
    return _depths(db, statement, integers(sorted(set(keys))))


def scan_depths(db: apsw.Connection, after: int, limit: int) -> list[UrlDepth]:
    return _depths(db, f"{_DEPTH} url NOT INDEXED WHERE id > ? ORDER BY id LIMIT ?", after, limit)


def orphans(db: apsw.Connection) -> list[UrlDepth]:
    return _depths(db, f"{_DEPTH} url INDEXED BY url_orphaned WHERE orphaned IS NOT NULL ORDER BY id")


def set_depths(db: apsw.Connection, new: Sequence[NewDepth]) -> list[int]:
    written = db.executemany(
        "UPDATE url SET depth = ?, depth_from = ?, orphaned = ? WHERE id = ? AND depth = ? AND lease_until IS NULL RETURNING id",
        [(one.depth, one.depth_from, one.orphaned, one.id, one.depth_before) for one in new],
    )
    ids = {id for (id,) in written}
    return [one.id for one in new if one.id not in ids]


def scan_links(db: apsw.Connection, after: int, limit: int) -> list[PageLinks]:
    rows = db.execute(f"{_PAGE_LINKS} WHERE links.id > ? AND {_LEADS_ON} ORDER BY links.id LIMIT ?", (after, limit))
    return [PageLinks(id, reach, unpack_keys(targets)) for id, reach, targets in rows]


def write_packed(db: apsw.Connection, packed: Sequence[tuple[bytes, int]]) -> None:
    """Write links that are packed already, each with the id of its page."""
    db.executemany("UPDATE links SET targets = ? WHERE id = ?", packed)


def stored_links(db: apsw.Connection, after: int) -> list[tuple[int, bytes]]:
    """Return ids and packed links of the next pages."""
    return list(db.execute(f"SELECT id, targets FROM links WHERE id > ? ORDER BY id LIMIT {_PAGES_FOLDED}", (after,)))


def links_of(db: apsw.Connection, ids: Collection[int]) -> dict[int, array[int]]:
    rows = db.execute("SELECT id, targets FROM links WHERE id IN (SELECT value FROM carray(?))", (integers(ids),))
    return {id: unpack_keys(targets) for id, targets in rows}


def links_to(db: apsw.Connection, keys: frozenset[int], *, after: int) -> tuple[int | None, list[PageLinks]]:
    """Return those of the next pages that link to one of the keys, and the id of the last page read; None: there are no more."""
    holding = " AND instr(targets, ?2)" if len(keys) == 1 else ""  # matches across two keys are excluded below
    rows = list(
        db.execute(
            f"SELECT id, targets FROM links WHERE id > ?1{holding} ORDER BY id LIMIT {_PAGES}",
            (after, *((pack_keys(keys),) if holding else ())),
        )
    )
    found = [id for id, targets in rows if not keys.isdisjoint(unpack_keys(targets))]
    pages = db.execute(
        f"{_PAGE_LINKS} WHERE links.id IN (SELECT value FROM carray(?)) AND {_LEADS_ON} ORDER BY links.id", (integers(found),)
    )
    last = rows[-1][0] if len(rows) == _PAGES else None
    return last, [PageLinks(id, reach, unpack_keys(targets)) for id, reach, targets in pages]


def relink(db: apsw.Connection, links: Mapping[int, Sequence[int]]) -> None:
    db.executemany("DELETE FROM links WHERE id = ?", [(id,) for id, keys in links.items() if not keys])
    db.executemany("INSERT OR REPLACE INTO links VALUES (?, ?)", [(id, pack_keys(keys)) for id, keys in links.items() if keys])


def move_links(db: apsw.Connection, into: Mapping[int, int | None]) -> None:
    """Reassign the rows of most pages; the rest had links already, or get the links of several."""
    moves = [(page, id) for id, page in into.items() if page is not None]
    db.executemany("UPDATE OR IGNORE links SET id = ? WHERE id = ?", moves)
    left = links_of(db, into.keys())
    if left:
        pages = [page for id in left if (page := into[id]) is not None]
        relink(db, moved_links({**links_of(db, pages), **left}, into))


def refused_links(
    db: apsw.Connection, *, reason: Reason | None = None, host: str | None = None, page: int | None = None
) -> list[RefusedLink]:
    wanted = {"letter": None if reason is None else LETTERS.get(reason, ""), "host": host, "page": page}
    chosen = {column: value for column, value in wanted.items() if value is not None}
    where = f" WHERE {' AND '.join(f'{column} = ?' for column in chosen)}" if chosen else ""
    rows = db.execute(
        f"SELECT letter, host, url, page, rule FROM refused_link{where} ORDER BY letter, host, number", tuple(chosen.values())
    )
    return [RefusedLink(reason_of(letter), *link) for letter, *link in rows]


def replace_refused(db: apsw.Connection, by_page: Mapping[int, Sequence[RefusedLink]]) -> None:
    """Drop the entries of pages, add their new ones, and drop those beyond the bounds."""
    db.execute("DELETE FROM refused_link WHERE page IN (SELECT value FROM carray(?))", (integers(by_page),))
    add_refused(db, chain.from_iterable(by_page.values()))


def add_refused(db: apsw.Connection, links: Iterable[RefusedLink]) -> None:
    """Add entries, and drop those beyond the bounds."""
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


def _depths(db: apsw.Connection, statement: str, *values: int | apsw.CArrayBinding | None) -> list[UrlDepth]:
    return list(map(UrlDepth._make, db.execute(statement, values)))


def _merge_marks(db: apsw.Connection, marks: Mapping[int, DepthMark]) -> None:
    stored = depth_marks(db, marks) if marks else {}
    for key, one in marks.items():
        _write_mark(db, key, merged(stored.get(key), one))


def _write_mark(db: apsw.Connection, key: int, one: DepthMark) -> None:
    db.execute("INSERT OR REPLACE INTO depth_mark VALUES (?, ?)", (key, f"{one.page} {one.depth}"))
