"""Documents of folded URLs that wait in the index, and pages with the same text: nothing is lost, and nothing waits for nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from msgspec import structs

from crawlspace.model import Held, State, UrlState
from crawlspace.state.changes import Change, Effects
from tests.unit.crawl.rule_changes import test_folding
from tests.unit.crawl.rule_changes.test_folding import DROP, MONTH, A, B, C, FoldedSite, drop_sid
from tests.unit.crawl.test_engine_life import HOME

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
        other = site.store.get(E)
        assert other is not None
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
    state = site.store.get(C)
    assert state is not None
    site.store.revise([state.id], lambda state: Change(state, forget=True), now=0)
    site.crawl()
    assert {"c", "c?sid=1"}.isdisjoint(site.known)
