"""Inherited metadata in SQLite: it costs something only where rules add metadata that is inherited along links.

Table `link_metadata` has the metadata of source pages, `url.inherited` what a URL inherits, and table `inheritance` its source page; see
`state.inherited_metadata`. No other table is read, and inserting a URL costs nothing more.
"""

# Statements are put together of constants only, and values are always bound.
# ruff: noqa: S608
from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import apsw

from crawlspace.model import NewUrl, Queue, Source, State, Status
from crawlspace.state.changes import Effects
from crawlspace.state.inherited_metadata import LinkMetadataChange, due_at, shows_other
from crawlspace.state.sqlite.rows import fields_of, integers, unpack_keys

_SOURCES = tuple(Source)


@dataclass(slots=True)
class SourcePage:
    """A page whose links inherit metadata, or did so up to now."""

    id: int
    key: int
    link_metadata: str | None
    """As it is stored."""
    change: LinkMetadataChange | None
    """What changes; None where the page was found unchanged."""
    rules: int
    """The generation of rules it was fetched under."""


@dataclass(slots=True)
class Outdated:
    """What a URL inherited when its document was made, as far as known, and the generation of rules under which that has changed."""

    before: str | None
    rules: int


def pass_on(
    db: apsw.Connection, source_pages: Sequence[SourcePage], outdated: Mapping[int, Outdated], *, now: int, effects: Effects
) -> None:
    """Have URLs inherit the metadata of the pages that link to them, inside an open transaction; documents with other fields are due.

    `outdated` are URLs whose outcome was made while they inherited something else.
    """
    affected: dict[int, Outdated] = {}
    if source_pages:
        _take_back(db, [one for one in source_pages if one.change is not None and one.link_metadata is not None], affected)
        _give(db, source_pages, affected)
        _keep(
            db,
            [
                (one.id, one.change.link_metadata)
                for one in source_pages
                if one.change is not None and one.change.link_metadata != one.link_metadata
            ],
        )
    affected.update(outdated)
    if affected:
        _hasten(db, affected, now, effects)


def link_metadata_of(db: apsw.Connection, ids: Collection[int]) -> dict[int, str]:
    """Return the metadata that links of pages inherited so far, for those that have any."""
    return dict(db.execute("SELECT id, fields FROM link_metadata WHERE id IN (SELECT value FROM carray(?))", (integers(ids),)))


def pass_to_all(db: apsw.Connection, urls: Iterable[NewUrl]) -> None:
    """Store the metadata that URLs were found with where they inherit none, without a source page."""
    given = [(new.inherited, new.key, new.url) for new in urls if new.inherited is not None]
    if given:
        db.executemany("UPDATE url SET inherited = ? WHERE key = ? AND url = ? AND inherited IS NULL", given)
        db.executemany(
            "INSERT OR IGNORE INTO inheritance (id) SELECT id FROM url WHERE key = ? AND url = ?", [row[1:] for row in given]
        )


def drop_inherited(db: apsw.Connection) -> None:
    """Remove metadata without a source page, and that of pages that the rules exclude. URLs that had it are due since their last fetch."""
    ids = array(
        "q",
        (
            id
            for (id,) in db.execute(
                "SELECT inheritance.id FROM inheritance CROSS JOIN url ON url.id = inheritance.id LEFT JOIN url AS page ON page.id = inheritance.page"
                " WHERE url.inherited IS NOT NULL"
                f" AND (inheritance.page IS NULL OR page.status IN ({int(Status.EXCLUDED)}, {int(Status.EXCLUDED_HERE)}))"
            )
        ),
    )
    db.execute("UPDATE inheritance SET page = NULL WHERE id IN (SELECT value FROM carray(?))", (integers(ids),))
    db.execute(
        "UPDATE url SET inherited = NULL, next_fetch = CASE"
        f" WHEN state IN ({int(State.DONE)}, {int(State.REDIRECTED)}) AND lease_until IS NULL AND next_fetch > fetched_at THEN fetched_at"
        " ELSE next_fetch END WHERE id IN (SELECT value FROM carray(?))",
        (integers(ids),),
    )


def _take_back(db: apsw.Connection, source_pages: Iterable[SourcePage], affected: dict[int, Outdated]) -> None:
    """Update or remove what URLs inherited from these pages before."""
    by_id = {one.id: one for one in source_pages}
    if not by_id:
        return
    reached = {id: frozenset(_keys(one)) for id, one in by_id.items()}
    changed: list[tuple[str | None, int | None, int]] = []
    for id, key, inherited, by in db.execute(
        "SELECT url.id, url.key, url.inherited, page FROM inheritance INDEXED BY inheritance_page CROSS JOIN url ON url.id = inheritance.id"
        " WHERE page IS NOT NULL AND page IN (SELECT value FROM carray(?))",
        (integers(by_id),),
    ):
        page = by_id[by]
        now = page.change.link_metadata if page.change is not None and key in reached[by] else None
        if now != inherited:
            affected[id] = Outdated(inherited, page.rules)
            changed.append((now, None if now is None else by, id))
    _write(db, changed)


