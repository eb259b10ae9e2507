"""The compiled matchers agree with a plain scan, whatever the rules."""

from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crawlspace.decision import RuleRef
from crawlspace.rules.address import AddressMatcher
from crawlspace.rules.crawl_rules import AddressRule, CrawlRules, DomainRule, PrefixRule, RuleAction, parse_crawl_rules
from crawlspace.rules.domain import DomainMatcher
from crawlspace.rules.limits import Limits
from crawlspace.rules.patterns import NO_MATCH, Budget, LongestPrefix, PatternIndex
from crawlspace.rules.prefix import PrefixMatcher
from crawlspace.rules.space import CrawlSpace
from tests.growth import is_linear
from tests.quick import examples, some

REF = RuleRef("crawl.rules", 1, "")
patterns = st.lists(st.text("ab*", max_size=8), max_size=60)
texts = st.lists(st.text("ab", max_size=10), min_size=1, max_size=10)
hosts = st.text("aB.", min_size=1, max_size=6)
host_patterns = st.text("aB.*", min_size=1, max_size=6).map(lambda host: re.sub(r"\*+", "*", host))
ports = st.sampled_from([80, 443, 8080])
prefix_patterns = st.text("ab/*?", max_size=7).map(lambda path: re.sub(r"\*+", "*", f"http://h/{path}").rstrip("*"))
addresses = st.integers(0, 255)


@given(patterns, texts)
@example(["a*b*a" + "b" * n for n in range(40)], ["abbabbbb", "a", "aa"])
@example(["*a*" + "b" * n + "*" for n in range(40)], ["abbb", "bbba"])
@settings(max_examples=examples(400), deadline=None)
def test_first_pattern(written: list[str], tried: list[str]) -> None:
    index = PatternIndex(written)
    for text in tried:
        assert index.first(text) == next((n for n, pattern in enumerate(written) if _matches(pattern, text)), NO_MATCH)


@given(st.lists(st.text("ab", max_size=12), max_size=60, unique=True), texts)
@settings(max_examples=examples(300), deadline=None)
def test_longest_prefix(strings: list[str], tried: list[str]) -> None:
    known = LongestPrefix(strings)
    for text in tried:
        found = known.find(text)
        best = max((s for s in strings if text.startswith(s)), key=len, default=None)
        assert (None if found < 0 else known.strings[found]) == best


@given(st.lists(st.tuples(host_patterns, st.none() | ports), max_size=40), hosts, ports, st.booleans())
@settings(max_examples=examples(400), deadline=None)
def test_domain_rules(written: list[tuple[str, int | None]], host: str, port: int, case_sensitive: bool) -> None:
    rules = [DomainRule(RuleAction.ALLOW, pattern, of, REF._replace(line=n)) for n, (pattern, of) in enumerate(written)]
    matcher = DomainMatcher(rules, case_sensitive=case_sensitive)

    def applies(rule: DomainRule) -> bool:
        same = (rule.host, host) if case_sensitive else (rule.host.lower(), host.lower())
        return rule.port in {None, port} and _matches(*same)

    assert matcher.match(host, port) == next((rule for rule in rules if applies(rule)), None)
    for rule in rules:
        covering = matcher.covering(rule, Budget(1_000_000))
        assert covering is not None
        assert covering.ref.line <= rule.ref.line
        assert not applies(rule) or applies(covering)


@given(st.lists(prefix_patterns, max_size=60), st.text("ab/?", max_size=10))
@settings(max_examples=examples(400), deadline=None)
def test_prefix_rules(written: list[str], path: str) -> None:
    rules = [PrefixRule(RuleAction.ALLOW, pattern, REF._replace(line=n)) for n, pattern in enumerate(written)]
    matcher = PrefixMatcher(rules)
    text = f"http://h/{path}"

    def applies(rule: PrefixRule) -> bool:
        return _matches(f"{rule.pattern}*", text)

    assert matcher.match(text) == next((rule for rule in rules if applies(rule)), None)
    for rule in rules:
        covering = matcher.covering(rule, Budget(1_000_000))
        assert covering is not None
        assert covering.ref.line <= rule.ref.line
        assert not applies(rule) or applies(covering)


@given(st.lists(st.tuples(addresses, addresses, st.sampled_from([4, 6])), max_size=40), addresses, st.sampled_from([4, 6]))
@settings(max_examples=examples(300), deadline=None)
def test_address_rules(written: list[tuple[int, int, int]], value: int, version: int) -> None:
    rules = [
        AddressRule(RuleAction.ALLOW, of, network & mask, mask, REF._replace(line=n))
        for n, (network, mask, of) in enumerate(written)
    ]
    matcher = AddressMatcher(rules)

    def applies(rule: AddressRule) -> bool:
        return rule.version == version and value & rule.mask == rule.network

    assert matcher.match_value(version, value) == next((rule for rule in rules if applies(rule)), None)
    for rule in rules:
        covering = matcher.covering(rule)
        assert covering is not None
        assert covering.ref.line <= rule.ref.line
        assert not applies(rule) or applies(covering)


LARGE = [
    "forbid domain *.site{n}.example.com",
    "forbid prefix http://www.example.com/*/item{n}/*.html",
    "forbid address {a}.{b}.{c}.7 255.255.0.255",
    "forbid domain www{n}.example.com",
    "forbid domain server*.site{n}.example.com",
    "forbid prefix http://www{n}.example.com/docs/",
    "forbid prefix http://www.example.com/area/{n}/",
    "forbid prefix http://*.dept{n}.example.com/",
]


@pytest.mark.full
@pytest.mark.parametrize("rule", some(LARGE, 3))
def test_loading_takes_time_by_the_number_of_rules(rule: str) -> None:
    def load(number: int) -> None:
        text = "\n".join(rule.format(n=n, a=n >> 16, b=n >> 8 & 255, c=n & 255) for n in range(number))
        space = CrawlSpace(parse_crawl_rules(text, file="crawl.rules"), Limits(), [])
        assert space.decide("http://nowhere.example/")[1].admitted

    assert is_linear(load, 4_000)


def test_thousands_of_patterns_with_one_beginning_are_not_scanned() -> None:
    def match_each(number: int) -> None:
        for n in range(number):
            rule = matchers[number].match(f"http://h/a/b/item{n}/c.html")
            assert rule is not None
            assert rule.ref.line == n + 1

    matchers = {number: _matcher_of_one_beginning(number) for number in (2_000, 8_000)}
    assert is_linear(match_each, 2_000)


def _matcher_of_one_beginning(number: int) -> PrefixMatcher:
    rules = "\n".join(f"forbid prefix http://h/*/item{n}/" for n in range(number))
    return PrefixMatcher(parse_crawl_rules(rules, file="crawl.rules").prefix)


def test_patterns_are_compared_once_however_often_their_text_is_found() -> None:
    alike = ["*".join(["", *texts, "cc", ""]) for texts in product(("aa", "ab", "ba", "bb"), repeat=6)]

    def match(size: int) -> None:
        index, text = PatternIndex(alike[:size]), "aabba" * (size // 5)
        assert index.first(text) == NO_MATCH
        assert index.covering(text, Budget(size)) == NO_MATCH
        assert index.first(f"{text}cc") < size

    assert is_linear(match, 300)


def test_no_rules() -> None:
    assert DomainMatcher(()).match("h", 80) is None
    assert PrefixMatcher(()).match("http://h/") is None
    assert AddressMatcher(()).match("9.1.2.3") is None
    assert CrawlRules() == parse_crawl_rules("\n", file="crawl.rules")


def _matches(pattern: str, text: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text) is not None
