"""Which refused links a run notes for the sample: each once, while there is room, and anew when its page is read again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from crawlspace.crawl.discovery import CandidateChecker
from crawlspace.crawl.refused_sample import MAX_URL
from crawlspace.decision import Reason
from crawlspace.rules.crawl_rules import parse_crawl_rules
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import CrawlSpace
from crawlspace.state.refused_links import HOSTS_OF_REASON, LINKS_OF_HOST, RefusedLink

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
