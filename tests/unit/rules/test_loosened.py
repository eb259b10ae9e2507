"""Which checks admit more than before, as a table of two configurations."""

from __future__ import annotations

from typing import Any

import pytest

from crawlspace.decision import Reason
from crawlspace.rules.crawl_rules import parse_crawl_rules
from crawlspace.rules.limits import Limits
from crawlspace.rules.loosened import ALL, Checks, loosened
from crawlspace.urls import parse

DOMAINS = "allow domain a.example\nforbid domain *\n"


def described(
    rules: str = DOMAINS, *, starts: str = "http://a.example/x/", limits: dict[str, Any] | None = None, **values: Any
) -> str:
    usual: dict[str, Any] = {
        "host_case_sensitive": True,
        "accept": "",
        "sites": "",
        "folding": None,
        "redirects": 10,
        "page_links": 10_000,
        "robots": True,
        "meta_robots": True,
    }
    urls = [parse(url) for url in starts.split()]
    return Checks(
        rules=parse_crawl_rules(rules, file="crawl.rules"),
        limits=Limits(**(limits or {})),
        start_urls=urls,
        **{**usual, **values},
    ).described()


CHANGES: list[tuple[str, dict[str, Any], dict[str, Any], set[Reason]]] = [
    ("nothing", {}, {}, set()),
    ("a comment", {}, {"rules": f"# new\n{DOMAINS}"}, set()),
    ("one more host", {}, {"rules": f"allow domain b.example\n{DOMAINS}"}, {Reason.DOMAIN}),
    ("one host less", {"rules": f"allow domain b.example\n{DOMAINS}"}, {}, set()),
    ("one more that is forbidden", {}, {"rules": f"forbid domain b.example\n{DOMAINS}"}, set()),
    ("one less", {"rules": f"forbid domain b.example\n{DOMAINS}"}, {}, {Reason.DOMAIN}),
    ("another order", {}, {"rules": "forbid domain *\nallow domain a.example\n"}, {Reason.DOMAIN}),
    ("no catch-all", {}, {"rules": "allow domain a.example\n"}, {Reason.DOMAIN}),
    ("a prefix forbidden", {}, {"rules": f"{DOMAINS}forbid prefix http://a.example/y/\n"}, set()),
    ("a prefix freed", {"rules": f"{DOMAINS}forbid prefix http://a.example/y/\n"}, {}, {Reason.PREFIX}),
    ("case", {}, {"host_case_sensitive": False}, {Reason.DOMAIN}),
    ("a longer URL", {}, {"limits": {"max_url_length": 4000}}, {Reason.URL_LENGTH}),
    ("a shorter URL", {}, {"limits": {"max_url_length": 1000}}, set()),
    ("a limit of depth", {}, {"limits": {"max_link_depth": 3}}, set()),
    ("a larger one", {"limits": {"max_link_depth": 3}}, {"limits": {"max_link_depth": 4}}, {Reason.LINK_DEPTH}),
    ("none", {"limits": {"max_link_depth": 3}}, {}, {Reason.LINK_DEPTH}),
    ("path depth", {"limits": {"max_path_depth": 1}}, {"limits": {"max_path_depth": 2}}, {Reason.PATH_DEPTH}),
    ("queries", {"limits": {"follow_query_strings": False}}, {}, {Reason.QUERY_STRING}),
    ("no queries", {}, {"limits": {"follow_query_strings": False}}, set()),
    ("a scheme less", {}, {"limits": {"schemes": frozenset({"https"})}}, set()),
    ("a scheme more", {"limits": {"schemes": frozenset({"https"})}}, {}, {Reason.SCHEME}),
    ("an extension freed", {}, {"limits": {"exclude_extensions": frozenset()}}, {Reason.EXTENSION}),
    ("a type more", {"limits": {"mime_types": ("text/html",)}}, {}, {Reason.MIME_TYPE}),
    ("other hosts", {"limits": {"follow_offsite_links": False}}, {}, {Reason.OFFSITE}),
    ("whole hosts", {"limits": {"index_entire_site": True}}, {}, {Reason.FOLDER}),
    (
        "a start URL of another host",
        {"limits": {"follow_offsite_links": False}},
        {"limits": {"follow_offsite_links": False}, "starts": "http://a.example/x/ http://b.example/"},
        {Reason.OFFSITE, Reason.FOLDER},
    ),
    ("more pages of a host", {"limits": {"max_urls_per_host": 5}}, {}, {Reason.URLS_PER_HOST}),
    ("repeated segments", {}, {"limits": {"max_repeated_segments": None}}, {Reason.REPEATED_SEGMENTS}),
    ("rules.xml", {}, {"accept": "x"}, {Reason.ACTIONS}),
    ("limits of sites", {}, {"sites": "x"}, {Reason.PATH_DEPTH, Reason.QUERY_STRING, Reason.URLS_PER_HOST}),
    ("more redirects", {}, {"redirects": 20}, {Reason.REDIRECTS}),
    ("more links", {}, {"page_links": 20_000}, {Reason.PAGE_LINKS}),
    ("robots.txt ignored", {}, {"robots": False}, {Reason.ROBOTS}),
    ("robots.txt obeyed", {"robots": False}, {}, set()),
    ("noindex ignored", {}, {"meta_robots": False}, {Reason.NOINDEX}),
]


@pytest.mark.parametrize(("before", "now", "reasons"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_what_admits_more(before: dict[str, Any], now: dict[str, Any], reasons: set[Reason]) -> None:
    assert loosened(described(**before), described(**now)) == reasons


@pytest.mark.parametrize("before", ["", "{", "[]", '{"format": 1}', '{"format": 99}'])
def test_all_where_it_is_not_known_how_they_were(before: str) -> None:
    assert loosened(before, described()) == ALL


def test_a_list_that_is_too_long_to_be_compared() -> None:
    many = "".join(f"allow domain h{number}.example\n" for number in range(5_001))
    assert len(described(many)) < 3_000
    assert loosened(described(many), described(many)) == set()
    assert loosened(described(many), described(f"{many}forbid domain *\n")) == {Reason.DOMAIN}
