"""Patterns that match the hosts of anybody open no private addresses."""

from __future__ import annotations

import subprocess
import sys

import pytest

from crawlspace.decision import Reason
from crawlspace.lint.crawl_rules import lint_rules
from crawlspace.rules.crawl_rules import parse_crawl_rules
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import CrawlSpace
from crawlspace.urls import parse
from tests.notifications import LONGEST_WAIT_S

# an allow rule, a host that it matches, whether that may be at a private address
RULES = [
    ("allow domain *", "www.example.com", False),
    ("allow domain *.*", "www.example.com", False),
    ("allow domain *.com", "www.example.com", False),
    ("allow domain *.co.uk", "www.example.co.uk", False),
    ("allow domain *.github.io", "evil.github.io", False),
    ("allow domain *.ck", "evil.co.ck", False),
    ("allow domain *e*", "www.example.com", False),
    ("allow domain *.com:80", "www.example.com", False),
    ("allow domain www.example.*", "www.example.evil.com", False),
    ("allow domain *example.com", "evilexample.com", False),
    ("allow domain 10.1.*", "10.1.evil.com", False),
    ("allow domain *.1", "10.0.0.1", False),
    ("allow prefix http://*.*/", "www.example.com", False),
    ("allow prefix http://*.com/", "www.example.com", False),
    ("allow prefix http://www.example.com*", "www.example.com.evil.net", False),
    ("allow domain *.example.com", "www.example.com", True),
    ("allow domain *.Example.com:80", "www.example.com", True),
    ("allow domain *.example.co.uk", "www.example.co.uk", True),
    ("allow domain *.me.github.io", "docs.me.github.io", True),
    ("allow domain www.example.com", "www.example.com", True),
    ("allow domain w*.example.com", "www.example.com", True),
    ("allow domain *.corp", "wiki.corp", True),
    ("allow domain wiki", "wiki", True),
    ("allow domain 10.1.*", "10.1.2.3", True),
    ("allow domain [fd00::*]", "[fd00::1]", True),
    ("allow prefix http://*.example.com/docs/", "www.example.com", True),
    ("allow domain *.com\nallow domain *.example.com", "www.example.com", True),
]


@pytest.mark.parametrize(("rules", "host", "named"), RULES)
def test_private_addresses(rules: str, host: str, *, named: bool) -> None:
    parsed = parse_crawl_rules(rules, file="crawl.rules")
    space = CrawlSpace(parsed, Limits(), [])
    assert space.at_connect(host, 80, "10.0.0.1").reason is (Reason.ADMITTED if named else Reason.PRIVATE_ADDRESS)
    warned = [one.line for one in lint_rules(parsed, Limits()) if one.code == "hosts-of-anybody"]
    quiet = named or rules in {"allow domain *", "allow domain 10.1.*"}
    assert warned == ([] if quiet and "\n" not in rules else [1])


def test_the_list_is_read_only_for_patterns() -> None:
    """It costs half a second."""
    code = (
        "import sys\n"
        "from crawlspace.rules.crawl_rules import parse_crawl_rules\n"
        "from crawlspace.rules.limits import Limits\n"
        "from crawlspace.rules.space import CrawlSpace\n"
        "space = CrawlSpace(parse_crawl_rules('allow domain wiki\\nallow domain *.corp\\n', file=''), Limits(), [])\n"
        "for host in ('wiki', 'elsewhere'): space.at_connect(host, 80, '10.0.0.1')\n"
        "space.at_connect('a.corp', 80, '8.8.8.8')\n"
        "assert 'tldextract' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=LONGEST_WAIT_S)


OTHERS = "forbid domain *"
START = "http://start.example/docs/"
MISSING = [
    # rules, limits, link, whether nothing but a domain rule keeps it out, or that none allows its host
    (OTHERS, Limits(follow_offsite_links=False), "http://gone.example/", True),
    ("", Limits(follow_offsite_links=False), "http://gone.example/", True),
    ("allow domain *", Limits(follow_offsite_links=False), "http://gone.example/", True),
    ("allow domain gone.example", Limits(follow_offsite_links=False), "http://gone.example/", False),
    ("allow domain *.example", Limits(follow_offsite_links=False), "http://gone.example/", False),
    ("allow domain kept.example\nforbid domain *", Limits(follow_offsite_links=False), "http://gone.example/", True),
    ("", Limits(follow_offsite_links=False), "http://gone.example/a.png", False),
    ("forbid prefix http://gone.example/x", Limits(follow_offsite_links=False), "http://gone.example/x", False),
    (OTHERS, Limits(index_entire_site=True), "http://gone.example/docs/", True),
    ("", Limits(index_entire_site=True), "http://gone.example/docs/", True),
    ("", Limits(index_entire_site=True, follow_offsite_links=False), "http://gone.example/docs/", True),
    ("", Limits(index_entire_site=True), "http://start.example/news/", False),
    (OTHERS, Limits(index_entire_site=True), "http://start.example/news/", False),
    (OTHERS, Limits(index_entire_site=True), "http://start.example/docs/", True),
    (OTHERS, Limits(follow_query_strings=False), "http://gone.example/?q", False),
]


@pytest.mark.parametrize("rules,limits,href,expected", MISSING)
def test_refused_because_no_domain_rule_allows_the_host(rules: str, limits: Limits, href: str, expected: bool) -> None:
    space = CrawlSpace(parse_crawl_rules(rules, file="crawl.rules"), limits, [parse(START)])
    url, decision = space.decide(href)
    assert url is not None
    assert space.is_refused_by_domain_only(url, decision) is expected
