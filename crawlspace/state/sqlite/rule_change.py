"""Apply a change of the rules to very many URLs in SQLite, in statements over whole batches.

Most documents are alone in their group, and when one of these leaves, nothing else changes. Only the others are processed by `record`.
"""

# Statements are put together of constants only, and values are always bound.
# ruff: noqa: S608
from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import apsw
from msgspec import structs

from crawlspace.model import State
from crawlspace.state.changes import (
    DUE,
    EXCLUDED,
    HELD,
    HELD_FOLDED,
    NOT_HELD,
    PENDING_AGAIN,
    Change,
    Effects,
    Reclassified,
    Values,
)
from crawlspace.state.duplicates import NO_PAGE, NOTED, Settlement
from crawlspace.state.lifecycle import excluded, unindexed
from crawlspace.state.sqlite import links, outbox, record
from crawlspace.state.sqlite.outbox import Outgoing
from crawlspace.state.sqlite.rows import by_ids
from crawlspace.state.sqlite.schema import NAMES_A_PAGE
from crawlspace.state.sqlite.transaction import Tally, Transaction, integers
from crawlspace.status import UNCOUNTED, Status

_OUT = f"({int(Status.EXCLUDED)}, {int(Status.EXCLUDED_HERE)})"
_HELD_CHECKSUM = "CAST(printf('held%012d', id) AS BLOB)"
"""As `held_checksum`."""
_IDS = "id IN (SELECT value FROM carray(?1))"
_AT_ONCE = "next_fetch = min(?2, ifnull(fetched_at, ?2))"
"""As `at_once`."""
_SHARED = (
    "grp IS NOT NULL AND (simhash IS NOT NULL"
    " OR EXISTS (SELECT 1 FROM url AS other INDEXED BY url_group WHERE other.grp = url.grp AND other.id <> url.id))"
)

_NOTED = f"""
    SELECT id, (SELECT best.id FROM url AS best INDEXED BY url_group WHERE best.grp = url.grp
                ORDER BY best.alternate, best.named DESC, best.rank, best.id LIMIT 1),
        EXISTS (SELECT 1 FROM content WHERE content.checksum = url.grp)
    FROM url WHERE {_IDS} AND grp IS NOT NULL AND NOT (indexed OR left_behind OR alternate) AND canonical IS NULL
        AND NOT EXISTS (SELECT 1 FROM representative WHERE representative.grp = url.grp)
        AND NOT EXISTS (SELECT 1 FROM url AS page INDEXED BY url_canonical WHERE page.canonical = url.key AND {NAMES_A_PAGE})
        AND NOT EXISTS (SELECT 1 FROM url AS other INDEXED BY url_group WHERE other.grp = url.grp LIMIT 1 OFFSET {NOTED + 1})
"""
"""URLs noted on the document of another one, with that one, and whether it has a text to be pushed."""


def reclassify(transaction: Transaction, found: Reclassified) -> Outgoing:
    """Make the changes except for the orders, inside an open transaction. Return the orders, with key and URL of their ids."""
    db, now, tally, effects = transaction.db, transaction.now, transaction.tally, transaction.effects
    kinds = ((Status.EXCLUDED, found.excluded), (Status.EXCLUDED_HERE, found.given_up), (Status.NOINDEX, found.unindexed))
    shared = {status: _sharing(db, ids) for status, ids in kinds}
    names: dict[int, tuple[int, str]] = {}
    changes: list[Change] = []
    for status, ids in kinds:
        names.update(_exclude(db, ids, shared[status], status, now, tally))
        for state in by_ids(db, shared[status]):
            after = unindexed(state, now) if status is Status.NOINDEX else excluded(state, status)
            changes.append(Change(after, keep_in_index=status is Status.EXCLUDED_HERE))
    noted, noting = _noted(db, found)
    forgotten = _sharing(db, [id for id in found.forgotten if id not in noted])
    names.update(_forget(db, found.forgotten, forgotten, noted, tally))
    db.execute(f"DELETE FROM link_metadata WHERE {_IDS}", (integers(found.forgotten),))
    for ids, mark in ((found.held, 0), (found.held_unindexed, 1)):
        others = _sharing(db, ids)
        _hold_alone(db, ids, others, mark, tally, effects)
        changes += [Change(structs.replace(state, **HELD, held_mark=mark), keep_in_index=True) for state in by_ids(db, others)]
    _hold(db, found.held_folded, f"{_set(HELD_FOLDED)}, held_mark = 0", tally, effects)
    _return(db, found.returned, now, tally, effects)
    db.execute(
        f"UPDATE url SET {_set(DUE)}, {_AT_ONCE}, lease_until = NULL"
        f" WHERE {_IDS} AND state <> {int(State.PENDING)} AND next_fetch IS NOT NULL",
        (integers(found.due), now),
    )
    settlement, concerned = record.record(transaction, changes, forgotten=forgotten, inherit=False)
    db.executemany("UPDATE url SET source = ?, shift = ? WHERE id = ?", [(*queue, id) for id, queue in found.moved])
    push = sorted(noting.difference(settlement.delete).union(settlement.push))
    return Settlement(push, sorted([*settlement.delete, *names]), settlement.displaced), {**concerned, **names}


