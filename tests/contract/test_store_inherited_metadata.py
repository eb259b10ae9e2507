"""What a store does with the fields that pages hand to the URLs they lead to: whose word holds, and what is due when it changes."""

from __future__ import annotations

import pytest
from msgspec import structs

from crawlspace.document import Document
from crawlspace.model import Held, Queue, Source, State
from crawlspace.state.changes import Change, Effects, Reclassified
from crawlspace.state.store import Store
from tests.contract.conftest import NOW, Known, full, key, new

DAY = 86_400
LATER = NOW + 20 * DAY
RED, BLUE, BOTH = '{"c":"red"}', '{"c":"blue"}', '{"c":"red","d":"1"}'
X, Y, ONE, TWO = "a.example/x", "a.example/y", "a.example/one", "a.example/two"


def leads(known: Known, page: str, link_metadata: str | None, *to: str, **fields: object) -> Change:
    """A page that hands something to all it leads to, found in a fetch by the first rules."""
    found = [structs.replace(new(url), inherited=link_metadata) for url in to]
    change = known.page(page, page, links=[key(url) for url in to], discovered=found)
    change.state = structs.replace(change.state, **{"rules": 1, "fetched_at": NOW, "next_fetch": LATER, **fields})
    return change


def left(known: Known, page: str, state: State, status: int, **fields: object) -> Change:
    """A page that is no document any more, and whose links were not read."""
    change = known.change(page, status=status, checksum=None, rules=1, **fields)
    change.state.state = state
    return change


def moved(known: Known, page: str, link_metadata: str | None, to: str) -> Change:
    change = left(
        known, page, State.REDIRECTED, 301, links=[key(to)], discovered=[structs.replace(new(to), inherited=link_metadata)]
    )
    change.state.next_fetch = LATER
    return change


def same(known: Known, page: str) -> Change:
    """A page that has answered that it has not changed."""
    return known.change(page, rules=1)


def red(known: Known, page: str) -> Change:
    return leads(known, page, RED, X)


def blue(known: Known, page: str) -> Change:
    return leads(known, page, BLUE, X)


def elsewhere(known: Known, page: str) -> Change:
    return leads(known, page, RED, Y)


def given_up_sites(known: Known, page: str) -> Change:
    return leads(known, page, None, X)


