"""Links of pages: what they mean, what of them is new, what is refused, and which refused ones a run notes for the sample."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from crawlspace.cache import Recent
from crawlspace.crawl.admission import MAX_URL, CandidateChecker
from crawlspace.decision import Reason
from crawlspace.model import Candidate, Source
from crawlspace.rules.crawl_rules import parse_crawl_rules
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import CrawlSpace
from crawlspace.state.refused_links import HOSTS_OF_REASON, LINKS_OF_HOST, RefusedLink
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


BASE = "http://a.example/page"
RULES = "allow domain a.example\nforbid domain *\nforbid prefix http://a.example/private/"


@pytest.fixture
def checker() -> CandidateChecker:
    return CandidateChecker(CrawlSpace(parse_crawl_rules(RULES, file="crawl.rules"), Limits(max_link_depth=3), ()))


def noted(checker: CandidateChecker, hrefs: Sequence[str], *, page: int = 1, depth: int = 1) -> list[RefusedLink]:
    """What is noted of a page with these links."""
    checker.sample.begin(page)
    checker.links(hrefs, base=BASE, base_host_as_written=None, depth=depth, page=page)
    return checker.sample.take()


# link -> reason, host, URL, rule
LINKS: list[tuple[str, Reason, str, str, str | None]] = [
    ("http://b.example/x#y", Reason.DOMAIN, "b.example", "http://b.example/x", "crawl.rules:2"),
    ("//B.example:81/x", Reason.DOMAIN, "b.example", "http://B.example:81/x", "crawl.rules:2"),
    ("http://T/x", Reason.DOMAIN, "t", "http://T/x", "crawl.rules:2"),
    ("http://A.example/x", Reason.DOMAIN, "a.example", "http://A.example/x", "crawl.rules:2"),
    ("/private/x", Reason.PREFIX, "a.example", "http://a.example/private/x", "crawl.rules:3"),
    ("mailto:me@b.example", Reason.SCHEME, "", "mailto:me@b.example", None),
    ("http://me:secret@a.example/", Reason.CREDENTIALS, "", "http://…@a.example/", None),
    (" http://[\x1b ", Reason.MALFORMED, "", "http://[\\x1b", None),
    ("ftp://me:secret@b.example/", Reason.SCHEME, "", "ftp://…@b.example/", None),
    ("data:" + "x" * 9_000, Reason.SCHEME, "", "data:" + "x" * (MAX_URL - 6) + "…", None),
]


@pytest.mark.parametrize(("href", "reason", "host", "url", "rule"), LINKS, ids=[row[0][:30] for row in LINKS])
def test_what_is_noted(checker: CandidateChecker, href: str, reason: Reason, host: str, url: str, rule: str | None) -> None:
    assert noted(checker, [href, "/admitted"], page=7) == [RefusedLink(reason, host, url, 7, rule)]


def test_links_that_are_too_deep(checker: CandidateChecker) -> None:
    assert noted(checker, ["/deep"], depth=4) == [RefusedLink(Reason.LINK_DEPTH, "a.example", "http://a.example/deep", 1)]
    assert noted(checker, ["/deep"], depth=4, page=2) == []


def test_a_link_is_noted_once(checker: CandidateChecker) -> None:
    assert len(noted(checker, ["/private/x", "/private/x", "http://a.example/private/x"])) == 1
    assert noted(checker, ["/private/x"], page=2) == []
    assert [link.url for link in noted(checker, ["/private/x", "/private/y"], page=3)] == ["http://a.example/private/y"]


def test_a_page_that_is_read_again(checker: CandidateChecker) -> None:
    first = noted(checker, ["/private/x", "/private/y"])
    assert noted(checker, ["/private/x", "/private/y"]) == first
    assert noted(checker, ["/private/x"]) == first[:1]
    assert noted(checker, []) == []
    assert checker.refused == {Reason.PREFIX: 2}, "each is counted once"


def test_no_more_than_there_is_room_for(checker: CandidateChecker) -> None:
    many = [f"/private/{number}" for number in range(LINKS_OF_HOST + 5)]
    assert len(noted(checker, many)) == LINKS_OF_HOST
    assert len(noted(checker, [f"http://b.example/{number}" for number in range(LINKS_OF_HOST + 5)], page=2)) == LINKS_OF_HOST
    noted(checker, many[:3])
    assert len(noted(checker, [f"/private/later{number}" for number in range(99)], page=3)) == LINKS_OF_HOST - 3
    hosts = [f"http://h{number}.example/" for number in range(HOSTS_OF_REASON + 5)]
    assert len(noted(checker, hosts, page=4)) == HOSTS_OF_REASON - 1