def _set(values: Values) -> str:
    return ", ".join(f"{name} = {'NULL' if value is None else int(value)}" for name, value in values.items())


def _sharing(db: apsw.Connection, ids: Sequence[int]) -> list[int]:
    """Return the ids whose group has other members, or may have near duplicates."""
    return [id for (id,) in db.execute(f"SELECT id FROM url WHERE {_IDS} AND {_SHARED}", (integers(ids),))]


def _exclude(
    db: apsw.Connection, ids: Sequence[int], but: Sequence[int], status: Status, now: int, tally: Tally
) -> dict[int, tuple[int, str]]:
    """Exclude URLs whose group has no other members; return key and URL of those whose document is to be deleted from the index."""
    left_out = set(but)
    chosen = [id for id in ids if id not in left_out] if left_out else ids
    alone = integers(chosen)
    stays = status is Status.EXCLUDED_HERE
    values = {**EXCLUDED, **DUE} if status is Status.NOINDEX else EXCLUDED
    written = _set({name: value for name, value in values.items() if name != "next_fetch"})
    due = _AT_ONCE if status is Status.NOINDEX else "next_fetch = NULL"
    names: dict[int, tuple[int, str]] = {}
    if stays:
        outbox.keep(db, chosen)
    else:
        rows = db.execute(f"SELECT id, key, url FROM url WHERE {_IDS} AND (indexed OR left_behind)", (alone,))
        names = {id: (key, url) for id, key, url in rows}
    by_site = _uncount(db, alone, _IDS, tally, with_documents=True)
    _drop_refused_links(db, alone, tally)
    if status in UNCOUNTED:
        tally.uncounted.update(by_site)
    tally[f"state {int(State.EXCLUDED)}"] += by_site.total()
    tally[f"status {int(status)}"] += by_site.total()
    db.execute(f"DELETE FROM document WHERE {_IDS}", (alone,))
    _drop_texts(db, alone)
    db.execute(
        f"UPDATE url SET {written}, {due}, status = {int(status)}, grp = NULL, alternate = 0,"
        f" named = 0, left_behind = {'indexed OR left_behind' if stays else '0'}, indexed = 0 WHERE {_IDS}",
        (alone, now) if status is Status.NOINDEX else (alone,),
    )
    return names


def _noted(db: apsw.Connection, found: Reclassified) -> tuple[set[int], set[int]]:
    """Return the forgotten URLs that are only noted on the document of another one, and those documents, which must be pushed.

    The others represent their group, may be named by a page, or are one of very many: they are left to `record`.
    """
    leaving = {*found.forgotten, *found.excluded, *found.given_up, *found.unindexed}
    leaving.update(found.held, found.held_unindexed, found.held_folded)
    rows = [row for row in db.execute(_NOTED, (integers(found.forgotten),)) if row[1] not in leaving]
    return {id for id, _, _ in rows}, {representative for _, representative, has_text in rows if has_text}


def _forget(
    db: apsw.Connection, ids: Sequence[int], but: Sequence[int], noted: Collection[int], tally: Tally
) -> dict[int, tuple[int, str]]:
    """Remove URLs whose group has no other members, or on whose document they are `noted`.

    Returns key and URL of those whose document is to be deleted from the index.
    """
    left_out = set(but)
    chosen = integers([id for id in ids if id not in left_out] if left_out else ids)
    rows = db.execute(f"SELECT id, key, url FROM url WHERE {_IDS} AND (indexed OR left_behind)", (chosen,))
    names = {id: (key, url) for id, key, url in rows}
    by_site = _uncount(db, chosen, _IDS, tally, with_documents=True)
    db.executemany("UPDATE site SET urls = urls - ? WHERE id = ?", [(count, site) for site, count in by_site.items()])
    _drop_refused_links(db, chosen, tally)
    _drop_texts(db, integers([id for id in ids if id not in left_out and id not in noted]))
    for table in ("document", "links", "inheritance", "url"):
        db.execute(f"DELETE FROM {table} WHERE {_IDS}", (chosen,))
    return names


