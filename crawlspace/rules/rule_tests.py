"""`tests.rules`: URLs, and what the rules of a collection have to decide about each.

    # a line for each URL
    admit  http://www.example.com/handbook/
    admit  http://www.example.com/news/ noindex
    refuse http://www.example.com/print/1
    refuse http://www.example.com/a.zip extension

`admit` may be followed by `index` or `noindex`, `follow` or `nofollow`; `refuse` by the code of the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from crawlspace.decision import Decision, Reason
from crawlspace.errors import Mistake, RuleFileError, did_you_mean
from crawlspace.rules.crawl_rules import MAX_MISTAKES, written_lines
from crawlspace.rules.space import CrawlSpace
from crawlspace.text import MESSAGE, printable, quoted

RULE_TESTS = "tests.rules"
MAX_TESTS = 10_000
"""Tests of a collection: all are run at each start."""
_ADMIT, _REFUSE = "admit", "refuse"
_EFFECTS = {"index": ("index", True), "noindex": ("index", False), "follow": ("follow", True), "nofollow": ("follow", False)}
"""Attributes of a decision, and their values."""
_REASONS = [reason.value for reason in Reason if reason is not Reason.ADMITTED]


@dataclass(frozen=True, slots=True)
class RuleTest:
    """A URL and the decision about it that is expected. `words` are the effects or the reason; none are compared where there are none."""

    url: str
    admitted: bool
    words: tuple[str, ...]
    file: str
    line: int
    column: int
    """Of the URL."""
    text: str


def parse_rule_tests(text: str, *, file: str) -> tuple[RuleTest, ...]:
    """Return the tests of a file. Raises RuleFileError with all mistakes; `file` is the name in messages."""
    tests: list[RuleTest] = []
    mistakes: list[Mistake] = []
    for number, line in written_lines(text):
        verdict, *rest = line.split()
        message = _fault(verdict, rest)
        if message:
            mistakes.append(Mistake(file, number, line.index(verdict) + 1, message, line))
        elif len(tests) == MAX_TESTS:
            mistakes.append(
                Mistake(file, number, 1, f"{MAX_TESTS:,} tests are the most: take out those of URLs that are alike", "")
            )
            break
        else:
            url, *words = rest
            column = line.index(url, line.index(verdict) + len(verdict)) + 1
            tests.append(RuleTest(url, verdict == _ADMIT, tuple(words), file, number, column, line))
        if len(mistakes) >= MAX_MISTAKES:
            break
    if mistakes:
        raise RuleFileError(mistakes)
    return tuple(tests)


def _fault(verdict: str, rest: Sequence[str]) -> str:
    """Return what is wrong with a line, as a sentence; empty for nothing."""
    if verdict not in (_ADMIT, _REFUSE):
        return f"{quoted(verdict)} is unknown: a test is `admit URL` or `refuse URL`"
    if not rest:
        return f"the URL is missing: write {verdict} http://www.example.com/"
    if verdict == _REFUSE:
        if len(rest) > 2:
            return f"unexpected {quoted(rest[2])}: only one reason may follow the URL"
        if rest[1:] and rest[1] not in _REASONS:
            return f"{quoted(rest[1])} is no reason; {did_you_mean(rest[1], _REASONS, 'docs/reasons.md has their codes')}"
        return ""
    for word in rest[1:]:
        if word not in _EFFECTS:
            return f"unexpected {quoted(word)}: only {', '.join(_EFFECTS)} may follow the URL"
    by_attribute: dict[str, str] = {}
    for word in rest[1:]:
        if (other := by_attribute.setdefault(_EFFECTS[word][0], word)) is not word:
            return f"`{other}` and `{word}` are about the same: write one of them"
    return ""


def failed_tests(tests: Sequence[RuleTest], space: CrawlSpace) -> Iterator[Mistake]:
    """Yield the tests whose URL gets another decision than the expected one, as mistakes at their URL."""
    for test in tests:
        _, decision = space.decide(test.url)
        if not _is_met(test, decision):
            expected = " ".join((_ADMIT if test.admitted else _REFUSE, *test.words))
            message = f"the test of {printable(test.url, most=MESSAGE)} fails: expected is `{expected}`, and the rules {_found(decision)}"
            yield Mistake(test.file, test.line, test.column, message, test.text)


def _is_met(test: RuleTest, decision: Decision) -> bool:
    if test.admitted is not decision.admitted:
        return False
    if not test.admitted:
        return not test.words or test.words[0] == decision.reason.value
    return all(getattr(decision, attribute) is value for attribute, value in (_EFFECTS[word] for word in test.words))


def _found(decision: Decision) -> str:
    by = f" by {decision.rule} ({printable(decision.rule.text, most=MESSAGE)})" if decision.rule is not None else ""
    if not decision.admitted:
        return f"refuse it: {decision.reason.value}{by}"
    effects = ["" if decision.index else "noindex", "" if decision.follow else "nofollow"]
    return " ".join(["admit it", *filter(None, effects)]) + by
