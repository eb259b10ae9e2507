"""Limits in a crawl: the URLs of a host when pages come and go, and limits that depend on the start URLs."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from crawlspace.admin.explain import Question, explain
from crawlspace.crawl.run import FetchPage
from crawlspace.crawl.sites import KEPT_OUT
from crawlspace.crawl.startup import build_space
from crawlspace.model import Source, State
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.rules.space import CrawlSpace
from crawlspace.state.changes import Change
from crawlspace.state.store import Store
from crawlspace.status import Status
from tests.contract.conftest import new
from tests.unit.crawl.test_engine import DAY, HOME, Web

LIMIT: dict[str, object] = {"CRAWLSPACE_MAX_URLS_PER_HOST": 3, "CRAWLSPACE_MAX_DELETIONS": 100}


@pytest.fixture
def web(local_store: Store, tmp_path: Path) -> Chain:
    made = Chain(tmp_path, local_store)
    made.pages = {HOME: "home", **{f"{HOME}{name}": name for name in "abcd"}}
    made.links = {HOME: [f"{HOME}{name}" for name in "abcd"]}
    return made


def gone(web: Chain, name: str) -> None:
    web.pages.pop(f"{HOME}{name}")
    web.links[HOME].remove(f"{HOME}{name}")
    web.pages[HOME] = f"home without {name}"


def test_what_was_kept_out_comes_back_when_a_page_vanishes(web: Chain) -> None:
    web.crawl()
    web.settings = LIMIT
    web.crawl()
    assert web.indexed == {"", "a", "b"}
    assert not web.plan().has_effect
    gone(web, "a")
    web.pages[f"{HOME}new"] = "new"
    web.links[HOME].append(f"{HOME}new")
    web.crawl(after=40)
    assert web.indexed == {"", "b"}
    foretold = web.plan()
    assert (foretold.changed, foretold.returned, foretold.examples["returned"]) == (False, 1, [f"{HOME}c"])
    web.crawl()
    assert web.indexed == {"", "b", "c"}
    assert [web.asked_for(f"{HOME}{name}") for name in ("c", "d", "b")] == [1, 0, 0], (
        "the pages that stayed are not fetched again"
    )
    assert not web.plan().has_effect


def test_a_link_that_was_refused_takes_the_place_of_a_page_that_vanishes(web: Chain) -> None:
    web.settings = LIMIT
    web.crawl()
    assert web.indexed == {"", "a", "b"}
    web.links[HOME].remove(f"{HOME}a")
    web.pages.update({HOME: "home without a", f"{HOME}a": 404})
    web.crawl(after=40)
    assert (web.asked_for(HOME), web.indexed) == (1, {"", "b"})
    web.crawl(after=40)  # the home page is as it was, and would answer 304
    assert web.indexed == {"", "b", "c"}


def test_a_dead_link_takes_no_place_for_good(web: Chain) -> None:
    web.settings = LIMIT
    web.crawl()
    web.pages[f"{HOME}a"] = 404  # the home page goes on leading to it, and answers 304
    for _ in range(4):
        web.crawl(after=40)
    assert web.indexed == {"", "b", "c"}


def test_refused_links_are_found_again_on_the_page_of_another_host(web: Chain) -> None:
    far = [f"http://b.example/{name}" for name in "abcde"]
    web.pages = {HOME: "home", **{url: url for url in far}}
    web.links = {HOME: far}
    web.settings = LIMIT
    web.crawl()
    assert set(web.sink.documents) == {HOME, *far[:3]}
    web.pages[far[0]] = 404
    for _ in range(3):
        web.crawl(after=40)
    assert set(web.sink.documents) == {HOME, *far[1:4]}


def test_links_to_known_pages_take_no_place(web: Chain) -> None:
    names = [f"{HOME}{name}" for name in "abcd"]
    web.settings = {**LIMIT, "CRAWLSPACE_MAX_URLS_PER_HOST": 7}
    web.crawl()
    web.pages.update({HOME: "new home", names[0]: "new a", names[1]: "new b", f"{HOME}n1": "n1", f"{HOME}n2": "n2"})
    web.links.update({names[0]: [*names, f"{HOME}n1"], names[1]: [*names, f"{HOME}n2"]})
    web.crawl(after=40)
    assert web.indexed == {"", *"abcd", "n1", "n2"}


def test_what_an_earlier_version_has_kept_out_comes_back(web: Chain) -> None:
    web.crawl()
    web.settings = LIMIT
    web.crawl()
    web.store.set_meta(KEPT_OUT, "")
    gone(web, "a")
    for _ in range(2):
        web.crawl(after=40)
    assert web.indexed == {"", "b", "c"}


def test_documents_held_for_the_limit_are_let_go_when_there_is_room(web: Chain) -> None:
    web.crawl()
    web.settings = {**LIMIT, "CRAWLSPACE_MAX_DELETIONS": 1}
    web.crawl()
    assert set(web.held()) == {"c", "d"}
    web.settings = LIMIT
    gone(web, "a")
    gone(web, "b")
    web.crawl(after=40)
    assert web.plan().examples["returned"] == [f"{HOME}c", f"{HOME}d"]
    web.crawl()
    assert (web.indexed, web.held()) == ({"", "c", "d"}, {})


def test_in_a_crawl_that_goes_on_a_new_url_takes_the_place(web: Chain) -> None:
    web.crawl()
    web.settings = {**LIMIT, "CRAWLSPACE_CONTINUOUS": True}
    engine = web.open().engine
    web.work(engine)
    gone(web, "a")
    web.pages[f"{HOME}new"] = "new"
    web.links[HOME].append(f"{HOME}new")
    for _ in range(3):
        web.clock.advance(40 * DAY)
        web.work(engine)
    assert web.indexed == {"", "b", "new"}


def test_what_rules_exclude_does_not_count(web: Chain) -> None:
    web.crawl()
    web.write(start=HOME, rules=f"forbid prefix {HOME}a\nforbid prefix {HOME}b\n")
    web.settings = LIMIT
    web.crawl()
    assert web.indexed == {"", "c", "d"}
    gone(web, "c")
    web.pages[f"{HOME}new"] = "new"
    web.links[HOME].append(f"{HOME}new")
    web.crawl(after=40)
    web.crawl(after=40)
    assert web.indexed == {"", "d", "new"}
    assert web.store.get_meta(KEPT_OUT) == "{}"


def test_explain_names_the_limit_for_what_it_keeps_out(web: Chain) -> None:
    web.crawl()
    web.settings = LIMIT
    web.crawl()
    assert [web.admits(f"{HOME}{name}") for name in ("a", "b", "c", "d", "unknown")] == [True, True, False, False, False]


def test_a_larger_limit_lets_the_oldest_in(web: Chain) -> None:
    web.crawl()
    web.settings = LIMIT
    web.crawl()
    web.settings = {**LIMIT, "CRAWLSPACE_MAX_URLS_PER_HOST": 4}
    web.crawl()
    assert web.indexed == {"", "a", "b", "c"}


# --- limits that depend on the start URLs ---------------------------------------------------------------------------


A, B, C, D = (f"{HOME}{name}" for name in "abcd")
INTERNAL = "http://10.1.2.3/"
OUT = (State.EXCLUDED, 760)
DONE = (State.DONE, 200)


class Chain(Web):
    """A page that leads to the next; hosts that are no start URLs' are not reached where their address is internal."""

    def _answer(self, fetch: FetchPage) -> Outcome:
        state = fetch.state
        host, _, port = state.site.rpartition(":")
        if host == "10.1.2.3" and not self.space().at_connect(host, int(port), host).admitted:
            return Outcome(state.id, state.url, OutcomeKind.EXCLUDED, Status.EXCLUDED)
        return super()._answer(fetch)

    def space(self) -> CrawlSpace:
        return build_space(self.collection())

    def admits(self, url: str) -> bool:
        """What `explain` says of it."""
        found = explain(Question(url), self.collection(), space=self.space(), store=self.store, clock=self.clock)
        return found.decision.admitted

    def row(self, url: str) -> tuple[State, int | None] | None:
        state = self.store.get(url)
        return None if state is None else (state.state, state.status)


