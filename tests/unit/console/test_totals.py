"""What is counted for metrics while a snapshot is taken."""

from __future__ import annotations

from msgspec import structs

from crawlspace.console.snapshot.totals import Totals, TotalsCounter, totals_of
from crawlspace.model import Requester, Source, State, UrlState

NOW = 6_000_000
NEW = UrlState(1, 7, "http://a/", "a:80")


def known(state: State, **fields: object) -> UrlState:
    return structs.replace(NEW, state=state, **fields)


def totals(*states: UrlState) -> Totals:
    counter = TotalsCounter(NOW)
    for state in states:
        counter.add(state)
    return totals_of(counter.as_json())


def test_what_waits_is_counted_by_source() -> None:
    found = totals(
        known(State.PENDING, source=Source.USER),
        known(State.PENDING, source=Source.FOLLOW),
        known(State.PENDING, source=Source.FOLLOW, lease_until=NOW + 9),
        known(State.DONE, next_fetch=NOW),
        known(State.GONE, next_fetch=NOW - 1, requested_by=Requester.PERSON),
        known(State.DONE, next_fetch=NOW + 1),
        known(State.DONE, next_fetch=NOW - 1, lease_until=NOW + 9),
        known(State.EXCLUDED, next_fetch=None),
    )
    assert found == Totals({"user": 2, "follow": 1, "refresh": 1}, overdue=2)


def test_the_age_of_documents_is_that_of_their_last_fetch() -> None:
    ages = [*range(60, 60 * 101, 60)]  # 100 documents, one a minute
    documents = [known(State.DONE, indexed=True, fetched_at=NOW - age, next_fetch=NOW + 9) for age in ages]
    others = [known(State.GONE, fetched_at=NOW - 9_999_999, next_fetch=None), known(State.DONE, indexed=True, next_fetch=None)]
    found = totals(*documents, *others)
    assert {share: NOW - at for share, at in found.fetched_at.items()} == {"0.5": 3_000, "0.9": 5_400, "1": 6_000}
    assert totals(known(State.PENDING)).fetched_at == {}


def test_totals_that_cannot_be_read_are_none() -> None:
    assert totals_of("{") == totals_of('{"queue": 5}') == Totals()
