"""Files as older versions left them, written with what stood in their own schemas. A migration that was published never changes."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

import apsw

from crawlspace.model import Document
from crawlspace.state.sqlite.rows import pack_document, pack_keys
from crawlspace.state.sqlite.schema import APPLICATION_ID, MIGRATIONS
from tests.contract.conftest import NOW, full

# URL, state, status, source, next_fetch, retries, checksum, group, aside, named, indexed, held, canonical URL
URLS_OF_2 = [
    ("a.example/", 1, 200, 2, NOW + 60, 0, b"home", b"home", 0, 0, 1, None, None),
    ("a.example/new", 0, None, 3, None, 0, None, None, 0, 0, 0, None, None),
    ("a.example/main", 1, 200, 3, NOW + 60, 0, b"same", b"same", 0, 1, 1, None, None),
    ("a.example/copy", 1, 200, 3, NOW + 60, 0, b"copy", b"same", 2, 0, 0, None, "a.example/main"),
    ("a.example/gone", 3, 404, 3, NOW + 60, 0, b"gone", b"gone", 0, 0, 1, 2, None),
    ("a.example/down", 4, 503, 3, NOW - 60, 1, b"down", b"down", 0, 0, 1, None, None),
    ("a.example/left", 5, 761, 3, None, 0, None, None, 0, 0, 0, None, None),
    ("b.example/", 1, 200, 4, NOW - 60, 0, b"b", b"b", 0, 0, 1, None, None),
]


def key_of_before(url: str) -> int:
    """As it was up to version 2: without the folder."""
    return int.from_bytes(blake2b(full(url).encode(), digest_size=8).digest(), "little", signed=True)


def of_version_2(path: Path, *, more: int = 0) -> Path:
    """Write a file of version 2: pages in groups by canonical page, a held deletion, a page left to another crawler, one that is retried,
    orders that wait; and `more` pending URLs."""
    db = apsw.Connection(str(path))
    db.pragma("journal_mode", "wal")
    for migration in MIGRATIONS[:2]:
        db.execute(migration)
    db.execute(
        "INSERT INTO site (id, site, host, urls, answers, recent) VALUES (1, 'a.example:80', 'a.example', ?, 40, 12)", (7 + more,)
    )
    db.execute("INSERT INTO site (id, site, host, urls) VALUES (2, 'b.example:80', 'b.example', 1)")
    for id, row in enumerate(URLS_OF_2, 1):
        url, state, status, source, due, retries, checksum, group, aside, named, indexed, held, canonical = row
        db.execute(
            "INSERT INTO url (id, key, url, site, state, status, source, shift, depth, redirects, path_length, discovered_at, fetched_at,"
            " next_fetch, interval_s, retries, rules, checksum, canonical, indexed, named, held, held_mark, grp, aside, left_behind)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, 0, 1, 0, 2, 0, 9, ?, 60, ?, 1, ?, ?, ?, ?, ?, 7, ?, ?, ?)",
            (
                *(
                    id,
                    key_of_before(url),
                    full(url),
                    1 if url.startswith("a.") else 2,
                    state,
                    status,
                    source,
                    due,
                    retries,
                    checksum,
                ),
                *(canonical and key_of_before(canonical), indexed, named, held, group, aside, int(status == 761)),
            ),
        )
        if checksum:
            db.execute("INSERT INTO document VALUES (?, ?)", (id, pack_document(Document("", title=url))))
            db.execute("INSERT INTO content (checksum, text) VALUES (?, ?)", (checksum, f"text of {url}"))
    for number in range(more):
        url = f"a.example/more/{number}"
        db.execute(
            "INSERT INTO url (id, key, url, site, source, shift, depth, redirects, path_length, discovered_at)"
            " VALUES (?, ?, ?, 1, 3, 0, 1, 0, 2, 0)",
            (1000 + 3 * number, key_of_before(url), full(url)),
        )
    linked = pack_keys([key_of_before("a.example/copy"), key_of_before("elsewhere.example/"), key_of_before("a.example/")])
    db.execute("INSERT INTO links VALUES (1, ?)", (linked,))
    orders = [(0, 1, "a.example/away", 9_000_000), (1, 2, "a.example/main", 3)]
    for op, sequence, url, id in orders:
        db.execute(
            "INSERT INTO outbox VALUES ('index', 0, ?, ?, ?, ?, ?, NULL, NULL)", (op, sequence, key_of_before(url), full(url), id)
        )
    db.execute(
        "INSERT INTO tally VALUES ('id', 9000000), ('sequence', 2), ('state 0', ?), ('state 1', 4), ('state 3', 1), ('state 4', 1), ('state 5', 1),"
        " ('status 200', 4), ('status 404', 1), ('status 503', 1), ('status 761', 1), ('indexed', 5), ('retrying', 1), ('waiting index', 2)",
        (1 + more,),
    )
    db.execute("INSERT INTO meta VALUES ('rules_generation', '5')")
    db.pragma("application_id", APPLICATION_ID)
    db.pragma("user_version", 2)
    db.close()
    return path
