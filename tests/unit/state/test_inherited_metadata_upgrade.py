"""A file of before pages were known by what they hand: what was handed stays, and each page is asked who it was."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw
import pytest
from msgspec import structs

from crawlspace.crawl.generation import generation
from crawlspace.state.sqlite.schema import APPLICATION_ID, MIGRATIONS
from crawlspace.state.sqlite.store import SqliteStore
from tests.contract.conftest import Known, key, new

RED = '{"c":"red"}'
X, HUB = "a.example/x", "a.example/hub"


def of_version_3(path: Path, inherited: str | None) -> SqliteStore:
    with closing(apsw.Connection(str(path))) as db:
        for migration in MIGRATIONS[:3]:
            db.execute(migration)
        db.execute("INSERT INTO site (id, site, host, urls) VALUES (1, 'a.example:80', 'a.example', 2)")
        db.executemany(
            "INSERT INTO url (id, key, url, site, source, shift, depth, redirects, path_length, discovered_at, inherited)"
            " VALUES (?, ?, ?, 1, 3, 0, 1, 0, 2, 0, ?)",
            [(id, key(url), f"http://{url}", given) for id, url, given in ((1, X, inherited), (2, HUB, None))],
        )
        db.execute("INSERT INTO tally VALUES ('id', 2)")
        db.execute("INSERT INTO meta VALUES ('rules_generation', '5')")
        db.pragma("application_id", APPLICATION_ID)
        db.pragma("user_version", 3)
    return SqliteStore(path)


@pytest.mark.parametrize(("inherited", "rules"), [(RED, 6), (None, 5)], ids=["with fields handed", "without"])
def test_what_was_handed_holds_until_a_page_says_who_it_was(tmp_path: Path, inherited: str | None, rules: int) -> None:
    with closing(of_version_3(tmp_path / "state.db", inherited)) as store:
        known = Known(store)
        assert (known.get(X).inherited, generation(store)) == (inherited, rules)
        for said in (RED, None):
            known.record(known.page(HUB, "hub", links=[key(X)], discovered=[structs.replace(new(X), inherited=said)]))
            assert known.get(X).inherited == said