WORDS = [
    # what is recorded, one after the other: page and outcome -> what is handed to X
    ("a page hands something", [(ONE, red)], RED),
    ("the first word holds", [(ONE, red), (TWO, blue)], RED),
    ("and so it does in later rounds", [(ONE, red), (TWO, blue), (ONE, red), (TWO, blue)], RED),
    ("a page may hand something else", [(ONE, red), (ONE, blue)], BLUE),
    ("but not what another page has handed", [(ONE, red), (TWO, blue), (TWO, given_up_sites)], RED),
    ("it hands nothing any more", [(ONE, red), (ONE, given_up_sites)], None),
    ("it leads there no more", [(ONE, red), (ONE, elsewhere)], None),
    ("it is gone", [(ONE, red), (ONE, lambda known, page: known.change(page, forget=True))], None),
    ("it is a redirect to somewhere else", [(ONE, red), (ONE, lambda known, page: moved(known, page, RED, Y))], None),
    ("it is a redirect, and its target is not admitted", [(ONE, red), (ONE, lambda k, p: left(k, p, State.REDIRECTED, 301))], None),
    ("it may not be fetched any more", [(ONE, red), (ONE, lambda k, p: left(k, p, State.EXCLUDED, 740))], None),
    ("it is an image now", [(ONE, red), (ONE, lambda k, p: left(k, p, State.EXCLUDED, 780))], None),
    ("it has not changed", [(ONE, red), (ONE, same)], RED),
    ("it does not answer", [(ONE, red), (ONE, lambda k, p: left(k, p, State.FAILED, 503))], RED),
    ("the rules exclude it", [(ONE, red), (ONE, lambda k, p: left(k, p, State.EXCLUDED, 760, next_fetch=None))], None),
    ("the rules leave it to others", [(ONE, red), (ONE, lambda k, p: left(k, p, State.EXCLUDED, 761, next_fetch=None))], None),
    ("its address is not allowed, and another page leads there", [(ONE, red), (ONE, lambda k, p: left(k, p, State.EXCLUDED, 760)), (TWO, blue)], BLUE),
    ("the rules want it out of the index", [(ONE, red), (ONE, lambda k, p: left(k, p, State.EXCLUDED, 2004))], RED),
    ("a pipeline drops its document", [(ONE, red), (ONE, lambda k, p: left(k, p, State.EXCLUDED, 200))], RED),
    ("then the other word counts", [(ONE, red), (TWO, blue), (ONE, given_up_sites), (TWO, blue)], BLUE),
    ("also of a page that has not changed", [(ONE, red), (TWO, blue), (ONE, given_up_sites), (TWO, same)], BLUE),
    ("not of one that fails", [(ONE, red), (TWO, blue), (ONE, given_up_sites), (TWO, lambda k, p: left(k, p, State.FAILED, 503))], None),
    ("nor before its next fetch", [(ONE, red), (TWO, blue), (ONE, elsewhere)], None),
    ("and that one holds", [(ONE, red), (TWO, blue), (ONE, given_up_sites), (TWO, same), (ONE, red)], BLUE),
    ("a page hands nothing to itself", [(X, red)], None),
    ("nor when it has not changed", [(X, red), (X, same)], None),
    ("a redirect hands something", [(ONE, lambda known, page: moved(known, page, BOTH, X))], BOTH),
]  # fmt: skip


@pytest.mark.parametrize("known_before", [True, False], ids=["to a known URL", "to a new URL"])
@pytest.mark.parametrize(("title", "history", "inherited"), WORDS, ids=[row[0] for row in WORDS])
def test_which_source_page_counts(known: Known, title: str, history: list, inherited: str | None, known_before: bool) -> None:  # type: ignore[type-arg]
    known.discover(ONE, TWO, *([X] if known_before or history[0][0] == X else []))
    for page, outcome in history:
        known.record(outcome(known, page))
    assert known.get(X).inherited == inherited


def test_in_one_batch_metadata_is_removed_before_other_metadata_is_inherited(known: Known) -> None:
    known.discover(ONE, TWO, X)
    known.record(red(known, ONE), blue(known, TWO))
    assert known.get(X).inherited == RED
    known.record(same(known, TWO), given_up_sites(known, ONE))
    assert known.get(X).inherited == BLUE


def test_in_one_batch_the_first_source_page_counts(known: Known) -> None:
    known.discover(ONE, TWO, X)
    known.record(blue(known, TWO), red(known, ONE))
    assert known.get(X).inherited == BLUE


def test_a_change_of_the_rules_passes_no_metadata_on(known: Known, store: Store) -> None:
    known.discover(ONE, TWO, Y, X)
    known.record(red(known, ONE), blue(known, TWO), known.page(Y, TWO))
    known.record(given_up_sites(known, ONE))
    store.reclassify(Reclassified(unindexed=[known.get(TWO).id, known.get(Y).id]), now=NOW)
    assert known.get(X).inherited is None


def test_a_forgotten_url_that_is_found_again_inherits_the_present_metadata(known: Known) -> None:
    known.discover(ONE, X)
    known.record(red(known, ONE))
    known.record(known.change(X, forget=True), blue(known, ONE))
    assert known.get(X).inherited == BLUE


