"""`tests.rules`: its lines, and which tests fail."""

from __future__ import annotations

import pytest

from crawlspace.errors import RuleFileError
from crawlspace.rules.crawl_rules import parse_crawl_rules
from crawlspace.rules.limits import Limits
from crawlspace.rules.rule_tests import MAX_TESTS, failed_tests, parse_rule_tests
from crawlspace.rules.space import CrawlSpace
from crawlspace.rules.xml.matcher import CompiledActions
from crawlspace.rules.xml.parser import parse_rules_xml

RULES = """\
forbid prefix http://www.example.com/print/
allow prefix http://www.example.com/
"""
ACTIONS = b'<Rules><Rule><Path val="/news/1"/><NoIndex/></Rule></Rules>'


def space() -> CrawlSpace:
    actions = parse_rules_xml(ACTIONS, file="rules.xml")
    return CrawlSpace(
        parse_crawl_rules(RULES, file="crawl.rules"),
        Limits(),
        [],
        actions=CompiledActions(actions, accept=True, index=True, follow=True),
    )


@pytest.mark.parametrize(
    ("line", "failure"),
    [
        ("admit http://www.example.com/a", ""),
        ("admit http://www.example.com/a index follow", ""),
        ("admit http://www.example.com/news/1 noindex", ""),
        ("admit http://www.example.com/news/1 follow", ""),
        ("refuse http://www.example.com/print/1", ""),
        ("refuse http://www.example.com/print/1 prefix", ""),
        ("refuse http://www.example.com/a.zip extension", ""),
        ("refuse http://user@www.example.com/ credentials", ""),
        (
            "admit http://www.example.com/print/1",
            "expected is `admit`, and the rules refuse it: prefix by crawl.rules:1 (forbid prefix http://www.example.com/print/)",
        ),
        (
            "refuse http://www.example.com/a",
            "expected is `refuse`, and the rules admit it by crawl.rules:2 (allow prefix http://www.example.com/)",
        ),
        (
            "refuse http://www.example.com/print/1 domain",
            "expected is `refuse domain`, and the rules refuse it: prefix by crawl.rules:1 (forbid prefix http://www.example.com/print/)",
        ),
        (
            "admit http://www.example.com/news/1 index",
            "expected is `admit index`, and the rules admit it noindex by crawl.rules:2 (allow prefix http://www.example.com/)",
        ),
    ],
)
def test_which_tests_fail(line: str, failure: str) -> None:
    tests = parse_rule_tests(f"# comment\n\n  {line}\n", file="tests.rules")
    found = [(one.line, one.column, one.message.partition(" fails: ")[2]) for one in failed_tests(tests, space())]
    assert found == ([(3, 3 + line.index(" ") + 1, failure)] if failure else [])


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        ("allow http://www.example.com/", 1, "'allow' is unknown: a test is `admit URL` or `refuse URL`"),
        (" admit", 2, "the URL is missing: write admit http://www.example.com/"),
        ("refuse http://a.example/ prefx", 1, "'prefx' is no reason; did you mean 'prefix'?"),
        ("refuse http://a.example/ zzz", 1, "'zzz' is no reason; docs/reasons.md has their codes"),
        ("refuse http://a.example/ prefix domain", 1, "unexpected 'domain': only one reason may follow the URL"),
        ("refuse http://a.example/ admitted", 1, "'admitted' is no reason; docs/reasons.md has their codes"),
        ("admit http://a.example/ prefix", 1, "unexpected 'prefix': only index, noindex, follow, nofollow may follow the URL"),
        ("admit http://a.example/ index noindex", 1, "`index` and `noindex` are about the same: write one of them"),
    ],
)
def test_mistakes(line: str, column: int, message: str) -> None:
    with pytest.raises(RuleFileError) as caught:
        parse_rule_tests(f"{line}\n", file="tests.rules")
    assert [(one.line, one.column, one.message) for one in caught.value.mistakes] == [(1, column, message)]


def test_all_mistakes_are_named_and_the_number_of_tests_is_limited() -> None:
    with pytest.raises(RuleFileError) as caught:
        parse_rule_tests("admit\n" * 3, file="tests.rules")
    assert [one.line for one in caught.value.mistakes] == [1, 2, 3]
    with pytest.raises(RuleFileError, match="10,000 tests are the most"):
        parse_rule_tests("admit http://a.example/\n" * (MAX_TESTS + 1), file="tests.rules")
