"""What has become of a URL, in one sentence."""

from __future__ import annotations

import pytest
from msgspec import structs

from crawlspace.admin.explain import Explanation
from crawlspace.admin.report import UrlReport
from crawlspace.admin.verdict import verdict
from crawlspace.decision import Decision, Reason
from crawlspace.model import Held, Source, State, UrlState
from crawlspace.urls import parse

URL = "http://a.example/"
PENDING = UrlState(1, 2, URL, "a.example:80")
DONE = structs.replace(PENDING, state=State.DONE, status=200)
INDEXED = structs.replace(DONE, indexed=True)


def known(state: UrlState, *, duplicate_of: str | None = None, distance: int | None = None, lost: bool = False) -> UrlReport:
    return UrlReport(state, duplicate_of, distance, lost=lost)


@pytest.mark.parametrize(
    ("reason", "report", "sentence"),
    [
        (Reason.ADMITTED, None, "It belongs to the collection, and is not known yet: no link to it has been found."),
        (Reason.PREFIX, None, "It does not belong to the collection: a prefix rule forbids the URL."),
        (Reason.ADMITTED, known(INDEXED), "It is in the index."),
        (Reason.PREFIX, known(INDEXED), "The present rules refuse it: a prefix rule forbids the URL. It is in the index."),
        (Reason.ADMITTED, known(INDEXED, lost=True), "It is not in the index at present: another collection deleted it there"),
        (
            Reason.ADMITTED,
            known(structs.replace(INDEXED, held=Held.MANY)),
            "It is in the index, and its deletion is held: the run",
        ),
        (Reason.ADMITTED, known(DONE, duplicate_of="http://b/"), "It is not in the index: it is a duplicate of http://b/."),
        (Reason.ADMITTED, known(DONE, duplicate_of="http://b/", distance=3), "its text is nearly the same as that of http://b/."),
        (Reason.ADMITTED, known(PENDING), "It is not in the index: it waits to be fetched for the first time."),
        (Reason.ADMITTED, known(structs.replace(PENDING, lease_until=9)), "it is being fetched for the first time."),
        (Reason.ADMITTED, known(structs.replace(DONE, state=State.GONE, status=404)), "its last fetch ended with 404 Not Found."),
        (Reason.ADMITTED, known(structs.replace(DONE, state=State.GONE, status=None)), "its last fetch failed."),
        (Reason.ADMITTED, known(structs.replace(DONE, state=State.REDIRECTED, status=301)), "(301 Moved Permanently)."),
        (Reason.ADMITTED, known(structs.replace(DONE, state=State.EXCLUDED)), "an item pipeline dropped its document."),
        (Reason.ADMITTED, known(structs.replace(DONE, state=State.EXCLUDED, status=740)), "(740 forbidden by robots.txt)."),
        (Reason.ADMITTED, known(DONE), "It is not in the index: it has no document."),
    ],
)
def test_the_sentence(reason: Reason, report: UrlReport | None, sentence: str) -> None:
    answer = Explanation(URL, parse(URL), Decision(reason, None, ()), 0, Source.INDEX_FOLLOW, 0, report)
    assert sentence in verdict(answer)