def _hold(db: apsw.Connection, ids: Sequence[int], values: str, tally: Tally, effects: Effects) -> None:
    """Hold the deletions of URLs."""
    bound = integers(ids)
    leased = f"state = {int(State.PENDING)} AND lease_until IS NOT NULL"
    ((retrying, has_leased),) = db.execute(
        f"SELECT ifnull(sum(retries > 0), 0), ifnull(max({leased}), 0) FROM url WHERE {_IDS}", (bound,)
    )
    tally["retrying"] -= retrying
    if has_leased:
        _count_pending(db, bound, leased, effects)
    db.execute(f"UPDATE url SET {values}, lease_until = NULL WHERE {_IDS}", (bound,))


def _hold_alone(db: apsw.Connection, ids: Sequence[int], but: Sequence[int], mark: int, tally: Tally, effects: Effects) -> None:
    """The same for URLs that are alone in their group, and leave it; their indexed documents stay (see `held_checksum`)."""
    left_out = set(but)
    chosen = [id for id in ids if id not in left_out] if left_out else ids
    outbox.keep(db, chosen)
    _drop_texts(db, integers(chosen))
    without = "checksum IS NULL"
    values = (
        f"{_set(HELD)}, held_mark = {mark},"
        f" checksum = iif({without}, NULL, {_HELD_CHECKSUM}), grp = iif({without}, grp, {_HELD_CHECKSUM}),"
        f" canonical = iif({without}, canonical, {NO_PAGE}), alternate = iif({without}, alternate, 0), named = iif({without}, named, 0)"
    )
    _hold(db, chosen, values, tally, effects)


def _drop_refused_links(db: apsw.Connection, ids: apsw.CArrayBinding | None, tally: Tally) -> None:
    refusing = dict(db.execute(f"SELECT id, refused FROM url WHERE {_IDS} AND refused IS NOT NULL", (ids,)))
    for refused in refusing.values():
        tally.count_refused(refused, -1)
    links.replace_refused(db, dict.fromkeys(refusing, ()))


def _drop_texts(db: apsw.Connection, ids: apsw.CArrayBinding | None) -> None:
    """Remove the texts of URLs whose group has no other members."""
    db.execute(
        f"DELETE FROM content WHERE checksum IN (SELECT checksum FROM url WHERE {_IDS} AND checksum IS NOT NULL)"
        " AND NOT EXISTS (SELECT 1 FROM url INDEXED BY url_other_text WHERE url.checksum = content.checksum AND url.checksum <> url.grp)",
        (ids,),
    )


def _return(db: apsw.Connection, ids: Sequence[int], now: int, tally: Tally, effects: Effects) -> None:
    bound = integers(ids)
    out = f"{_IDS} AND status IN {_OUT}"
    _count_pending(db, bound, f"status IN {_OUT} AND (state <> {int(State.PENDING)} OR lease_until IS NOT NULL)", effects)
    returned = _uncount(db, bound, out, tally).total()  # first: it changes the same count
    tally[f"state {int(State.PENDING)}"] += returned
    db.execute(
        f"UPDATE url SET {_set(PENDING_AGAIN)}, lease_until = NULL WHERE {out}",
        (bound,),
    )
    db.execute(
        f"UPDATE url SET {_set(NOT_HELD)}, {_set(DUE)}, {_AT_ONCE}, lease_until = NULL WHERE {_IDS} AND state <> {int(State.PENDING)}",
        (bound, now),
    )


def _uncount(
    db: apsw.Connection, ids: apsw.CArrayBinding | None, which: str, tally: Tally, *, with_documents: bool = False
) -> Counter[int]:
    """Subtract URLs from the counts by state and status, and `with_documents` from all other counts; return their number by site."""
    by_site: Counter[int] = Counter()
    for site, state, status, count, retrying, with_document, indexed in db.execute(
        "SELECT site, state, status, count(*), sum(retries > 0), count(checksum), sum(indexed)"
        f" FROM url WHERE {which} GROUP BY site, state, status",
        (ids,),
    ):
        by_site[site] += count
        tally[f"state {state}"] -= count
        if status is not None:
            tally[f"status {status}"] -= count
        if status in UNCOUNTED:
            tally.uncounted[site] -= count
        if with_documents:
            tally["retrying"] -= retrying
            tally["with document"] -= with_document
            tally["indexed"] -= indexed
            tally.documents[site] -= indexed
    return by_site


def _count_pending(db: apsw.Connection, ids: apsw.CArrayBinding | None, which: str, effects: Effects) -> None:
    """Count URLs that become pending, by site."""
    pending = effects.pending_sites
    for site, count in db.execute(
        f"SELECT site.site, count(*) FROM url CROSS JOIN site ON site.id = url.site WHERE url.{_IDS} AND {which} GROUP BY site.id",
        (ids,),
    ):
        pending[site] = pending.get(site, 0) + count
