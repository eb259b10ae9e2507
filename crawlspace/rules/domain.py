"""Compiled domain rules: the first rule that applies to a host and port.

Hosts are compared as text. IPv6 hosts are in brackets and compared in normal form, without case.
"""

from __future__ import annotations

from collections.abc import Sequence

from crawlspace.rules.crawl_rules import DomainRule, RuleAction
from crawlspace.rules.patterns import NO_MATCH, Budget, PatternIndex
from crawlspace.urls import Url


class DomainMatcher:
    """Immutable after compilation."""

    __slots__ = ("_any_port", "_any_port_rules", "_case_sensitive", "_one_port", "_one_port_rules", "_order")

    def __init__(self, rules: Sequence[DomainRule], *, case_sensitive: bool = True) -> None:
        self._case_sensitive = case_sensitive
        self._any_port_rules = [n for n, rule in enumerate(rules) if rule.port is None]
        self._one_port_rules = [n for n, rule in enumerate(rules) if rule.port is not None]
        self._any_port = PatternIndex(self.spelling(rules[n].host) for n in self._any_port_rules)
        self._one_port = PatternIndex(self.spelling(rules[n].target) for n in self._one_port_rules)
        self._order = tuple(rules)

    def match(self, host: str, port: int) -> DomainRule | None:
        """Return the first rule that applies to a host (as written in the link, or in normal form) and port."""
        host = self.spelling(host)
        one_port = self._one_port.first(f"{host}:{port}") if self._one_port_rules else NO_MATCH
        return self._earliest(self._any_port.first(host), one_port)

    def match_url(self, url: Url) -> DomainRule | None:
        """Return the first rule that applies to a URL; to its host as written, if case counts."""
        written = url.host_as_written
        return self.match(url.host if written.startswith("[") else written, url.port)

    def covering(self, rule: DomainRule, budget: Budget) -> DomainRule | None:
        """Return the first rule that applies to all hosts of `rule`; it may be the rule itself.

        A pattern covers another if it matches that pattern with every star replaced by a character that no pattern contains. When
        the budget is spent, the result may be a later rule, or None.
        """
        host = self.spelling(rule.host).replace("*", "\0")
        one_port = NO_MATCH if rule.port is None else self._one_port.covering(f"{host}:{rule.port}", budget)
        return self._earliest(self._any_port.covering(host, budget), one_port)

    def spelling(self, host: str) -> str:
        """Return a host or pattern in the form in which it is compared."""
        return host if self._case_sensitive and not host.startswith("[") else host.lower()

    def _earliest(self, any_port: int, one_port: int) -> DomainRule | None:
        first = min(
            NO_MATCH if any_port == NO_MATCH else self._any_port_rules[any_port],
            NO_MATCH if one_port == NO_MATCH else self._one_port_rules[one_port],
        )
        return None if first == NO_MATCH else self._order[first]


class GlobalSpace:
    """The domain rules that several crawlers share; a URL that no rule matches is not in it."""

    __slots__ = ("_matcher",)

    def __init__(self, rules: Sequence[DomainRule], *, case_sensitive: bool = True) -> None:
        self._matcher = DomainMatcher(rules, case_sensitive=case_sensitive)

    def allows(self, url: Url) -> DomainRule | None:
        """Return the rule that explicitly allows the URL, or None."""
        rule = self._matcher.match_url(url)
        return rule if rule is not None and rule.action is RuleAction.ALLOW else None
