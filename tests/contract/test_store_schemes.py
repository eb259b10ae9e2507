"""Of equal pages on http and https of one host https stands for them, whichever came first; also where they are known from an earlier version."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest
from msgspec import structs

from crawlspace.model import NewUrl
from crawlspace.state.duplicates import HTTP
from crawlspace.state.sqlite.store import SqliteStore
from tests.contract.conftest import Known, full, new
from tests.contract.memory.store import MemoryStore
from tests.unit.state.sqlite.test_versions import OF_VERSION_3

PLAIN, SECURE, LONGER, PORT = (
    "http://a.example/p",
    "https://a.example/p",
    "https://a.example/the/longer/p",
    "https://a.example:8443/p",
)
OTHER, ELSEWHERE = "http://a.example/other", "https://b.example/p"

ORDERS: list[tuple[list[str], list[str]]] = [
    # pages with one text, each in a transaction of its own -> who is indexed then
    ([PLAIN, SECURE], [SECURE]),
    ([SECURE, PLAIN], [SECURE]),
    ([PLAIN, OTHER, SECURE], [SECURE]),
    ([PLAIN, LONGER], [LONGER]),
    ([LONGER, PLAIN, SECURE], [SECURE]),
    ([PLAIN, PORT], [PORT]),
    ([PLAIN, ELSEWHERE], [PLAIN]),
    ([PLAIN, ELSEWHERE, SECURE], [SECURE]),
    ([ELSEWHERE, PLAIN, SECURE], [ELSEWHERE]),
]


@pytest.mark.parametrize(("pages", "expected"), ORDERS)
def test_https_stands_for_equal_pages(known: Known, pages: list[str], expected: list[str]) -> None:
    for url in pages:
        known.discover(url)
        known.record(known.page(url, "one"))
    assert representatives(known) == expected
    known.store.check()


def test_a_redirect_on_the_way_to_it_changes_nothing(known: Known) -> None:
    known.discover(PLAIN, new(SECURE, redirects=3))
    for url in (PLAIN, SECURE):
        known.record(known.page(url, "one"))
    assert representatives(known) == [SECURE]


def test_http_stands_for_them_again_when_https_is_gone(known: Known) -> None:
    known.discover(PLAIN, SECURE)
    for url in (PLAIN, SECURE):
        known.record(known.page(url, "one"))
    known.record(known.page(SECURE, "two"))
    assert representatives(known) == [PLAIN, SECURE]


def test_an_http_page_of_an_earlier_version_gives_way_to_a_new_https_page(known: Known) -> None:
    known.discover(of_earlier_version(known, PLAIN))
    known.record(known.page(PLAIN, "one"))
    known = upgraded(known)
    assert representatives(known) == [PLAIN]
    known.discover(SECURE)
    known.record(known.page(SECURE, "one"))
    assert representatives(known) == [SECURE]
    known.store.check()


def test_pages_of_an_earlier_version_stay_as_they_are_until_one_changes(known: Known) -> None:
    known.discover(of_earlier_version(known, PLAIN), SECURE)
    known.record(known.page(PLAIN, "one"))
    if isinstance(known.store, SqliteStore):
        path = known.store.path
        known.record(known.page(SECURE, "one"))
        db = apsw.Connection(str(path))
        db.execute("UPDATE url SET indexed = url LIKE 'http:%'")
        db.close()
        known = upgraded(known)
        assert representatives(known) == [PLAIN]
        assert known.get(SECURE).duplicate_of == known.get(PLAIN).id
        known.store.check()
    for url in (PLAIN, SECURE):
        known.record(known.page(url, "two"))
    assert representatives(known) == [SECURE]
    known.store.check()


def of_earlier_version(known: Known, url: str) -> NewUrl:
    """A candidate as an earlier version has stored it; there is none in memory."""
    candidate = new(url)
    return candidate if isinstance(known.store, MemoryStore) else structs.replace(candidate, rank=candidate.rank - HTTP)


def upgraded(known: Known) -> Known:
    """The store as one of an earlier version, opened by this one; on a server nothing says so."""
    if not isinstance(known.store, SqliteStore):
        return known
    path: Path = known.store.path
    known.store.close()
    db = apsw.Connection(str(path))
    for statement in OF_VERSION_3:
        db.execute(statement)
    db.close()
    return Known(SqliteStore(path, sinks=("index", "log")))


def representatives(known: Known) -> list[str]:
    return [full(state.url) for state in known.store.urls() if state.indexed]