def _give(db: apsw.Connection, source_pages: Sequence[SourcePage], affected: dict[int, Outdated]) -> None:
    """Have URLs without a source page inherit from these pages."""
    before = [one.id for one in source_pages if one.change is None]
    stored = dict(db.execute("SELECT id, targets FROM links WHERE id IN (SELECT value FROM carray(?))", (integers(before),)))
    offers: dict[int, tuple[str, SourcePage]] = {}
    for one in source_pages:
        link_metadata = one.link_metadata if one.change is None else one.change.link_metadata
        if link_metadata is not None:
            for key in _keys(one) if one.change is not None else unpack_keys(stored.get(one.id, b"")):
                if key != one.key:
                    offers.setdefault(key, (link_metadata, one))
    if not offers:
        return
    changed: list[tuple[str | None, int | None, int]] = []
    for id, key, inherited in db.execute(
        "SELECT url.id, url.key, inherited FROM carray(?) AS offered CROSS JOIN url INDEXED BY url_key ON url.key = offered.value"
        " LEFT JOIN inheritance ON inheritance.id = url.id WHERE page IS NULL",
        (integers(sorted(offers)),),
    ):
        link_metadata, page = offers[key]
        changed.append((link_metadata, page.id, id))
        if link_metadata != inherited:
            affected.setdefault(id, Outdated(inherited, page.rules)).rules = page.rules
    _write(db, changed)


def _keys(page: SourcePage) -> Iterable[int]:
    """Return the keys of the URLs that inherit from a page that has changed."""
    return () if page.change is None or page.change.link_metadata is None else page.change.links


def _write(db: apsw.Connection, changed: Collection[tuple[str | None, int | None, int]]) -> None:
    """Write what URLs inherit, and their source pages: rows of the fields, the page and the URL."""
    db.executemany("UPDATE url SET inherited = ? WHERE id = ?", [(inherited, id) for inherited, _, id in changed])
    db.executemany(
        "INSERT INTO inheritance (page, id) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET page = excluded.page",
        [(page, id) for _, page, id in changed],
    )


def _keep(db: apsw.Connection, link_metadata: Collection[tuple[int, str | None]]) -> None:
    db.executemany("DELETE FROM link_metadata WHERE id = ?", [(id,) for id, fields in link_metadata if fields is None])
    db.executemany("INSERT OR REPLACE INTO link_metadata VALUES (?, ?)", [row for row in link_metadata if row[1] is not None])


def _hasten(db: apsw.Connection, affected: Mapping[int, Outdated], now: int, effects: Effects) -> None:
    """Make documents due whose inherited metadata changed since they were made, and redirects that pass it on."""
    due: list[tuple[int, int]] = []
    marks: list[tuple[int, int | None]] = []
    for id, state, site, source, shift, retries, asked, next_fetch, fetched_at, inherited, last, body in db.execute(
        "SELECT url.id, state, site.site, source, shift, retries, asked, next_fetch, fetched_at, inherited, inheritance.mark, document.body"
        " FROM carray(?) AS affected CROSS JOIN url ON url.id = affected.value CROSS JOIN site ON site.id = url.site"
        " LEFT JOIN document ON document.id = url.id LEFT JOIN inheritance ON inheritance.id = url.id"
        f" WHERE state IN ({int(State.DONE)}, {int(State.REDIRECTED)})"
        " AND lease_until IS NULL AND next_fetch IS NOT NULL",
        (integers(sorted(affected)),),
    ):
        before, rules = affected[id].before, affected[id].rules
        differs = before != inherited if state == State.REDIRECTED else shows_other(fields_of(body), before, inherited)
        at, mark = due_at(now, rules, last, fetched_at)
        if differs and at < next_fetch:
            due.append((at, id))
            marks.append((id, mark))
            waits_in = Source.USER if asked else _SOURCES[source] if retries > 0 else Source.REFRESH
            effects.due.append((site, Queue(waits_in, shift), at))
    db.executemany("UPDATE url SET next_fetch = ? WHERE id = ?", due)
    db.executemany("INSERT INTO inheritance (id, mark) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET mark = excluded.mark", marks)
