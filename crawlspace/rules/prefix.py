"""Prefix rules compiled: the first one that a URL in normal form begins with.

A `*` stands for any run of characters, `/` included, also in the host part: `http://*.example.com/` applies to
`http://www.example.com/` and to `http://elsewhere.net/www.example.com/` alike. Hosts are the matter of domain rules.
"""

from __future__ import annotations

from collections.abc import Sequence

from crawlspace.rules.crawl_rules import PrefixRule
from crawlspace.rules.patterns import NO_MATCH, Budget, PatternIndex


class PrefixMatcher:
    """Compiled once, never changed."""

    __slots__ = ("_index", "_rules")

    def __init__(self, rules: Sequence[PrefixRule]) -> None:
        self._rules = tuple(rules)
        self._index = PatternIndex((rule.pattern for rule in rules), open_end=True)

    def match(self, text: str) -> PrefixRule | None:
        """Return the first rule that applies to a URL, given as its text in normal form."""
        first = self._index.first(text)
        return None if first == NO_MATCH else self._rules[first]

    def covering(self, rule: PrefixRule, budget: Budget) -> PrefixRule | None:
        """Return the first rule that applies to everything that `rule` applies to; it may be the rule itself.

        Another such rule, or None, when the budget is spent.
        """
        first = self._index.covering(rule.target.replace("*", "\0"), budget)
        return None if first == NO_MATCH else self._rules[first]
