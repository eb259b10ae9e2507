"""What a crawl finds besides its numbers, as `scrapy status` shows it after the run."""

from __future__ import annotations

import logging

import pytest

from crawlspace.clock import FakeClock
from crawlspace.crawl.findings import FINDINGS, KEEP_EVERY_S, MOST_EXAMPLES, RunFindings, kept_error_examples, kept_findings
from crawlspace.model import State
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.state.changes import Change
from tests.contract.conftest import NOW, Known


def failed(known: Known, run: RunFindings, url: str, status: int, detail: str) -> None:
    """A URL of a store ends in an error."""
    if known.store.get(f"http://{url}") is None:
        known.discover(url)
    state = known.get(url)
    run.error(state, Outcome(state.id, state.url, OutcomeKind.FAILED, status, detail=detail))
    state.state, state.status, state.detail = State.FAILED, status, detail
    known.record(Change(state))


def shown(known: Known) -> list[tuple[int, str, str]]:
    return [(one.status, one.url.removeprefix("http://"), one.detail) for one in kept_error_examples(known.store)]


def test_an_example_of_each_site_and_status_is_kept_as_long_as_it_holds(known: Known) -> None:
    run = RunFindings(known.store, FakeClock(NOW))
    failed(known, run, "a.example/1", 614, "expired")
    failed(known, run, "a.example/2", 614, "self-signed")
    failed(known, run, "a.example/3", 611, "no HTTP")
    failed(known, run, "b.example/1", 614, "wrong name")
    assert [(one.status, one.detail) for one in run.error_examples()] == [
        (611, "no HTTP"),
        (614, "wrong name"),
        (614, "self-signed"),
    ]
    assert shown(known) == []
    run.keep(is_last=True)
    assert shown(known) == [
        (611, "a.example/3", "no HTTP"),
        (614, "b.example/1", "wrong name"),
        (614, "a.example/2", "self-signed"),
    ]

    known.record(known.page("a.example/2", "one", detail=None), known.change("a.example/3", status=613, detail=None))
    later = RunFindings(known.store, FakeClock(NOW))
    failed(known, later, "c.example/1", 614, "expired")
    later.keep(is_last=True)
    assert shown(known) == [(614, "c.example/1", "expired"), (614, "b.example/1", "wrong name")]
    RunFindings(known.store, FakeClock(NOW)).keep(is_last=True)
    assert len(shown(known)) == 2, "a run without errors takes nothing away"


def test_a_url_that_fails_in_two_ways_is_an_example_of_both(known: Known) -> None:
    run = RunFindings(known.store, FakeClock(NOW))
    failed(known, run, "a.example/1", 614, "expired")
    failed(known, run, "a.example/1", 611, "no HTTP")
    assert [(one.status, one.detail) for one in run.error_examples()] == [(611, "no HTTP"), (614, "expired")]
    failed(known, run, "a.example/2", 614, "self-signed")
    failed(known, run, "a.example/3", 611, "too long")
    assert [(one.status, one.detail) for one in run.error_examples()] == [(611, "too long"), (614, "self-signed")]


def test_their_number_is_bounded(known: Known) -> None:
    run = RunFindings(known.store, FakeClock(NOW))
    for number in range(3 * MOST_EXAMPLES):
        failed(known, run, f"h{number}.example/", 614, "expired")
    run.keep(is_last=True)
    assert [url for _, url, _ in shown(known)] == [
        f"h{number}.example/" for number in reversed(range(2 * MOST_EXAMPLES, 3 * MOST_EXAMPLES))
    ]
    assert len(list(run.error_examples())) == MOST_EXAMPLES


def test_a_crawl_that_does_not_end_stores_them_now_and_then(known: Known) -> None:
    clock = FakeClock(NOW)
    run = RunFindings(known.store, clock)
    failed(known, run, "a.example/1", 614, "expired")
    run.keep()
    assert shown(known) == []
    clock.advance(KEEP_EVERY_S)
    run.keep()
    assert len(shown(known)) == 1


def test_what_cannot_be_read_is_nothing(known: Known) -> None:
    known.store.set_meta(FINDINGS, "{broken")
    assert kept_findings(known.store).errors == {}
    run = RunFindings(known.store, FakeClock(NOW))
    failed(known, run, "a.example/1", 614, "expired")
    run.keep(is_last=True)
    assert len(shown(known)) == 1


def test_the_first_of_a_site_is_logged(known: Known, caplog: pytest.LogCaptureFixture) -> None:
    run = RunFindings(known.store, FakeClock(NOW))
    with caplog.at_level(logging.WARNING):
        for url, status in (("a.example/1", 614), ("a.example/2", 614), ("a.example/3", 615), ("a.example/4", 612)):
            failed(known, run, url, status, "why")
    assert caplog.messages == ["http://a.example/1: why (614)", "http://a.example/3: why (615)"]
