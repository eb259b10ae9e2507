"""Decisions about known URLs are those of the crawl space, for random rules and URLs."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlspace.decision import Actions, Reason, RuleRef
from crawlspace.rules.domain import GlobalSpace
from crawlspace.rules.exclusion import Exclusion, KnownUrlDecisions
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import CrawlSpace
from crawlspace.rules.xml.matcher import CompiledActions
from crawlspace.rules.xml.model import ActionRuleSet
from crawlspace.rules.xml.parser import parse_rules_xml
from crawlspace.status import Status
from crawlspace.urls import MalformedUrl, Url, UrlWithCredentials, parse
from tests.quick import examples
from tests.unit.rules.exclusions import exclusion_of, global_space_of, space_of

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
def action_rules(draw: st.DrawFn) -> CompiledActions:
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
    space = space_of(
        "\n".join(" ".join(rule) for rule in domains + prefixes),
        draw(limits),
        sites=sites,
        host_case_sensitive=sensitive,
        actions=draw(st.none() | st.just(_Even()) | action_rules()),
    )
    rules = draw(st.none() | st.lists(st.tuples(actions, st.just("domain"), st.sampled_from(DOMAIN_TARGETS)), max_size=3))
    return space, None if rules is None else global_space_of(
        "\n".join(" ".join(rule) for rule in rules), case_sensitive=sensitive
    )


@given(
    spaces(),
    st.lists(st.tuples(TEXTS, st.sampled_from([None, None, "A.example", "B.example", "other"]), st.integers(0, 5)), max_size=12),
)
@settings(max_examples=examples(400), deadline=None)
def test_decisions_about_known_and_single_urls_agree_in_answer_reason_and_rule(
    built: tuple[CrawlSpace, GlobalSpace | None], known: Sequence[tuple[str, str | None, int]]
) -> None:
    space, global_space = built
    decisions = KnownUrlDecisions(space, global_space)
    for text, host_as_written, depth in known:
        expected = _expected(space, global_space, text, host_as_written, depth)
        assert exclusion_of(decisions, text, host_as_written=host_as_written, depth=depth) == expected, (
            text,
            host_as_written,
            depth,
        )


@given(URLS | st.integers(0, 255).map("http://h/%{0:02X}?%{0:02X}".format))
@settings(max_examples=examples(300), deadline=None)
def test_what_is_taken_for_normal_is_normal(text: str) -> None:
    """And a URL in normal form is nearly always taken for it."""
    decisions = KnownUrlDecisions(space_of(""), None)
    try:
        normal = parse(text).text
    except MalformedUrl:
        assert decisions._host_of(text, None) is None
        return
    assert decisions._host_of(text, None) is None or text == normal
    unusual = re.search(r"[' ^|]|/\.|%(?![0-9A-F]{2})", normal) is not None or not normal.startswith("http")
    assert (decisions._host_of(normal, None) is not None) is not unusual


@pytest.mark.parametrize("escape", ["%{:02X}", "%{:02x}"])
def test_every_escape(escape: str) -> None:
    decisions = KnownUrlDecisions(space_of(""), None)
    texts = [f"http://h/x{escape.format(code)}x" for code in range(256)]
    assert [text for text in texts if decisions._host_of(text, None) is not None] == [
        text for text in texts if parse(text).text == text
    ]


def _expected(
    space: CrawlSpace, global_space: GlobalSpace | None, text: str, host_as_written: str | None, depth: int
) -> Exclusion | None:
    """What the decision about the single URL makes of a known one."""
    try:
        url = parse(text, host_as_written=host_as_written)
    except UrlWithCredentials:
        return Exclusion(Status.EXCLUDED, Reason.CREDENTIALS, None)
    except MalformedUrl:
        return Exclusion(Status.EXCLUDED, Reason.MALFORMED, None)
    is_start = url.text in space.start_urls  # it has depth 0, however it was found
    decision = space.decide_url(url, depth=0 if is_start else depth)
    if decision.admitted:
        return None
    here = space.is_refused_by_domain_only(url, decision) and global_space is not None and global_space.allows(url) is not None
    return Exclusion(Status.EXCLUDED_HERE if here else Status.EXCLUDED, decision.reason, decision.rule)


class _Even(CompiledActions):
    """Rules that accept every second URL, by the length of its path and query."""

    def __init__(self) -> None:
        super().__init__(ActionRuleSet(()), accept=True, index=True, follow=True)

    def evaluate(self, url: Url) -> Actions:
        return Actions(
            accept=len(url.path + (url.query or "")) % 2 == 0, rule=RuleRef("rules.xml", len(url.host), url.host_as_written)
        )
