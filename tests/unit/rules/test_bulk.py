"""What the rules mean for known URLs: status 760, 761, or nothing; and that no answer differs from the crawl space's."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlspace.config.sites import SiteLimitTable, SiteSettings, SiteTable
from crawlspace.decision import Actions, Reason, RuleRef
from crawlspace.model import Status
from crawlspace.rules import bulk as module
from crawlspace.rules.bulk import Verdict, Verdicts
from crawlspace.rules.crawl_rules import CrawlRules, parse_crawl_rules, parse_global_rules
from crawlspace.rules.domain import GlobalSpace
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import ActionRules, CrawlSpace, refused_by_domain_only
from crawlspace.rules.xml.matcher import CompiledActions
from crawlspace.rules.xml.parser import parse_rules_xml
from crawlspace.urls import MalformedUrl, Url, UrlWithCredentials, parse

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
    verdict = _of(Verdicts(_space(LOCAL), _global(global_rules)), url)
    assert (verdict is None) == (status is None)
    if verdict is not None:
        assert (verdict.status, verdict.reason, verdict.rule.line if verdict.rule else 0) == (status, reason, line)


def test_a_domain_rule_sees_the_host_as_written() -> None:
    verdicts = Verdicts(_space("forbid domain Www.example.com"), _global("allow domain Www.*"))
    assert _of(verdicts, "http://www.example.com/") is None
    verdict = _of(verdicts, "http://www.example.com/", host_as_written="Www.example.com")
    assert verdict is not None
    assert verdict.status is Status.EXCLUDED_HERE


DEPTHS = [
    # URL, link depth, status where DEPTH_LIMIT is 2
    ("http://www.example.com/", 2, None),
    ("http://www.example.com/", 3, 760),
    ("http://sales.example.com/", 2, 761),
    ("http://sales.example.com/", 3, 760),
]


@pytest.mark.parametrize("url,depth,status", DEPTHS)
def test_link_depth(url: str, depth: int, status: int | None) -> None:
    verdict = _of(Verdicts(_space(LOCAL, Limits(max_link_depth=2)), _global(GLOBAL)), url, depth=depth)
    assert (verdict and verdict.status) == status


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
    verdict = _of(Verdicts(_space("forbid domain bad.example\nforbid http://*.example/x/", TIGHT), None), url, depth=depth)
    assert (verdict and verdict.reason) == reason


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
    verdicts = Verdicts(_space("", Limits(max_urls_per_host=2), sites={"big.example": Limits(max_urls_per_host=3)}), None)
    for _ in range(2):
        verdicts.begin()
        assert [(url, verdict and verdict.reason) for url, _ in PER_HOST for verdict in [_of(verdicts, url)]] == PER_HOST


def test_one_site_may_be_limited_alone() -> None:
    verdicts = Verdicts(_space("", sites={"big.example": Limits(max_urls_per_host=1)}), None)
    reasons = [verdict and verdict.reason for url, _ in PER_HOST if "zip" not in url for verdict in [_of(verdicts, url)]]
    assert reasons == [None] * 7 + [Reason.URLS_PER_HOST] * 3


@pytest.mark.parametrize(
    "broken,url", [("prefix.PrefixMatcher.match", "/"), ("domain.DomainMatcher.match", "/"), ("urls.parse", "/%7E")]
)
def test_a_check_that_breaks_refuses(
    broken: str, url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    space = _space("forbid prefix http://other.example/")
    where = "crawlspace.rules.space.parse" if broken == "urls.parse" else f"crawlspace.rules.{broken}"
    monkeypatch.setattr(where, _break)
    with caplog.at_level(logging.CRITICAL):
        verdict = _of(Verdicts(space, None), f"http://www.example.com{url}")
    assert verdict == Verdict(Status.EXCLUDED, Reason.CHECK_FAILED, None)


def test_a_global_check_that_breaks_keeps_nothing(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(GlobalSpace, "allows", _break)
    with caplog.at_level(logging.CRITICAL):
        verdict = _of(Verdicts(_space(LOCAL), _global(GLOBAL)), "http://sales.example.com/")
    assert verdict is not None
    assert verdict.status is Status.EXCLUDED


def test_hosts_are_not_remembered_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CACHED_ORIGINS", 3)
    verdicts = Verdicts(_space(LOCAL), None)
    for number in range(20):
        assert _of(verdicts, f"http://www{number}.example.com/") is not None
        assert len(verdicts._origins) <= 3


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
    _of(Verdicts(_space(""), None), url)
    assert (not parsed) is plain


# --- the same answers as the crawl space ---------------------------------------------------------------------------

HOSTS = ["a.example", "B.example", "b.example", "www.a.example", "c.org", "[::1]", "10.0.0.1", "ä.example", "a.example."]
SEGMENTS = [
    "a",
    "b",
    "A",
    "x.html",
    "y.png",
    "..",
    ".",
    "%41",
    "%c3",
    "%C3%A4",
    "%2E",
    "%%34%31",
    "%zz",
    "'",
    " ",
    "ä",
    "",
    "a;v=1",
    "^|",
]
PORTS = ["", "", ":80", ":443", ":8080", ":99999"]
URLS = st.builds(
    lambda scheme, host, port, path, query: (
        f"{scheme}://{host}{port}{path and '/'}{'/'.join(path)}{query}" if path else f"{scheme}://{host}{port}{query}"
    ),
    st.sampled_from(["http", "https", "https", "HTTP", "ftp"]),
    st.sampled_from(HOSTS),
    st.sampled_from(PORTS),
    st.lists(st.sampled_from(SEGMENTS), max_size=7),
    st.sampled_from(["", "", "", "?", "?q=1", "?it's", "?a?b", "?%2e", "#f", "?q=%C3/../x"]),
)
TEXTS = URLS | st.text(max_size=30) | st.text("htps:/\\?#@[]%.*a1B \t", max_size=30).map("http://a.example/".__add__)
DOMAIN_TARGETS = ["a.example", "*.example", "b.example", "B.example", "*:8080", "*", "c.org:443", "[::1]", "10.*"]
PREFIX_TARGETS = ["http://a.example/", "http://a.example/a/", "https://*/a/*b", "http://b.example:8080/x", "http://*/x.html?q"]


CONDITIONS = [
    '<Path val="/a"/>',
    '<Ext val=".html"/>',
    '<Host val="b.example"/>',
    '<Domain val="a.example"/>',
    '<Scheme val="https"/>',
    '<InQuery val="q"/>',
    '<Length field="path" val="[6:]"/>',
    '<Not><Url val="http://a.example/"/></Not>',
]
ACTIONS = ["<Accept/>", "<Ignore/>", "<NoIndex/>", '<Priority shift="1"/>']


@st.composite
def action_rules(draw: st.DrawFn) -> ActionRules:
    """A rules.xml, compiled."""
    rules = draw(st.lists(st.tuples(st.sampled_from(CONDITIONS), st.sampled_from(ACTIONS)), min_size=1, max_size=4))
    text = "\n".join(["<Rules>", *(f"<Rule>{condition}{action}</Rule>" for condition, action in rules), "</Rules>"])
    return CompiledActions(parse_rules_xml(text.encode(), file="rules.xml"), accept=draw(st.booleans()), index=True, follow=True)


@st.composite
def spaces(draw: st.DrawFn) -> tuple[CrawlSpace, GlobalSpace | None]:
    actions = st.sampled_from(["allow", "forbid"])
    domains = draw(st.lists(st.tuples(actions, st.just("domain"), st.sampled_from(DOMAIN_TARGETS)), max_size=4))
    prefixes = draw(st.lists(st.tuples(actions, st.just("prefix"), st.sampled_from(PREFIX_TARGETS)), max_size=3))
    limits = st.builds(
        Limits,
        schemes=st.sampled_from([frozenset({"http", "https"}), frozenset({"https"}), frozenset({"http", "ftp"})]),
        max_url_length=st.sampled_from([2083, 2083, 30]),
        follow_query_strings=st.booleans(),
        max_path_depth=st.sampled_from([None, None, 0, 2]),
        max_link_depth=st.sampled_from([None, 3]),
        follow_offsite_links=st.sampled_from([True, True, False]),
        index_entire_site=st.sampled_from([False, False, True]),
        max_repeated_segments=st.sampled_from([None, 1, 3]),
    )
    sensitive = draw(st.booleans())
    sites = draw(st.sampled_from([{}, {"*.example": draw(limits)}, {"a.example:8080": draw(limits), "c.org": draw(limits)}]))
    space = _space(
        "\n".join(" ".join(rule) for rule in domains + prefixes),
        draw(limits),
        sites=sites,
        host_case_sensitive=sensitive,
        actions=draw(st.none() | st.just(_Even()) | action_rules()),
    )
    rules = draw(st.none() | st.lists(st.tuples(actions, st.just("domain"), st.sampled_from(DOMAIN_TARGETS)), max_size=3))
    return space, None if rules is None else _global("\n".join(" ".join(rule) for rule in rules), case_sensitive=sensitive)


@given(
    spaces(),
    st.lists(st.tuples(TEXTS, st.sampled_from([None, None, "A.example", "B.example", "other"]), st.integers(0, 5)), max_size=12),
)
@settings(max_examples=400, deadline=None)
def test_bulk_and_single_decision_agree_in_answer_reason_and_rule(
    built: tuple[CrawlSpace, GlobalSpace | None], known: Sequence[tuple[str, str | None, int]]
) -> None:
    space, global_space = built
    verdicts = Verdicts(space, global_space)
    for text, host_as_written, depth in known:
        expected = _expected(space, global_space, text, host_as_written, depth)
        assert _of(verdicts, text, host_as_written=host_as_written, depth=depth) == expected, (text, host_as_written, depth)


@given(URLS | st.integers(0, 255).map("http://h/%{0:02X}?%{0:02X}".format))
@settings(max_examples=300, deadline=None)
def test_what_is_taken_for_normal_is_normal(text: str) -> None:
    """And a URL in normal form is nearly always taken for it."""
    verdicts = Verdicts(_space(""), None)
    try:
        normal = parse(text).text
    except MalformedUrl:
        assert verdicts._origin_of(text, None) is None
        return
    assert verdicts._origin_of(text, None) is None or text == normal
    unusual = re.search(r"[' ^|]|/\.|%(?![0-9A-F]{2})", normal) is not None or not normal.startswith("http")
    assert (verdicts._origin_of(normal, None) is not None) is not unusual


@pytest.mark.parametrize("escape", ["%{:02X}", "%{:02x}"])
def test_every_escape(escape: str) -> None:
    verdicts = Verdicts(_space(""), None)
    texts = [f"http://h/x{escape.format(code)}x" for code in range(256)]
    assert [text for text in texts if verdicts._origin_of(text, None) is not None] == [
        text for text in texts if parse(text).text == text
    ]


def _expected(
    space: CrawlSpace, global_space: GlobalSpace | None, text: str, host_as_written: str | None, depth: int
) -> Verdict | None:
    """What the decision about the single URL makes of a known one."""
    try:
        url = parse(text, host_as_written=host_as_written)
    except UrlWithCredentials:
        return Verdict(Status.EXCLUDED, Reason.CREDENTIALS, None)
    except MalformedUrl:
        return Verdict(Status.EXCLUDED, Reason.MALFORMED, None)
    decision = space.decide_url(url, depth=depth)
    if decision.admitted:
        return None
    here = refused_by_domain_only(decision) and global_space is not None and global_space.allows(url) is not None
    return Verdict(Status.EXCLUDED_HERE if here else Status.EXCLUDED, decision.reason, decision.rule)


class _Even:
    """Rules that take every second URL, by the length of its path and query."""

    content_hash = "even"

    def evaluate(self, url: Url) -> Actions:
        return Actions(
            accept=len(url.path + (url.query or "")) % 2 == 0, rule=RuleRef("rules.xml", len(url.host), url.host_as_written)
        )


def _of(verdicts: Verdicts, url: str, *, host_as_written: str | None = None, depth: int = 0) -> Verdict | None:
    try:
        parsed = parse(url)
    except MalformedUrl:
        return verdicts.of(url, site=":0", depth=depth, host_as_written=host_as_written)
    return verdicts.of(url, site=parsed.site, depth=depth, host_as_written=host_as_written)


def _space(
    rules: str,
    limits: Limits | None = None,
    *,
    sites: dict[str, Limits] | None = None,
    host_case_sensitive: bool = True,
    actions: ActionRules | None = None,
) -> CrawlSpace:
    limits = limits or Limits()
    table = SiteTable(SiteSettings(0, 1, limits), {name: SiteSettings(0, 1, own) for name, own in (sites or {}).items()})
    starts = [parse("http://a.example/a/"), parse("http://c.org/"), parse("http://[::1]:8080/")]
    crawl_rules = parse_crawl_rules(rules, file="crawl.rules") if rules else CrawlRules()
    return CrawlSpace(
        crawl_rules,
        limits,
        starts,
        host_case_sensitive=host_case_sensitive,
        actions=actions,
        site_limits=SiteLimitTable(table) if sites else None,
    )


def _global(rules: str | None, *, case_sensitive: bool = True) -> GlobalSpace | None:
    if rules is None:
        return None
    return GlobalSpace(parse_global_rules(rules, file="global.rules"), case_sensitive=case_sensitive)


def _break(*_: object) -> None:
    raise RuntimeError("broken")