SHOWN = [
    # what was handed when X was fetched, the fields of its document, what is handed now -> it is due
    (None, {}, RED, True),
    (None, {"c": "red"}, RED, False),  # by a rule of its own
    (None, {"c": "green"}, RED, False),
    (None, {"c": "green"}, BOTH, True),
    (RED, {"c": "red"}, RED, False),
    (RED, {"c": "red"}, BLUE, True),
    (RED, {"c": "red"}, None, True),
    (RED, {"c": "green"}, None, False),
    (RED, {"c": "green"}, BLUE, False),
    (BOTH, {"c": "red", "d": "1"}, RED, True),
    (RED, {"c": "red"}, BOTH, True),
]


@pytest.mark.parametrize(("before", "fields", "after", "is_due"), SHOWN)
def test_a_document_is_due_where_it_would_have_other_fields(
    known: Known, store: Store, before: str | None, fields: dict[str, str], after: str | None, is_due: bool
) -> None:
    known.discover(ONE, X)
    known.record(leads(known, ONE, before, X))
    known.record(page_x(known, fields))
    effects = known.record(leads(known, ONE, after, X))
    assert known.get(X).next_fetch == (NOW if is_due else LATER)
    assert effects.due == ([("a.example:80", Queue(Source.REFRESH), NOW)] if is_due else [])
    assert is_due is (known.leased("a.example") == [X])


def page_x(known: Known, fields: dict[str, str] | None = None, **given: object) -> Change:
    change = known.page(X, "x")
    change.state = structs.replace(change.state, **{"rules": 1, "fetched_at": NOW, "next_fetch": LATER, **given})
    change.document = Document(full(X), text="x", fields=fields or {})
    return change


def with_state(state: State, **given: object) -> dict[str, object]:
    return {"state": state, **given}


NOT_DUE = [
    # X -> whether it is due when something is handed to it for the first time
    ("a document", {}, True),
    ("a redirect, which hands it on", with_state(State.REDIRECTED, checksum=None), True),
    ("a page that does not answer", with_state(State.FAILED), False),
    ("a page that is gone", with_state(State.GONE, checksum=None), False),
    ("a page that is not to be indexed", with_state(State.EXCLUDED, status=2004, checksum=None), False),
    ("one that is outside the crawl space", with_state(State.EXCLUDED, status=760, checksum=None, next_fetch=None), False),
    ("one whose deletion is held for the rules", with_state(State.DONE, held=Held.RULES, next_fetch=None), False),
    ("one that is due already", {"next_fetch": NOW - 9}, False),
]


@pytest.mark.parametrize(("title", "given", "is_due"), NOT_DUE, ids=[row[0] for row in NOT_DUE])
def test_only_documents_and_redirects_are_due(known: Known, title: str, given: dict[str, object], is_due: bool) -> None:
    known.discover(ONE, X)
    change = page_x(known)
    for name, value in given.items():
        setattr(change.state, name, value)
    known.record(change)
    before = known.get(X).next_fetch
    effects = known.record(red(known, ONE))
    assert (bool(effects.due), known.get(X).next_fetch) == (is_due, NOW if is_due else before)
    assert known.get(X).inherited == RED


def test_a_redirect_that_passes_on_the_same_metadata_is_not_due(known: Known) -> None:
    known.discover(ONE, X)
    known.record(red(known, ONE))
    known.record(moved(known, X, RED, Y))
    assert known.record(red(known, ONE)).due == []
    assert known.record(blue(known, ONE)).due == [("a.example:80", Queue(Source.REFRESH), NOW)]


def test_requested_urls_and_retries_are_due_in_their_queue(known: Known) -> None:
    known.discover(ONE, structs.replace(new(X), shift=-2))
    known.record(page_x(known, requested_by=True))
    assert known.record(red(known, ONE)).due == [("a.example:80", Queue(Source.USER, -2), NOW)]


