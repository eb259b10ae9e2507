"""The answer of `scrapy refused`: the sample as it is right after pages and rules have changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crawlspace.admin.explain import Question, explain
from crawlspace.admin.links import links_of
from crawlspace.admin.refused import RefusedForReason, refused_by_reason
from crawlspace.crawl.startup import build_space
from crawlspace.decision import Reason
from crawlspace.status import Status
from tests.stores import LOCAL, new_store
from tests.unit.crawl.test_engine import DAY, HOME, Web

A, B = f"{HOME}a", f"{HOME}b"
OTHER, THIRD = "http://other.example/x", "http://third.example/"
SECRET = f"{HOME}private/x"
RULES = f"allow domain a.example\nforbid domain *\nforbid prefix {HOME}private/\n"


@pytest.fixture(params=LOCAL)
def web(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Web]:
    """Two pages with refused links, crawled once."""
    with new_store(request.param, tmp_path) as store:
        made = Web(tmp_path, store)
        made.pages = {HOME: "home", A: "a", B: "b", OTHER: "other"}
        made.links = {HOME: [A, B], A: [OTHER, SECRET], B: [OTHER, THIRD]}
        made.write(start=HOME, rules=RULES)
        made.crawl()
        yield made


def answer(web: Web, **chosen: object) -> list[RefusedForReason]:
    return refused_by_reason(web.store, build_space(web.collection()), **{"most": None, **chosen})  # type: ignore[arg-type]


def listed(web: Web, **chosen: object) -> set[tuple[str, str, str | None]]:
    """URL, page and rule."""
    return {(one.link.url, one.page.url, one.rule) for row in answer(web, **chosen) for one in row.links}


BEFORE: set[tuple[str, str, str | None]] = {
    (OTHER, A, "crawl.rules:2"),
    (SECRET, A, "crawl.rules:3"),
    (THIRD, B, "crawl.rules:2"),
}


def test_links_with_page_and_rule(web: Web) -> None:
    assert listed(web) == BEFORE
    assert listed(web, reason=Reason.PREFIX) == {(SECRET, A, "crawl.rules:3")}
    assert listed(web, host="other.example") == {(OTHER, A, "crawl.rules:2")}
    assert [(row.reason, row.total, len(row.links), row.others) for row in answer(web)] == [
        (Reason.DOMAIN, 3, 2, 1),
        (Reason.PREFIX, 1, 1, 0),
    ]
    assert [(row.total, row.others) for row in answer(web, host="third.example")] == [(None, 0)]
    assert [(len(row.links), row.others) for row in answer(web, most=1)] == [(1, 2), (1, 0)]


def lose_links(web: Web) -> None:
    web.links[A] = [SECRET]
    web.pages[A] = "a without"
    web.crawl(after=31)


def lose_all(web: Web) -> None:
    web.links.clear()
    web.pages |= {A: "a without", B: "b without", HOME: "home without"}
    web.crawl(after=31)


def be_gone(web: Web) -> None:
    web.pages[A] = 404
    web.crawl(after=31)
    web.crawl(after=31)


def fail(web: Web) -> None:
    web.pages[A] = Status.TIMEOUT
    web.crawl(after=31)


def stay_the_same(web: Web) -> None:
    web.crawl(after=31)
    assert (A, True) in web.asked


def change_rules(web: Web, rules: str) -> None:
    web.write(start=HOME, rules=rules)


def exclude_page(web: Web) -> None:
    change_rules(web, f"forbid prefix {A}\n{RULES}")
    web.crawl(after=31)


CHANGES: list[tuple[str, Callable[[Web], None], set[tuple[str, str, str | None]]]] = [
    ("a page has lost a link that another one has", lose_links, {(SECRET, A, "crawl.rules:3"), (THIRD, B, "crawl.rules:2")}),
    ("pages have lost all links", lose_all, set()),
    ("a page is gone", be_gone, {(THIRD, B, "crawl.rules:2")}),
    ("a page fails for now", fail, BEFORE),
    ("a page has not changed", stay_the_same, BEFORE),
    (
        "another line refuses them, before the next start",
        lambda web: change_rules(web, f"# new\n{RULES}"),
        {(url, page, f"crawl.rules:{int(rule[-1]) + 1}") for url, page, rule in BEFORE if rule},
    ),
    (
        "the rules admit one of them",
        lambda web: change_rules(web, f"allow domain other.example\n{RULES}"),
        {(SECRET, A, "crawl.rules:4"), (THIRD, B, "crawl.rules:3")},
    ),
    (
        "the rules exclude a page",
        exclude_page,
        {(THIRD, B, "crawl.rules:3"), (OTHER, B, "crawl.rules:3"), (A, HOME, "crawl.rules:1")},
    ),
]


@pytest.mark.parametrize(("change", "expected"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_after_a_change(web: Web, change: Callable[[Web], None], expected: set[tuple[str, str, str | None]]) -> None:
    change(web)
    assert listed(web) == expected


def test_pages_that_are_read_again_in_one_run(web: Web) -> None:
    web.settings = {"CRAWLSPACE_CONTINUOUS": True}
    engine = web.open().engine
    for a, b, expected in (
        ([OTHER], [OTHER, THIRD], {(OTHER, A), (THIRD, B)}),
        ([], [OTHER], {(OTHER, B)}),
        ([SECRET, OTHER], [OTHER], {(OTHER, B), (SECRET, A)}),
        ([SECRET], [], {(SECRET, A)}),
    ):
        web.links |= {A: a, B: b}
        web.pages |= {A: f"a {a}", B: f"b {b}"}
        web.clock.advance(31 * DAY)
        web.work(engine)
        assert {(url, page) for url, page, _ in listed(web)} == expected
    engine.close()


def test_too_deep_is_judged_by_the_depth_of_the_page(web: Web) -> None:
    web.settings = {"DEPTH_LIMIT": 1}
    web.links[A], web.pages[A] = [f"{HOME}deep"], "a with more"
    web.crawl(after=31)
    assert listed(web, reason=Reason.LINK_DEPTH) == {(f"{HOME}deep", A, None)}
    space = build_space(web.collection())
    told = explain(Question(f"{HOME}deep"), web.collection(), space=space, store=web.store, clock=web.clock)
    assert (told.decision.reason, told.seen_on) == (Reason.LINK_DEPTH, (A,))
    web.settings = {"DEPTH_LIMIT": 2}
    assert listed(web, reason=Reason.LINK_DEPTH) == set()


def test_the_limit_of_urls_of_a_host(web: Web) -> None:
    web.settings = {"CRAWLSPACE_MAX_URLS_PER_HOST": 4}
    web.links[HOME] = [A, B, f"{HOME}c", f"{HOME}d", f"{HOME}e"]
    web.pages[HOME] = "home with more"
    web.crawl(after=31)
    found = listed(web, reason=Reason.URLS_PER_HOST)
    assert found == {(f"{HOME}d", HOME, None), (f"{HOME}e", HOME, None)}
    web.settings = {}
    assert listed(web, reason=Reason.URLS_PER_HOST) == set()


def test_links_of_a_page_name_those_refused(web: Web) -> None:
    space = build_space(web.collection())
    found = links_of(A, space=space, store=web.store, out=True, incoming=True)
    assert found.out.refused == {Reason.DOMAIN: 1, Reason.PREFIX: 1}
    assert [(one.text, one.decision.reason, one.state) for one in found.refused] == [
        (OTHER, Reason.DOMAIN, None),
        (SECRET, Reason.PREFIX, None),
    ]
    seen = links_of(THIRD, space=space, store=web.store, out=True, incoming=True)
    assert ([one.page.url for one in seen.seen_on], seen.subject.state, list(seen.incoming)) == ([B], None, [])
