"""A pending file in each store: out as it came in, and what its lines make of known URLs."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlspace.admin.url_changes import UrlChanges
from crawlspace.clock import FakeClock
from crawlspace.model import State
from crawlspace.state.store import Store
from tests.contract.conftest import NOW, Known, new
from tests.contract.pending_files import INDEXED_AT, Importer, drawn

URL = "http://a.example/x"


@pytest.fixture
def importer(store: Store, tmp_path: Path) -> Importer:
    return Importer(store, tmp_path)


@pytest.mark.parametrize("at_once", [7, 1_000])
def test_a_file_is_written_as_it_was_read(importer: Importer, at_once: int) -> None:
    text = drawn(400)
    counts = importer(text, at_once=at_once)
    assert (counts.lines, counts.entered, counts.left_out) == (400, 400, 0)
    assert importer.exported() == text
    counts = importer(text, at_once=at_once)
    assert (counts.entered, counts.changed, counts.unchanged, counts.left_out) == (0, 0, 400, 0)
    assert importer.exported() == text


def test_an_import_that_was_stopped_is_made_up_for(importer: Importer) -> None:
    text = drawn(100)
    importer("".join(text.splitlines(keepends=True)[:40]))
    counts = importer(text)
    assert (counts.entered, counts.unchanged) == (60, 40)
    assert importer.exported() == text


# state before ("" unknown), with a document, the number of the line, state afterwards, due, number in the export
LINES = [
    ("", False, 0, "pending", True, 0),
    ("", False, 2, "gone", False, 2),
    ("", False, INDEXED_AT, "pending", True, INDEXED_AT),
    ("pending", False, 0, "pending", True, 0),
    ("pending", False, 2, "gone", False, 2),
    ("pending", False, INDEXED_AT, "pending", True, INDEXED_AT),
    ("done", True, 0, "done", False, NOW - 1_000),
    ("done", True, 2, "failed", False, 2),
    ("done", True, INDEXED_AT, "done", False, NOW - 1_000),
    ("done", True, NOW, "done", True, NOW),
    ("gone", False, 0, "gone", False, 2),
    ("gone", False, 2, "gone", False, 2),
    ("gone", False, INDEXED_AT, "pending", True, INDEXED_AT),
    ("failed", True, INDEXED_AT, "failed", True, 2),
    ("excluded", False, INDEXED_AT, "pending", True, INDEXED_AT),
]


@pytest.mark.parametrize(("before", "has_document", "number", "after", "is_due", "out"), LINES)
def test_what_a_line_makes_of_a_url(
    known: Known, importer: Importer, before: str, has_document: bool, number: int, after: str, is_due: bool, out: int
) -> None:
    if before:
        crawled(known, before, has_document=has_document)
    importer(f"{URL} R {number}\n")
    state = known.get(URL)
    assert (state.state.label, state.checksum is not None) == (after, has_document)
    assert (known.leased("a.example") == ["a.example/x"]) == is_due
    assert importer.exported() == f"{URL} R {out}\n"
    assert known.store.counts().indexed == has_document


def crawled(known: Known, state: str, *, has_document: bool) -> None:
    known.discover(new(URL))
    if state == "pending":
        return
    into = State[state.upper()]
    change = known.page(URL, "c") if has_document else known.change(URL)
    change.state.state = into
    change.state.status = {"done": 200, "excluded": 2004, "gone": 404, "failed": 503}[state]
    change.state.fetched_at, change.state.next_fetch, change.state.interval_s = NOW - 1_000, NOW + 1_000, 2_000
    known.record(change)


def test_the_time_is_kept_until_the_page_is_fetched(known: Known, importer: Importer) -> None:
    importer(f"{URL} R {INDEXED_AT}\n")
    known.record(known.page(URL, "c", fetched_at=NOW))
    assert importer.exported() == f"{URL} R {NOW}\n"


def test_an_error_waits_for_a_person(known: Known, importer: Importer) -> None:
    urls = [URL, f"{URL}2", f"{URL}3"]
    importer("".join(f"{url} demo 2\n" for url in urls))
    known.discover(*(new(url, depth=0) for url in urls))
    assert known.leased("a.example") == []
    assert known.store.counts().by_state["gone"] == 3
    changes = UrlChanges(known.store, clock=FakeClock(NOW))
    asked = known.get(urls[1])
    assert changes.recrawl([asked.id]).changed == 1
    assert known.leased("a.example") == ["a.example/x2"]
    assert importer(f"{URL} demo 2\n", retry_errors=True).changed == 1
    assert known.leased("a.example") == ["a.example/x"]
    assert changes.clear_errors().renewed == 2
    assert known.leased("a.example") == ["a.example/x2", "a.example/x3"]
    assert known.get(urls[2]).state is State.PENDING


def test_an_error_leaves_the_document(known: Known, importer: Importer) -> None:
    crawled(known, "done", has_document=True)
    known.acknowledge_all()
    assert importer(f"{URL} demo 2\n").with_document == 1
    assert known.orders() == []
    UrlChanges(known.store, clock=FakeClock(NOW)).clear_errors()
    assert known.leased("a.example") == ["a.example/x"]


def test_urls_outside_the_rules_are_kept_out(importer: Importer, known: Known) -> None:
    counts = importer("http://a.example/private/1 R 0\nhttp://a.example:99999/ R 0\nhttp://b.example/ R 0\n")
    assert (counts.lines, counts.entered, counts.left_out) == (3, 1, 2)
    assert counts.notes[0] == (
        "p:1: http://a.example/private/1 is refused: a prefix rule forbids the URL (crawl.rules:1: forbid prefix http://a.example/private/)"
    )
    assert counts.notes[1].startswith("p:2: http://a.example:99999/ is refused: ")
    assert [state.url for state in known.store.urls()] == ["http://b.example/"]


@pytest.mark.parametrize("at_once", [1_000, 2, 1])
def test_a_url_has_one_realm_and_the_largest_number_of_its_lines(importer: Importer, at_once: int) -> None:
    lines = ("w R 0", "w R 2", "x R 0", f"x S {INDEXED_AT}", "y R 1700000000", "y R 2", "y R 2", "z demo 0")
    text = "".join(f"http://a.example/{line}\n" for line in lines)
    for _ in range(2):
        counts = importer(text, at_once=at_once)
        assert counts.other_realm == 1
        kept = ("w R 2", f"x R {INDEXED_AT}", "y R 1700000000", "z demo 0")
        assert importer.exported() == "".join(f"http://a.example/{line}\n" for line in kept)
    assert importer("http://a.example/z T 0\n").changed == 1, "that of the collection gives way"


def test_a_page_that_is_being_fetched_is_not_changed(known: Known, importer: Importer) -> None:
    crawled(known, "pending", has_document=False)
    known.leased("a.example")
    counts = importer(f"{URL} demo 2\n", crawled=True)
    assert (counts.fetched_now, counts.changed) == (1, 0)
    assert known.get(URL).state is State.PENDING
    assert importer(f"{URL} demo 2\n").changed == 1, "a lease that a dead crawl has left means nothing"


def test_hosts_have_their_limit(store: Store, tmp_path: Path) -> None:
    importer = Importer(store, tmp_path, settings={"CRAWLSPACE_SITES": {"b.example": {"max_urls_per_host": 2}}})
    counts = importer("".join(f"http://b.example/{n} demo 0\n" for n in range(5)), at_once=2)
    assert (counts.entered, counts.left_out) == (2, 3)
    assert counts.notes[0].startswith("p:3: http://b.example/2 is refused: ")


def test_a_collection_that_imports_nothing_has_no_values_for_it(known: Known, importer: Importer) -> None:
    importer("".join(f"http://a.example/{n} demo 0\n" for n in range(5)))
    state = known.get("http://a.example/0")
    assert known.store.get_meta(f"imported:{state.id // 1_024}") is None
