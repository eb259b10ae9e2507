"""Documents of folded URLs are pushed under the URLs that they are folded into, from the archive: the index follows the options at once."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from crawlspace.crawl.engine import Engine
from crawlspace.crawl.rule_changes.archived import DOCUMENTS_AT_ONCE, DocumentMoving
from crawlspace.crawl.run import FetchPage
from crawlspace.document import Document
from crawlspace.model import Held, State, UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.state.changes import Change
from crawlspace.state.store import Store
from crawlspace.status import Status
from tests.conftest import assert_same
from tests.unit.crawl.rule_changes.test_folding import MONTH, FoldedSite
from tests.unit.crawl.test_engine_life import HOME

A, B = f"{HOME}a", f"{HOME}b"
NAMES = [f"{HOME}{number}" for number in range(2 * DOCUMENTS_AT_ONCE + 3)]
DROP: dict[str, object] = {"CRAWLSPACE_URL_DROP_PARAMETERS": ["sid"]}


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
        engine.deliveries.drains[0].drain_all()

    def document(self, state: UrlState) -> Document | None:
        self.read.append(state.url)
        self.meanwhile(state)
        return None if state.url in self.not_archived else self.archive.get(state.url)

    def of(self, url: str) -> UrlState:
        state = self.store.get(url)
        assert state is not None
        return state


@pytest.fixture
def site(tmp_path: Path, store: Store) -> ArchivedSite:
    return ArchivedSite(tmp_path, store)


def test_documents_are_in_the_index_under_the_new_urls_before_these_are_fetched(
    site: ArchivedSite, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    engine = site.fold()
    assert site.indexed == {"", "a?sid=1", "b?sid=1"}
    fetched_at = site.of(f"{A}?sid=1").fetched_at
    site.move(engine)
    assert (site.indexed, site.held()) == ({"", "a", "b"}, {})
    assert site.known == dict.fromkeys(("", "a", "b"), "done")
    assert site.sink.documents[A] == Document(A, title="a", text="a")
    assert (site.of(A).status, site.of(A).fetched_at, site.of(A).indexed) == (200, fetched_at, True)
    assert "2 documents are pushed under the new URLs, as archived" in caplog.text
    site.work(engine)
    assert_same(site.asked[-2:], [(A, False), (B, False)])
    assert engine.is_done()
    engine.close()
    assert (engine.progress.pushes, engine.progress.deletes) == (2, 2), "a page that has not changed is not pushed again"
    site.crawl()
    assert site.asked == []


def test_the_index_has_each_document_once_after_each_step(site: ArchivedSite) -> None:
    site.pages = {HOME: "home", **{f"{name}?sid=1": name for name in NAMES}, **{name: name for name in NAMES}}
    site.links = {HOME: [f"{name}?sid=1" for name in NAMES]}
    engine = site.fold()
    moved = []
    moving = site.moving(engine)
    while not engine.is_done() and moving.step():
        engine.deliveries.drains[0].drain_all()
        assert sorted(document.text for document in site.sink.documents.values()) == sorted(["home", *NAMES])
        moved.append(sum("sid" not in url for url in site.indexed) - 1)
    assert moved == [DOCUMENTS_AT_ONCE, 2 * DOCUMENTS_AT_ONCE, len(NAMES)]
    engine.close()


def test_what_is_about_to_be_fetched_is_moved_first(site: ArchivedSite) -> None:
    engine = site.fold()
    moving = site.moving(engine)
    site.pages[A] = Status.TIMEOUT
    site.work(engine)
    assert (site.indexed, site.held()) == ({"", "a", "b"}, {})
    assert (site.of(A).state, site.of(B).state) == (State.FAILED, State.DONE)
    assert_same([url for url, _ in site.asked[-3:]], [A, A, B])
    assert (engine.progress.pushes, engine.progress.deletes, moving.moved) == (2, 2, 2)
    assert not engine.is_done(), "not before it is seen that all are moved"
    assert not moving.step() or not moving.step()
    assert engine.is_done()
    engine.close()


def test_the_next_start_moves_what_one_has_left(site: ArchivedSite) -> None:
    site.pages = {HOME: "home", **{f"{name}?sid=1": name for name in NAMES}}
    site.links = {HOME: [f"{name}?sid=1" for name in NAMES]}
    engine = site.fold()
    site.move(engine, steps=1)
    engine.close()
    assert len(site.held()) == len(NAMES) - DOCUMENTS_AT_ONCE
    site.read = []
    engine = site.open().engine
    site.move(engine)
    assert len(site.read) == len(NAMES) - DOCUMENTS_AT_ONCE
    assert site.held() == {}
    engine.close()


def test_what_was_leased_and_is_not_fetched_is_moved_at_the_end(site: ArchivedSite) -> None:
    engine = site.fold()
    moving = site.moving(engine)
    engine.folded.moved = lambda _: ()
    while (fetch := engine.next_fetch()) is None or fetch.state.url != A:  # type: ignore[union-attr]
        pass
    assert site.of(B).lease_until is not None, "buffered"
    while moving.step():
        pass
    assert moving.retry()
    assert moving.moved == 0
    engine.finish_moving()
    engine.deliveries.drains[0].drain_all()
    assert (site.indexed, site.held()) == ({"", "a?sid=1", "b"}, {"a?sid=1": Held.FOLDED}), "what is being fetched waits"
    engine.close()


def test_documents_are_not_moved_while_too_many_wait_to_be_sent(site: ArchivedSite) -> None:
    names = [f"{HOME}{number}" for number in range(80)]
    site.settings["CRAWLSPACE_MAX_BACKLOG"] = 100
    site.pages = {HOME: "home", **{f"{name}?sid=1": name for name in names}}
    site.links = {HOME: [f"{name}?sid=1" for name in names]}
    engine = site.fold()
    moving = site.moving(engine)
    while not engine.deliveries.blocks_crawl:
        assert moving.step()
    assert 50 <= moving.moved <= 50 + DOCUMENTS_AT_ONCE
    moved = moving.moved
    assert (moving.step(), moving.step(), moving.moved) == (True, True, moved)
    for _ in range(3):
        engine.deliveries.drains[0].drain_all()
        engine.deliveries.recount()
        while not engine.deliveries.blocks_crawl and moving.step():
            pass
    engine.deliveries.drains[0].drain_all()
    assert (moving.moved, len(site.indexed)) == (len(names), len(names) + 1)
    engine.close()


def test_of_several_the_one_with_the_best_url_that_is_archived_stands_for_all(site: ArchivedSite) -> None:
    site.pages |= {f"{A}?sid=1": "one", f"{A}?sid=22": "two", f"{A}?sid=333": "three"}
    site.links = {HOME: [f"{A}?sid=333", f"{A}?sid=22", f"{A}?sid=1"]}
    site.not_archived = {f"{A}?sid=1"}
    engine = site.fold()
    assert len(site.held()) == 3
    site.move(engine)
    assert (site.indexed, site.held(), site.sink.documents[A].text) == ({"", "a"}, {}, "two")
    assert site.read == [f"{A}?sid=1", f"{A}?sid=22"]
    engine.close()


def test_a_request_from_before_counts_for_the_url_as_it_is_leased_again(site: ArchivedSite) -> None:
    """As where a worker has expired meanwhile, and another one has moved the document."""
    engine = site.fold()
    while (fetch := engine.next_fetch()) is None or fetch.state.url != A:  # type: ignore[union-attr]
        pass
    assert isinstance(fetch, FetchPage)
    site.store.release([fetch.state.id])
    other = site.open().engine
    site.move(other)
    assert site.of(A).indexed
    site.store.release([state.id for state in site.store.urls(leased=True)])
    assert not engine.leased_again(site.of(B))
    assert engine.leased_again(site.of(A))
    engine.fetched(Outcome(fetch.state.id, A, OutcomeKind.FAILED, Status.TIMEOUT, host_failure=True))
    engine.commit()
    engine.deliveries.drains[0].drain_all()
    assert "a" in site.indexed
    other.close()
    engine.close()


ANSWERS = [
    # what the new URL answers, what is in the index then
    (Status.TIMEOUT, {"", "a", "b"}),
    (404, {"", "b"}),
    ("another", {"", "a", "b"}),
]


@pytest.mark.parametrize(("answer", "indexed"), ANSWERS)
def test_what_the_new_url_answers_counts_as_for_any_page(site: ArchivedSite, answer: str | int, indexed: set[str]) -> None:
    engine = site.fold()
    site.move(engine)
    site.pages[A] = answer
    site.work(engine)
    engine.deliveries.drains[0].drain_all()
    assert (site.indexed, site.held()) == (indexed, {})
    if isinstance(answer, str):
        assert site.sink.documents[A].text == answer
    engine.close()


def test_a_page_that_redirects_to_the_spelling_that_is_folded_away_stays_under_the_new_url(
    site: ArchivedSite, caplog: pytest.LogCaptureFixture
) -> None:
    engine = site.fold()
    site.move(engine)
    site.redirects = {A: f"{A}?sid=1"}
    site.work(engine)
    engine.close()
    site.crawl(after=MONTH)
    assert (site.indexed, site.held(), site.known["a"]) == ({"", "a", "b"}, {}, "done")
    assert (A, False) in site.asked
    assert "The options do not suit this site" in caplog.text
    site.settings = {}
    site.crawl(after=MONTH)
    assert ("a?sid=1" in site.indexed, "a" in site.indexed, site.known["a"]) == (True, False, "redirected")


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
def test_what_cannot_be_moved_waits_in_the_index(site: ArchivedSite, happens: Callable[[ArchivedSite, Engine], object]) -> None:
    site.links[HOME].pop()
    engine = site.fold()
    happens(site, engine)
    moving = DocumentMoving(
        engine, site.document, lambda document, _: document.text.ljust(16).encode() if document.text else None
    )
    while moving.step():
        pass
    engine.deliveries.drains[0].drain_all()
    assert (site.indexed, site.held()) == ({"", "a?sid=1"}, {"a?sid=1": Held.FOLDED})
    engine.close()


def test_the_document_of_a_page_that_fails_at_present_is_moved_and_is_due_like_the_others(site: ArchivedSite) -> None:
    site.crawl()
    site.pages[f"{A}?sid=1"] = Status.TIMEOUT
    site.crawl(after=MONTH)
    assert site.of(f"{A}?sid=1").state is State.FAILED
    engine = site.fold()
    site.move(engine)
    assert (site.indexed, site.held()) == ({"", "a", "b"}, {})
    assert (site.of(A).state, site.of(A).status, site.of(A).errors) == (State.DONE, 200, 0)
    site.work(engine)
    assert A in [url for url, _ in site.asked]
    engine.close()


def test_rules_that_keep_the_new_url_out_of_the_index_are_obeyed(site: ArchivedSite) -> None:
    engine = site.fold()
    (site.folder / "demo" / "rules.xml").write_text(
        '<Rules xmlns="exa:com.exalead.actions.v10"><Rule><Atom field="url" kind="exact" value="http://a.example/a"/>'
        "<NoIndex/></Rule></Rules>"
    )
    engine.close()
    engine = site.open().engine
    site.move(engine)
    assert site.indexed == {"", "a?sid=1", "b"}
    engine.close()
