"""Documents of folded URLs: pushed from the archive under their new URLs, waiting in the index, and with equal text."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from msgspec import structs

from crawlspace.crawl.engine import Engine
from crawlspace.crawl.rule_changes.archived import DOCUMENTS_AT_ONCE, DocumentMoving
from crawlspace.crawl.run import FetchPage
from crawlspace.document import Document
from crawlspace.model import Held, State, UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.state.changes import Change, Effects
from crawlspace.state.store import Store
from crawlspace.status import Status
from tests.conftest import assert_same
from tests.draining import drain_all
from tests.unit.crawl.rule_changes import test_folding
from tests.unit.crawl.rule_changes.test_folding import DROP, MONTH, A, B, C, FoldedSite, drop_sid
from tests.unit.crawl.test_engine import HOME

NAMES = [f"{HOME}{number}" for number in range(2 * DOCUMENTS_AT_ONCE + 3)]


class ArchivedSite(FoldedSite):
    """A site whose pages are in the archive as they were indexed."""

    def __init__(self, folder: Path, store: Store) -> None:
        super().__init__(folder, store)
        self.pages = {HOME: "home", f"{A}?sid=1": "a", f"{B}?sid=1": "b", A: "a", B: "b"}
        self.links = {HOME: [f"{A}?sid=1", f"{B}?sid=1"]}
        self.not_archived: set[str] = set()
        self.read: list[str] = []
        self.meanwhile: Callable[[UrlState], object] = lambda _: None
        """What happens after a document was read, before it is written."""

    def fold(self) -> Engine:
        """Crawl, and start again with the options."""
        self.crawl()
        self.archive = dict(self.sink.documents)
        self.clock.advance(1)
        self.settings |= DROP
        return self.open().engine

    def moving(self, engine: Engine) -> DocumentMoving:
        return DocumentMoving(
            engine, self.document, lambda document, _: document.text.ljust(16).encode() if document.text else None
        )

    def move(self, engine: Engine, *, steps: int = 100) -> None:
        """Make so many steps before anything is fetched."""
        moving = self.moving(engine)
        assert engine.folded.is_moving == bool(engine.folded)
        while steps and moving.step():
            steps -= 1
        drain_all(engine.deliveries.drains[0])

    def document(self, state: UrlState) -> Document | None:
        self.read.append(state.url)
        self.meanwhile(state)
        return None if state.url in self.not_archived else self.archive.get(state.url)


@pytest.fixture
def archived(tmp_path: Path, store: Store) -> ArchivedSite:
    return ArchivedSite(tmp_path, store)


def test_documents_are_in_the_index_under_the_new_urls_before_these_are_fetched(
    archived: ArchivedSite, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    engine = archived.fold()
    assert archived.indexed == {"", "a?sid=1", "b?sid=1"}
    fetched_at = archived.of(f"{A}?sid=1").fetched_at
    archived.move(engine)
    assert (archived.indexed, archived.held()) == ({"", "a", "b"}, {})
    assert archived.known == dict.fromkeys(("", "a", "b"), "done")
    assert archived.sink.documents[A] == Document(A, title="a", text="a")
    assert (archived.of(A).status, archived.of(A).fetched_at, archived.of(A).indexed) == (200, fetched_at, True)
    assert "2 documents are pushed under the new URLs, as archived" in caplog.text
    archived.work(engine)
    assert_same(archived.asked[-2:], [(A, False), (B, False)])
    assert engine.is_done()
    engine.close()
    assert (engine.progress.pushes, engine.progress.deletes) == (2, 2), "a page that has not changed is not pushed again"
    archived.crawl()
    assert archived.asked == []


def test_the_index_has_each_document_once_after_each_step(archived: ArchivedSite) -> None:
    archived.pages = {HOME: "home", **{f"{name}?sid=1": name for name in NAMES}, **{name: name for name in NAMES}}
    archived.links = {HOME: [f"{name}?sid=1" for name in NAMES]}
    engine = archived.fold()
    moved = []
    moving = archived.moving(engine)
    while not engine.is_done() and moving.step():
        drain_all(engine.deliveries.drains[0])
        assert sorted(document.text for document in archived.sink.documents.values()) == sorted(["home", *NAMES])
        moved.append(sum("sid" not in url for url in archived.indexed) - 1)
    assert moved == [DOCUMENTS_AT_ONCE, 2 * DOCUMENTS_AT_ONCE, len(NAMES)]
    engine.close()


def test_what_is_about_to_be_fetched_is_moved_first(archived: ArchivedSite) -> None:
    engine = archived.fold()
    moving = archived.moving(engine)
    archived.pages[A] = Status.TIMEOUT
    archived.work(engine)
    assert (archived.indexed, archived.held()) == ({"", "a", "b"}, {})
    assert (archived.of(A).state, archived.of(B).state) == (State.FAILED, State.DONE)
    assert_same([url for url, _ in archived.asked[-3:]], [A, A, B])
    assert (engine.progress.pushes, engine.progress.deletes, moving.moved) == (2, 2, 2)
    assert not engine.is_done(), "not before it is seen that all are moved"
    assert not moving.step() or not moving.step()
    assert engine.is_done()
    engine.close()


def test_the_next_start_moves_what_one_has_left(archived: ArchivedSite) -> None:
    archived.pages = {HOME: "home", **{f"{name}?sid=1": name for name in NAMES}}
    archived.links = {HOME: [f"{name}?sid=1" for name in NAMES]}
    engine = archived.fold()
    archived.move(engine, steps=1)
    engine.close()
    assert len(archived.held()) == len(NAMES) - DOCUMENTS_AT_ONCE
    archived.read = []
    engine = archived.open().engine
    archived.move(engine)
    assert len(archived.read) == len(NAMES) - DOCUMENTS_AT_ONCE
    assert archived.held() == {}
    engine.close()


def test_what_was_leased_and_is_not_fetched_is_moved_at_the_end(archived: ArchivedSite) -> None:
    engine = archived.fold()
    moving = archived.moving(engine)
    engine.folded.moved = lambda _: ()
    while (fetch := engine.next_fetch()) is None or fetch.state.url != A:  # type: ignore[union-attr]
        pass
    assert archived.of(B).lease_until is not None, "buffered"
    while moving.step():
        pass
    assert moving.retry()
    assert moving.moved == 0
    engine.finish_moving()
    drain_all(engine.deliveries.drains[0])
    assert (archived.indexed, archived.held()) == ({"", "a?sid=1", "b"}, {"a?sid=1": Held.FOLDED}), "what is being fetched waits"
    engine.close()


def test_documents_are_not_moved_while_too_many_wait_to_be_sent(archived: ArchivedSite) -> None:
    names = [f"{HOME}{number}" for number in range(80)]
    archived.settings["CRAWLSPACE_MAX_BACKLOG"] = 100
    archived.pages = {HOME: "home", **{f"{name}?sid=1": name for name in names}}
    archived.links = {HOME: [f"{name}?sid=1" for name in names]}
    engine = archived.fold()
    moving = archived.moving(engine)
    while not engine.deliveries.blocks_crawl:
        assert moving.step()
    assert 50 <= moving.moved <= 50 + DOCUMENTS_AT_ONCE
    moved = moving.moved
    assert (moving.step(), moving.step(), moving.moved) == (True, True, moved)
    for _ in range(3):
        drain_all(engine.deliveries.drains[0])
        engine.deliveries.recount()
        while not engine.deliveries.blocks_crawl and moving.step():
            pass
    drain_all(engine.deliveries.drains[0])
    assert (moving.moved, len(archived.indexed)) == (len(names), len(names) + 1)
    engine.close()


def test_of_several_the_one_with_the_best_url_that_is_archived_stands_for_all(archived: ArchivedSite) -> None:
    archived.pages |= {f"{A}?sid=1": "one", f"{A}?sid=22": "two", f"{A}?sid=333": "three"}
    archived.links = {HOME: [f"{A}?sid=333", f"{A}?sid=22", f"{A}?sid=1"]}
    archived.not_archived = {f"{A}?sid=1"}
    engine = archived.fold()
    assert len(archived.held()) == 3
    archived.move(engine)
    assert (archived.indexed, archived.held(), archived.sink.documents[A].text) == ({"", "a"}, {}, "two")
    assert archived.read == [f"{A}?sid=1", f"{A}?sid=22"]
    engine.close()


def test_a_request_from_before_counts_for_the_url_as_it_is_leased_again(archived: ArchivedSite) -> None:
    """As where a worker has expired meanwhile, and another one has moved the document."""
    engine = archived.fold()
    while (fetch := engine.next_fetch()) is None or fetch.state.url != A:  # type: ignore[union-attr]
        pass
    assert isinstance(fetch, FetchPage)
    archived.store.release([fetch.state.id])
    other = archived.open().engine
    archived.move(other)
    assert archived.of(A).indexed
    archived.store.release([state.id for state in archived.store.urls(leased=True)])
    assert not engine.leased_again(archived.of(B))
    assert engine.leased_again(archived.of(A))
    engine.fetched(Outcome(fetch.state.id, A, OutcomeKind.FAILED, Status.TIMEOUT, host_failure=True))
    engine.commit()
    drain_all(engine.deliveries.drains[0])
    assert "a" in archived.indexed
    other.close()
    engine.close()


ANSWERS = [
    # what the new URL answers, what is in the index then
    (Status.TIMEOUT, {"", "a", "b"}),
    (404, {"", "b"}),
    ("another", {"", "a", "b"}),
]


@pytest.mark.parametrize(("answer", "indexed"), ANSWERS)
def test_what_the_new_url_answers_counts_as_for_any_page(archived: ArchivedSite, answer: str | int, indexed: set[str]) -> None:
    engine = archived.fold()
    archived.move(engine)
    archived.pages[A] = answer
    archived.work(engine)
    drain_all(engine.deliveries.drains[0])
    assert (archived.indexed, archived.held()) == (indexed, {})
    if isinstance(answer, str):
        assert archived.sink.documents[A].text == answer
    engine.close()


def test_a_page_that_redirects_to_the_spelling_that_is_folded_away_stays_under_the_new_url(
    archived: ArchivedSite, caplog: pytest.LogCaptureFixture
) -> None:
    engine = archived.fold()
    archived.move(engine)
    archived.redirects = {A: f"{A}?sid=1"}
    archived.work(engine)
    engine.close()
    archived.crawl(after=MONTH)
    assert (archived.indexed, archived.held(), archived.known["a"]) == ({"", "a", "b"}, {}, "done")
    assert (A, False) in archived.asked
    assert "The options do not suit this site" in caplog.text
    archived.settings = {}
    archived.crawl(after=MONTH)
    assert ("a?sid=1" in archived.indexed, "a" in archived.indexed, archived.known["a"]) == (True, False, "redirected")


def forget(site: ArchivedSite, _: Engine) -> None:
    """The new URL is forgotten while the document is read."""
    site.meanwhile = lambda _: site.store.revise([site.of(A).id], lambda state: Change(state, forget=True), now=0)


def has_an_error(site: ArchivedSite, _: Engine) -> None:
    """The new URL is recorded otherwise while the document is read."""
    site.meanwhile = lambda _: site.store.revise(
        [site.of(A).id], lambda state: Change(structs.replace(state, state=State.GONE, status=404)), now=0
    )


def is_being_fetched(_: ArchivedSite, engine: Engine) -> None:
    while (fetch := engine.next_fetch()) is not None and isinstance(fetch, FetchPage) and fetch.state.url != A:
        pass


STAY = [
    # why a document waits for the fetch
    lambda site, _: site.not_archived.add(f"{A}?sid=1"),
    lambda site, _: site.archive.update({f"{A}?sid=1": Document(A, text="")}),
    forget,
    has_an_error,
    is_being_fetched,
]


@pytest.mark.parametrize("happens", STAY, ids=["not archived", "no text", "forgotten", "recorded", "being fetched"])
def test_what_cannot_be_moved_waits_in_the_index(
    archived: ArchivedSite, happens: Callable[[ArchivedSite, Engine], object]
) -> None:
    archived.links[HOME].pop()
    engine = archived.fold()
    happens(archived, engine)
    moving = DocumentMoving(
        engine, archived.document, lambda document, _: document.text.ljust(16).encode() if document.text else None
    )
    while moving.step():
        pass
    drain_all(engine.deliveries.drains[0])
    assert (archived.indexed, archived.held()) == ({"", "a?sid=1"}, {"a?sid=1": Held.FOLDED})
    engine.close()


def test_the_document_of_a_page_that_fails_at_present_is_moved_and_is_due_like_the_others(archived: ArchivedSite) -> None:
    archived.crawl()
    archived.pages[f"{A}?sid=1"] = Status.TIMEOUT
    archived.crawl(after=MONTH)
    assert archived.of(f"{A}?sid=1").state is State.FAILED
    engine = archived.fold()
    archived.move(engine)
    assert (archived.indexed, archived.held()) == ({"", "a", "b"}, {})
    assert (archived.of(A).state, archived.of(A).status, archived.of(A).errors) == (State.DONE, 200, 0)
    archived.work(engine)
    assert A in [url for url, _ in archived.asked]
    engine.close()


def test_rules_that_keep_the_new_url_out_of_the_index_are_obeyed(archived: ArchivedSite) -> None:
    engine = archived.fold()
    (archived.folder / "demo" / "rules.xml").write_text(
        '<Rules xmlns="exa:com.exalead.actions.v10"><Rule><Atom field="url" kind="exact" value="http://a.example/a"/>'
        "<NoIndex/></Rule></Rules>"
    )
    engine.close()
    engine = archived.open().engine
    archived.move(engine)
    assert archived.indexed == {"", "a?sid=1", "b"}
    engine.close()


# --- documents that wait in the index, and pages with the same text -------------------------------------------------


site = test_folding.site
E = f"{HOME}e"
"""A better address than that of c."""
NO_DELETIONS: dict[str, object] = {"CRAWLSPACE_MAX_DELETIONS": 0, "CRAWLSPACE_MAX_DELETIONS_PERCENT": 0}


def test_a_document_that_waits_stands_for_equal_pages(site: FoldedSite) -> None:
    drop_sid(site)
    longer = f"{HOME}another-address-of-c"
    site.pages |= {C: 503, longer: "c"}
    site.links[HOME] = [*site.links[HOME], longer]
    site.crawl(after=MONTH)
    assert {"c?sid=1", "another-address-of-c"} & site.indexed == {"c?sid=1"}
    assert site.held() == {"c?sid=1": Held.FOLDED}
    site.pages[C] = "c"
    site.crawl(after=MONTH)
    assert {"c", "c?sid=1", "another-address-of-c"} & site.indexed == {"c"}
    assert "c?sid=1" not in site.known


def test_a_document_waits_no_more_once_an_equal_page_stands_for_it(site: FoldedSite) -> None:
    drop_sid(site)
    site.pages |= {C: 503, E: "c"}
    site.links[HOME] = [*site.links[HOME], E]
    engine = site.crawl(after=MONTH)
    assert {"c", "c?sid=1", "e"} & site.indexed == {"e"}
    assert site.held() == {}
    assert engine.deleted == 1, "its place went to another one, as that of any document may"
    site.crawl()
    assert "c?sid=1" not in site.known
    site.pages[C] = "c is new"
    site.crawl(after=MONTH)
    assert {"c", "e"} <= site.indexed


@pytest.mark.parametrize("settings", [{}, NO_DELETIONS], ids=["", "no deletion allowed"])
@pytest.mark.parametrize("is_down", [False, True], ids=["the page fails", "the site is down"])
def test_a_page_that_comes_back_with_the_text_that_waits_for_it_takes_its_place(
    site: FoldedSite, is_down: bool, settings: dict[str, object]
) -> None:
    site.pages = {HOME: "home", C: "old c", f"{C}?sid=1": "c"}
    site.links = {HOME: [C, f"{C}?sid=1"]}
    site.crawl()
    site.pages = {HOME: 503 if is_down else "home", C: 503, f"{C}?sid=1": 503}
    site.crawl(after=MONTH)
    site.settings = {**DROP, **settings}
    site.crawl()
    site.pages = {HOME: "home", C: "c"}
    site.crawl(after=MONTH)
    assert (site.indexed, site.held()) == ({"", "c"}, {})
    assert "c?sid=1" not in site.known


def test_it_stays_where_the_equal_page_goes_while_a_worker_starts(site: FoldedSite, monkeypatch: pytest.MonkeyPatch) -> None:
    drop_sid(site)
    site.pages |= {C: 503, E: "c"}
    site.links[HOME] = [*site.links[HOME], E]
    site.crawl(after=MONTH)
    assert {"c?sid=1", "e"} & site.indexed == {"e"}
    whole = site.store.revise

    def revise(ids: Iterable[int], change: Callable[[UrlState], Change | None], *, now: int) -> Effects:
        monkeypatch.setattr(site.store, "revise", whole)
        other = site.of(E)
        site.store.record([Change(structs.replace(other, state=State.GONE, status=404, checksum=None))], now=now)
        return whole(ids, change, now=now)

    monkeypatch.setattr(site.store, "revise", revise)
    engine = site.open().engine
    assert site.held() == {"c?sid=1": Held.FOLDED}
    engine.close()
    site.crawl()
    assert {"c?sid=1", "e"} & site.indexed == {"c?sid=1"}


def test_nothing_is_entered_for_a_url_that_waits_for_nothing(site: FoldedSite) -> None:
    drop_sid(site)
    site.pages |= {C: 503, E: "c"}
    site.links[HOME] = [A, B, E]
    site.pages[HOME] = "home is new"
    site.crawl(after=MONTH)
    state = site.of(C)
    site.store.revise([state.id], lambda state: Change(state, forget=True), now=0)
    site.crawl()
    assert {"c", "c?sid=1"}.isdisjoint(site.known)
