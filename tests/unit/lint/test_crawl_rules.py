"""What lint finds in rules of crawl.rules that load, and stars in path segments, which match slashes too."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest

from crawlspace.decision import RuleRef
from crawlspace.lint.crawl_rules import lint_rules, lint_start_urls, star_in_segment
from crawlspace.lint.finding import Finding
from crawlspace.lint.rules_xml import lint_values
from crawlspace.rules.crawl_rules import parse_crawl_rules
from crawlspace.rules.limits import Limits
from crawlspace.rules.prefix import PrefixMatcher
from crawlspace.rules.space import CrawlSpace
from crawlspace.rules.xml.comparisons import text_of
from crawlspace.rules.xml.matcher import CompiledActions
from crawlspace.rules.xml.model import ActionRule, ActionRuleSet, Atom, Field, Kind, Norm
from crawlspace.rules.xml.parser import parse_rules_xml
from crawlspace.urls import parse
from tests.growth import is_linear

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
    ("allow domain *a*\nforbid domain b*a*c\n" + END, [(1, 14, "hosts-of-anybody"), (2, 15, "never-applies")]),
    ("allow domain a*b\nforbid domain a*\n" + END, [(1, 14, "hosts-of-anybody")]),
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
    ("forbid http://*.pdf\n", [(1, 8, "extension-as-host")]),
    ("forbid http://*.pdf*\n", []),
    ("forbid http://*.a.example\n", []),
    ("allow http://a.b*\n", [(1, 7, "hosts-of-anybody"), (1, 7, "open-host")]),
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


OWN_HOSTS, OWN_FOLDERS = Limits(follow_offsite_links=False), Limits(index_entire_site=True)
UNBOUNDED = [
    # rules, limits, what is said of hosts of which no rule speaks
    ("", Limits(), ["no-domain-rules"]),
    ("", OWN_HOSTS, []),
    ("", OWN_FOLDERS, []),
    ("allow http://a/\n", Limits(), ["no-domain-rules"]),
    ("allow domain a\n", Limits(), ["no-final-forbid"]),
    ("allow domain a\n", OWN_HOSTS, []),
    ("allow domain a\n", OWN_FOLDERS, []),
    ("allow domain a\n" + END, Limits(), []),
    ("allow domain a\nforbid address 0.0.0.0 0.0.0.0\n", OWN_HOSTS, ["no-final-forbid"]),
]


@pytest.mark.parametrize("rules,limits,codes", UNBOUNDED)
def test_a_crawl_that_may_spread(rules: str, limits: Limits, codes: list[str]) -> None:
    assert [f.code for f in lint_rules(parse_crawl_rules(rules, file="crawl.rules"), limits)] == codes


BY_NAME_OR_ADDRESS = [
    # rules, line and code of each finding with CRAWLSPACE_NAMED_HOSTS_ANY_ADDRESS
    ("allow domain a\nallow address 9.0.0.0/8\n" + ENDS, []),
    ("allow http://a/\nallow address 9.0.0.0/8\n" + ENDS, []),
    ("allow domain a\n" + END + "allow address 9.0.0.0/8\n" + ENDS, [(2, "named-hosts")]),
    ("allow domain a\n" + END + ENDS, []),
    ("allow domain a\n" + END, [(1, "named-hosts")]),
    ("", [(1, "named-hosts"), (1, "no-domain-rules")]),
    ("allow address 9.0.0.0/8\n" + ENDS, [(1, "named-hosts")]),
    ("allow domain *\nallow address 9.0.0.0/8\n" + ENDS, [(1, "named-hosts")]),
    ("allow domain a\nallow address 9.0.0.0/8\n", [(1, "named-hosts"), (2, "no-final-forbid"), (2, "no-final-forbid")]),
]


@pytest.mark.parametrize(("rules", "expected"), BY_NAME_OR_ADDRESS)
def test_hosts_by_name_or_by_address(rules: str, expected: list[tuple[int, str]]) -> None:
    found = lint_rules(parse_crawl_rules(rules, file="crawl.rules"), Limits(), of_addresses=True)
    assert [(f.line, f.code) for f in found] == expected


@pytest.mark.parametrize(
    ("rules", "codes"), [("", []), ("allow domain a\n", []), ("allow address 9.0.0.0/8\n", ["no-final-forbid"] * 2)]
)
def test_a_crawl_of_what_rules_xml_accepts_does_not_spread(rules: str, codes: list[str]) -> None:
    found = lint_rules(parse_crawl_rules(rules, file="crawl.rules"), Limits(), accepts_all=False)
    assert [f.code for f in found] == codes


def test_both_lines_are_named() -> None:
    [finding] = _lint("allow domain *.a\n# between\nforbid domain b.a\n" + END)
    assert str(finding) == (
        "crawl.rules:3:15: warning: 'forbid domain b.a' never applies, because 'allow domain *.a' in line 1 covers it; "
        "to have an effect it must come before line 1 [never-applies]"
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
    findings = _lint_start_urls("allow domain a\n" + END, *urls, refs=refs)
    assert [(f.file, f.line, f.level) for f in findings] == expected
    assert all("crawl.rules:2 (forbid domain *)" in f.message for f in findings)


def test_a_start_url_without_a_place() -> None:
    [finding] = _lint_start_urls("allow domain a\n" + END, "http://a/", "http://a/x.png")
    assert str(finding).startswith("start URLs: warning: the start URL http://a/x.png is refused: the file extension")


def test_address_rules_behind_a_proxy() -> None:
    rules = parse_crawl_rules(ENDS, file="crawl.rules")
    found = lint_rules(rules, Limits(), proxied="wiki.example.com, *.example.org")
    assert [f.code for f in found] == ["no-domain-rules", "addresses-with-proxy"]
    assert found[1].message.startswith(
        "address rules are not applied to wiki.example.com, *.example.org: requests go through a proxy"
    )


def test_capitals_do_no_harm_where_case_does_not_count() -> None:
    rules = parse_crawl_rules("allow domain A\nforbid domain a\n" + END, file="crawl.rules")
    assert [f.code for f in lint_rules(rules, Limits(), host_case_sensitive=False)] == ["never-applies"]


NEVER = [
    # conditions; the beginning of what is said of each value
    (
        '<Host val="www.foo.com/a"/>',
        ["'www.foo.com/a' never matches: a host has no scheme, port, path or final dot, in 'Host www.f"],
    ),
    ('<Domain val="foo.com/a"/>', ["'foo.com/a' never matches: a host has no scheme"]),
    ('<Host val="http://foo.com"/>', ["'http://foo.com' never matches: a host has no scheme"]),
    ('<Host val="foo.com:8080"/>', ["'foo.com:8080' never matches: a host has no scheme, port"]),
    ('<Domain val="foo.com."/>', ["'foo.com.' never matches: a host has no scheme, port, path or final dot"]),
    (r'<Host val="www\[0-9\]\+.foo.com/"/>', ["'foo.com/' never matches: a host has no scheme"]),
    ('<Host val="0x7f.1"/>', ["'0x7f.1' never matches: URLs have '127.0.0.1' there"]),
    ('<Host val="[2001:db8:0::1]"/>', ["'[2001:db8:0::1]' never matches: URLs have '[2001:db8::1]' there"]),
    ('<Host val=""/>', ["'' never matches: no URL in normal form has this there"]),
    (r'<Path val="/a\\b"/>', [r"'/a\\b' never matches: a backslash in a path is / in URLs"]),
    (r'<Path val="/a\.\*x\\b"/>', [r"'x\\b' never matches: a backslash in a path is / in URLs"]),
    ('<Path val="cgi-bin/"/>', ["'cgi-bin/' never matches: a path begins with /"]),
    ('<Path val="/a?b"/>', ["'/a?b' never matches: the query is no part of the path"]),
    ('<Path val="/a#b"/>', ["'/a#b' never matches: a rule sees a URL without its fragment"]),
    ('<Path val="/a/../b"/>', ["'/a/../b' never matches: URLs have '/b' there"]),
    ('<Ext val="/.."/>', ["'/..' never matches: no URL in normal form has this there"]),
    ('<InQuery val="a#"/>', ["'a#' never matches: a rule sees a URL without its fragment"]),
    (r'<InQuery val="\(#a\|#\)b"/>', ["'#' never matches: "]),
    ('<Url val="www.foo.com/"/>', ["'www.foo.com/' never matches: a URL begins with http:// or https://"]),
    ('<Url norm="none" val="http://h:80/"/>', ["'http://h:80/' never matches: URLs have 'http://h/' there"]),
    ('<Url val="http://me@h/"/>', ["'http://…@h/' never matches: no URL in normal form has this there"]),
    ('<Atom field="url" kind="prefix" value="http://FOO./"/>', ["'http://foo./' never matches: URLs have 'http://foo/' there"]),
    ('<Atom field="scheme" kind="prefix" value="f"/>', ["'f' never matches: only http and https are crawled"]),
    (r'<Scheme val="ftp\.\*"/>', ["'ftp' never matches: only http and https are crawled"]),
    ('<Length val="[:0]"/>', ["a length of 0 or less never matches: the path of a URL is longer"]),
    ('<Or><Path val="/a"/><Not><Path val="b"/></Not><Host val="c/"/></Or>', ["'b' never matches: ", "'c/' never matches: "]),
    # what may match
    ('<Domain val="0.0.1"/>', []),
    ('<Host norm="none" val="WWW.foo.com"/>', []),
    ('<Host val="bücher.example"/>', []),
    ('<Path val="/a/.."/>', []),
    ('<Path norm="lower" val="/Ä"/>', []),
    ('<Query val=""/>', []),
    ('<InQuery val="\\\\../?"/>', []),
    (r'<InQuery val="\(a\|#\)b"/>', []),
    ('<Url val="http://FOO.com:80"/>', []),
    ('<Atom field="url" kind="prefix" value="http"/>', []),
    ('<Atom field="url" kind="prefix" value="http://foo.com:80"/>', []),
    ('<Atom field="url" kind="suffix" value="/../"/>', []),
    ('<Length val="[:1]"/>', []),
    ('<Atom field="fragment" value="a"/>', []),  # this is told as xml-fragment
]


@pytest.mark.parametrize("condition,received", NEVER, ids=[condition for condition, _ in NEVER])
def test_values_that_never_match(condition: str, received: list[str]) -> None:
    rules = parse_rules_xml(f"<Rules>\n<Rule>{condition}<Index/></Rule></Rules>".encode(), file="rules.xml")
    found = sorted(lint_values(rules), key=str)
    assert [(f.file, f.line, f.code) for f in found] == [("rules.xml", 2, "xml-never-matches")] * len(received)
    assert [f.message[: len(begin)] for f, begin in zip(found, received, strict=True)] == received


URLS = [
    f"http{host}{rest}"
    for host in (
        "://h",
        "s://WWW.Foo.com",
        "://10.1.100.5",
        "://[2001:db8::1:0]",
        "s://xn--bcher-kva.example",
        "://foo.0x.com.:8080",
    )
    for rest in ("", "//x\\y/../z?\\/../'", "/a/.b/..c/%c3%A4%?", "/@a:80/é{}|^`[1]??a=b&c=%2f%20+ü://", "/%2e/%7e;.")
]


@pytest.mark.parametrize("text", URLS)
def test_parts_of_a_url_give_no_warning(text: str) -> None:
    url = parse(text)
    atoms: set[Atom] = set()
    for norm, field in product(Norm, Field):
        part = text_of(field, as_written=norm is Norm.NONE)(url)
        atoms.add(Atom(field, Kind.EXACT, part, norm))
        for cut in range(1, len(part)):
            atoms.update((Atom(field, Kind.PREFIX, part[:cut], norm), Atom(field, Kind.SUFFIX, part[cut:], norm)))
            atoms.update(Atom(field, Kind.INSIDE, part[cut : cut + length], norm) for length in (1, 3, 9))
    rules = ActionRuleSet(tuple(ActionRule(RuleRef("rules.xml", 1, str(atom)), atom, ()) for atom in atoms))
    assert [f.message for f in lint_values(rules)] == []


@pytest.mark.full
def test_looking_at_rules_takes_time_by_their_number() -> None:
    def look_at(number: int) -> None:
        lines = [f"forbid domain www{n}.example.com" for n in range(number // 2)]
        lines += [f"forbid http://www{n}.example.net/*/x/" for n in range(number // 2)]
        findings = _lint("\n".join([*lines, "forbid domain www7.example.com", END]))
        assert [(f.line, f.code) for f in findings if f.code == "never-applies"] == [(number + 1, "never-applies")]

    assert is_linear(look_at, 10_000)


def _lint(rules: str) -> list[Finding]:
    return lint_rules(parse_crawl_rules(rules, file="crawl.rules"), Limits())


def _lint_start_urls(rules: str, *start_urls: str, refs: Sequence[RuleRef] = ()) -> list[Finding]:
    urls = [parse(url) for url in start_urls]
    space = CrawlSpace(parse_crawl_rules(rules, file="crawl.rules"), Limits(), urls)
    return list(lint_start_urls(space, urls, refs))


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
