"""What a change of the URL options does to the known URLs: of all that are one URL now one stays, and nothing is lost on the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlspace.crawl.rule_changes.folding import known_by_url
from crawlspace.crawl.run import FetchPage
from crawlspace.model import Held, NewUrl, Source
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.state.store import Store
from tests.conftest import assert_same
from tests.contract.memory.store import MemoryStore
from tests.unit.crawl.rule_changes.test_rediscovery import Site
from tests.unit.crawl.test_engine import HOME

A, B, C, D = (f"{HOME}{name}" for name in "abcd")
DROP: dict[str, object] = {"CRAWLSPACE_URL_DROP_PARAMETERS": ["sid"]}
NO_SLASH: dict[str, object] = {"CRAWLSPACE_URL_TRAILING_SLASH": "remove"}
MONTH = 31


class FoldedSite(Site):
    """A site that redirects, and names canonical pages, too."""

    def __init__(self, folder: Path, store: Store) -> None:
        super().__init__(folder, store)
        self.redirects: dict[str, str] = {}
        self.canonicals: dict[str, str] = {}

    def _answer(self, fetch: FetchPage) -> Outcome:
        target = self.redirects.get(fetch.state.url)
        if target is None:
            outcome = super()._answer(fetch)
            outcome.canonical = self.canonicals.get(fetch.state.url)
            return outcome
        return Outcome(fetch.state.id, fetch.state.url, OutcomeKind.REDIRECTED, 301, redirect_to=target)

    @property
    def known(self) -> dict[str, str]:
        return {state.url.removeprefix(HOME): state.state.label for state in self.store.urls()}

    def depths(self) -> dict[str, int]:
        return {state.url.removeprefix(HOME): state.depth for state in self.store.urls()}


@pytest.fixture
def site(tmp_path: Path, store: Store) -> FoldedSite:
    made = FoldedSite(tmp_path, store)
    made.write(start=HOME)
    return made


def orphans(site: FoldedSite) -> set[str]:
    return {state.url.removeprefix(HOME) for state in site.store.urls() if state.orphaned is not None}


def drop_sid(site: FoldedSite) -> None:
    """A site on which a is known by three spellings, b by one that is not folded, c by two that are folded, and d only excluded."""
    site.pages = {HOME: "home", A: "a", f"{A}?sid=1": "a", f"{A}?sid=2": "a", B: "b", f"{C}?sid=1": "c", f"{C}?x&sid=2": "cx"}
    site.pages |= {C: "c", f"{C}?x": "cx", D: "d"}
    site.links = {HOME: [A, f"{A}?sid=1", B, f"{C}?sid=1", f"{C}?x&sid=2"], A: [f"{A}?sid=2"], f"{C}?sid=1": [D], C: [D]}
    site.crawl()
    assert site.indexed == {"", "a", "b", "c?sid=1", "c?x&sid=2", "d"}
    site.settings = dict(DROP)


def test_session_ids_in_paths_of_a_store_of_an_earlier_version(site: FoldedSite) -> None:
    names = "CRAWLSPACE_URL_DROP_PATH_PARAMETERS"
    site.settings = {names: []}
    site.pages = {HOME: "home", A: "a", B: "b", **{f"{A};jsessionid={n}": "a" for n in range(3)}, f"{B};v=1": "b1"}
    site.links = {HOME: [*(f"{A};jsessionid={n}" for n in range(3)), B, f"{B};v=1"]}
    site.crawl()
    assert site.indexed == {"", "a;jsessionid=0", "b", "b;v=1"}
    site.settings = {}
    plan = site.plan()
    assert (plan.folded, plan.folded_into, plan.deletions) == (3, 1, 0)
    site.crawl()
    assert site.indexed == {"", "a", "b", "b;v=1"}
    assert set(site.known) == {"", "a", "b", "b;v=1"}


def test_the_plan_counts_them(site: FoldedSite) -> None:
    drop_sid(site)
    plan = site.plan()
    assert (plan.folded, plan.folded_into, plan.deletions) == (4, 3, 0)
    assert (
        plan.sentence()
        == "of 8 known URLs 4 folded into 3, 1 due at once, because the rules may admit links that they refused before, or because the spider has changed"
    )
    assert site.plan() == plan


def test_of_all_spellings_one_stays_and_is_in_the_index(site: FoldedSite) -> None:
    drop_sid(site)
    engine = site.crawl()
    assert site.known == dict.fromkeys(("", "a", "b", "c", "c?x", "d"), "done")
    assert site.indexed == {"", "a", "b", "c", "c?x", "d"}
    assert site.depths() == {"": 0, "a": 1, "b": 1, "c": 1, "c?x": 1, "d": 2}
    assert_same([url for url, _ in site.asked], [HOME, C, f"{C}?x"])
    assert not any(conditional for _, conditional in site.asked)
    assert engine.progress.deletes == 2
    assert not site.plan().has_effect
    assert sum(site.store.held_numbers().values()) == 0
    site.crawl()
    assert site.asked == []


def test_a_document_stays_until_the_other_url_has_one(site: FoldedSite) -> None:
    drop_sid(site)
    engine = site.open().engine
    assert site.held() == {"c?sid=1": Held.FOLDED, "c?x&sid=2": Held.FOLDED}
    assert site.known["c"] == "pending"
    assert site.store.counts().indexed == 6
    engine.close()
    assert site.indexed == {"", "a", "b", "c?sid=1", "c?x&sid=2", "d"}
    site.pages[C] = 503
    site.crawl()
    assert site.indexed == {"", "a", "b", "c?sid=1", "c?x", "d"}
    assert site.held() == {"c?sid=1": Held.FOLDED}
    assert site.depths()["d"] == 2
    assert site.store.counts().orphaned == 1, "a page that fails leads nowhere, and the folded URL has given it its links"
    site.pages[C] = "c"
    site.crawl(after=MONTH)
    assert site.store.counts().orphaned == 0
    assert (site.indexed, site.held()) == ({"", "a", "b", "c", "c?x", "d"}, {})


def test_each_document_leaves_in_the_transaction_of_the_other_one(site: FoldedSite) -> None:
    drop_sid(site)
    site.pages |= {C: "c is new", f"{C}?x": "cx is new"}
    engine = site.open().engine
    while (fetch := engine.next_fetch()) is not None:
        assert isinstance(fetch, FetchPage)
        engine.fetched(site._answer(fetch))
        engine.commit()
        indexed = {state.url.removeprefix(HOME) for state in site.store.urls() if state.indexed}
        assert len(indexed & {"c", "c?sid=1"}) == len(indexed & {"c?x", "c?x&sid=2"}) == 1
    engine.close()


ANSWERS = [
    # what the folded URL answers, what is in the index afterwards, what is held
    (404, set(), {}),
    (410, set(), {}),
    (403, {"c?sid=1"}, {"c?sid=1": Held.FOLDED}),
    (500, {"c?sid=1"}, {"c?sid=1": Held.FOLDED}),
    (613, {"c?sid=1"}, {"c?sid=1": Held.FOLDED}),
    ("c", {"c"}, {}),
    ("another", {"c"}, {}),
]


@pytest.mark.parametrize(("answer", "indexed", "held"), ANSWERS)
def test_what_an_error_of_the_other_url_does(
    site: FoldedSite, answer: str | int, indexed: set[str], held: dict[str, Held]
) -> None:
    drop_sid(site)
    site.pages[C] = answer
    site.crawl()
    assert site.indexed == {"", "a", "b", "c?x", "d"} | indexed
    assert site.held() == held


def test_deletions_beyond_the_limit_wait_for_a_person(site: FoldedSite) -> None:
    names = [f"{HOME}{number}" for number in range(4)]
    site.pages = {HOME: "home", **{f"{name}?sid=1": name for name in names}}
    site.links = {HOME: [f"{name}?sid=1" for name in names]}
    site.settings = {"CRAWLSPACE_MAX_DELETIONS": 1}
    site.crawl()
    site.settings |= DROP
    engine = site.crawl()
    assert engine.withheld == 3
    assert list(site.held().values()) == [Held.FOLDED] * 3
    site.crawl()
    assert len(site.held()) == 3


def test_a_url_that_was_forgotten_while_documents_wait_for_it_is_fetched_in_the_same_run(site: FoldedSite) -> None:
    drop_sid(site)
    site.settings |= {"CRAWLSPACE_MAX_DELETIONS": 0, "CRAWLSPACE_MAX_DELETIONS_PERCENT": 0}
    site.pages[C] = site.pages[f"{C}?x"] = 404
    site.crawl()
    site.links[HOME] = [A, B]
    site.crawl(after=MONTH)
    assert site.held() == {"c?sid=1": Held.FOLDED, "c?x&sid=2": Held.FOLDED}
    assert {"c", "c?x"}.isdisjoint(site.known)
    site.crawl()
    assert_same([url for url, _ in site.asked], [C, f"{C}?x"])


def test_a_page_that_redirects_to_the_spelling_that_is_folded_away_loses_nothing(
    site: FoldedSite, caplog: pytest.LogCaptureFixture
) -> None:
    site.pages = {HOME: "home", f"{A}/": "a", f"{B}/": "b"}
    site.links = {HOME: [f"{A}/", f"{B}/"]}
    site.crawl()
    site.settings = dict(NO_SLASH)
    site.redirects = {A: f"{A}/", B: "/b/"}
    site.crawl()
    assert [url for url, _ in site.asked].count(A) == 1
    assert site.indexed == {"", "a/", "b/"}
    assert site.held() == {"a/": Held.FOLDED, "b/": Held.FOLDED}
    assert caplog.text.count("The options do not suit this site: set them in CRAWLSPACE_SITES for 'a.example'") == 1


LEADS = [
    # to where a page redirects, whether it keeps its document then
    (f"{A}/", True),
    ("/a/?sid=4", True),
    (f"{A}?sid=2#top", True),
    (f"{A}#top", True),
    (A, True),
    (B, False),
    ("http://", False),
]


@pytest.mark.parametrize(("target", "stays"), LEADS)
def test_a_page_keeps_its_document_where_its_redirect_leads_back(site: FoldedSite, target: str, stays: bool) -> None:
    site.settings = {**DROP, **NO_SLASH, "REDIRECT_MAX_TIMES": 0}
    site.pages, site.links = {HOME: "home", A: "a", B: "b"}, {HOME: [A, B]}
    site.crawl()
    site.redirects = {A: target}
    site.crawl(after=MONTH)
    assert ("a" in site.indexed) == stays


def test_links_start_urls_and_redirects_lead_to_the_folded_url(site: FoldedSite) -> None:
    site.write(start=f"{HOME}start/?sid=1")
    site.settings = {**DROP, **NO_SLASH}
    site.pages = {f"{HOME}start": "start", A: "a", C: "c"}
    site.links = {f"{HOME}start": [f"{A}/", f"{A}?sid=7", f"{B}/?sid"]}
    site.redirects = {B: f"{C}/?sid=3"}
    site.crawl()
    assert site.known == {"start": "done", "a": "done", "b": "redirected", "c": "done"}
    site.crawl()
    assert site.asked == []


def test_canonical_links_name_the_folded_url(site: FoldedSite) -> None:
    site.settings = {**DROP, **NO_SLASH}
    site.pages = {HOME: "home", A: "a", B: "b", C: "c"}
    site.links = {HOME: [A, B, C]}
    site.canonicals = {A: f"{A}/", B: f"{B}?sid=1", C: f"{A}/?sid=2"}
    site.crawl()
    assert site.indexed == {"", "a", "b"}
    assert [site.store.get(url).canonical is None for url in (A, B, C)] == [True, True, False]  # type: ignore[union-attr]


def test_excluded_urls_come_back_under_the_folded_url_and_pending_ones_are_folded(site: FoldedSite) -> None:
    site.write(start=HOME, rules="forbid prefix http://a.example/b")
    site.pages = {HOME: "home", f"{A}?sid=1": "a", A: "a", B: "b", f"{B}?sid=1": "b"}
    site.links = {HOME: [f"{A}?sid=1", f"{B}?sid=1"]}
    site.write(start=HOME)
    site.crawl()
    site.write(start=HOME, rules="forbid prefix http://a.example/b?")
    site.crawl()
    assert site.known["b?sid=1"] == "excluded"
    site.settings = dict(DROP)
    assert (site.plan().folded, site.plan().returned) == (2, 0)
    site.crawl()
    assert site.known == {"": "done", "a": "done", "b": "done"}
    assert site.indexed == {"", "a", "b"}


def test_what_the_rules_exclude_by_its_folded_url_is_excluded(site: FoldedSite) -> None:
    site.pages = {HOME: "home", f"{A}/": "a"}
    site.links = {HOME: [f"{A}/"]}
    site.write(start=HOME, rules="allow prefix http://a.example/a/")
    site.crawl()
    site.settings = dict(NO_SLASH)
    site.write(start=HOME, rules="forbid prefix http://a.example/a")
    plan = site.plan()
    assert (plan.folded, plan.excluded, plan.deletions) == (0, 1, 1)
    site.crawl()
    assert site.known == {"": "done", "a/": "excluded"}


def test_without_the_options_urls_stay_as_they_are_until_found_again(site: FoldedSite) -> None:
    drop_sid(site)
    site.crawl()
    site.settings = {}
    assert site.plan().folded == 0
    site.crawl(after=MONTH)
    assert {name for name, state in site.known.items() if state == "done"} >= {"a", "a?sid=1", "c", "c?sid=1"}
    assert "c" in site.indexed or "c?sid=1" in site.indexed
    assert orphans(site) == {"c", "c?x"}


def test_options_taken_back_before_the_other_url_was_fetched(site: FoldedSite) -> None:
    drop_sid(site)
    site.open().engine.close()
    site.settings = {}
    site.crawl()
    assert site.held() == {}
    assert site.known == dict.fromkeys(("", "a", "a?sid=1", "b", "c", "c?sid=1", "c?x", "c?x&sid=2", "d"), "done")
    assert site.indexed == {"", "a", "b", "c", "c?x", "d"}, "one for each text"


def test_what_comes_back_with_the_options_and_is_linked_no_more_is_an_orphan(site: FoldedSite) -> None:
    drop_sid(site)
    site.open().engine.close()
    site.settings = {}
    site.links = {HOME: [A, f"{A}?sid=1", B, f"{C}?sid=1"], A: [f"{A}?sid=2"], f"{C}?sid=1": [D]}
    site.crawl(after=MONTH)
    assert orphans(site) == {"c", "c?x", "c?x&sid=2"}


def test_what_waits_and_is_excluded_by_rules_then_is_an_orphan_once_it_is_held_for_them(site: FoldedSite) -> None:
    drop_sid(site)
    site.pages[C] = 503
    site.settings |= {"CRAWLSPACE_MAX_DELETIONS": 0, "CRAWLSPACE_MAX_DELETIONS_PERCENT": 0}
    site.crawl()
    site.settings |= {"URLLENGTH_LIMIT": len(HOME)}
    site.crawl()
    assert site.held()["c?sid=1"] is Held.RULES
    assert "c?sid=1" in orphans(site)


def test_an_orphan_stays_one_under_the_folded_url(site: FoldedSite) -> None:
    site.pages = {HOME: "home", f"{A}?sid=1": "a", A: "a"}
    site.links = {HOME: [f"{A}?sid=1"]}
    site.crawl()
    site.links, site.pages[HOME] = {}, "home without links"
    site.crawl(after=MONTH)
    assert orphans(site) == {"a?sid=1"}
    site.settings = dict(DROP)
    site.crawl()
    assert orphans(site) == {"a"}


def test_www_moves_urls_to_another_site(site: FoldedSite) -> None:
    home, page = "http://www.h.example/", "http://www.h.example/p"
    site.write(start=home)
    site.pages = {home: "home", page: "p"}
    site.links = {home: [page]}
    site.crawl()
    bare = {url.replace("www.", ""): title for url, title in site.pages.items()}
    site.settings = {"CRAWLSPACE_URL_FOLD_WWW": "remove"}
    site.pages, site.links = dict(bare), {"http://h.example/": [page]}
    assert (site.plan().folded, site.plan().folded_into) == (2, 2)
    site.crawl()
    assert site.indexed == set(bare)
    assert [state.depth for state in sorted(site.store.urls(), key=lambda state: state.url)] == [0, 1]
    assert (site.store.known_of_host("www.h.example"), site.store.known_of_host("h.example")) == (0, 2)
    site.crawl()
    assert site.asked == []


def test_documents_wait_where_most_of_the_other_site_is_missing(site: FoldedSite) -> None:
    home, pages = "http://www.h.example/", [f"http://www.h.example/{number}" for number in range(40)]
    site.write(start=home)
    site.pages, site.links = {home: "home", **{url: url for url in pages}}, {home: pages}
    site.crawl()
    site.settings = {"CRAWLSPACE_URL_FOLD_WWW": "remove"}
    site.pages = {"http://h.example/": "home"}
    site.crawl()
    window = 20
    assert len(site.indexed) >= 1 + len(pages) - window
    assert set(site.held().values()) == {Held.FOLDED}


def test_documents_wait_while_most_of_the_other_site_redirects_to_one_page(site: FoldedSite) -> None:
    home, pages = "http://www.h.example/", [f"http://www.h.example/{number}" for number in range(40)]
    site.write(start=home)
    site.pages, site.links = {home: "home", **{url: url for url in pages}}, {home: pages}
    site.crawl()
    before = site.indexed
    site.settings = {"CRAWLSPACE_URL_FOLD_WWW": "remove"}
    others = {url.replace("www.", ""): url for url in pages}
    site.pages = {"http://h.example/": "home", "http://h.example/closed": "closed for works"}
    site.redirects = dict.fromkeys(others, "http://h.example/closed")
    for _ in range(3):
        site.crawl(after=MONTH)
        assert len(site.indexed) == len(before) + 1
    site.redirects = {}
    site.pages |= others
    site.crawl(after=MONTH)
    assert site.indexed == {"http://h.example/", "http://h.example/closed", *others}
    assert site.held() == {}


def test_a_document_waits_until_the_redirect_of_the_other_url_is_seen_again(site: FoldedSite) -> None:
    names = [f"{HOME}{number}" for number in range(40)]
    site.pages = {HOME: "home", B: "b", f"{A}?sid=1": "a", **{name: name for name in names}}
    site.links = {HOME: [f"{A}?sid=1", B, *names]}
    site.crawl()
    site.settings = dict(DROP)
    site.redirects = {A: B}
    site.crawl(after=MONTH)
    assert site.held() == {"a?sid=1": Held.FOLDED}
    site.crawl(after=MONTH)
    assert "a?sid=1" not in site.known
    assert site.held() == {}


def test_urls_that_share_a_key_are_told_apart() -> None:
    store = MemoryStore(sinks=())
    one, two, three = (NewUrl(7, f"{HOME}{name}", "a.example:80", Source.INDEX_FOLLOW, 0, 1, 0, 1) for name in "abc")
    other = NewUrl(8, D, "a.example:80", Source.INDEX_FOLLOW, 0, 1, 0, 1)
    store.discover([two, one, other], now=0)
    found = known_by_url(store, [one, two, three, other, one, three])
    assert {url: row.id for url, row in found.items()} == {two.url: 1, one.url: 2, D: 3}
