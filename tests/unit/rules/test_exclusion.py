"""Whether known URLs are excluded: their status, the reason, the addresses of their hosts, and what is cached of hosts."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable

import pytest

from crawlspace.decision import Reason
from crawlspace.rules.crawl_rules import parse_crawl_rules, parse_global_rules
from crawlspace.rules.domain import GlobalSpace
from crawlspace.rules.exclusion import Exclusion, KnownUrlDecisions
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import CrawlSpace
from crawlspace.status import Status
from crawlspace.urls import Url, parse
from tests.unit.rules.exclusions import exclusion_of, global_space_of, space_of

LOCAL = """\
allow domain www.example.com
forbid domain *.example.com
forbid prefix http://www.example.com/private/
forbid prefix http://sales.example.com/private/
"""


GLOBAL = """\
forbid domain lost.example.com
allow domain *.example.com
"""


SPEC = [
    # URL, global rules, status, reason, line of the deciding rule
    ("http://www.example.com/", GLOBAL, None, None, 0),
    ("http://elsewhere.org/", GLOBAL, None, None, 0),
    # a local prefix rule or limit
    ("http://www.example.com/private/a", GLOBAL, 760, Reason.PREFIX, 3),
    ("http://www.example.com/a.zip", GLOBAL, 760, Reason.EXTENSION, 0),
    # a local domain rule, no global space
    ("http://sales.example.com/", None, 760, Reason.DOMAIN, 2),
    # a local domain rule, allowed by a global rule
    ("http://sales.example.com/", GLOBAL, 761, Reason.DOMAIN, 2),
    ("http://Sales.example.com/", GLOBAL, 761, Reason.DOMAIN, 2),
    # a local domain rule, not allowed by a global rule
    ("http://lost.example.com/", GLOBAL, 760, Reason.DOMAIN, 2),
    ("http://sales.example.com/", "", 760, Reason.DOMAIN, 2),
    # a local domain rule, and a prefix rule or limit as well
    ("http://sales.example.com/private/a", GLOBAL, 760, Reason.DOMAIN, 2),
    ("http://sales.example.com/a.zip", GLOBAL, 760, Reason.EXTENSION, 0),
    # what should never have got into a store
    ("http://me:secret@www.example.com/", GLOBAL, 760, Reason.CREDENTIALS, 0),
    ("http://[1::2::3]/", GLOBAL, 760, Reason.MALFORMED, 0),
    ("mailto:me@www.example.com", GLOBAL, 760, Reason.SCHEME, 0),
]


@pytest.mark.parametrize("url,global_rules,status,reason,line", SPEC)
def test_the_status_of_a_known_url(url: str, global_rules: str | None, status: int | None, reason: Reason, line: int) -> None:
    exclusion = exclusion_of(KnownUrlDecisions(space_of(LOCAL), global_space_of(global_rules)), url)
    assert (exclusion is None) == (status is None)
    if exclusion is not None:
        assert (exclusion.status, exclusion.reason, exclusion.rule.line if exclusion.rule else 0) == (status, reason, line)


def test_a_domain_rule_sees_the_host_as_written() -> None:
    decisions = KnownUrlDecisions(space_of("forbid domain Www.example.com"), global_space_of("allow domain Www.*"))
    assert exclusion_of(decisions, "http://www.example.com/") is None
    exclusion = exclusion_of(decisions, "http://www.example.com/", host_as_written="Www.example.com")
    assert exclusion is not None
    assert exclusion.status is Status.EXCLUDED_HERE


DEPTHS = [
    # URL, link depth, status where DEPTH_LIMIT is 2
    ("http://www.example.com/", 2, None),
    ("http://www.example.com/", 3, 760),
    ("http://sales.example.com/", 2, 761),
    ("http://sales.example.com/", 3, 760),
]


@pytest.mark.parametrize("url,depth,status", DEPTHS)
def test_link_depth(url: str, depth: int, status: int | None) -> None:
    exclusion = exclusion_of(
        KnownUrlDecisions(space_of(LOCAL, Limits(max_link_depth=2)), global_space_of(GLOBAL)), url, depth=depth
    )
    assert (exclusion and exclusion.status) == status


TIGHT = Limits(
    schemes=frozenset({"http"}),
    max_url_length=30,
    follow_query_strings=False,
    max_path_depth=1,
    max_repeated_segments=1,
    follow_offsite_links=False,
    index_entire_site=True,
    max_link_depth=1,
)


ORDER = [
    # URL, link depth, the first reason; each one breaks the rest of the list as well
    ("https://bad.example/x/x/x/y.zip?q=1", 2, Reason.SCHEME),
    ("http://bad.example/x/x/x/y.zip?q=1", 2, Reason.URL_LENGTH),
    ("http://bad.example/x/x/x.zip?q", 2, Reason.QUERY_STRING),
    ("http://bad.example/x/x/x.zip", 2, Reason.EXTENSION),
    ("http://bad.example/x/x/x", 2, Reason.PATH_DEPTH),
    ("http://bad.example/x/x", 2, Reason.REPEATED_SEGMENTS),
    ("http://bad.example/x/y", 2, Reason.DOMAIN),
    ("http://off.example/x/y", 2, Reason.PREFIX),
    ("http://off.example/z/y", 2, Reason.OFFSITE),
    ("http://c.org/z", 2, Reason.LINK_DEPTH),
    ("http://a.example/z", 2, Reason.FOLDER),
    ("http://a.example/a/z", 2, Reason.LINK_DEPTH),
    ("http://a.example/a/z", 1, None),
]


@pytest.mark.parametrize("url,depth,reason", ORDER)
def test_the_first_refusal_is_the_reason(url: str, depth: int, reason: Reason | None) -> None:
    exclusion = exclusion_of(
        KnownUrlDecisions(space_of("forbid domain bad.example\nforbid http://*.example/x/", TIGHT), None), url, depth=depth
    )
    assert (exclusion and exclusion.reason) == reason


PER_HOST = [
    # URL in order of discovery, reason where a host may have two URLs, and big.example three
    ("http://a.example/1", None),
    ("http://b.example/1", None),
    ("http://a.example/no.zip", Reason.EXTENSION),  # what is refused anyway takes no place
    ("http://a.example:8080/2", None),
    ("http://a.example/3", Reason.URLS_PER_HOST),
    ("http://a.example/%7Ejoe", Reason.URLS_PER_HOST),  # not in normal form
    ("http://b.example/2", None),
    ("http://big.example/1", None),
    ("http://big.example/2", None),
    ("http://big.example/3", None),
    ("http://big.example/4", Reason.URLS_PER_HOST),
]


def test_the_first_discovered_urls_of_a_host_stay() -> None:
    decisions = KnownUrlDecisions(
        space_of("", Limits(max_urls_per_host=2), sites={"big.example": Limits(max_urls_per_host=3)}), None
    )
    for _ in range(2):
        decisions.begin()
        assert [
            (url, exclusion and exclusion.reason) for url, _ in PER_HOST for exclusion in [exclusion_of(decisions, url)]
        ] == PER_HOST


def test_one_site_may_be_limited_alone() -> None:
    decisions = KnownUrlDecisions(space_of("", sites={"big.example": Limits(max_urls_per_host=1)}), None)
    reasons = [
        exclusion and exclusion.reason for url, _ in PER_HOST if "zip" not in url for exclusion in [exclusion_of(decisions, url)]
    ]
    assert reasons == [None] * 7 + [Reason.URLS_PER_HOST] * 3


@pytest.mark.parametrize(
    "broken,url", [("prefix.PrefixMatcher.match", "/"), ("domain.DomainMatcher.match", "/"), ("urls.parse", "/%7E")]
)
def test_a_check_that_breaks_refuses(
    broken: str, url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    space = space_of("forbid prefix http://other.example/")
    where = "crawlspace.rules.space.parse" if broken == "urls.parse" else f"crawlspace.rules.{broken}"
    monkeypatch.setattr(where, _break)
    with caplog.at_level(logging.CRITICAL):
        exclusion = exclusion_of(KnownUrlDecisions(space, None), f"http://www.example.com{url}")
    assert exclusion == Exclusion(Status.EXCLUDED, Reason.CHECK_FAILED, None)


def test_a_global_check_that_breaks_keeps_nothing(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(GlobalSpace, "allows", _break)
    with caplog.at_level(logging.CRITICAL):
        exclusion = exclusion_of(KnownUrlDecisions(space_of(LOCAL), global_space_of(GLOBAL)), "http://sales.example.com/")
    assert exclusion is not None
    assert exclusion.status is Status.EXCLUDED


@pytest.mark.full
def test_hosts_are_not_remembered_without_bound() -> None:
    decisions = KnownUrlDecisions(space_of(LOCAL), None)

    def objects_after(hosts: range) -> int:
        for number in hosts:
            host = f"www{number}.example.com"
            assert decisions.decide(f"http://{host}/", site=f"{host}:80", depth=0, host_as_written=None).exclusion is not None
        return len(gc.get_objects())

    before = len(gc.get_objects())
    of_many = objects_after(range(20_000)) - before
    assert objects_after(range(20_000, 40_000)) - before < 1.3 * of_many


PLAIN = [
    # URL, whether it is decided without being parsed
    ("http://www.example.com/a/b_c-d~e/f.html", True),
    ("https://www.example.com:8443/a?b=c&d=(e)+%C3%A4%2F", True),
    ("http://[::1]/", True),
    ("http://www.example.com:80/", False),
    ("http://www.example.com/%7Ejoe", False),
    ("http://www.example.com/%c3%a4", False),
    ("http://www.example.com/a/../b", False),
    ("http://www.example.com/a?", False),
    ("http://www.example.com/a b", False),
    ("http://www.example.com/a?it's", False),
    ("http://www.example.com/ä", False),
    ("http://www.example.com", False),
    ("http://WWW.example.com/", False),
]


@pytest.mark.parametrize("url,plain", PLAIN)
def test_what_is_plainly_in_normal_form_is_not_parsed(url: str, plain: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def noted(text: str, *, host_as_written: str | None = None) -> Url:
        parsed.append(text)
        return parse(text, host_as_written=host_as_written)

    monkeypatch.setattr("crawlspace.rules.space.parse", noted)
    exclusion_of(KnownUrlDecisions(space_of(""), None), url)
    assert (not parsed) is plain


def _break(*_: object) -> None:
    raise RuntimeError("broken")


# --- by the addresses of hosts --------------------------------------------------------------------------------------


ADDRESSES = {
    "ten.example": ["10.0.0.1"],
    "both.example": ["10.0.0.1", "8.8.8.8"],
    "nat.example": ["64:ff9b::a00:1"],
    "cloud.example": ["169.254.169.254"],
    "mixed.example": ["169.254.169.254", "10.0.0.1"],
    "two.example": ["10.0.0.1", "192.168.0.1"],
}
FORBID = "forbid address 10.0.0.0/8"

# rules, URL -> status and reason; None: inside
ROWS = [
    (FORBID, "http://ten.example/", (760, Reason.ADDRESS, 1)),
    (FORBID, "http://ten.example/unusual/../%61", (760, Reason.ADDRESS, 1)),
    (FORBID, "http://nat.example/", (760, Reason.ADDRESS, 1)),
    (FORBID, "http://10.1.2.3/", (760, Reason.ADDRESS, 1)),
    (FORBID, "http://10.1.2.3:8080/x", (760, Reason.ADDRESS, 1)),
    (FORBID, "http://[::ffff:10.1.2.3]/", (760, Reason.ADDRESS, 1)),
    (FORBID, "http://both.example/", None),
    (FORBID, "http://8.8.8.8/", None),
    (FORBID, "http://unknown.example/", None),
    (f"forbid prefix http://ten.example/x\n{FORBID}", "http://ten.example/x", (760, Reason.PREFIX, 1)),
    (f"forbid domain ten.example\n{FORBID}", "http://ten.example/", (760, Reason.DOMAIN, 1)),
    ("forbid domain ten.example\nallow address 10.0.0.0/8", "http://ten.example/", (761, Reason.DOMAIN, 1)),
    ("", "http://ten.example/", (761, Reason.PRIVATE_ADDRESS, 0)),
    ("allow domain ten.example", "http://ten.example/", None),
    # without the line that allowed the host: refused for the private address, too
    ("forbid domain *", "http://ten.example/", (761, Reason.DOMAIN, 1)),
    ("forbid domain *", "http://ten.example/unusual/../%61", (761, Reason.DOMAIN, 1)),
    ("forbid domain *", "http://10.1.2.3/", (761, Reason.DOMAIN, 1)),
    ("forbid domain *", "http://10.1.2.3:8080/x", (761, Reason.DOMAIN, 1)),
    ("forbid domain *", "http://[::1]/", (761, Reason.DOMAIN, 1)),
    ("forbid domain *", "http://[::ffff:10.1.2.3]/", (761, Reason.DOMAIN, 1)),
    ("allow domain other.example", "http://ten.example/", (761, Reason.PRIVATE_ADDRESS, 0)),
    ("allow domain other.example", "http://ten.example/unusual/../%61", (761, Reason.PRIVATE_ADDRESS, 0)),
    ("allow domain *", "http://ten.example/", (761, Reason.PRIVATE_ADDRESS, 0)),
    ("allow domain *", "http://10.1.2.3/", (761, Reason.PRIVATE_ADDRESS, 0)),
    ("allow domain *", "http://[fd00::1]/", (761, Reason.PRIVATE_ADDRESS, 0)),
    # and for something else: an address that no domain rule would allow, a prefix, a limit, an address rule
    ("forbid domain *", "http://cloud.example/", (760, Reason.DOMAIN, 1)),
    ("", "http://cloud.example/", (760, Reason.PRIVATE_ADDRESS, 0)),
    ("", "http://169.254.169.254/", (760, Reason.PRIVATE_ADDRESS, 0)),
    ("", "http://mixed.example/", (761, Reason.PRIVATE_ADDRESS, 0)),
    ("forbid address 10.0.0.1", "http://two.example/", (761, Reason.PRIVATE_ADDRESS, 0)),
    (f"forbid domain *\n{FORBID}", "http://ten.example/", (760, Reason.DOMAIN, 1)),
    ("forbid domain *\nforbid prefix http://ten.example/x", "http://ten.example/x", (760, Reason.DOMAIN, 1)),
    ("forbid domain *", "http://ten.example/a.zip", (760, Reason.EXTENSION, 0)),
    ("", "http://ten.example/a.zip", (760, Reason.EXTENSION, 0)),
]


@pytest.mark.parametrize(("rules", "url", "expected"), ROWS)
def test_exclusions(rules: str, url: str, expected: tuple[int, Reason, int] | None) -> None:
    decisions = judging(rules)
    exclusion = decisions.decide(url, site=parse(url).site, depth=0, host_as_written=None).exclusion
    if exclusion is None:
        assert expected is None
    else:
        assert (int(exclusion.status), exclusion.reason, exclusion.rule.line if exclusion.rule else 0) == expected


def test_hosts_whose_addresses_are_unknown_are_named() -> None:
    for rules, expected in ((FORBID, {"unknown.example"}), ("", set[str]())):
        decisions = judging(rules)
        for url in ("http://ten.example/", "http://unknown.example/", "http://unknown.example/b", "http://10.0.0.1/"):
            decisions.decide(url, site=parse(url).site, depth=0, host_as_written=None)
        assert decisions.hosts_without_addresses == expected


PROXIED: list[tuple[str, str, bool]] = [
    # rules, URL, whether it stays although its host has an address that they forbid
    (FORBID, "http://ten.example/", True),
    (FORBID, "https://ten.example/", False),
    (FORBID, "http://ten.example:8080/", False),
    (FORBID, "http://ten.example/unusual/../%61", True),
    (FORBID, "https://ten.example/unusual/../%61", False),
    (FORBID, "http://10.1.2.3/", False),
    ("", "http://ten.example/", True),
    ("", "https://ten.example/", False),
]


@pytest.mark.parametrize(("rules", "url", "stays"), PROXIED)
def test_what_goes_through_a_proxy_is_not_judged_by_address(rules: str, url: str, *, stays: bool) -> None:
    """Here a proxy of ten.example for http on port 80."""
    decisions = judging(rules, is_proxied=lambda one: (one.scheme, one.host, one.port) == ("http", "ten.example", 80))
    found = {
        text: decisions.decide(text, site=parse(text).site, depth=0, host_as_written=None).exclusion
        for text in ("http://ten.example/", "https://ten.example/", url)
    }
    assert (found[url] is None) is stays


def judging(
    rules: str, *, is_proxied: Callable[[Url], bool] = lambda _: False, shared: str = "allow domain *\n"
) -> KnownUrlDecisions:
    space = CrawlSpace(parse_crawl_rules(rules, file="crawl.rules"), Limits(), [])
    global_space = GlobalSpace(parse_global_rules(shared, file="global.rules"))
    return KnownUrlDecisions(space, global_space, addresses=lambda host: ADDRESSES.get(host, ()), is_proxied=is_proxied)


@pytest.mark.parametrize(("rules", "url", "expected"), ROWS)
def test_a_host_that_the_global_space_does_not_allow_is_excluded(
    rules: str, url: str, expected: tuple[int, Reason, int] | None
) -> None:
    decisions = judging(rules, shared="forbid domain *\n")
    exclusion = decisions.decide(url, site=parse(url).site, depth=0, host_as_written=None).exclusion
    assert (None if exclusion is None else (int(exclusion.status), exclusion.reason)) == (expected and (760, expected[1]))