def test_a_url_that_is_being_fetched_is_due_when_its_outcome_is_recorded(known: Known, store: Store) -> None:
    known.discover(ONE, X)
    known.record(page_x(known, next_fetch=NOW))
    (fetched,) = [state for state in store.lease("a.example:80", 9, now=NOW, until=NOW + 9) if state.url == full(X)]
    assert known.record(red(known, ONE)).due == []
    fetched = structs.replace(fetched, next_fetch=LATER)
    effects = known.record(Change(fetched))
    assert (effects.due, known.get(X).next_fetch) == ([("a.example:80", Queue(Source.REFRESH), NOW)], NOW)
    again = structs.replace(known.get(X), next_fetch=LATER)
    assert known.record(Change(again, Document(full(X), text="x", fields={"c": "red"}))).due == []
    assert known.get(X).next_fetch == LATER


def test_both_in_one_batch(known: Known) -> None:
    known.discover(ONE, X)
    assert known.record(page_x(known), red(known, ONE)).due == [("a.example:80", Queue(Source.REFRESH), NOW)]


MIDNIGHT = (NOW // DAY + 1) * DAY

ROUNDS = [
    # when and under which rules ONE hands something else to X -> when X is due for it
    (NOW, 1, NOW),
    (NOW + 60, 1, MIDNIGHT),
    (NOW + 120, 2, NOW + 120),  # other rules
    (NOW + 180, 2, MIDNIGHT),
    (NOW + 240, 1, MIDNIGHT),  # a page of before
    (MIDNIGHT, 2, MIDNIGHT),
    (MIDNIGHT + 60, 2, MIDNIGHT + DAY),
    (MIDNIGHT + DAY, 1, MIDNIGHT + DAY),
]


def test_a_url_is_due_once_a_day_under_the_same_rules(known: Known) -> None:
    known.discover(ONE, X)
    for number, (now, rules, due) in enumerate(ROUNDS):
        known.record(page_x(known, {"c": str(number - 1)} if number else {}, fetched_at=now), now=now)
        effects: Effects = known.record(leads(known, ONE, f'{{"c":"{number}"}}', X, rules=rules), now=now)
        assert [at for _, _, at in effects.due] == [due], number
        assert known.get(X).next_fetch == due


@pytest.mark.parametrize("kind", ["excluded", "given_up"])
def test_metadata_from_pages_outside_the_crawl_space_is_removed(known: Known, store: Store, kind: str) -> None:
    known.discover(ONE, TWO, X, Y)
    known.record(page_x(known, {"c": "red"}), red(known, ONE), leads(known, TWO, BLUE, Y))
    ids = [known.get(ONE).id]
    store.reclassify(Reclassified(excluded=ids) if kind == "excluded" else Reclassified(given_up=ids), now=NOW)
    assert known.get(X).inherited == RED
    known.record(page_x(known, {"c": "red"}, fetched_at=NOW - 5))
    store.drop_inherited()
    assert (known.get(X).inherited, known.get(X).next_fetch) == (None, NOW - 5)
    assert known.get(Y).inherited == BLUE
    known.record(blue(known, TWO))
    assert known.get(X).inherited == BLUE


def test_metadata_without_a_source_page_is_kept_until_a_page_has_some(known: Known, store: Store) -> None:
    for inherited in (RED, BLUE):
        store.discover([structs.replace(new(url), inherited=inherited) for url in (X, Y)], now=NOW)
    known.discover(ONE)
    known.record(page_x(known, {"c": "red"}))
    assert known.get(X).inherited == RED
    assert known.record(red(known, ONE)).due == []
    known.record(given_up_sites(known, ONE))
    assert (known.get(X).inherited, known.get(Y).inherited) == (None, RED)
    store.drop_inherited()
    assert known.get(Y).inherited is None


def test_what_links_of_pages_inherit_is_returned(known: Known, store: Store) -> None:
    known.discover(ONE, TWO)
    known.record(leads(known, ONE, BOTH, X), leads(known, TWO, None, Y))
    one, two = known.get(ONE).id, known.get(TWO).id
    assert store.link_metadata([two, one, 4711]) == {one: BOTH}
    assert store.link_metadata([]) == {}
