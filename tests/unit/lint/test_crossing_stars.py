"""What lint says of a star in a path segment, which matches slashes too."""

from __future__ import annotations

import pytest

from crawlspace.lint.crawl_rules import lint_rules, star_in_segment
from crawlspace.rules.crawl_rules import parse_crawl_rules
from crawlspace.rules.limits import Limits
from crawlspace.rules.prefix import PrefixMatcher
from crawlspace.rules.xml.matcher import CompiledActions
from crawlspace.rules.xml.parser import parse_rules_xml
from crawlspace.urls import parse

# target of a prefix rule -> a URL that it matches over several segments, one that is meant, and what matches only that
CROSSING = [
    ("http://a.b/*fs/*", "http://a.b/a/b/xfs/c", "http://a.b/xfs/c", r"/\[\^/\]\*fs/"),
    ("http://a.b/*fs/", "http://a.b/a/b/xfs/c", "http://a.b/fs/", r"/\[\^/\]\*fs/"),
    ("http://a.b/user*/private/", "http://a.b/usera/b/x/private/c", "http://a.b/user7/private/x", r"/user\[\^/\]\*/private/"),
    ("https://a.b:81/x/v*.*/doc", "https://a.b:81/x/va/b/x.c/doc", "https://a.b:81/x/v1.2/doc", r"/x/v\[\^/\]\*.\[\^/\]\*/doc"),
    ("http://a.b/*/u*y/*.tmp", "http://a.b/c/ua/b/xy/c.tmp", "http://a.b/k/uy/l.tmp", r"/\.\*/u\[\^/\]\*y/\.\*.tmp"),
    ("http://*.b/a*c/", "http://c.b/aa/b/xc/c", "http://a.b/abc/", r"/a\[\^/\]\*c/"),
    ("http://a.b/(x)*.d/", "http://a.b/(x)a/b/x.d/c", "http://a.b/(x)y.d/", r"/(x)\[\^/\]\*.d/"),
]
# without such a star, or where one segment would make no difference
OTHERS = [
    *(
        "http://a.b/x/",
        "http://a.b/*",
        "http://a.b/x*",
        "http://a.b/*/print/",
        "http://a.b/*.pdf",
        "http://a.b/x/*/",
        "http://a.b*",
    ),
    *(
        "http://*.a.b/x/",
        "http://a.b/user*/",
        "http://a.b/user*/*",
        "http://a.b/x*/*/y/",
        "http://a.b/*/*fs/",
        "http://a.b/*fs?x/",
    ),
]


@pytest.mark.parametrize(("target", "also", "meant", "value"), CROSSING)
def test_a_star_in_a_segment(target: str, also: str, meant: str, value: str) -> None:
    rules = parse_crawl_rules(f"forbid prefix {target}", file="crawl.rules").prefix
    assert star_in_segment(rules[0].pattern) == (also, value)
    matcher = PrefixMatcher(rules)
    assert matcher.match(parse(also).text)
    assert matcher.match(parse(meant).text)
    advised = parse_rules_xml(f"<Rules><Rule><Path val='{value}'/><NoIndex/></Rule></Rules>".encode(), file="rules.xml")
    actions = CompiledActions(advised, accept=True, index=True, follow=True)
    assert [actions.evaluate(parse(url)).index for url in (also, meant)] == [True, False]


@pytest.mark.parametrize("target", OTHERS)
def test_other_stars(target: str) -> None:
    [rule] = parse_crawl_rules(f"forbid prefix {target}", file="crawl.rules").prefix
    assert star_in_segment(rule.pattern) is None


def findings(rules: str) -> list[str]:
    found = lint_rules(parse_crawl_rules(rules + "forbid domain *\n", file="crawl.rules"), Limits())
    return [str(one) for one in found if one.code == "star-crosses-slashes"]


def test_lint_names_a_url_and_the_way_out() -> None:
    [finding] = findings("forbid http://sales.ibm.com/*fs/* \n")
    assert finding == (
        "crawl.rules:1:8: warning: the * also matches slashes, so that the rule applies to http://sales.ibm.com/a/b/xfs/c, too; "
        r'for one path segment rules.xml has <Path val="/\[\^/\]\*fs/"/> [star-crosses-slashes]'
    )


def test_many_rules_are_counted() -> None:
    found = findings("".join(f"forbid http://a.b/{number}/*fs/\n" for number in range(10_000)))
    assert len(found) == 11
    assert found[-1] == (
        "crawl.rules:11:8: warning: the * also matches slashes here, and in 9,989 rules after this one [star-crosses-slashes]"
    )
