"""A host's limit of URLs when pages come and go: only what is in the crawl space counts, and the oldest that is kept out comes back first."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlspace.crawl.sites import KEPT_OUT
from crawlspace.state.store import Store
from tests.unit.crawl.test_engine_life import DAY, HOME
from tests.unit.crawl.test_start_urls_lift_limits import Chain

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
