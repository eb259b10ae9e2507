"""The crawl space as a whole: the order of its checks, its evidence, its safety, and which checks admit more than before."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlspace.decision import Actions, Decision, Reason, RuleRef, Verdict
from crawlspace.rules.crawl_rules import parse_crawl_rules, parse_global_rules
from crawlspace.rules.domain import GlobalSpace
from crawlspace.rules.limits import Limits
from crawlspace.rules.loosened import ALL, Checks, loosened
from crawlspace.rules.space import CrawlSpace
from crawlspace.rules.xml.matcher import CompiledActions
from crawlspace.rules.xml.model import ActionRuleSet
from crawlspace.urls import Url, parse
from tests.quick import examples

IN = Reason.ADMITTED
RULES = """\
forbid domain bad.example
allow domain *.example
allow domain [::1]
forbid domain *
allow prefix http://a.example/open/
forbid prefix http://a.example/closed/
"""
TIGHT = Limits(
    max_url_length=60,
    follow_query_strings=False,
    max_path_depth=5,
    max_link_depth=2,
    follow_offsite_links=False,
    index_entire_site=True,
    max_urls_per_host=10,
)
LONG = "http://a.example/open/" + "x" * 50

STATIC = [
    # link, reason, line of the deciding rule
    ("http://a.example/open/", IN, 5),
    ("open/x", IN, 5),
    ("http://a.example/other", IN, 2),
    ("http://", Reason.MALFORMED, 0),
    ("http://[1::2::3]/", Reason.MALFORMED, 0),
    ("http://www.example.com../", Reason.MALFORMED, 0),
    ("http://www..example.com/", Reason.MALFORMED, 0),
    ("http://.www.example.com/", Reason.MALFORMED, 0),
    ("http://me@a.example/", Reason.CREDENTIALS, 0),
    ("http://me:secret@a.example/", Reason.CREDENTIALS, 0),
    ("mailto:me@a.example", Reason.SCHEME, 0),
    ("javascript:void(0)", Reason.SCHEME, 0),
    ("file:///etc/passwd", Reason.SCHEME, 0),
    ("ftp://a.example/", Reason.SCHEME, 0),
    (LONG, Reason.URL_LENGTH, 0),
    ("?x=1", Reason.QUERY_STRING, 0),
    ("/open/a.PNG", Reason.EXTENSION, 0),
    ("/a/b/c/d/e/f/g", Reason.PATH_DEPTH, 0),
    ("/a/a/a/a", Reason.REPEATED_SEGMENTS, 0),
    ("http://bad.example/", Reason.DOMAIN, 1),
    ("http://elsewhere.net/", Reason.DOMAIN, 4),
    ("/closed/x", Reason.PREFIX, 6),
    ("http://b.example/", Reason.OFFSITE, 0),
    ("http://c.example/", Reason.FOLDER, 0),
    # where several refuse, the first gives the reason
    ("ftp://bad.example/a.png?x", Reason.SCHEME, 0),
    ("http://bad.example/a.png?x", Reason.QUERY_STRING, 0),
    ("http://bad.example/a.png", Reason.EXTENSION, 0),
]


@pytest.mark.parametrize("href,reason,line", STATIC)
def test_every_static_reason(href: str, reason: Reason, line: int) -> None:
    url, decision = _space(RULES, TIGHT).decide(href, base="http://a.example/")
    assert (decision.reason, decision.rule.line if decision.rule else 0) == (reason, line)
    assert (url is None) == (reason in {Reason.MALFORMED, Reason.CREDENTIALS})


DEPTHS = [
    # depth, URLs of the host, reason
    (None, None, IN),
    (2, 9, IN),
    (3, None, Reason.LINK_DEPTH),
    (0, 10, Reason.URLS_PER_HOST),
    (3, 10, Reason.LINK_DEPTH),
]


@pytest.mark.parametrize("depth,host_count,reason", DEPTHS)
def test_depth_and_number(depth: int | None, host_count: int | None, reason: Reason) -> None:
    space = _space(RULES, TIGHT)
    _, decision = space.decide("http://a.example/x", depth=depth, host_count=host_count)
    assert decision.reason is reason
    static = space.decide_static(parse("http://a.example/x"))
    assert space.at_depth(static, depth, host_count) == decision


def test_a_refusal_stays_at_any_depth() -> None:
    _, decision = _space(RULES, TIGHT).decide("http://bad.example/", depth=99, host_count=99)
    assert (decision.reason, decision.rule and decision.rule.line) == (Reason.DOMAIN, 1)


def test_the_trace_holds_every_check_in_order() -> None:
    _, decision = _space(RULES, TIGHT).decide("http://bad.example/closed/a.png", depth=1, host_count=1)
    verdicts = [(str(step.check), step.verdict.value, step.rule.line if step.rule else 0) for step in decision.trace]
    assert verdicts == [
        ("well_formed", "pass", 0),
        ("scheme", "pass", 0),
        ("url_length", "pass", 0),
        ("query_string", "pass", 0),
        ("extension", "refuse", 0),
        ("path_depth", "pass", 0),
        ("repeated_segments", "pass", 0),
        ("domain", "refuse", 1),
        ("prefix", "pass", 0),
        ("offsite", "refuse", 0),
        ("folder", "refuse", 0),
        ("link_depth", "pass", 0),
        ("urls_per_host", "pass", 0),
    ]


WRITTEN = [
    # link, base, the base's host as written, host as written
    ("http://Sales.IBM.com/a", "", None, "Sales.IBM.com"),
    ("http://sales.ibm.com/a", "", "Sales.IBM.com", "Sales.IBM.com"),
    ("/a", "http://sales.ibm.com/", "Sales.IBM.com", "Sales.IBM.com"),
    ("/a", "http://sales.ibm.com/", None, "sales.ibm.com"),
    ("//SALES.ibm.com/a", "http://sales.ibm.com/", "Sales.IBM.com", "SALES.ibm.com"),
    ("  //SALES.ibm.com/a", "https://sales.ibm.com/", None, "SALES.ibm.com"),
    ("http://sales.ibm.com/a", "http://sales.ibm.com/", "Sales.IBM.com", "sales.ibm.com"),
    ("HTTP://OTHER.ibm.com/a", "http://sales.ibm.com/", "Sales.IBM.com", "OTHER.ibm.com"),
    ("http:a", "http://sales.ibm.com/", "Sales.IBM.com", "Sales.IBM.com"),
    ("https:other.ibm.com", "http://sales.ibm.com/", "Sales.IBM.com", "other.ibm.com"),
    ("\\\\OTHER.ibm.com\\a", "http://sales.ibm.com/", "Sales.IBM.com", "OTHER.ibm.com"),
]


@pytest.mark.parametrize("href,base,base_host,written", WRITTEN)
def test_host_as_written(href: str, base: str, base_host: str | None, written: str) -> None:
    url, _ = _space("", Limits()).decide(href, base=base, base_host_as_written=base_host)
    assert url is not None
    assert (url.host_as_written, url.host) == (written, written.lower())


def test_a_scheme_relative_link_keeps_the_scheme() -> None:
    url, _ = _space("", Limits()).decide("//h/a", base="https://sales.ibm.com/")
    assert url is not None
    assert url.text == "https://h/a"


@pytest.mark.parametrize("case_sensitive,reason", [(True, Reason.DOMAIN), (False, IN)])
def test_case_of_hosts(case_sensitive: bool, reason: Reason) -> None:
    rules = parse_crawl_rules("allow domain sales.IBM.com\nforbid domain *", file="crawl.rules")
    space = CrawlSpace(rules, Limits(), [], host_case_sensitive=case_sensitive)
    assert space.decide("http://sales.ibm.com/")[1].reason is reason


@given(st.text(max_size=60) | st.text("htps:/\\\\?#@[]%.*a1 \t\n", max_size=40), st.sampled_from(["", "http://A.example/x/y?z"]))
@settings(max_examples=examples(500), deadline=None)
def test_any_text_gets_a_decision(text: str, base: str) -> None:
    url, decision = _space(RULES, TIGHT).decide(text, base=base, depth=1, host_count=1)
    assert decision.reason is not Reason.CHECK_FAILED
    assert (url is None) == (decision.reason in {Reason.MALFORMED, Reason.CREDENTIALS})


def test_a_check_that_breaks_refuses(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def broken(_: object, __: str) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("crawlspace.rules.prefix.PrefixMatcher.match", broken)
    with caplog.at_level(logging.CRITICAL):
        _, decision = _space(RULES, Limits()).decide("http://a.example/")
        _, refused_before = _space(RULES, Limits()).decide("http://bad.example/")
    assert decision.reason is Reason.CHECK_FAILED
    assert ("prefix", Verdict.REFUSE, None) in decision.trace
    assert refused_before.reason is Reason.DOMAIN


def test_a_limit_that_breaks_refuses(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def broken(_: str) -> str:
        raise RuntimeError("broken")

    monkeypatch.setattr("crawlspace.rules.space.extension", broken)
    monkeypatch.setattr("crawlspace.rules.space.parse", broken)
    with caplog.at_level(logging.CRITICAL):
        assert _space("", Limits()).decide_static(parse("http://h/")).reason is Reason.CHECK_FAILED
        url, decision = _space("", Limits()).decide("http://h/")
    assert (url, decision.reason) == (None, Reason.CHECK_FAILED)


class _Flags(CompiledActions):
    """Rules with the same actions for every URL."""

    def __init__(self, rule_actions: Actions | None, content_hash: str = "1") -> None:
        super().__init__(ActionRuleSet(()), accept=True, index=True, follow=True)
        self._actions = rule_actions
        self.content_hash = content_hash

    def evaluate(self, url: Url) -> Actions:
        if self._actions is None:
            raise RuntimeError(url.text)
        return self._actions


ACTIONS = [
    # what the action rules say, reason, index, follow, shift
    (Actions(), IN, True, True, 0),
    (Actions(index=False, shift=-2), IN, False, True, -2),
    (Actions(follow=False, rule=RuleRef("rules.xml", 9, "Accept")), IN, True, False, 0),
    (Actions(accept=False), Reason.ACTIONS, True, True, 0),
    (None, Reason.CHECK_FAILED, True, True, 0),
]


@pytest.mark.parametrize("rule_actions,reason,index,follow,shift", ACTIONS)
def test_action_rules(
    rule_actions: Actions | None, reason: Reason, index: bool, follow: bool, shift: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.CRITICAL):
        space = CrawlSpace(parse_crawl_rules(RULES, file="crawl.rules"), Limits(), [], actions=_Flags(rule_actions))
        _, decision = space.decide("http://a.example/")
    assert (decision.reason, decision.index, decision.follow, decision.shift) == (reason, index, follow, shift)
    assert [str(step.check) for step in decision.trace][8:11] == ["prefix", "rules_xml", "offsite"]
    if rule_actions is not None and rule_actions.rule:
        assert decision.rule == rule_actions.rule


CONNECT = [
    # rules, host, address, reason, line of the deciding rule. The start URLs are on start.example and [::1].
    ("", "www.example", "8.8.8.8", IN, 0),
    ("", "www.example", "2606:4700::1", IN, 0),
    ("", "www.example", "10.0.0.1", Reason.PRIVATE_ADDRESS, 0),
    ("", "www.example", "127.0.0.1", Reason.PRIVATE_ADDRESS, 0),
    ("", "www.example", "0.0.0.0", Reason.PRIVATE_ADDRESS, 0),
    ("", "www.example", "172.16.9.9", Reason.PRIVATE_ADDRESS, 0),
    ("", "www.example", "192.168.1.1", Reason.PRIVATE_ADDRESS, 0),
    ("", "www.example", "100.64.0.1", Reason.PRIVATE_ADDRESS, 0),
    ("", "www.example", "224.0.0.1", Reason.PRIVATE_ADDRESS, 0),
    ("", "www.example", "255.255.255.255", Reason.PRIVATE_ADDRESS, 0),
    ("", "www.example", "::", Reason.PRIVATE_ADDRESS, 0),
    ("", "www.example", "::1", Reason.PRIVATE_ADDRESS, 0),
    ("", "www.example", "fd00::1", Reason.PRIVATE_ADDRESS, 0),
    ("", "www.example", "ff02::1", Reason.PRIVATE_ADDRESS, 0),
    ("", "www.example", "2001:db8::1", Reason.PRIVATE_ADDRESS, 0),
    ("", "www.example", "::ffff:127.0.0.1", Reason.PRIVATE_ADDRESS, 0),
    ("", "www.example", "64:ff9b::10.0.0.1", Reason.PRIVATE_ADDRESS, 0),
    ("", "www.example", "64:ff9b::8.8.8.8", IN, 0),
    ("", "www.example", "2002:0a00:0001::1", Reason.PRIVATE_ADDRESS, 0),
    ("", "www.example", "::127.0.0.1", Reason.PRIVATE_ADDRESS, 0),
    # start hosts reach internal addresses, metadata services they don't
    ("", "start.example", "10.0.0.1", IN, 0),
    ("", "START.example", "::1", IN, 0),
    ("", "[::1]", "::1", IN, 0),
    ("", "::1", "::1", IN, 0),
    ("", "start.example", "169.254.169.254", Reason.PRIVATE_ADDRESS, 0),
    ("", "start.example", "::ffff:169.254.169.254", Reason.PRIVATE_ADDRESS, 0),
    ("", "start.example", "64:ff9b::169.254.169.254", Reason.PRIVATE_ADDRESS, 0),
    ("", "start.example", "100.100.100.200", Reason.PRIVATE_ADDRESS, 0),
    ("", "start.example", "168.63.129.16", Reason.PRIVATE_ADDRESS, 0),
    ("", "start.example", "fe80::1", Reason.PRIVATE_ADDRESS, 0),
    ("", "start.example", "fe80::1%eth0", Reason.PRIVATE_ADDRESS, 0),
    ("", "start.example", "fd00:ec2::254", Reason.PRIVATE_ADDRESS, 0),
    # so do hosts that an allow rule names, but not all hosts
    ("allow domain *.intra.example", "www.intra.example", "10.0.0.1", IN, 1),
    ("allow domain *.Intra.example", "www.intra.example", "10.0.0.1", IN, 1),
    ("allow domain *.intra.example", "www.example", "10.0.0.1", Reason.PRIVATE_ADDRESS, 0),
    ("allow domain www.example:80", "www.example", "10.0.0.1", IN, 1),
    ("allow domain www.example:81", "www.example", "10.0.0.1", Reason.PRIVATE_ADDRESS, 0),
    ("allow domain *", "www.example", "10.0.0.1", Reason.PRIVATE_ADDRESS, 0),
    ("allow domain *:80", "www.example", "10.0.0.1", Reason.PRIVATE_ADDRESS, 0),
    ("forbid domain www.example", "www.example", "10.0.0.1", Reason.PRIVATE_ADDRESS, 0),
    ("allow http://www.example/docs/", "www.example", "10.0.0.1", IN, 1),
    ("allow http://*.example/docs/", "www.example", "10.0.0.1", IN, 1),
    ("allow http://*/docs/", "www.example", "10.0.0.1", Reason.PRIVATE_ADDRESS, 0),
    ("allow http://*", "www.example", "10.0.0.1", Reason.PRIVATE_ADDRESS, 0),
    ("forbid http://www.example/", "www.example", "10.0.0.1", Reason.PRIVATE_ADDRESS, 0),
    ("allow domain [fd00::1]", "[fd00::1]", "fd00::1", IN, 1),
    ("allow domain www.example", "www.example", "169.254.169.254", Reason.PRIVATE_ADDRESS, 0),
    # address rules have the last word
    ("allow address 10.0.0.0 255.0.0.0", "www.example", "10.0.0.1", IN, 1),
    ("allow address 169.254.169.254", "www.example", "169.254.169.254", IN, 1),
    ("forbid address 10.0.0.0 255.0.0.0", "start.example", "10.0.0.1", Reason.ADDRESS, 1),
    ("allow address 9.0.0.0/8\nforbid address 0.0.0.0/0", "start.example", "10.0.0.1", Reason.ADDRESS, 2),
    ("", "www.example", "no address", Reason.CHECK_FAILED, 0),
]


@pytest.mark.parametrize("rules,host,address,reason,line", CONNECT)
def test_connections(rules: str, host: str, address: str, reason: Reason, line: int) -> None:
    space = _space(rules, Limits(), "http://start.example/", "http://[::1]:8080/")
    decision = space.at_connect(host, 80, address)
    assert (decision.reason, decision.rule.line if decision.rule else 0) == (reason, line)
    assert space.has_address_rules == ("address" in rules)


HEADERS = [
    # Content-Type, given by the bytes themselves, reason
    ("text/html; charset=utf-8", False, IN),
    ("image/png", False, Reason.MIME_TYPE),
    (None, False, IN),
    ("application/octet-stream", False, IN),
    ("application/octet-stream", True, Reason.MIME_TYPE),
]


@pytest.mark.parametrize("content_type,conclusive,reason", HEADERS)
def test_headers(content_type: str | None, conclusive: bool, reason: Reason) -> None:
    assert _space("", Limits()).at_headers(content_type, site="a.example:80", conclusive=conclusive).reason is reason


ONLY_DOMAIN = [
    # link, whether nothing but domain rules keeps it out
    ("http://bad.example/", True),
    ("http://a.example/", False),
    ("http://a.example/closed/", False),
    ("http://bad.example/a.png", False),
]


@pytest.mark.parametrize("href,expected", ONLY_DOMAIN)
def test_refused_by_domain_rules_alone(href: str, expected: bool) -> None:
    url, decision = (space := _space(RULES, Limits())).decide(href)
    assert url is not None
    assert space.is_refused_by_domain_only(url, decision) is expected


def test_a_prefix_rule_behind_a_domain_rule_counts_too() -> None:
    space = _space("forbid domain *\nforbid http://h/x", Limits())
    assert space.decide("http://h/x")[1].reason is Reason.DOMAIN
    assert not space.is_refused_by_domain_only(parse("http://h/x"), space.decide("http://h/x")[1])


@pytest.mark.parametrize("url,line", [("http://a.example/", 1), ("http://b.example/", 0), ("http://c.example/", 0)])
def test_global_space(url: str, line: int) -> None:
    space = GlobalSpace(parse_global_rules("allow domain a.example\nforbid domain b.example", file="global.rules"))
    rule = space.allows(parse(url))
    assert (rule.ref.line if rule else 0) == line


BASE = "allow domain a\nforbid http://h/x\nallow address 9.0.0.0/8"
SAME = [
    "# comment\n\nallow domain a\nforbid http://h/x\nallow address 9.0.0.0/8\n",
    "forbid http://H:80/x*\nALLOW address 9.1.2.3 255.0.0.0\nallow  domain  a",
]
DIFFERENT = [
    "",
    "forbid domain a\nforbid http://h/x\nallow address 9.0.0.0/8",
    "allow domain A\nforbid http://h/x\nallow address 9.0.0.0/8",
    "allow domain a:80\nforbid http://h/x\nallow address 9.0.0.0/8",
    "allow domain a\nallow domain b\nforbid http://h/x\nallow address 9.0.0.0/8",
    "allow domain a\nforbid http://h/X\nallow address 9.0.0.0/8",
    "allow domain a\nforbid http://h/x\nallow address 9.0.0.0/9",
]


def test_the_content_hash_differs_where_decisions_could() -> None:
    base = _space(BASE, Limits(), "http://s/a/")
    assert {_space(text, Limits(), "http://s/a/").content_hash for text in SAME} == {base.content_hash}
    others = [_space(text, Limits(), "http://s/a/").content_hash for text in DIFFERENT]
    changed: list[dict[str, Any]] = [
        {"schemes": frozenset({"http"})},
        {"max_url_length": 99},
        {"follow_query_strings": False},
        {"exclude_extensions": frozenset({"png"})},
        {"mime_types": ("text/html",)},
        {"max_path_depth": 3},
        {"max_link_depth": 3},
        {"follow_offsite_links": False},
        {"index_entire_site": True},
        {"max_repeated_segments": None},
        {"max_urls_per_host": 3},
    ]
    others += [_space(BASE, replace(Limits(), **change), "http://s/a/").content_hash for change in changed]
    others.append(_space(BASE, Limits(), "http://t/a/").content_hash)
    rules = parse_crawl_rules(BASE, file="crawl.rules")
    others.append(CrawlSpace(rules, Limits(), [parse("http://s/a/")], host_case_sensitive=False).content_hash)
    others += [CrawlSpace(rules, Limits(), [parse("http://s/a/")], actions=_Flags(Actions(), h)).content_hash for h in "12"]
    assert len({base.content_hash, *others}) == 1 + len(others)


def test_the_folder_of_a_start_url_counts_only_where_it_limits() -> None:
    for limits, same in ((Limits(), True), (Limits(index_entire_site=True), False)):
        one, other = (_space("", limits, url).content_hash for url in ("http://s/a/", "http://s/b/"))
        assert (one == other) is same


def test_a_decision_is_a_value() -> None:
    space = _space(RULES, Limits())
    one, other = (space.decide_url(parse("http://a.example/open/")) for _ in range(2))
    assert one == other
    assert isinstance(one, Decision)


def _space(rules: str, limits: Limits, *start_urls: str) -> CrawlSpace:
    starts = start_urls or ("http://a.example/", "http://c.example/docs/", "http://bad.net/")
    return CrawlSpace(parse_crawl_rules(rules, file="crawl.rules"), limits, [parse(url) for url in starts])


# --- which checks admit more than before ----------------------------------------------------------------------------


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
    ("extensions of sites", {}, {"site_extensions": "x"}, {Reason.EXTENSION}),
    ("types of sites", {"site_types": "x"}, {}, {Reason.MIME_TYPE}),
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
