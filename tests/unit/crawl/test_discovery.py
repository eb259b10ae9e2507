"""Links of pages: what they mean, what of them is new, and what is refused."""

from __future__ import annotations

import pytest

from crawlspace.cache import Recent
from crawlspace.crawl.discovery import CandidateChecker
from crawlspace.decision import Reason
from crawlspace.model import Candidate, Source
from crawlspace.rules.crawl_rules import parse_crawl_rules
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import CrawlSpace
from crawlspace.urls import parse


def discovery(rules: str = "", **limits: object) -> CandidateChecker:
    space = CrawlSpace(parse_crawl_rules(rules, file="crawl.rules"), Limits(**limits), [parse("http://a.example/")])  # type: ignore[arg-type]
    return CandidateChecker(space)


def found(looking: CandidateChecker, base: str, *hrefs: str, depth: int = 1, written: str | None = None) -> list[str]:
    return [new.url for new in looking.links(hrefs, base=base, base_host_as_written=written, depth=depth).new]


JOINS = [
    # page, link, URL
    ("http://a.example/d/x.html", "y.html", "http://a.example/d/y.html"),
    ("http://a.example/d/x.html", "/y", "http://a.example/y"),
    ("http://a.example/d/x.html", "//b.example/y", "http://b.example/y"),
    ("http://a.example/d/x.html", "?q=1", "http://a.example/d/x.html?q=1"),
    ("http://a.example/d/x.html?q=1", "", "http://a.example/d/x.html?q=1"),
    ("http://a.example/d/x.html?q=1", "  ", "http://a.example/d/x.html?q=1"),
    ("http://a.example/d/x.html", " ?q=1", "http://a.example/d/x.html?q=1"),
    ("http://a.example/d/x.html", "\n#top", "http://a.example/d/x.html"),
    ("http://a.example/d/x.html", "http:?q=1", "http://a.example/d/x.html?q=1"),
    ("http://a.example/d/x.html", "HT\tTP:?q=1", "http://a.example/d/x.html?q=1"),
    ("https://a.example/d/x.html?q=1", "https:#top", "https://a.example/d/x.html?q=1"),
    ("https://a.example/d/x.html", "https:", "https://a.example/d/x.html"),
    ("http://a.example/d/x.html", "http:y.html", "http://a.example/d/y.html"),
    ("http://a.example/d/x.html?p=/a/b", "y", "http://a.example/d/y"),
    ("http://a.example", "y", "http://a.example/y"),
    ("http://a.example/d/", "../../y#top", "http://a.example/y"),
    ("https://a.example/d/", "//b.example/", "https://b.example/"),
    ("http://a.example/d/", "HTTP://B.Example:80/Y", "http://b.example/Y"),
]


@pytest.mark.parametrize(("base", "href", "url"), JOINS)
def test_links_are_resolved_as_in_a_browser_however_often(base: str, href: str, url: str) -> None:
    looking = discovery()
    for other in (
        "http://a.example/other/",
        "https://c.example/d/",
        base.partition("?")[0].removesuffix("x.html") + "other.html",
        base,
        base,
    ):  # what is remembered from elsewhere must not be taken
        looking.links([href], base=other, base_host_as_written=None, depth=1)
    looking.forget_known()
    assert found(looking, base, href) == [url]


def test_a_known_link_is_new_again_only_from_nearer() -> None:
    looking = discovery()
    assert found(looking, "http://a.example/", "/x", depth=3) == ["http://a.example/x"]
    assert found(looking, "http://a.example/", "/x", depth=3) == []
    assert found(looking, "http://a.example/", "/x", depth=4) == []
    assert found(looking, "http://a.example/", "/x", depth=2) == ["http://a.example/x"]


def test_refusals_are_counted_once_for_each_link() -> None:
    looking = discovery("forbid domain b.example\n", max_link_depth=2)
    links = ["http://b.example/1", "http://b.example/2", "/x.png", "http://", "/deep"]
    for _ in range(3):
        found(looking, "http://a.example/", *links, depth=3)
    assert looking.refused == {"domain": 2, "extension": 1, "malformed": 1, "link_depth": 1}


def test_links_beyond_the_depth_limit_are_left_out_and_reported() -> None:
    looking = discovery(max_link_depth=2)
    page = looking.links(["/x"], base="http://a.example/", base_host_as_written=None, depth=3)
    assert (list(page.keys), page.new, page.refused) == ([], [], {Reason.LINK_DEPTH: 1})
    assert found(looking, "http://a.example/", "/x", depth=2) == ["http://a.example/x"]


def test_a_relative_link_has_the_host_as_its_page_was_written() -> None:
    looking = discovery("allow domain A.Example\nforbid domain *\n")
    assert found(looking, "http://a.example/", "/x", written="A.Example") == ["http://a.example/x"]
    assert found(looking, "http://a.example/", "/y", written=None) == []
    assert found(looking, "http://a.example/", "/x", written=None) == []


def test_a_redirect_target_never_gets_around_a_rule() -> None:
    looking = discovery("forbid prefix http://a.example/private/\n")
    target = Candidate("/private/x", Source.REDIR, base="http://a.example/")
    new, url, decision = looking.candidate(target)
    assert new is None
    assert url is not None
    assert str(decision.rule) == "crawl.rules:1"


def test_recent_forgets_the_oldest_and_keeps_the_used() -> None:
    recent: Recent[int, int] = Recent(2)
    for n in (1, 2, 3):
        recent.put(n, n)
    assert recent.get(1) == 1
    recent.put(4, 4)
    assert [recent.get(n) for n in (1, 2, 3, 4)] == [1, None, 3, 4]
