"""The archive in SQLite: its files, the places of records, and documents that are pushed again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import apsw

from crawlspace.model import Document
from crawlspace.state.duplicates import Settlement
from crawlspace.state.sqlite import counters, outbox
from crawlspace.state.sqlite.counters import Tally
from crawlspace.state.sqlite.inherited_metadata import link_metadata
from crawlspace.state.sqlite.part import SqlitePart
from crawlspace.state.sqlite.rows import integers, pack_whole


class SqliteArchive(SqlitePart):
    """The part of the store that concerns the archive, and the sinks as a whole."""

    _sinks: Sequence[str]

    def archive_files(self) -> dict[int, str]:
        with self._file.reading() as db:
            return dict(db.execute("SELECT number, name FROM archive_file"))

    def add_archive_file(self, name: str) -> int:
        with self._writing() as db:
            db.execute("INSERT OR IGNORE INTO archive_file (name) VALUES (?)", (name,))
            return int(db.execute("SELECT number FROM archive_file WHERE name = ?", (name,)).get)

    def move_archived(self, moves: Sequence[tuple[int, int, int | None]]) -> None:
        with self._writing() as db:
            db.executemany("UPDATE url SET archived = ?3 WHERE id = ?1 AND archived = ?2", moves)

    def link_metadata(self, ids: Sequence[int]) -> Mapping[int, str]:
        with self._file.reading() as db:
            return link_metadata(db, ids)

    def push_again(self, documents: Mapping[int, Document | None], *, sink: str | None = None) -> list[int]:
        with self._writing() as db:
            tally = Tally()
            sinks = self._sinks if sink is None else (sink,)
            unable = _push_again(db, documents, sinks=sinks, to_all=sink is None, tally=tally)
            counters.add(db, tally)
        return unable

    def use_sinks(self, sinks: Sequence[str]) -> None:
        self._sinks = tuple(sinks)

    def ordered(self, sink: str, urls: Sequence[str]) -> dict[str, bool]:
        with self._file.reading() as db:
            return outbox.ordered(db, sink, urls)

    def in_index(self, urls: Sequence[str]) -> set[str]:
        with self._file.reading() as db:
            return {url for (_, url), (_, in_index) in outbox.stored(db, urls).items() if in_index}

    def delete_again(self, sink: str, urls: Sequence[str]) -> None:
        with self._writing() as db:
            tally = Tally()
            outbox.delete_again(db, sink, urls, tally)
            counters.add(db, tally)

    def withdraw(self, sink: str, *, deletes: bool) -> None:
        with self._writing() as db:
            tally = Tally()
            outbox.withdraw(db, sink, deletes=deletes, tally=tally)
            counters.add(db, tally)


def _push_again(
    db: apsw.Connection, documents: Mapping[int, Document | None], *, sinks: Sequence[str], to_all: bool, tally: Tally
) -> list[int]:
    rows = db.execute(
        "SELECT url.id, url.key, url.url, url.grp, document.id IS NOT NULL AND content.id IS NOT NULL FROM carray(?) AS wanted"
        " CROSS JOIN url ON url.id = wanted.value LEFT JOIN document ON document.id = url.id"
        " LEFT JOIN content ON content.checksum = url.checksum WHERE url.indexed",
        (integers(documents),),
    )
    able: list[int] = []
    unable: list[int] = []
    brought = []
    for id, key, url, group, is_stored in list(rows):
        given = documents[id]
        (able if is_stored or given is not None else unable).append(id)
        if given is not None:
            brought.append((pack_whole(replace(given, duplicates=outbox.duplicates_of(db, id, group))), key, url))
    outbox.give(db, Settlement(sorted(able), []), sinks=sinks, names={}, tally=tally, to_all=to_all)
    db.executemany(
        "UPDATE outbox INDEXED BY outbox_key SET document = ? WHERE key = ? AND url = ? AND op = 1 AND parked = 0 AND sink = ?",
        [(*one, sink) for one in brought for sink in sinks],
    )
    return sorted(unable)
