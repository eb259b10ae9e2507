"""Every type of rule decides, and changes the content hash: a type that is only parsed fails here."""

from __future__ import annotations

import pytest

from crawlspace.decision import Decision, Reason, Verdict
from crawlspace.rules.crawl_rules import RuleType, parse_crawl_rules
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import CrawlSpace
from crawlspace.urls import parse

URL = "http://www.example/docs/a"
ADDRESS = "9.1.2.3"

RULES = {
    # type: target that matches the URL or its address, target that matches neither
    RuleType.DOMAIN: ("*.example", "*.test"),
    RuleType.PREFIX: ("http://www.example/docs/", "http://www.example/news/"),
    RuleType.ADDRESS: ("9.0.0.0/8", "10.0.0.0/8"),
}


def test_every_type_has_a_row() -> None:
    assert set(RULES) == set(RuleType)


@pytest.mark.parametrize("kind", RuleType)
def test_a_rule_decides_about_what_it_matches(kind: RuleType) -> None:
    matching, other = RULES[kind]
    reason = Reason(kind.value)
    assert decided(f"forbid {kind} {matching}") == [(reason, reason, Verdict.REFUSE)]
    assert decided(f"allow {kind} {matching}\nforbid {kind} {matching}") == [(Reason.ADMITTED, reason, Verdict.ALLOW)]
    assert decided(f"forbid {kind} {other}") == []


@pytest.mark.parametrize("kind", RuleType)
def test_a_rule_changes_the_content_hash(kind: RuleType) -> None:
    matching, other = RULES[kind]
    texts = ["", f"forbid {kind} {matching}", f"allow {kind} {matching}", f"forbid {kind} {other}"]
    assert len({space(text).content_hash for text in texts}) == len(texts)


def decided(rules: str) -> list[tuple[Reason, str, Verdict]]:
    """The reason, check and verdict of each step, in the crawl space or at the connection, that a rule has made."""
    built = space(rules)
    decisions: list[Decision] = [built.decide(URL)[1], built.at_connect("www.example", 80, ADDRESS)]
    return [(one.reason, step.check, step.verdict) for one in decisions for step in one.trace if step.rule is not None]


def space(rules: str) -> CrawlSpace:
    return CrawlSpace(parse_crawl_rules(rules, file="crawl.rules"), Limits(), [parse(URL)])
