"""A host's limit of URLs when pages come and go: only what is in the crawl space counts, and the oldest that is kept out comes back first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlspace.engine import SINK
from crawlspace.host_limit import KEPT_OUT
from crawlspace.state.memory import MemoryStore
from crawlspace.state.sqlite import SqliteStore
from crawlspace.state.store import Store
from tests.unit.test_engine_life import HOME
from tests.unit.test_start_urls_lift_limits import Chain

LIMIT: dict[str, object] = {"CRAWLSPACE_MAX_URLS_PER_HOST": 3, "CRAWLSPACE_MAX_DELETIONS": 100}


@pytest.fixture(params=["memory", "sqlite"])
def web(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Chain]:
    store: Store = MemoryStore(sinks=(SINK,)) if request.param == "memory" else SqliteStore(tmp_path / "state.db", sinks=(SINK,))
    made = Chain(tmp_path, store)
    made.pages = {HOME: "home", **{f"{HOME}{name}": name for name in "abcd"}}
    made.links = {HOME: [f"{HOME}{name}" for name in "abcd"]}
    yield made
    store.close()


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
    web.crawl(after=40)
    assert [conditionally for url, conditionally in web.asked if url == HOME] == [True]


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
    assert not web.store.get_meta(KEPT_OUT)


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