@pytest.fixture
def chain(local_store: Store, tmp_path: Path) -> Chain:
    made = Chain(tmp_path, local_store)
    made.pages = {HOME: "home", A: "a", B: "b", C: "c", D: "d", INTERNAL: "internal"}
    made.links = {HOME: [A, INTERNAL], A: [B], B: [C], C: [D]}
    return made


LIMITS: list[tuple[str, dict[str, object], dict[str, object], str]] = [
    # what the setting was and becomes, the URL that it keeps out
    ("link depth", {}, {"DEPTH_LIMIT": 1}, B),
    ("other hosts", {}, {"CRAWLSPACE_FOLLOW_OFFSITE_LINKS": False}, INTERNAL),
    ("private address", {}, {}, INTERNAL),
    ("one folder", {}, {"CRAWLSPACE_INDEX_ENTIRE_SITE": True}, INTERNAL),
]


@pytest.mark.parametrize(("title", "before", "limited", "url"), LIMITS, ids=[row[0] for row in LIMITS])
def test_what_becomes_a_start_url_comes_back(
    chain: Chain, title: str, before: dict[str, object], limited: dict[str, object], url: str
) -> None:
    chain.settings = before
    chain.crawl()
    chain.settings = limited
    chain.crawl()
    assert chain.row(url) == OUT
    chain.write(start=f"{HOME}\n{url}")
    assert chain.admits(url)
    foretold = chain.plan()
    assert url in foretold.examples["returned"]
    chain.crawl()
    assert chain.row(url) == DONE
    assert not chain.plan().has_effect
    assert url in chain.sink.documents


