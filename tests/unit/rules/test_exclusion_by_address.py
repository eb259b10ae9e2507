"""Known URLs are judged by the addresses of their hosts, where those are known."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crawlspace.decision import Reason
from crawlspace.rules.crawl_rules import parse_crawl_rules, parse_global_rules
from crawlspace.rules.domain import GlobalSpace
from crawlspace.rules.exclusion import KnownUrlDecisions
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import CrawlSpace
from crawlspace.urls import Url, parse

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
