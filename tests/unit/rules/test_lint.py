"""What lint says of rules that load."""

from __future__ import annotations

import time

import pytest

from crawlspace.decision import RuleRef
from crawlspace.rules.crawl_rules import parse_crawl_rules
from crawlspace.rules.limits import Limits
from crawlspace.rules.lint import Finding, lint_rules
from crawlspace.urls import parse

END = "forbid domain *\n"
ENDS = "forbid address 0.0.0.0 0.0.0.0\nforbid address :: ::\n"

FINDINGS = [
    # rules; line, column and code of each finding
    ("allow domain a\n" + END, []),
    ("allow domain a\nforbid domain a\n" + END, [(2, 15, "never-applies")]),
    ("allow domain a\nallow domain a:80\n" + END, [(2, 14, "never-applies")]),
    ("allow domain a:80\nallow domain a\n" + END, []),
    ("allow domain a:80\nallow domain a:81\n" + END, []),
    ("allow domain *.a\nforbid domain b.a\n" + END, [(2, 15, "never-applies")]),
    ("allow domain *.a\nforbid domain *.b.a\nforbid domain x*y.a\n" + END, [(2, 15, "never-applies"), (3, 15, "never-applies")]),
    ("allow domain *.b.a\nforbid domain *.a\n" + END, []),
    ("allow domain *a*\nforbid domain b*a*c\n" + END, [(2, 15, "never-applies")]),
    ("allow domain a*b\nforbid domain a*\n" + END, []),
    (END + "allow domain a\n", [(2, 14, "never-applies")]),
    ("forbid http://h/a\nallow http://h/a/b\n", [(2, 7, "never-applies")]),
    ("forbid http://h/*/x\nallow http://h/a/x/y\n", [(2, 7, "never-applies")]),
    ("forbid http://h/a/\nallow http://h/\n", []),
    ("allow http://h/*\nforbid http://h/\n", [(2, 8, "never-applies")]),
    ("allow address 9.0.0.0/8\nforbid address 9.1.0.0/16\n" + ENDS, [(2, 16, "never-applies")]),
    ("allow address 9.1.0.0/16\nforbid address 9.0.0.0/8\n" + ENDS, []),
    ("allow address 9.0.1.0 255.0.255.0\nforbid address 9.7.1.1\n" + ENDS, [(2, 16, "never-applies")]),
    ("allow domain a\n", [(1, 14, "no-final-forbid")]),
    ("allow domain a\nforbid domain *:80\n", [(2, 15, "no-final-forbid")]),
    ("allow domain *\n", [(1, 14, "no-final-forbid")]),
    ("allow address 9.0.0.0/8\n", [(1, 15, "no-final-forbid"), (1, 15, "no-final-forbid")]),
    ("forbid address 0.0.0.0 0.0.0.0\n", [(1, 16, "no-final-forbid")]),
    ("allow domain Sales.a\n" + END, [(1, 14, "capitals-in-host")]),
    ("allow http://Sales.a/\n", []),
    ("allow http://*.a/\n", [(1, 7, "open-host")]),
    ("allow http://a.b*\n", [(1, 7, "open-host")]),
    ("forbid http://*.a/\nforbid http://*/x/\nallow http://*/y/\n", []),
    (
        "allow domain a:80\n" + END + "allow http://b/x\nallow http://a/x\nallow https://a/x\n",
        [(3, 7, "host-forbidden"), (5, 7, "host-forbidden")],
    ),
    ("allow domain A\n" + END + "allow http://a/x\n", [(1, 14, "capitals-in-host")]),
]


@pytest.mark.parametrize("rules,expected", FINDINGS)
def test_rules(rules: str, expected: list[tuple[int, int, str]]) -> None:
    assert [(f.line, f.column, f.code) for f in _lint(rules) if f.code != "no-domain-rules"] == expected


UNBOUNDED = [
    # rules, limits, whether nothing keeps the crawl to some hosts
    ("", Limits(), True),
    ("allow http://a/\n", Limits(), True),
    ("allow domain a\n", Limits(), False),
    ("", Limits(follow_offsite_links=False), False),
    ("", Limits(index_entire_site=True), False),
]


@pytest.mark.parametrize("rules,limits,unbounded", UNBOUNDED)
def test_a_crawl_without_domain_rules(rules: str, limits: Limits, unbounded: bool) -> None:
    findings = lint_rules(parse_crawl_rules(rules, file="crawl.rules"), limits, [])
    assert ("no-domain-rules" in [f.code for f in findings]) is unbounded


def test_both_lines_are_named() -> None:
    [finding] = _lint("allow domain *.a\n# between\nforbid domain b.a\n" + END)
    assert str(finding) == (
        "crawl.rules:3:15: warning: 'forbid domain b.a' never applies, because 'allow domain *.a' in line 1 covers it; "
        "to have an effect it must stand before line 1 [never-applies]"
    )


START_URLS = [
    # start URLs; file, line and level of each finding
    (["http://a/"], []),
    (["http://a/", "http://b/"], [("start_urls.txt", 2, "warning")]),
    (["http://b/", "http://c/"], [("start_urls.txt", 1, "error"), ("start_urls.txt", 2, "error")]),
    ([], []),
]


@pytest.mark.parametrize("urls,expected", START_URLS)
def test_start_urls_outside_the_rules(urls: list[str], expected: list[tuple[str, int, str]]) -> None:
    refs = [RuleRef("start_urls.txt", n, url) for n, url in enumerate(urls, 1)]
    findings = _lint("allow domain a\n" + END, *urls, refs=refs)
    assert [(f.file, f.line, f.level) for f in findings] == expected
    assert all("crawl.rules:2 (forbid domain *)" in f.message for f in findings)


def test_a_start_url_without_a_place() -> None:
    [finding] = _lint("allow domain a\n" + END, "http://a/", "http://a/x.png")
    assert str(finding).startswith("start URLs: warning: the start URL http://a/x.png is refused: the file extension")


def test_address_rules_behind_a_proxy() -> None:
    rules = parse_crawl_rules(ENDS, file="crawl.rules")
    assert [f.code for f in lint_rules(rules, Limits(), [], proxy=True)] == ["no-domain-rules", "addresses-with-proxy"]


def test_capitals_do_no_harm_where_case_does_not_count() -> None:
    rules = parse_crawl_rules("allow domain A\nforbid domain a\n" + END, file="crawl.rules")
    assert [f.code for f in lint_rules(rules, Limits(), [], host_case_sensitive=False)] == ["never-applies"]


def test_a_hundred_thousand_rules() -> None:
    lines = [f"forbid domain www{n}.example.com" for n in range(50_000)]
    lines += [f"forbid http://www{n}.example.net/*/x/" for n in range(49_998)]
    begun = time.process_time()
    findings = _lint("\n".join([*lines, "forbid domain www7.example.com", END]))
    assert time.process_time() - begun < 8
    assert [(f.line, f.code) for f in findings if f.code == "never-applies"] == [(99_999, "never-applies")]


def _lint(rules: str, *start_urls: str, refs: list[RuleRef] | None = None) -> list[Finding]:
    parsed = parse_crawl_rules(rules, file="crawl.rules")
    return lint_rules(parsed, Limits(), [parse(url) for url in start_urls], start_refs=refs or [])
