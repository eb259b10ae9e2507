"""Which hosts may be asked for what is no page: as far as the rules speak of hosts, and no further."""

from __future__ import annotations

import pytest

from crawlspace.rules.crawl_rules import parse_crawl_rules
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import CrawlSpace
from crawlspace.urls import parse

START = "http://a.example/docs/"
B = "http://b.example/robots.txt"
OPEN = Limits()

HOSTS = [
    # rules, limits, where to, whether it may be asked
    ("", OPEN, B, True),
    ("", OPEN, "https://b.example:8443/x/robots.txt?y", True),
    # limits of pages don't count
    ("", Limits(exclude_extensions=frozenset({"txt"}), max_path_depth=0), "http://b.example/x/robots.txt", True),
    ("", Limits(follow_query_strings=False, max_url_length=10), "http://b.example/robots?x=1", True),
    # limits of hosts do
    ("", Limits(schemes=frozenset({"https"})), B, False),
    ("", Limits(schemes=frozenset({"https"})), "https://b.example/robots.txt", True),
    ("", Limits(follow_offsite_links=False), B, False),
    ("", Limits(follow_offsite_links=False), "http://a.example:81/robots.txt", True),
    ("", Limits(index_entire_site=True), B, False),
    ("", Limits(index_entire_site=True), "http://a.example/robots.txt", True),
    # domain rules
    ("forbid domain b.example\n", OPEN, B, False),
    ("allow domain a.example\nforbid domain *\n", OPEN, B, False),
    ("allow domain *.example\nforbid domain *\n", OPEN, B, True),
    ("forbid domain b.example:81\n", OPEN, B, True),
    ("forbid domain b.example:81\n", OPEN, "http://b.example:81/", False),
    # prefix rules, where they are about all of a host
    ("forbid prefix http://b.example/\n", OPEN, B, False),
    ("forbid prefix http://b.example/\n", OPEN, "https://b.example/", True),
    ("forbid prefix http://b.example/robots\n", OPEN, B, True),
    ("forbid prefix http://b.example/*.txt\n", OPEN, B, True),
    ("allow prefix http://b.example/docs/\nforbid prefix http://b.example/\n", OPEN, B, True),
    ("allow prefix http://a.example/docs/\nforbid prefix http://*\n", OPEN, B, False),
    ("allow prefix http://*.example/\nforbid prefix http://*\n", OPEN, B, True),
    ("allow prefix http://b.example/docs/\nforbid prefix http://*\nforbid domain b.*\n", OPEN, B, False),
    # address rules hold when the connection is made
    ("forbid address 0.0.0.0/0\n", OPEN, B, True),
]


@pytest.mark.parametrize(("rules", "limits", "url", "may"), HOSTS)
def test_hosts(rules: str, limits: Limits, url: str, may: bool) -> None:
    space = CrawlSpace(parse_crawl_rules(rules, file="crawl.rules"), limits, [parse(START)])
    assert space.may_reach(parse(url)) is may