def test_what_a_new_start_url_leads_to_comes_back_in_the_same_run(chain: Chain) -> None:
    chain.crawl()
    chain.settings = {"DEPTH_LIMIT": 1}
    chain.crawl()
    assert [chain.row(url) for url in (B, C, D)] == [OUT, OUT, OUT]
    chain.write(start=f"{HOME}\n{B}")
    chain.crawl()
    assert [chain.row(url) for url in (B, C, D)] == [DONE, DONE, OUT]


def test_a_former_start_url_comes_back_after_the_fix(chain: Chain) -> None:
    """A store of the version before: the start URL is at depth 0 already, and out all the same."""
    chain.crawl()
    chain.settings = {"DEPTH_LIMIT": 1}
    chain.crawl()
    assert chain.store.get(B) is not None
    chain.write(start=f"{HOME}\n{B}")
    chain.store.discover([new(B, source=Source.USER)], now=int(chain.clock.now()))
    assert chain.row(B) == OUT
    chain.crawl()
    assert chain.row(B) == DONE


def test_a_shorter_way_that_a_run_finds_brings_back_what_was_too_far(chain: Chain) -> None:
    chain.crawl()
    chain.settings = {"DEPTH_LIMIT": 1}
    chain.crawl()
    chain.pages[HOME] = "home with a link"
    chain.links[HOME] = [A, B]
    chain.crawl(after=31)
    assert [chain.row(url) for url in (B, C)] == [DONE, OUT]


@pytest.mark.parametrize("was", [State.DONE, State.FAILED, State.GONE])
def test_a_shorter_way_ends_a_held_deletion_whatever_the_state_of_its_page(chain: Chain, was: State) -> None:
    chain.crawl()
    state = chain.of(B)
    chain.store.record(
        [Change(structs.replace(state, state=was, status=200 if was is State.DONE else 502))], now=int(chain.clock.now())
    )
    chain.settings = {"DEPTH_LIMIT": 1, "CRAWLSPACE_MAX_DELETIONS": 0, "CRAWLSPACE_MAX_DELETIONS_PERCENT": 0}
    chain.crawl()
    assert {"b", "c", "d"} <= chain.held().keys()
    chain.pages[HOME] = "home with a link"
    chain.links[HOME] = [A, B]
    chain.crawl(after=31)
    assert chain.held().keys() == {"c", "d"}
    assert chain.row(B) == DONE
