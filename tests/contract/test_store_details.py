"""The detail of an error, which a store keeps with its URL as long as that is an error."""

from __future__ import annotations

from msgspec import structs

from crawlspace.model import State
from crawlspace.state.changes import Change, Reclassified
from crawlspace.state.store import Store
from tests.contract.conftest import NOW, Known, short


def test_the_detail_of_an_error_is_kept_until_the_page_is_another_one(known: Known, store: Store) -> None:
    failed = {"state": State.FAILED, "status": 614, "detail": "das Zertifikat für é.example ist abgelaufen"}
    gone = {"state": State.GONE, "status": 611, "detail": "no HTTP"}
    known.discover("a.example/x", "a.example/y", "a.example/z", "a.example/out")
    for url, fields in (("x", failed), ("y", gone), ("z", failed), ("out", gone)):
        known.record(Change(structs.replace(known.get(f"a.example/{url}"), **fields)))
    kept = [failed["detail"], gone["detail"], failed["detail"], gone["detail"]]
    assert [state.detail for state in store.urls()] == kept
    assert [state.detail for state in store.lease("a.example:80", 9, now=NOW, until=NOW + 9)] == []
    known.record(Change(structs.replace(known.get("a.example/z"), next_fetch=NOW)))
    assert [state.detail for state in store.lease("a.example:80", 9, now=NOW, until=NOW + 9)] == [failed["detail"]]
    known.record(known.page("a.example/x", "one", detail=None), known.change("a.example/y", forget=True))
    store.reclassify(Reclassified(excluded=[known.get("a.example/out").id]), now=NOW)
    assert [(short(state.url), state.detail) for state in store.urls()] == [
        ("a.example/x", None),
        ("a.example/z", failed["detail"]),
        ("a.example/out", None),
    ]
    known.discover("a.example/y")
    assert known.get("a.example/y").detail is None
