"""Routes behind # that are followed: each is a URL of its own, in every store, until it is not followed any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlspace.admin.url_changes import UrlChanges, find_url, read_url
from crawlspace.crawl.rendering import Rendering
from crawlspace.frontier.robots import Robots, RobotsVerdict
from crawlspace.model import Held
from crawlspace.state.render_learning import RenderDecision
from crawlspace.state.store import Store
from crawlspace.urls import url_key
from tests.unit.crawl.rule_changes.test_folding import FoldedSite
from tests.unit.crawl.test_engine import HOME

APP = f"{HOME}app"
ABOUT, NEWS, BANG = f"{APP}#/about", f"{APP}#/news", f"{APP}#!about"
FOLLOWED: dict[str, object] = {"CRAWLSPACE_RENDER": "auto", "CRAWLSPACE_HASH_ROUTES": True}
OFF: dict[str, object] = {"CRAWLSPACE_RENDER": "auto"}


@pytest.fixture
def site(tmp_path: Path, store: Store) -> FoldedSite:
    made = FoldedSite(tmp_path, store)
    made.write(start=HOME)
    made.settings = dict(FOLLOWED)
    made.pages = {HOME: "home", APP: "app", ABOUT: "about", NEWS: "news", BANG: "bang", f"{HOME}x": "x"}
    made.links = {HOME: ["/app"], APP: ["#/about", "#!about", "#top", "#/", "/app#/news"], ABOUT: ["x", "#/about", "#/news"]}
    return made


ALL = {"", "app", "app#/about", "app#/news", "app#!about", "x"}


def test_each_route_is_a_url_of_its_own(site: FoldedSite) -> None:
    site.crawl()
    assert site.indexed == ALL
    assert site.depths() == {"": 0, "app": 1, "app#/about": 2, "app#/news": 2, "app#!about": 2, "x": 3}
    about = site.of(ABOUT)
    assert about.site == "a.example:80"
    assert set(site.store.links_of([about.id])[about.id]) == {
        state.key for state in site.store.urls() if state.url in (f"{HOME}x", ABOUT, NEWS)
    }


def test_they_are_not_followed_by_default(site: FoldedSite) -> None:
    site.settings = dict(OFF)
    site.crawl()
    assert site.indexed == {"", "app"}


def test_they_are_found_when_they_are_to_be_followed_later(site: FoldedSite) -> None:
    site.settings = dict(OFF)
    site.crawl()
    site.settings = dict(FOLLOWED)
    site.crawl(after=31)
    assert site.indexed == ALL
    assert (APP, False) in site.asked


@pytest.mark.parametrize(
    "off",
    [OFF, {**FOLLOWED, "CRAWLSPACE_RENDER": "never"}, {"CRAWLSPACE_URL_DROP_PATH_PARAMETERS": []}],
    ids=["off", "never", "bare"],
)
def test_they_leave_when_they_are_not_followed_any_more(site: FoldedSite, off: dict[str, object]) -> None:
    site.crawl()
    site.settings = dict(off)
    plan = site.plan()
    assert (plan.folded, plan.folded_into, plan.deletions) == (3, 1, 0)
    site.crawl()
    assert site.known == {"": "done", "app": "done", "x": "done"}
    assert site.indexed == {"", "app", "x"}
    assert site.plan().folded == 0


def test_a_route_stays_in_the_index_until_its_page_was_fetched(site: FoldedSite) -> None:
    site.write(start=ABOUT)
    site.crawl()
    assert APP not in site.urls()
    site.settings, site.pages[APP] = dict(OFF), 500
    site.crawl()
    assert {"app#/about", "app#/news"} <= site.indexed
    assert {state.held for state in site.store.urls() if "#" in state.url} == {Held.FOLDED}
    site.pages[APP] = "app"
    site.crawl(after=31)
    assert site.indexed == {"app", "x"}


def test_rules_and_limits_are_those_of_the_page(site: FoldedSite) -> None:
    site.crawl()
    site.write(start=HOME, rules=f"forbid prefix {APP}\n")
    site.settings |= {"CRAWLSPACE_MAX_DELETIONS": 100}
    site.crawl()
    assert site.indexed == {"", "x"}


def test_the_host_limit_counts_them(site: FoldedSite) -> None:
    site.settings |= {"CRAWLSPACE_MAX_URLS_PER_HOST": 4}
    site.crawl()
    assert site.indexed == {"", "app", "app#/about", "app#!about"}


def test_equal_routes_are_duplicates(site: FoldedSite) -> None:
    site.pages[BANG] = "about"
    site.crawl()
    assert site.indexed == ALL - {"app#/about"} or site.indexed == ALL - {"app#!about"}


CANONICALS = [
    # the canonical URL that each route names, the one that it has then
    ("/app", None),
    (APP, None),
    ("#top", None),
    ("#/about", ABOUT),
    ("/app#!other", f"{APP}#!other"),
    ("/x", f"{HOME}x"),
]


@pytest.mark.parametrize(("named", "canonical"), CANONICALS)
def test_a_route_is_not_its_page_whatever_the_template_names(site: FoldedSite, named: str, canonical: str | None) -> None:
    site.canonicals = dict.fromkeys((NEWS, BANG), named)
    site.crawl()
    found = {url: state.canonical for url in (NEWS, BANG) if (state := site.store.get(url)) is not None}
    assert found == dict.fromkeys((NEWS, BANG), None if canonical is None else url_key(canonical))


def test_a_redirect_to_another_route_of_the_same_page_is_a_loop(site: FoldedSite) -> None:
    site.redirects = {ABOUT: "/app#/news", NEWS: "/app#/about"}
    site.crawl()
    assert sorted(state.status or 0 for state in site.store.urls() if state.url in (ABOUT, NEWS)) == [301, 691]


def test_a_redirect_leads_to_the_route_of_another_page(site: FoldedSite) -> None:
    site.redirects = {ABOUT: "/new#/about"}
    site.pages[f"{HOME}new#/about"] = "new about"
    site.crawl()
    assert site.indexed == ALL - {"app#/about", "x"} | {"new#/about"}


TYPED = [
    # what is typed, the URL that is meant; None: none that is known
    (ABOUT, "app#/about"),
    (f"{APP}#!about", "app#!about"),
    (f"{APP}#%2Fabout", "app"),
    (f"{APP}#top", "app"),
    (f"{APP}#/other", None),
]


@pytest.mark.parametrize(("typed", "meant"), TYPED)
def test_what_a_person_types_is_the_route(site: FoldedSite, typed: str, meant: str | None) -> None:
    site.crawl()
    found = find_url(site.store, read_url(typed), site.collection().url_folding)
    assert (None if found is None else found.url.removeprefix(HOME)) == meant


def test_a_route_that_is_still_known_is_not_taken_for_its_page(site: FoldedSite) -> None:
    site.crawl()
    site.settings = dict(OFF)
    found = [find_url(site.store, read_url(url), site.collection().url_folding) for url in (ABOUT, f"{APP}#/other")]
    assert [None if one is None else one.url for one in found] == [ABOUT, APP]


def test_a_route_is_rendered_each_time_and_requested_whole(site: FoldedSite) -> None:
    engine = site.crawl()
    rendering = engine.rendering
    assert isinstance(rendering, Rendering)
    for url, decide, conditional in ((APP, RenderDecision.NO, True), (ABOUT, RenderDecision.YES, False)):
        assert rendering.decide(url, needs_browser=False) is decide
        assert rendering.is_conditional(url) is conditional
    site.crawl(after=31)
    asked = dict(site.asked)
    assert {url.removeprefix(HOME): asked[url] for url in (APP, ABOUT, NEWS)} == {
        "app": True,
        "app#/about": False,
        "app#/news": False,
    }


def test_robots_txt_sees_the_page(site: FoldedSite) -> None:
    robots = Robots(site.store, clock=site.clock, user_agent="crawlspace", ttl_s=1e9)
    robots.save("a.example:80", "http", status=200, body="User-agent: *\nDisallow: /*about\nDisallow: /no$\n")
    asked = {url: robots.check(f"{HOME}{url}", site="a.example:80") for url in ("app#/about", "no#/x", "no/x")}
    assert [url for url, answer in asked.items() if answer is RobotsVerdict.FORBIDDEN] == ["no#/x"]


def test_a_forgotten_route_leaves_its_page(site: FoldedSite) -> None:
    site.crawl()
    about = find_url(site.store, read_url(ABOUT), site.collection().url_folding)
    assert about is not None
    UrlChanges(site.store, clock=site.clock).forget([about.id])
    site.crawl()
    assert site.indexed == ALL - {"app#/about"}
