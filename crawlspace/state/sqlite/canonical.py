"""Pages that name a canonical page, in SQLite: the group of each URL of a transaction, and the URLs whose group changes with it.

A page that names none costs one entry in a look-up for the whole transaction: whether another page names it.
"""

# Statements are put together of constants only, and values are always bound.
# ruff: noqa: S608
from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import apsw

from crawlspace.state.sqlite.rows import integers
from crawlspace.state.sqlite.schema import NAMES_A_PAGE


class ChangedPage(Protocol):
    """A URL of the transaction: as it was stored, and as it will be."""

    id: int
    key: int
    old_checksum: bytes | None
    old_canonical: int | None
    checksum: bytes | None
    canonical: int | None
    group: bytes | None
    aside: int


@dataclass(slots=True)
class Bystander:
    """A URL whose group changes because of a change of the page it names."""

    id: int
    key: int
    checksum: bytes
    canonical: int
    old_group: bytes
    old_aside: int
    group: bytes = b""
    aside: int = 0


def place(db: apsw.Connection, pages: Mapping[int, ChangedPage]) -> list[Bystander]:
    """Set group and aside of the pages; return the URLs whose group changes with them. Before any row is written."""
    changed = {
        page.key
        for page in pages.values()
        if (page.checksum if page.canonical is None else None) != (page.old_checksum if page.old_canonical is None else None)
    }
    bystanders = [one for one in _naming(db, changed) if one.id not in pages]
    named = {page.canonical for page in pages.values() if page.canonical is not None and page.checksum is not None}
    named.update(one.canonical for one in bystanders)
    groups = _groups(db, named, pages) if named else {}
    for page in pages.values():
        group = None if page.canonical is None or page.checksum is None else groups.get(page.canonical)
        page.group, page.aside = group or page.checksum, _aside(page.checksum, group)
    for one in bystanders:
        group = groups.get(one.canonical)
        one.group, one.aside = group or one.checksum, _aside(one.checksum, group)
    return [one for one in bystanders if (one.group, one.aside) != (one.old_group, one.old_aside)]


def _naming(db: apsw.Connection, keys: Collection[int]) -> list[Bystander]:
    """The stored URLs with a document that name one of the keys as canonical."""
    if not keys:
        return []
    rows = db.execute(
        "SELECT id, key, checksum, canonical, grp, aside FROM carray(?) AS changed"
        f" CROSS JOIN url INDEXED BY url_canonical ON canonical = changed.value WHERE {NAMES_A_PAGE}",
        (integers(keys),),
    )
    return [Bystander(*row) for row in rows]


def _groups(db: apsw.Connection, keys: Iterable[int], pages: Mapping[int, ChangedPage]) -> dict[int, bytes]:
    """The groups of the canonical pages with these keys, as far as there are such pages after the transaction."""
    wanted = set(keys)
    found = [
        (id, key, checksum)
        for id, key, checksum in db.execute(
            "SELECT id, key, checksum FROM carray(?) AS named CROSS JOIN url INDEXED BY url_key ON key = named.value"
            " WHERE checksum IS NOT NULL AND canonical IS NULL",
            (integers(wanted),),
        )
        if id not in pages
    ]
    found += [
        (page.id, page.key, page.checksum)
        for page in pages.values()
        if page.key in wanted and page.checksum is not None and page.canonical is None
    ]
    return {key: checksum for _, key, checksum in sorted(found, reverse=True)}


def _aside(checksum: bytes | None, group: bytes | None) -> int:
    """Return how a URL stands aside, with the group of the page for which it does, if there is one."""
    if group is None:
        return 0
    return 1 if group == checksum else 2
