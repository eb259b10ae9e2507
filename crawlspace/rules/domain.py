"""Compiled domain rules: the first rule that applies to a host and port.

Hosts are compared as text. IPv6 hosts are in brackets and compared in normal form, without case.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache

from crawlspace.rules.crawl_rules import CrawlRules, DomainRule, RuleAction
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


# --- The hosts named by allow rules, which may have private addresses ----------------------------------------------
# The owner of a name can point it to a private address. So a rule allows private addresses only for hosts of an owner that it
# names: a full host name, or all hosts below a registrable domain. `*`, `*.com` or `*e*` match names of anybody.


class NamedHosts:
    """Immutable after compilation."""

    def __init__(self, rules: CrawlRules) -> None:
        named = [rule for rule in rules.domain if rule.action is RuleAction.ALLOW]
        of_prefixes: dict[str, DomainRule] = {}
        for rule in rules.prefix:
            if rule.action is RuleAction.ALLOW and rule.host not in of_prefixes:
                of_prefixes[rule.host] = DomainRule(rule.action, rule.host, None, rule.ref)
        named += of_prefixes.values()
        named = [rule for rule in named if rule.host.strip("*")]
        named.sort(key=_specificity, reverse=True)  # so that the most specific match comes first
        self._matcher = DomainMatcher(named, case_sensitive=False)

    def matching(self, host: str, port: int) -> DomainRule | None:
        """Return an allow rule that matches a host and is not for all hosts."""
        return self._matcher.match(host, port)

    def naming(self, host: str, port: int) -> DomainRule | None:
        """Return an allow rule that names a host, so that it may have a private address. An IPv6 host is in brackets."""
        rule = self._matcher.match(host, port)
        if rule is None or "*" not in rule.host:
            return rule
        if _ADDRESS.fullmatch(host):
            return rule if _BEGINS_AN_ADDRESS.match(rule.host) else None
        return rule if _labels(_tail(rule.host)) > _labels(public_suffix(host.lower())) else None


def names_no_site(pattern: str) -> bool:
    """Return whether a host pattern with a star, other than `*`, matches hosts that anybody can register."""
    if "*" not in pattern or not pattern.strip("*") or _BEGINS_AN_ADDRESS.match(pattern):
        return False
    tail = _tail(pattern).lower()
    return not tail or tail.rpartition(".")[2].isdigit() or _labels(tail) <= _labels(public_suffix(f"x.{tail}"))


def is_for_addresses(pattern: str) -> bool:
    """Return whether a host pattern with a star begins as an address does, as `10.1.*`; `10.1.example.com` matches it, too."""
    return "*" in pattern and _BEGINS_AN_ADDRESS.match(pattern) is not None


def is_address(host: str) -> bool:
    """Return whether a host is an address; one of IPv6 is in brackets."""
    return _ADDRESS.fullmatch(host) is not None


def public_suffix(host: str) -> str:
    """Return the public suffix of a host name, by the list bundled with tldextract; empty if none applies."""
    return _suffix_of()(host)


@cache
def _suffix_of() -> Callable[[str], str]:
    """Load the list on first use, which takes half a second. Nothing is fetched or written."""
    from tldextract import TLDExtract  # noqa: PLC0415

    extract = TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True)
    return lambda host: extract.extract_str(host).suffix


_ADDRESS = re.compile(r"\[.*\]|\d+\.\d+\.\d+\.\d+")
_BEGINS_AN_ADDRESS = re.compile(r"\[|\d+\.")


def _tail(pattern: str) -> str:
    """Return the whole labels after the last star: those common to all hosts that the pattern matches."""
    tail = pattern.rpartition("*")[2]
    return tail.partition(".")[2] if "*" in pattern else tail


def _labels(name: str) -> int:
    return name.count(".") + 1 if name else 0


def _specificity(rule: DomainRule) -> int:
    return _labels(_tail(rule.host)) if "*" in rule.host else 1_000
