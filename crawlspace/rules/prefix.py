"""Compiled prefix rules: the first rule whose pattern is a prefix of a URL in normal form.

A `*` stands for any characters, `/` included, also in the host part: `http://*.example.com/` applies to `http://www.example.com/`
and to `http://elsewhere.net/www.example.com/`. Use domain rules for hosts.
"""

from __future__ import annotations

from collections.abc import Sequence

from crawlspace.rules.crawl_rules import PrefixRule
from crawlspace.rules.patterns import NO_MATCH, Budget, PatternIndex


class PrefixMatcher:
    """Immutable after compilation."""

    __slots__ = ("_index", "_rules")

    def __init__(self, rules: Sequence[PrefixRule]) -> None:
        self._rules = tuple(rules)
        self._index = PatternIndex((rule.pattern for rule in rules), open_end=True)

    def match(self, text: str) -> PrefixRule | None:
        """Return the first rule that applies to a URL, given as its text in normal form."""
        first = self._index.first(text)
        return None if first == NO_MATCH else self._rules[first]

    def covering(self, rule: PrefixRule, budget: Budget) -> PrefixRule | None:
        """Return the first rule that applies to all URLs of `rule`; it may be the rule itself.

        When the budget is spent, the result may be a later rule, or None.
        """
        first = self._index.covering(rule.target.replace("*", "\0"), budget)
        return None if first == NO_MATCH else self._rules[first]
