"""Links that are refused are counted once, whatever becomes of a call or a worker."""

from __future__ import annotations

from typing import Any

import pytest

from crawlspace.errors import StoreAway
from crawlspace.state.changes import Change, Effects
from tests.contract.conftest import NOW
from tests.contract.workers.crawler import Crawler
from tests.contract.workers.test_prefetch import taken_for_dead


def test_links_refused_are_not_counted_again_for_a_worker_that_is_no_more(crawlers: tuple[Crawler, Crawler]) -> None:
    """The call that counted them may have been made, and its answer lost."""
    one, two = crawlers
    taken_for_dead(one, two)
    one.view.count_refusals({"domain": 2})
    one.view.record([], now=NOW)
    assert one.store.refusals() == {}


def test_links_refused_are_counted_in_the_call_that_records_outcomes(crawlers: tuple[Crawler, Crawler]) -> None:
    one, _ = crawlers
    one.view.count_refusals({"domain": 2})
    one.view.count_refusals({"domain": 1, "scheme": 4})
    before = one.store.scripts.runs
    one.view.record([], now=NOW)
    assert one.store.scripts.runs == before + 1
    assert one.store.refusals() == {"domain": 3, "scheme": 4}
    one.view.record([], now=NOW)
    assert one.store.refusals() == {"domain": 3, "scheme": 4}


@pytest.mark.parametrize("made", [True, False])
def test_links_refused_are_counted_once_where_an_answer_is_lost(
    crawlers: tuple[Crawler, Crawler], monkeypatch: pytest.MonkeyPatch, made: bool
) -> None:
    """Whether the call was made or not."""
    store, view = crawlers[0].store, crawlers[0].view
    record, changes = crawlers[0].shared.worker.record, list[Change]()

    def lost(*args: Any, **options: Any) -> Effects:
        if made:
            record(*args, **options)
        raise StoreAway("no answer")

    view.count_refusals({"domain": 2})
    with monkeypatch.context() as away:
        away.setattr(crawlers[0].shared.worker, "record", lost)
        with pytest.raises(StoreAway):
            view.record(changes, now=NOW)
    view.count_refusals({"domain": 5})
    view.record(changes, now=NOW)
    assert store.refusals() == {"domain": 2}
    view.record([], now=NOW)
    assert store.refusals() == {"domain": 7}


def test_links_refused_that_no_outcome_follows_are_counted_at_the_end(crawlers: tuple[Crawler, Crawler]) -> None:
    one, _ = crawlers
    one.view.count_refusals({"domain": 2})
    one.view.count_remaining_refusals()
    one.calls.make()
    assert one.store.refusals() == {"domain": 2}
