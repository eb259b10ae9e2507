"""Files that wait to be read hold up no page; one without readable text is a document, unless a version with text is known."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from crawlspace.clock import FakeClock
from crawlspace.config.sinks import EMBEDDED
from crawlspace.content.fingerprint import checksum, checksum_of_bytes
from crawlspace.crawl.conditional import type_mark
from crawlspace.crawl.engine import Engine
from crawlspace.crawl.files import (
    FIRST_GUESS_S,
    MAX_WAIT_S,
    MOST_BYTES,
    MOST_DEFERRED,
    MOST_WAITING,
    PAUSE_S,
    WaitingFiles,
    unreadable,
)
from crawlspace.crawl.run import FetchPage
from crawlspace.model import Candidate, Source, State, UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.state.error_policy import ErrorRule, ErrorRules
from crawlspace.state.recrawl import RecrawlPolicy
from tests.contract.memory.store import MemoryStore
from tests.unit.crawl.test_engine import engine

SITE = "http://b.example"
AT_FIRST = int(MAX_WAIT_S / FIRST_GUESS_S)
"""Files that may wait before any was read."""


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def crawl(tmp_path: Path, clock: FakeClock) -> Engine:
    crawl = engine(tmp_path, MemoryStore(sinks=(EMBEDDED,)), clock)
    while crawl.next_fetch() is not None:  # the start URLs
        pass
    for state in crawl.awaited():
        crawl.fetched(document(state))
    crawl.commit()
    return crawl


def document(state: UrlState) -> Outcome:
    return Outcome(state.id, state.url, OutcomeKind.DOCUMENT, 200, checksum=b"%16d" % state.id)


def add(crawl: Engine, *paths: str) -> None:
    assert not crawl.admit(Candidate(SITE + path, Source.INDEX_FOLLOW) for path in paths)


def fetch(crawl: Engine) -> UrlState | None:
    found = crawl.next_fetch()
    assert found is None or isinstance(found, FetchPage)
    return None if found is None else found.state


def let_wait(crawl: Engine, number: int, *, size: int = 1) -> list[UrlState]:
    """Fetch files that wait to be read."""
    waiting = []
    for _ in range(number):
        state = fetch(crawl)
        assert state is not None
        crawl.file_slots.file_arrived(document(state), size=size)
        waiting.append(state)
    return waiting


def rest(crawl: Engine) -> list[str]:
    """Fetch what may be fetched, and return its paths."""
    paths = []
    while (state := fetch(crawl)) is not None:
        crawl.fetched(document(state))
        paths.append(state.url.removeprefix(SITE))
    crawl.commit()
    return paths


def test_a_site_goes_on_while_its_file_waits(tmp_path: Path, clock: FakeClock) -> None:
    crawl = engine(tmp_path, MemoryStore(sinks=(EMBEDDED,)), clock, CONCURRENT_REQUESTS_PER_DOMAIN=1)
    (file,) = let_wait(crawl, 1)
    page = fetch(crawl)
    assert page is not None
    assert fetch(crawl) is None
    crawl.fetched(document(file))  # ends no turn for the second time
    assert fetch(crawl) is None
    crawl.fetched(document(page))
    assert not crawl.is_done()
    crawl.commit()
    assert crawl.is_done()


@pytest.mark.parametrize(("number", "size"), [(AT_FIRST, 1), (2, MOST_BYTES // 2)])
def test_pages_behind_files_are_fetched_while_too_many_wait(crawl: Engine, number: int, size: int) -> None:
    add(crawl, *(f"/{n}.pdf" for n in range(number)))
    waiting = let_wait(crawl, number, size=size)
    add(crawl, "/x.PDF", "/y.docx", "/page", "/z.odt?a", "/page.html")
    assert rest(crawl) == ["/page", "/page.html"]
    assert not crawl.is_done()
    crawl.fetched(document(waiting[0]))
    assert fetch(crawl) is not None
    for file in waiting[1:]:
        crawl.fetched(document(file))
    assert len(rest(crawl)) == 2


def test_a_known_url_is_a_file_by_its_type(crawl: Engine) -> None:
    add(crawl, *(f"/{n}.pdf" for n in range(AT_FIRST)))
    let_wait(crawl, AT_FIRST)
    state = UrlState(1, 1, f"{SITE}/x.pdf", "b.example:80")
    kinds = {"": True, "text/html": False, "application/pdf": True, "text/csv": True}
    for declared, is_file in kinds.items():
        known = structs.replace(state, fields_mark=type_mark(declared))
        assert crawl.file_slots._is_file(known) is is_file


def test_a_site_waits_when_too_many_files_are_deferred(crawl: Engine, clock: FakeClock) -> None:
    add(crawl, *(f"/{n}.pdf" for n in range(AT_FIRST)))
    waiting = let_wait(crawl, AT_FIRST)
    add(crawl, *(f"/more/{n}.pdf" for n in range(MOST_DEFERRED + 1)), "/page")
    crawl.admit([Candidate("http://c.example/page", Source.INDEX_FOLLOW)])
    assert "http://c.example/page" in [path for _ in range(20) for path in rest(crawl)]
    assert crawl.frontier.wake_in() == pytest.approx(PAUSE_S)
    for file in waiting:
        crawl.fetched(document(file))
    clock.advance(PAUSE_S)
    found = rest(crawl)
    while len(found) < MOST_DEFERRED + 2 and (more := rest(crawl)):
        found += more
    assert len(found) == MOST_DEFERRED + 2
    assert crawl.is_done()


def test_files_that_are_being_fetched_count(tmp_path: Path, clock: FakeClock) -> None:
    crawl = engine(tmp_path, MemoryStore(sinks=(EMBEDDED,)), clock, CONCURRENT_REQUESTS_PER_DOMAIN=100)
    rest(crawl)
    add(crawl, *(f"/{n}.pdf" for n in range(AT_FIRST + 1)), "/page")
    fetched = [fetch(crawl) for _ in range(AT_FIRST + 1)]
    assert [state.url for state in fetched if state is not None and not state.url.endswith(".pdf")] == [f"{SITE}/page"]
    assert fetch(crawl) is None
    assert fetched[0] is not None
    crawl.not_sent(fetched[0].id)
    assert fetch(crawl) is not None


@pytest.mark.parametrize(
    ("each_s", "room"),
    [(0.001, MOST_WAITING), (0.1, 50), (1.0, 5), (30.0, 1)],
)
def test_the_slower_files_are_read_the_fewer_may_wait(clock: FakeClock, each_s: float, room: int) -> None:
    waiting = WaitingFiles(clock)
    for id in range(100):
        waiting.add(id, size=1)
        clock.advance(each_s)
        assert waiting.remove(id)
    assert not waiting.remove(1)
    assert waiting.room == pytest.approx(room, abs=1)


TEXT, SCAN = checksum("text", title=None), checksum_of_bytes(b"a scan")


def of_file(state: State, status: int | None, errors: int, known: bytes | None, rules: ErrorRules) -> Outcome:
    before = UrlState(1, 1, "http://a/", "a:80", state=state, status=status, errors=errors, checksum=known)
    policy = RecrawlPolicy(60, 600, 2, 5.0, max_temporary_errors=3, error_rules=rules)
    return unreadable(before, Outcome(1, "http://a/", OutcomeKind.DOCUMENT, 200), why="encrypted", policy=policy)


@pytest.mark.parametrize(
    ("state", "status", "errors", "known", "kind"),
    [
        (State.PENDING, None, 0, None, OutcomeKind.DOCUMENT),
        (State.DONE, 200, 0, TEXT, OutcomeKind.FAILED),
        (State.DONE, 782, 0, SCAN, OutcomeKind.DOCUMENT),
        (State.FAILED, 782, 1, TEXT, OutcomeKind.FAILED),
        (State.FAILED, 782, 2, TEXT, OutcomeKind.DOCUMENT),
        (State.FAILED, 503, 2, TEXT, OutcomeKind.DOCUMENT),
        (State.FAILED, 503, 1, SCAN, OutcomeKind.DOCUMENT),
        (State.GONE, 404, 0, None, OutcomeKind.DOCUMENT),
    ],
)
def test_outcome(state: State, status: int | None, errors: int, known: bytes | None, kind: OutcomeKind) -> None:
    found = of_file(state, status, errors, known, ErrorRules())
    assert (found.kind, found.status, found.detail) == (kind, 782, "encrypted")


@pytest.mark.parametrize(
    ("rule", "errors", "kind"),
    [
        (ErrorRule(keep=True), 1_000, OutcomeKind.FAILED),
        (ErrorRule(keep=False, after=1), 0, OutcomeKind.DOCUMENT),
        (ErrorRule(keep=False, after=10), 8, OutcomeKind.FAILED),
        (ErrorRule(keep=False, after=10), 9, OutcomeKind.DOCUMENT),
    ],
)
def test_by_the_rule_for_its_status(rule: ErrorRule, errors: int, kind: OutcomeKind) -> None:
    assert of_file(State.FAILED, 782, errors, TEXT, ErrorRules({"782": rule})).kind is kind
