"""A limit that depends on the start URLs follows them when they change: what it kept out comes back, foretold by the plan."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from crawlspace.admin.explain import Question, explain
from crawlspace.crawl.rule_changes.reconcile import plan
from crawlspace.crawl.rule_changes.survey import Plan
from crawlspace.crawl.run import FetchPage
from crawlspace.crawl.startup import build_deletion_limit, build_global_space, build_rediscovery, build_space, hash_of
from crawlspace.model import Source, State
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.rules.exclusion import KnownUrlDecisions
from crawlspace.rules.space import CrawlSpace
from crawlspace.state.changes import Change
from crawlspace.state.store import Store
from crawlspace.status import Status
from tests.contract.conftest import new
from tests.unit.crawl.test_engine_life import HOME, Web

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

    def plan(self) -> Plan:
        collection = self.collection()
        space = build_space(collection)
        verdicts = KnownUrlDecisions(space, build_global_space(collection))
        return plan(
            self.store,
            verdicts,
            hash=hash_of(collection, space),
            deletion_limit=build_deletion_limit(collection),
            rediscovery=build_rediscovery(collection, space),
        )

    def admits(self, url: str) -> bool:
        """What `explain` says of it."""
        found = explain(Question(url), self.collection(), space=self.space(), store=self.store, clock=self.clock)
        return found.decision.admitted

    def row(self, url: str) -> tuple[State, int | None] | None:
        state = self.store.get(url)
        return None if state is None else (state.state, state.status)


@pytest.fixture
def web(local_store: Store, tmp_path: Path) -> Chain:
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
    web: Chain, title: str, before: dict[str, object], limited: dict[str, object], url: str
) -> None:
    web.settings = before
    web.crawl()
    web.settings = limited
    web.crawl()
    assert web.row(url) == OUT
    web.write(start=f"{HOME}\n{url}")
    assert web.admits(url)
    foretold = web.plan()
    assert url in foretold.examples["returned"]
    web.crawl()
    assert web.row(url) == DONE
    assert not web.plan().has_effect
    assert url in web.sink.documents


def test_what_a_new_start_url_leads_to_comes_back_in_the_same_run(web: Chain) -> None:
    web.crawl()
    web.settings = {"DEPTH_LIMIT": 1}
    web.crawl()
    assert [web.row(url) for url in (B, C, D)] == [OUT, OUT, OUT]
    web.write(start=f"{HOME}\n{B}")
    web.crawl()
    assert [web.row(url) for url in (B, C, D)] == [DONE, DONE, OUT]


def test_a_former_start_url_comes_back_after_the_fix(web: Chain) -> None:
    """A store of the version before: the start URL is at depth 0 already, and out all the same."""
    web.crawl()
    web.settings = {"DEPTH_LIMIT": 1}
    web.crawl()
    state = web.store.get(B)
    assert state is not None
    web.write(start=f"{HOME}\n{B}")
    web.store.discover([new(B, source=Source.USER)], now=int(web.clock.now()))
    assert web.row(B) == OUT
    web.crawl()
    assert web.row(B) == DONE


def test_a_shorter_way_that_a_run_finds_brings_back_what_was_too_far(web: Chain) -> None:
    web.crawl()
    web.settings = {"DEPTH_LIMIT": 1}
    web.crawl()
    web.pages[HOME] = "home with a link"
    web.links[HOME] = [A, B]
    web.crawl(after=31)
    assert [web.row(url) for url in (B, C)] == [DONE, OUT]


@pytest.mark.parametrize("was", [State.DONE, State.FAILED, State.GONE])
def test_a_shorter_way_ends_a_held_deletion_whatever_the_state_of_its_page(web: Chain, was: State) -> None:
    web.crawl()
    state = web.store.get(B)
    assert state is not None
    web.store.record(
        [Change(structs.replace(state, state=was, status=200 if was is State.DONE else 502))], now=int(web.clock.now())
    )
    web.settings = {"DEPTH_LIMIT": 1, "CRAWLSPACE_MAX_DELETIONS": 0, "CRAWLSPACE_MAX_DELETIONS_PERCENT": 0}
    web.crawl()
    assert {"b", "c", "d"} <= web.held().keys()
    web.pages[HOME] = "home with a link"
    web.links[HOME] = [A, B]
    web.crawl(after=31)
    assert web.held().keys() == {"c", "d"}
    assert web.row(B) == DONE
