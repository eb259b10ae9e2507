"""A site that refuses every request, or answers every one with 404, keeps its documents; a section that is really gone leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlspace.config.sinks import EMBEDDED
from crawlspace.model import Held
from crawlspace.status import Status
from tests.contract.memory.store import MemoryStore
from tests.quick import some
from tests.unit.crawl.test_engine_life import HOME, Web

PAGES = 1_169
FEW = 150
AT_ONCE = 10
"""So many documents may leave before it is seen that most of a site answers with 404."""


def site(folder: Path, pages: int, **settings: object) -> Web:
    """A site of so many documents, crawled once; each run comes when all of it is due."""
    web = Web(folder, MemoryStore(sinks=(EMBEDDED,)), **settings)
    names = [f"{HOME}{number:04}" for number in range(pages - 1)]
    web.pages = {HOME: "home", **{name: name[-4:] for name in names}}
    web.links = {HOME: names}
    web.crawl()
    assert len(web.indexed) == pages
    return web


def lost(web: Web, pages: int) -> int:
    return pages - len(web.indexed)


def answer(web: Web, status: int, names: list[str] | None = None) -> None:
    web.pages.update(dict.fromkeys(web.pages if names is None else names, status))


WHOLE_SITE = [
    # what every page answers, whether the home page still answers well, documents lost at most
    ("401", 401, False, 0),
    ("403", 403, False, 0),
    ("404", 404, False, AT_ONCE),
    ("407", 407, False, 0),
    ("451", 451, False, 0),
    ("410", 410, False, AT_ONCE),
    ("403 behind a home page for all", 403, True, 0),
    ("404 behind a home page of the server's own", 404, True, AT_ONCE),
]


@pytest.mark.parametrize("pages", some([FEW, PAGES], 1))
@pytest.mark.parametrize(("title", "status", "has_home", "most"), some(WHOLE_SITE, 3), ids=[row[0] for row in WHOLE_SITE])
def test_a_site_that_answers_so_to_everything(
    tmp_path: Path, title: str, status: int, has_home: bool, most: int, pages: int
) -> None:
    web = site(tmp_path, pages, CRAWLSPACE_MAX_DELETIONS=pages)
    well = dict(web.pages)
    answer(web, status)
    for number in range(15 if has_home else 3):
        if has_home:
            web.pages[HOME] = f"welcome {number}"
        web.crawl(after=31)
        assert len(web.asked) <= pages + 2 * 20, "only a few are tried again in the same run"
    assert lost(web, pages) <= most
    assert set(web.held().values()) == {Held.HOST}
    assert len(web.held()) == pages - lost(web, pages) - has_home
    web.pages = well
    for _ in range(3):
        web.crawl(after=31)
    assert (web.held(), lost(web, pages)) == ({}, 0), "its answers drop what was held, and what had left comes back"


SECTION = [(first, share) for first in (0, 400, 908) for share in ("in a row", "here and there")]


@pytest.mark.parametrize(("first", "share"), some(SECTION, 2))
def test_a_section_that_is_really_gone_leaves_within_two_runs(tmp_path: Path, first: int, share: str) -> None:
    web = site(tmp_path, 1_000)
    names = sorted(web.pages)[1:]
    gone = names[first : first + 90] if share == "in a row" else names[first % 11 :: 11][:90]
    answer(web, 404, gone)
    web.crawl(after=31)
    web.crawl(after=31)
    assert lost(web, 1_000) == 90
    assert web.held() == {}


def test_of_a_large_section_the_rest_is_held_as_too_many(tmp_path: Path) -> None:
    web = site(tmp_path, 1_000)
    answer(web, 404, sorted(web.pages)[301:601])
    web.crawl(after=31)
    assert (lost(web, 1_000), set(web.held().values())) == (AT_ONCE, {Held.HOST})
    web.crawl(after=31)
    assert (lost(web, 1_000), set(web.held().values())) == (AT_ONCE + 100, {Held.MANY})
    web.crawl(after=31)
    assert (lost(web, 1_000), len(web.held())) == (AT_ONCE + 100, 190), "until it is approved"


def test_a_page_that_is_refused_leaves_when_its_site_is_well(tmp_path: Path) -> None:
    web = site(tmp_path, 100)
    answer(web, 403, [f"{HOME}0050"])
    web.crawl(after=31)
    assert lost(web, 100) == 1, "the retry in the same run is refused too, and other pages have answered in between"
    assert web.asked_for(f"{HOME}0050") == 2


SMALL = [
    # pages of a site, documents lost when it answers 404 to everything
    (20, 20),
    (21, AT_ONCE),
]


@pytest.mark.parametrize(("pages", "expected"), SMALL)
def test_a_small_site_may_be_gone_completely(tmp_path: Path, pages: int, expected: int) -> None:
    web = site(tmp_path, pages)
    answer(web, 404)
    for _ in range(3):
        web.crawl(after=31)
    assert lost(web, pages) == expected


def test_what_was_never_indexed_is_not_held(tmp_path: Path) -> None:
    web = Web(tmp_path, MemoryStore(sinks=(EMBEDDED,)))
    names = [f"{HOME}{number}" for number in range(50)]
    web.pages = {HOME: "home", **dict.fromkeys(names[:25], 403)}
    web.links = {HOME: names}
    web.crawl()
    assert len(web.asked) == 51, "nothing is tried again"
    states = [state for state in web.store.urls() if state.url != HOME]
    assert {(state.status, state.held) for state in states} == {(403, None), (404, None)}
    web.crawl(after=31)
    assert [state.url for state in web.store.urls() if state.held is not None] == []


def test_a_request_to_wait_is_no_refusal(tmp_path: Path) -> None:
    web = site(tmp_path, 30)
    answer(web, 429)
    for _ in range(4):
        web.crawl(after=31)
    assert (lost(web, 30), web.held()) == (0, {})


OVERRIDES = [
    # CRAWLSPACE_HTTP_ERRORS, what all pages answer, documents lost after three runs
    ({"403": "KEEP"}, 403, 0),
    ({"404": "DELETE:2"}, 404, 0),
    ({"404": "KEEP"}, 404, 0),
    ({"4xx": "DELETE, RETRY:1"}, 403, 0),
]


@pytest.mark.parametrize(("rules", "status", "expected"), OVERRIDES)
def test_rules_for_errors_do_not_lift_the_hold(tmp_path: Path, rules: dict[str, str], status: int, expected: int) -> None:
    web = site(tmp_path, 100, CRAWLSPACE_HTTP_ERRORS=rules)
    answer(web, status)
    for _ in range(3):
        web.crawl(after=31)
    assert lost(web, 100) == expected


def test_what_is_unreachable_after_it_was_missing_stays_held(tmp_path: Path) -> None:
    web = site(tmp_path, 100)
    answer(web, 404)
    web.crawl(after=31)
    answer(web, int(Status.CONNECT_ERROR))
    web.crawl(after=31)
    assert lost(web, 100) == AT_ONCE
